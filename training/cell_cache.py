"""Keys and values of all sequences in one run of cells. A cell can belong to several sequences, so a fork costs
nothing; what no sequence holds any more is used again. As llama.cpp's unified cache, over a transformers model."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from aipsy_judge.errors import CapacityError


class CellCache:
    """Passed to a model as its cache: `update` is called by every layer with the keys and values of the new tokens.

    The layers' memory is taken when they are first seen, since heads and their sizes differ from layer to layer.
    """

    def __init__(self, cells: int, sequences: int) -> None:
        self.cells = cells
        self.member: NDArray[np.bool_] = np.zeros((sequences, cells), dtype=np.bool_)
        self.position: NDArray[np.int64] = np.zeros(cells, dtype=np.int64)
        self._layers: dict[int, tuple[Tensor, Tensor]] = {}
        self._writing: Tensor | None = None
        self._seen = 0

    def place(self, count: int) -> NDArray[np.int64]:
        """`count` free cells, lowest first. CapacityError where there are not so many."""
        free = np.flatnonzero(~self.member.any(axis=0))
        if len(free) < count:
            raise CapacityError(f"the cache of {self.cells} cells is full", hint="This is a fault of the plan.")
        return free[:count]

    def hold(self, sequence: int, cells: NDArray[np.int64], positions: NDArray[np.int64]) -> None:
        self.member[sequence, cells] = True
        self.position[cells] = positions

    def length(self, sequence: int) -> int:
        """Positions that a sequence holds; they are 0 to length - 1."""
        return int(self.member[sequence].sum())

    def fork(self, source: int, target: int, length: int) -> None:
        self.member[target] = self.member[source] & (self.position < length)

    def trim(self, sequence: int, length: int) -> None:
        self.member[sequence] &= self.position < length

    def begin(self, cells: NDArray[np.int64], device: torch.device) -> int:
        """Say where the next pass writes; how many cells, from the first, its tokens may look at."""
        self._writing = torch.from_numpy(cells).to(device)
        held = np.flatnonzero(self.member.any(axis=0))
        self._seen = int(held[-1]) + 1
        return self._seen

    # -- what transformers calls ------------------------------------------------------------------------------

    def update(self, keys: Tensor, values: Tensor, layer: int, **kwargs: Any) -> tuple[Tensor, Tensor]:
        """Keep (1, heads, tokens, size) in the cells said before; all cells that are in use, in their order."""
        assert self._writing is not None
        if layer not in self._layers:
            self._layers[layer] = (self._empty(keys), self._empty(values))
        kept = self._layers[layer]
        for held, new in zip(kept, (keys, values), strict=True):
            held[:, :, self._writing] = new.to(held.dtype)
        return kept[0][:, :, : self._seen], kept[1][:, :, : self._seen]

    def _empty(self, like: Tensor) -> Tensor:
        # zeros, not what memory happens to hold: masked cells are multiplied by 0, and 0 x NaN is NaN
        return like.new_zeros((1, like.shape[1], self.cells, like.shape[3]))

    def get_seq_length(self, layer: int = 0) -> int:
        return self._seen
