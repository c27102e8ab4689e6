"""Rows -> tensors: right-padded tokens, the mask that keeps branches apart, and what is predicted, flat."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .rows import Row

_Number = TypeVar("_Number", int, float)


@dataclass(frozen=True)
class Batch:
    """`B` rows of at most `T` tokens with `N` targets of at most `K` tokens in all.

    input_ids     (B, T) int64, padded on the right
    position_ids  (B, T) int64, depth in the tree (0 in the padding)
    visible       (B, T, T) bool, [b, i, j]: token i sees token j, itself or an ancestor; padding sees itself alone
    row, at       (N,) int64: target n is predicted from the hidden state at [row[n], at[n]]
    tokens        (N, K) int64, padded with 0
    shares        (N, K) float32, padded with 0; each row sums to 1
    weights       (N,) float32
    kinds         (N,) what each target is, see rows.Target
    """

    input_ids: Tensor
    position_ids: Tensor
    visible: Tensor
    row: Tensor
    at: Tensor
    tokens: Tensor
    shares: Tensor
    weights: Tensor
    kinds: tuple[str, ...]

    @property
    def weight(self) -> float:
        """Sum of the targets' weights: an optimiser step's loss is the sum of losses over the sum of these."""
        return float(self.weights.sum(dtype=torch.float64))

    def to(self, device: torch.device | str) -> Batch:
        moved: dict[str, Any] = {k: v.to(device) for k, v in vars(self).items() if isinstance(v, Tensor)}
        return replace(self, **moved)

    def predicting(self, hidden: Tensor) -> Tensor:
        """(N, H) of `hidden` (B, T, H): the states that the targets are predicted from."""
        return hidden[self.row, self.at]


def collate(rows: Sequence[Row], pad_token: int) -> Batch:
    """A batch of `rows`, in their order. The padding's token is never seen, so it may be any id, eos too: what a
    row trains is named by its targets alone."""
    size = max(len(r.tokens) for r in rows)
    targets = [(b, t) for b, row in enumerate(rows) for t in row.targets]
    widest = max((len(t.tokens) for _, t in targets), default=1)
    return Batch(
        input_ids=torch.tensor([_padded(r.tokens, size, pad_token) for r in rows]),
        position_ids=torch.tensor([_padded(r.positions, size, 0) for r in rows]),
        visible=torch.from_numpy(np.stack([ancestors(r.parents, size) for r in rows])),
        row=torch.tensor([b for b, _ in targets], dtype=torch.int64),
        at=torch.tensor([t.at for _, t in targets], dtype=torch.int64),
        tokens=torch.tensor([_padded(t.tokens, widest, 0) for _, t in targets], dtype=torch.int64).view(-1, widest),
        shares=torch.tensor([_padded(t.shares, widest, 0.0) for _, t in targets], dtype=torch.float32).view(-1, widest),
        weights=torch.tensor([t.weight for _, t in targets], dtype=torch.float32),
        kinds=tuple(t.kind for _, t in targets),
    )


def ancestors(parents: Sequence[int], size: int) -> NDArray[np.bool_]:
    """(size, size): [i, j] where j is i or an ancestor of i. Rows beyond the tokens see themselves alone: a row of
    the mask that saw nothing would be a softmax over nothing, which is NaN."""
    seen = np.eye(size, dtype=np.bool_)
    for index, parent in enumerate(parents):
        if parent >= 0:
            seen[index, : parent + 1] |= seen[parent, : parent + 1]
    return seen


def within_window(visible: Tensor, position_ids: Tensor, window: int) -> Tensor:
    """`visible` (B, T, T) with what lies `window` positions back or more taken away: a sliding layer's mask.

    Positions, not indices, count: in the engine a branch's tokens follow the prompt directly.
    """
    distance = position_ids[:, :, None] - position_ids[:, None, :]
    return visible & (distance < window)


def _padded(values: Sequence[_Number], size: int, fill: _Number) -> list[_Number]:
    return list(values) + [fill] * (size - len(values))
