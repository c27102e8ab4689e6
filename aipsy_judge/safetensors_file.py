"""Where each tensor lies in a safetensors file, without reading any of them.

Format: github huggingface/safetensors, README "Format": 8 bytes of length (little endian), a JSON header, the data.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from pathlib import Path
from typing import Any, BinaryIO

from .errors import WeightsError

# bits an element; types below 8 bits and of 8-bit floats are those of quantised checkpoints
_BITS = {
    "F64": 64, "I64": 64, "U64": 64, "F32": 32, "I32": 32, "U32": 32, "F16": 16, "BF16": 16, "I16": 16, "U16": 16,
    "I8": 8, "U8": 8, "BOOL": 8, "F8_E4M3": 8, "F8_E5M2": 8, "F8_E8M0": 8, "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6,
}  # fmt: skip
_LONGEST_HEADER = 100_000_000  # the format's own limit


@dataclass(frozen=True, slots=True)
class Stored:
    """A tensor in a file: `start` and `size_bytes` count bytes of the file."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    start: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class TensorFile:
    """`head` is everything before the data, `tensors` are in the order of the data."""

    path: Path
    head: bytes
    tensors: tuple[Stored, ...]
    size_bytes: int


def read_tensor_file(path: Path) -> TensorFile:
    """The tensors of `path`. Raises WeightsError if it is no whole safetensors file."""
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            head = _head(file, size, path)
    except OSError as error:
        raise WeightsError(f"cannot be read: {error.strerror or error}", where=str(path)) from error
    try:
        entries = json.loads(head[8:])
        tensors = tuple(sorted(_tensors(entries, len(head)), key=lambda t: (t.start, t.size_bytes)))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise WeightsError(f"damaged safetensors header: {error}", where=str(path)) from error
    _check_layout(tensors, len(head), size, path)
    return TensorFile(path, head, tensors, size)


def _head(file: BinaryIO, size: int, path: Path) -> bytes:
    start = file.read(8)
    if start.startswith(b"version "):
        raise WeightsError("this is a pointer to a large file, not the file", where=str(path), hint="git lfs pull")
    length = struct.unpack("<Q", start)[0] if len(start) == 8 else 0
    if not 2 <= length <= min(size - 8, _LONGEST_HEADER):
        raise WeightsError("not a safetensors file, or cut off", where=str(path), hint="Fetch the file again.")
    return start + file.read(length)


def _tensors(entries: dict[str, Any], base: int) -> Iterator[Stored]:
    for name, entry in entries.items():
        if name == "__metadata__":
            continue
        begin, end = (int(x) for x in entry["data_offsets"])
        shape = tuple(int(n) for n in entry["shape"])
        dtype = str(entry["dtype"])
        if dtype not in _BITS:
            raise ValueError(f"the tensor {name!r} has the unknown type {dtype!r}")
        if min(shape, default=0) < 0 or prod(shape) * _BITS[dtype] != 8 * (end - begin):
            raise ValueError(f"the tensor {name!r} of shape {shape} does not take {end - begin} bytes")
        yield Stored(name, dtype, shape, base + begin, end - begin)


def _check_layout(tensors: tuple[Stored, ...], base: int, size: int, path: Path) -> None:
    """The data must follow each other without gap or overlap up to the end of the file."""
    ends = [base, *(t.start + t.size_bytes for t in tensors)]
    starts = [*(t.start for t in tensors), size]
    if ends != starts:
        raise WeightsError(
            f"its tensors end at byte {max(ends)}, the file has {size}, or they overlap: cut off or damaged",
            where=str(path),
            hint="Fetch the file again.",
        )
    names = sorted(t.name for t in tensors)
    twice = next((a for a, b in pairwise(names) if a == b), None)
    if twice is not None:
        raise WeightsError(f"the tensor {twice!r} stands twice", where=str(path))
