"""Bytes of tensors, block by block: a checkpoint is never in memory as a whole."""

from __future__ import annotations

from typing import BinaryIO

from aipsy_judge.errors import WeightsError

BLOCK_BYTES = 8 << 20


def read_bytes(file: BinaryIO, start: int, length: int) -> bytearray:
    """`length` bytes from `start`. Raises WeightsError where the file became shorter meanwhile."""
    file.seek(start)
    data = bytearray(length)
    if file.readinto(data) != length:  # type: ignore[attr-defined]
        raise WeightsError("the file became shorter while it was read", where=getattr(file, "name", None))
    return data
