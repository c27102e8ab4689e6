"""The head of a GGUF file, read with every length checked, so that a damaged or hostile file is refused before the
library maps it.

Format: github ggml-org/ggml docs/gguf.md, versions 2 and 3, little endian.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import isfinite, prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .errors import WeightsError

_SCALARS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}
_BOOL, STRING, _ARRAY = 7, 8, 9
_LENGTH = struct.Struct("<Q")
UINT32, INT32, FLOAT32 = 4, 5, 6
# ggml type -> (elements a block, bytes a block); types that a judge's file may hold. Source: ggml's type traits.
_BLOCKS = {
    0: (1, 4), 1: (1, 2), 2: (32, 18), 3: (32, 20), 6: (32, 22), 7: (32, 24), 8: (32, 34), 10: (256, 84),
    11: (256, 110), 12: (256, 144), 13: (256, 176), 14: (256, 210), 16: (256, 66), 17: (256, 74), 18: (256, 98),
    19: (256, 50), 20: (32, 18), 21: (256, 110), 22: (256, 82), 23: (256, 136), 24: (1, 1), 25: (1, 2), 26: (1, 4),
    27: (1, 8), 28: (1, 8), 29: (256, 56), 30: (1, 2), 34: (256, 54), 35: (256, 66), 39: (32, 17),
}  # fmt: skip
_KEPT = 4096  # longest array whose values are kept; vocabularies are only walked over
# Bounds, each far above any model there is: beyond them a file costs time and memory for nothing.
_MOST_KEYS = _MOST_TENSORS = 2**16
_MOST_ELEMENTS = 2**22  # the largest vocabularies have 2^18 tokens and 2^19 merges
_LONGEST_TEXT = 2**22  # bytes; chat templates have up to 2^15
_LONGEST_NAME = 63  # GGML_MAX_NAME - 1


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """Name, shape (fastest axis first) and where the data lie in the file, in bytes."""

    name: str
    shape: tuple[int, ...]
    kind: int
    start: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class ArrayInfo:
    """An array of the metadata: type of its elements, how many, and where the first begins, in bytes."""

    kind: int
    length: int
    start: int


@dataclass(frozen=True, slots=True)
class GgufHeader:
    """metadata: scalars, strings, and arrays of at most 4096 numbers; `lengths` has the length of every array.

    kinds: the type of each scalar and string, as GGUF numbers them; arrays: where each array lies.
    """

    metadata: Mapping[str, Any]
    lengths: Mapping[str, int]
    tensors: tuple[TensorInfo, ...]
    kinds: Mapping[str, int] = field(default_factory=dict)
    arrays: Mapping[str, ArrayInfo] = field(default_factory=dict)

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Shape by name of tensor."""
        return {t.name: t.shape for t in self.tensors}


def read_gguf_header(path: Path) -> GgufHeader:
    """The header of `path`. Raises WeightsError that says what is wrong with the file: not a GGUF, cut off, a length
    or tensor outside the file, an unknown type."""
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            start = file.read(16)
            _check_magic(start, size, path)
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                return _Reader(data, size, path).header()
    except OSError as error:
        raise WeightsError(f"cannot be read: {error.strerror or error}", where=str(path)) from error


def _check_magic(start: bytes, size: int, path: Path) -> None:
    if size == 0:
        raise WeightsError("the file is empty", where=str(path), hint="Fetch it again.")
    if start.lstrip().lower().startswith((b"<!doctype", b"<html")):
        raise WeightsError(
            "this is a web page, not weights", where=str(path), hint="Fetch the file itself, not its page."
        )
    if start.startswith(b"version https://"):
        raise WeightsError("this is a pointer to a large file, not the file", where=str(path), hint="git lfs pull")
    if start[:4] != b"GGUF":
        raise WeightsError(f"not a GGUF file (it begins with {start[:4]!r})", where=str(path))
    if size < 24:
        raise WeightsError(f"cut off after {size} bytes", where=str(path), hint="Fetch it again.")


def array_texts(path: Path, array: ArrayInfo) -> Iterator[bytes]:
    """The texts of an array of the header, as bytes, one after another."""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        at = array.start
        for _ in range(array.length):
            end = at + 8 + _LENGTH.unpack_from(data, at)[0]
            yield data[at + 8 : end]
            at = end


def array_numbers(path: Path, array: ArrayInfo) -> NDArray[Any]:
    """The numbers of an array of the header, shape (length,)."""
    form = np.dtype(_SCALARS[array.kind])
    with path.open("rb") as file:
        file.seek(array.start)
        return np.frombuffer(file.read(array.length * form.itemsize), dtype=form)


class _Reader:
    """A position in the file; every step is checked against its end."""

    def __init__(self, data: mmap.mmap, size: int, path: Path) -> None:
        self._data, self._size, self._path, self._at = data, size, path, 4

    def header(self) -> GgufHeader:
        version = self._number("<I")
        if version not in (2, 3):
            raise self._fault(f"GGUF version {version}; versions 2 and 3 can be read")
        tensor_count, key_count = self._number("<Q"), self._number("<Q")
        # the shortest entries take 13 and 24 bytes: a count beyond that is damage, not a large file
        if key_count * 13 + tensor_count * 24 > self._size:
            raise self._fault(f"{key_count} keys and {tensor_count} tensors do not fit a file of {self._size} bytes")
        if key_count > _MOST_KEYS or tensor_count > _MOST_TENSORS:
            raise self._fault(f"{key_count} keys and {tensor_count} tensors: no model has so many")
        metadata: dict[str, Any] = {}
        kinds: dict[str, int] = {}
        arrays: dict[str, ArrayInfo] = {}
        for _ in range(key_count):
            key = self._string()
            if not key:
                raise self._fault("a key without a name")
            if key in kinds or key in arrays:
                raise self._fault(f"the key {key!r} stands twice")
            kind = self._number("<I")
            if kind == _ARRAY:
                arrays[key] = self._array()
                values = self._kept(arrays[key])
                if values is not None:
                    metadata[key] = values
            else:
                kinds[key], metadata[key] = kind, self._scalar(kind)
        lengths = {k: a.length for k, a in arrays.items()}
        tensors = self._tensors(tensor_count, metadata.get("general.alignment", 32), kinds)
        return GgufHeader(metadata, lengths, tensors, kinds, arrays)

    def _fault(self, message: str) -> WeightsError:
        return WeightsError(
            f"damaged at byte {self._at}: {message}", where=str(self._path), hint="Fetch the file again."
        )

    def _skip(self, length: int) -> int:
        start = self._at
        if length < 0 or start + length > self._size:
            raise self._fault(f"cut off, or a length of {length} bytes that is not so")
        self._at = start + length
        return start

    def _number(self, form: str) -> Any:
        start = self._skip(struct.calcsize(form))
        return struct.unpack_from(form, self._data, start)[0]

    def _string(self) -> str:
        length = self._number("<Q")
        start = self._skip(length)
        if length > _LONGEST_TEXT:
            raise self._fault(f"a text of {length} bytes: no model has one so long")
        try:
            return self._data[start : self._at].decode("utf-8")
        except UnicodeDecodeError as error:
            raise self._fault("a text that is not UTF-8") from error

    def _scalar(self, kind: int) -> Any:
        if kind == STRING:
            return self._string()
        if kind not in _SCALARS:
            raise self._fault(f"unknown value type {kind}")
        if kind == _BOOL and self._data[self._at : self._at + 1] not in (b"\0", b"\1"):
            raise self._fault("a truth value that is neither 0 nor 1")
        value = self._number(_SCALARS[kind])
        if isinstance(value, float) and not isfinite(value):
            raise self._fault(f"a number that is none ({value})")
        return value

    def _array(self) -> ArrayInfo:
        """Walks over an array."""
        inner, length = self._number("<I"), self._number("<Q")
        if inner not in _SCALARS and inner != STRING:
            raise self._fault(f"an array of type {inner}")
        shortest = 8 if inner == STRING else struct.calcsize(_SCALARS[inner])
        if length * shortest > self._size - self._at:
            raise self._fault(f"cut off, or an array of {length} elements that is not so")
        if length > _MOST_ELEMENTS:
            raise self._fault(f"an array of {length} elements: no model has one so long")
        start = self._at
        if inner == STRING:
            self._skip_texts(length)
        else:
            self._skip(length * shortest)
        return ArrayInfo(inner, length, start)

    def _skip_texts(self, count: int) -> None:
        """In a loop of its own: a vocabulary and its merges have 800,000."""
        at, last = self._at, self._size - 8
        for _ in range(count):
            if at > last:
                raise self._fault("cut off, or a text longer than the file")
            at += 8 + _LENGTH.unpack_from(self._data, at)[0]
        if at > self._size:
            raise self._fault("cut off, or a text longer than the file")
        self._at = at

    def _kept(self, array: ArrayInfo) -> list[Any] | None:
        if array.kind == STRING or array.length > _KEPT:
            return None
        form = f"<{array.length}{_SCALARS[array.kind][1]}"
        return list(struct.unpack_from(form, self._data, array.start))

    def _tensors(self, count: int, alignment: Any, kinds: Mapping[str, int]) -> tuple[TensorInfo, ...]:
        rows = [self._tensor_row() for _ in range(count)]
        # tensors are mapped where they lie; the library's buffers begin at multiples of 32 bytes
        if kinds.get("general.alignment", UINT32) != UINT32 or alignment < 32 or alignment & (alignment - 1):
            raise self._fault(f"an alignment of {alignment!r}")
        base = -(-self._at // alignment) * alignment
        names: set[str] = set()
        tensors: list[TensorInfo] = []
        free = 0  # tensors lie one behind the other in the order of the table, each padded
        for name, shape, kind, offset in rows:
            if name in names:
                raise self._fault(f"the tensor {name!r} stands twice")
            names.add(name)
            elements, size = _BLOCKS[kind]
            length = prod(shape) // elements * size
            if shape[0] % elements or offset % alignment or base + offset + length > self._size:
                raise self._fault(f"the tensor {name!r} does not lie within the file")
            if offset != free:
                how = "overlaps" if offset < free else "leaves a gap behind"
                raise self._fault(f"the tensor {name!r} {how} the one before it")
            free = -(-(offset + length) // alignment) * alignment
            tensors.append(TensorInfo(name, shape, kind, base + offset, length))
        return tuple(tensors)

    def _tensor_row(self) -> tuple[str, tuple[int, ...], int, int]:
        name = self._string()
        if not 1 <= len(name.encode()) <= _LONGEST_NAME:
            raise self._fault(f"a tensor's name of {len(name.encode())} bytes; 1 to {_LONGEST_NAME} are possible")
        axes = self._number("<I")
        if not 1 <= axes <= 4:
            raise self._fault(f"the tensor {name!r} has {axes} axes")
        shape = tuple(self._number("<Q") for _ in range(axes))
        kind, offset = self._number("<I"), self._number("<Q")
        if kind not in _BLOCKS:
            raise self._fault(f"the tensor {name!r} has the unknown type {kind}")
        if 0 in shape or prod(shape) > 2**48:
            raise self._fault(f"the tensor {name!r} has the shape {shape}")
        return name, shape, kind, offset


def cell_bytes(header: GgufHeader) -> int:
    """Bytes of cache that a token takes, keys and values at 16 bits, sliding layers at their full length.

    Raises WeightsError where the file does not say: a cache of unknown size cannot be planned.
    """
    meta = header.metadata
    arch = meta.get("general.architecture")

    def of(key: str) -> Any:
        return meta.get(f"{arch}.{key}")

    def per_layer(value: Any) -> list[int]:
        found = value if isinstance(value, list) else [value] * layers
        if len(found) < layers or not all(isinstance(x, int) and x >= 0 for x in found):
            raise WeightsError(f"the file does not say how large the cache of {arch!r} is")
        return found

    layers, embedding = of("block_count"), of("embedding_length")
    if not all(isinstance(x, int) and 0 < x < 2**20 for x in (layers, embedding)):
        raise WeightsError(f"the file does not say how large the cache of {arch!r} is")
    heads = per_layer(of("attention.head_count"))
    # no key-value heads of their own: as many as there are heads
    kv = per_layer(of("attention.head_count_kv") or heads)
    default = embedding // max(*heads, 1)
    pattern = of("attention.sliding_window_pattern")
    total = 0
    for layer in range(layers):
        sliding = isinstance(pattern, list) and layer < len(pattern) and pattern[layer]
        suffix = "_swa" if sliding else ""
        key = of(f"attention.key_length{suffix}") or of("attention.key_length") or default
        value = of(f"attention.value_length{suffix}") or of("attention.value_length") or default
        total += kv[layer] * (key + value)
    if total <= 0:
        raise WeightsError(f"the file does not say how large the cache of {arch!r} is")
    return int(total) * 2
