"""Feeds as the rows of a batch, and where to cut a batch that is too large for one pass."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .protocol import Feed


def rows(feeds: Sequence[Feed]) -> tuple[Any, Any, Any, Any]:
    """The feeds one after another: token, position, sequence and wants-logits of every row."""
    lengths = [len(f.tokens) for f in feeds]
    tokens = np.concatenate([np.asarray(f.tokens, dtype=np.int32) for f in feeds])
    positions = np.concatenate(
        [np.arange(f.start, f.start + n, dtype=np.int32) for f, n in zip(feeds, lengths, strict=True)]
    )
    sequences = np.repeat(np.array([f.sequence for f in feeds], dtype=np.int32), lengths)
    wanted = np.zeros(len(tokens), dtype=np.int8)
    ends = np.cumsum(lengths) - 1
    wanted[ends[[f.want_logits for f in feeds]]] = 1
    return tokens, positions, sequences, wanted


def chunks(wanted: Any, batch_tokens: int, max_outputs: int) -> list[tuple[int, int]]:
    """Cut points so that no pass has more tokens, or more rows of logits, than it may."""
    cuts, start, outputs = list[tuple[int, int]](), 0, 0
    for row, want in enumerate(wanted.tolist()):
        if row - start == batch_tokens or outputs + want > max_outputs:
            cuts.append((start, row))
            start, outputs = row, 0
        outputs += want
    return [*cuts, (start, len(wanted))]
