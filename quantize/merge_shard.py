"""One file of weights copied with its changes added, a few megabytes at a time.

A merged tensor has the type and shape of the stored one, so the copy has the very header and layout of its source: a
checkpoint's index stays right, and what the adapter does not touch is the same bytes.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import torch

from aipsy_judge.errors import WeightsError
from aipsy_judge.safetensors_file import Stored, TensorFile

from .delta import TORCH_TYPES, Change, Matrices
from .stored import BLOCK_BYTES, read_bytes


@dataclass(frozen=True, slots=True)
class Effect:
    """What merging did to one tensor.

    values, changed   how many there are, and how many are stored differently than before
    change_squares    sum of squares of the exact change
    lost_squares      sum of squares of (stored result - exact result): what rounding to the stored type took away
    """

    values: int = 0
    changed: int = 0
    change_squares: float = 0.0
    lost_squares: float = 0.0

    def __add__(self, other: Effect) -> Effect:
        return Effect(
            self.values + other.values,
            self.changed + other.changed,
            self.change_squares + other.change_squares,
            self.lost_squares + other.lost_squares,
        )


@dataclass(frozen=True, slots=True)
class MergedFile:
    """A written file. The sha256 are of the source as it was read and of the file as it was written."""

    name: str
    size_bytes: int
    source_sha256: str
    sha256: str
    effects: Mapping[str, Effect]


def merge_file(
    source: TensorFile, target: Path, changes: Mapping[str, Change], load: Callable[[Change], Matrices]
) -> MergedFile:
    """Write `target`, synced. Memory: the factors of one change and a few blocks of 8 MiB. Raises WeightsError where a
    merged value is not finite."""
    read, written = hashlib.sha256(source.head), hashlib.sha256(source.head)
    effects: dict[str, Effect] = {}
    with source.path.open("rb") as base, target.open("wb") as out:
        out.write(source.head)
        for tensor in source.tensors:
            change = changes.get(tensor.name)
            for old, new, effect in _copied(base, tensor) if change is None else _merged(base, change, load(change)):
                read.update(old)
                written.update(new)
                out.write(new)
                if change is not None:
                    effects[tensor.name] = effects.get(tensor.name, Effect()) + effect
        out.flush()
        os.fsync(out.fileno())
    return MergedFile(source.path.name, source.size_bytes, read.hexdigest(), written.hexdigest(), effects)


_Block = tuple[bytearray | memoryview, bytearray | memoryview, Effect]


def _copied(base: BinaryIO, tensor: Stored) -> Iterator[_Block]:
    for begin in range(0, tensor.size_bytes, BLOCK_BYTES):
        block = read_bytes(base, tensor.start + begin, min(BLOCK_BYTES, tensor.size_bytes - begin))
        yield block, block, Effect()


def _merged(base: BinaryIO, change: Change, matrices: Matrices) -> Iterator[_Block]:
    tensor, (rows, columns) = change.tensor, change.tensor.shape[-2:]
    kind = TORCH_TYPES[tensor.dtype]
    row_bytes = columns * kind.itemsize
    step = max(1, BLOCK_BYTES // row_bytes)
    for expert in range(change.experts):
        for begin in range(0, rows, step):
            end = min(rows, begin + step)
            start = tensor.start + (expert * rows + begin) * row_bytes
            block = read_bytes(base, start, (end - begin) * row_bytes)
            old = torch.frombuffer(block, dtype=kind).reshape(end - begin, columns)
            new, effect = _sum(old, matrices.rows(expert, begin, end), tensor.name)
            yield block, new.view(torch.uint8).numpy().data.cast("B"), effect


def _sum(old: torch.Tensor, change: torch.Tensor, name: str) -> tuple[torch.Tensor, Effect]:
    before = old.float()
    exact = before + change
    new = exact.to(old.dtype)
    after = new.float()
    # a sum is quick, and finite only if all are; the slow question is asked where it is not
    if not bool(torch.isfinite(after.sum())) and not bool(torch.isfinite(after).all()):
        raise WeightsError(f"merging makes values of {name!r} infinite or not a number in {old.dtype}")
    changed = int(torch.count_nonzero(after - before))
    return new, Effect(new.numel(), changed, _squares(change), _squares(after - exact))


def _squares(values: torch.Tensor) -> float:
    flat = values.flatten()
    return float(torch.dot(flat, flat))
