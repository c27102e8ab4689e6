"""Experts that wait in the machine's memory, copied to the accelerator just before they are needed.

Two buffers, each the size of one layer's packed experts: while one layer computes, the next one needed is copied.
A forward pass goes up through the layers; recomputation and backward come down through them. On CUDA the copies run
on a stream of their own, from pinned memory; elsewhere they are plain copies, with the same results.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor


def next_needed(current: int, previous: int | None, count: int) -> int | None:
    """Which of `count` staged layers, numbered upwards, is needed after `current`; None where the pass ends.

    Asking twice for the same layer is a recomputation and its backward, or the turn at the top: both go down.
    """
    upwards = previous is None or current > previous
    after = current + 1 if upwards else current - 1
    return after if 0 <= after < count else None


@dataclass
class _Slot:
    bytes: Tensor
    holds: int | None = None
    ready: torch.cuda.Event | None = None


@dataclass
class Staging:
    """Serves packed layers, numbered as in `sources`, on `device`. Not for use by several threads at once.

    `copies` counts copies made; `waited` those that were begun only when the layer was already needed.
    """

    device: torch.device
    layer_bytes: int
    sources: list[Tensor] = field(default_factory=list)
    copies: int = 0
    waited: int = 0
    _slots: list[_Slot] = field(default_factory=list)
    _previous: int | None = None
    _stream: torch.cuda.Stream | None = None

    @property
    def bytes(self) -> int:
        """Bytes that the buffers take on the device once used: two layers, or one where only one is staged."""
        return self.layer_bytes * min(2, len(self.sources))

    @property
    def taken(self) -> int:
        """Bytes of the buffers made so far."""
        return sum(slot.bytes.nbytes for slot in self._slots)

    def renumber(self, sources: list[Tensor]) -> None:
        """Serve these layers from now on, in the order of the model; what was staged is forgotten."""
        self.sources = sources
        self._slots = []
        self._previous = None

    def fetch(self, layer: int) -> Tensor:
        """The packed bytes of staged layer `layer` on the device, valid until the next call."""
        slot = self._holding(layer)
        if slot is None:
            self.waited += 1
            slot = self._copy(layer, keep=None)
        after = next_needed(layer, self._previous, len(self.sources))
        if after is not None and self._holding(after) is None:
            self._copy(after, keep=slot)
        self._previous = layer
        if slot.ready is not None:
            torch.cuda.current_stream(self.device).wait_event(slot.ready)
        return slot.bytes

    def _holding(self, layer: int) -> _Slot | None:
        return next((slot for slot in self._slots if slot.holds == layer), None)

    def _copy(self, layer: int, keep: _Slot | None) -> _Slot:
        slot = self._free(keep)
        slot.holds = layer
        self.copies += 1
        if self.device.type != "cuda":
            slot.bytes.copy_(self.sources[layer])
            return slot
        if self._stream is None:
            self._stream = torch.cuda.Stream(self.device)
        # What the buffer held may still be read by work already queued: the copy waits for what is queued by now.
        self._stream.wait_stream(torch.cuda.current_stream(self.device))
        with torch.cuda.stream(self._stream):
            slot.bytes.copy_(self.sources[layer], non_blocking=True)
            slot.ready = self._stream.record_event()
        return slot

    def _free(self, keep: _Slot | None) -> _Slot:
        """The buffer to overwrite: never `keep`, which is about to be read."""
        if len(self._slots) < 2:
            buffer = torch.empty(self.layer_bytes, dtype=torch.uint8, device=self.device)
            self._slots.append(_Slot(buffer))
            return self._slots[-1]
        if keep is not None:
            return next(slot for slot in self._slots if slot is not keep)
        return next(slot for slot in self._slots if slot.holds != self._previous)
