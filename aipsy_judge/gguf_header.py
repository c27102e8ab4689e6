"""The head of a GGUF file, read with every length checked, so that a damaged or hostile file is refused before the
library maps it.

Format: github ggml-org/ggml docs/gguf.md, versions 2 and 3, little endian.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

from .errors import WeightsError

_SCALARS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}
_STRING, _ARRAY = 8, 9
# ggml type -> (elements a block, bytes a block); types that a judge's file may hold. Source: ggml's type traits.
_BLOCKS = {
    0: (1, 4), 1: (1, 2), 2: (32, 18), 3: (32, 20), 6: (32, 22), 7: (32, 24), 8: (32, 34), 10: (256, 84),
    11: (256, 110), 12: (256, 144), 13: (256, 176), 14: (256, 210), 16: (256, 66), 17: (256, 74), 18: (256, 98),
    19: (256, 50), 20: (32, 18), 21: (256, 110), 22: (256, 82), 23: (256, 136), 24: (1, 1), 25: (1, 2), 26: (1, 4),
    27: (1, 8), 28: (1, 8), 29: (256, 56), 30: (1, 2), 34: (256, 54), 35: (256, 66), 39: (32, 17),
}  # fmt: skip
_KEPT = 4096  # longest array whose values are kept; vocabularies are only walked over


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """Name, shape (fastest axis first) and where the data lie in the file, in bytes."""

    name: str
    shape: tuple[int, ...]
    kind: int
    start: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class GgufHeader:
    """metadata: scalars, strings, and arrays of at most 4096 numbers; `lengths` has the length of every array."""

    metadata: Mapping[str, Any]
    lengths: Mapping[str, int]
    tensors: tuple[TensorInfo, ...]


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
        metadata: dict[str, Any] = {}
        lengths: dict[str, int] = {}
        for _ in range(key_count):
            key = self._string()
            if key in metadata or key in lengths:
                raise self._fault(f"the key {key!r} stands twice")
            value, length = self._value(self._number("<I"))
            if length is not None:
                lengths[key] = length
            if value is not None:
                metadata[key] = value
        return GgufHeader(metadata, lengths, self._tensors(tensor_count, metadata))

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
        try:
            return self._data[start : self._at].decode("utf-8")
        except UnicodeDecodeError as error:
            raise self._fault("a text that is not UTF-8") from error

    def _value(self, kind: int) -> tuple[Any, int | None]:
        """(value, length): length is None unless the value is an array."""
        if kind in _SCALARS:
            return self._number(_SCALARS[kind]), None
        if kind == _STRING:
            return self._string(), None
        if kind != _ARRAY:
            raise self._fault(f"unknown value type {kind}")
        inner, length = self._number("<I"), self._number("<Q")
        if inner in _SCALARS:
            form = _SCALARS[inner]
            start = self._skip(length * struct.calcsize(form))
            kept = length <= _KEPT
            return (list(struct.unpack_from(f"<{length}{form[1]}", self._data, start)) if kept else None), length
        if inner != _STRING:
            raise self._fault(f"an array of type {inner}")
        if length > self._size // 8:
            raise self._fault(f"an array of {length} texts in a file of {self._size} bytes")
        for _ in range(length):
            self._skip(self._number("<Q"))
        return None, length

    def _tensors(self, count: int, metadata: Mapping[str, Any]) -> tuple[TensorInfo, ...]:
        rows = [self._tensor_row() for _ in range(count)]
        alignment = metadata.get("general.alignment", 32)
        if not isinstance(alignment, int) or alignment < 1 or alignment & (alignment - 1):
            raise self._fault(f"an alignment of {alignment}")
        base = -(-self._at // alignment) * alignment
        names: set[str] = set()
        tensors: list[TensorInfo] = []
        for name, shape, kind, offset in rows:
            if name in names:
                raise self._fault(f"the tensor {name!r} stands twice")
            names.add(name)
            elements, size = _BLOCKS[kind]
            length = prod(shape) // elements * size
            if shape[0] % elements or offset % alignment or base + offset + length > self._size:
                raise self._fault(f"the tensor {name!r} does not lie within the file")
            tensors.append(TensorInfo(name, shape, kind, base + offset, length))
        return tuple(tensors)

    def _tensor_row(self) -> tuple[str, tuple[int, ...], int, int]:
        name = self._string()
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


def check_model(path: Path) -> GgufHeader:
    """The header of a file that can be loaded as a model. Raises WeightsError with the reason if it is none."""
    header = read_gguf_header(path)
    kind, arch = header.metadata.get("general.type", "model"), header.metadata.get("general.architecture")
    checks: list[tuple[Callable[[], bool], str]] = [
        (lambda: kind == "model", f"this file is of type {kind!r}, not a model"),
        (lambda: isinstance(arch, str), "the file names no architecture"),
        (lambda: bool(header.tensors), "the file holds a vocabulary only, no weights"),
        (lambda: header.lengths.get("tokenizer.ggml.tokens", 0) > 0, "the file holds no vocabulary"),
    ]
    for passes, message in checks:
        if not passes():
            raise WeightsError(message, where=str(path))
    return header


def check_adapter(path: Path, base: GgufHeader) -> GgufHeader:
    """The header of a LoRA adapter that fits the base's architecture. Raises WeightsError."""
    header = read_gguf_header(path)
    kind = (header.metadata.get("general.type"), header.metadata.get("adapter.type"))
    if kind != ("adapter", "lora"):
        raise WeightsError(f"not a LoRA adapter (general.type {kind[0]!r}, adapter.type {kind[1]!r})", where=str(path))
    mine, theirs = header.metadata.get("general.architecture"), base.metadata.get("general.architecture")
    if mine != theirs:
        raise WeightsError(f"an adapter for the architecture {mine!r}; the base is {theirs!r}", where=str(path))
    if not header.tensors:
        raise WeightsError("the adapter holds no tensors", where=str(path))
    shapes = {t.name: t.shape for t in base.tensors}
    for tensor in header.tensors:
        target = tensor.name.removesuffix(".lora_a").removesuffix(".lora_b")
        if target not in shapes:
            raise WeightsError(f"the adapter changes {target!r}, which the base does not have", where=str(path))
    return header


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
