"""States that do not change while an adapter learns: what the layers below the first adapted one give is kept.

An adapter beside the upper layers alone leaves the lower ones as they are, epoch after epoch. Their states are computed
when a row is first shown and kept in the machine's memory; after that a row costs the layers above alone.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from aipsy_judge.errors import InputError

from .backbone import backbone, hidden_states
from .collate import Batch, collate
from .rows import Row

_LAYER = re.compile(r"(?:^|\.)layers\.(\d+)\.")
# Layers that take more from below than the state that enters them.
_REACHING_DOWN = ("num_kv_shared_layers", "hidden_size_per_layer_input")


def first_adapted(model: nn.Module) -> int:
    """The lowest layer beside which something learns."""
    learns = (name for name, p in model.named_parameters() if p.requires_grad)
    return min(int(found.group(1)) for name in learns if (found := _LAYER.search(name)))


class KeptTrunk:
    """`hidden_states` for rows that are shown again and again.

    Raises InputError where nothing lies below the adapter, the model's layers reach further down than to the state
    that enters them, what is made of a kept row is not what is made of it computed, or the states of `rows` would take
    more than half of `memory_gb` (GB, 1e9 bytes).
    """

    def __init__(self, model: nn.Module, rows: Sequence[Row], memory_gb: float) -> None:
        found = backbone(model)
        self._layers: Any = found.inner.layers
        self.first = first_adapted(model)
        config: Any = found.inner.config
        if self.first == 0:
            raise InputError(
                "no layer lies below the adapter, so there is nothing to keep",
                where="train.keep_trunk",
                hint="Adapt upper layers alone with lora.modules, or set it to false.",
            )
        reaching = [name for name in _REACHING_DOWN if getattr(config, name, 0)]
        if reaching:
            raise InputError(
                f"upper layers of this model take more from below ({reaching[0]})", where="train.keep_trunk"
            )
        self.bytes = sum(len(r.tokens) for r in rows) * found.head.shape[1] * found.head.element_size()
        if self.bytes > memory_gb * 1e9 / 2:
            raise InputError(
                f"the states of all rows take {self.bytes / 1e9:.1f} GB, more than half of memory.host_gb",
                where="train.keep_trunk",
                hint="Set it to false, or memory.host_gb to what the machine has.",
            )
        self._kept: dict[int, Tensor] = {}
        self._check_same(model, min(rows, key=lambda row: len(row.tokens)), found.head.device)

    def _check_same(self, model: nn.Module, row: Row, device: torch.device) -> None:
        """States enter where embeddings do, and some models change what enters there once more: they scale it."""
        batch, training = collate([row], 0).to(device), model.training
        model.eval()  # the same both times, whatever is left out at random
        try:
            with torch.no_grad():
                computed, kept = (self.hidden_states(model, batch, [0], [len(row.tokens)]).float() for _ in range(2))
        finally:
            model.train(training)
            self._kept.clear()
        # alike to the bit on a CPU; sums of experts on CUDA are not made in one order
        if not float((kept - computed).norm()) < 0.01 * float(computed.norm()):
            raise InputError(
                "this model makes something else of states that were kept",
                where="train.keep_trunk",
                hint="It scales what enters in place of embeddings. Set it to false.",
            )

    def hidden_states(self, model: nn.Module, batch: Batch, shown: Sequence[int], lengths: Sequence[int]) -> Tensor:
        """(B, T, H) as backbone.hidden_states. shown, lengths (B,): which rows these are, and their tokens."""
        device = batch.input_ids.device
        if all(index in self._kept for index in shown):
            padded = nn.utils.rnn.pad_sequence([self._kept[i] for i in shown], batch_first=True)
            with self._lower_layers_passed():
                return hidden_states(model, batch, padded.to(device))
        caught: list[Tensor] = []
        handle = self._layers[self.first].register_forward_pre_hook(
            lambda module, args, words: caught.append(args[0] if args else words["hidden_states"]), with_kwargs=True
        )
        try:
            found = hidden_states(model, batch)
        finally:
            handle.remove()
        # with recomputed activations a layer is entered again in the backward pass; the hook is gone by then
        for index, state, length in zip(shown, caught[0].detach(), lengths, strict=True):
            self._kept[index] = state[:length].to("cpu", copy=True)
        return found

    @contextlib.contextmanager
    def _lower_layers_passed(self) -> Iterator[None]:
        """Each in its place, for a model asks its configuration what the layer at a place is."""
        lower = [self._layers[n] for n in range(self.first)]
        for n in range(self.first):
            self._layers[n] = _Passed()
        try:
            yield
        finally:
            for n, layer in enumerate(lower):
                self._layers[n] = layer


class _Passed(nn.Module):
    """A layer that changes nothing."""

    def forward(self, hidden_states: Tensor, *_: Any, **__: Any) -> Tensor:
        return hidden_states
