"""trl's SFTTrainer on rows: tree masks, soft targets, a loss that is one sum over the whole optimiser step.

trl 1.16 brings the loop, resuming, precision, checkpointing and distribution; its own loss knows neither soft labels
nor branches, and its patched head is not asked for logits here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from .backbone import backbone, hidden_states
from .collate import Batch, collate
from .kept_trunk import KeptTrunk
from .loss import Kind, soft_cross_entropy
from .processes import anywhere
from .rows import Row

if TYPE_CHECKING:
    _Trainer: Any = object
else:
    from trl import SFTTrainer as _Trainer

_FIELDS = ("input_ids", "position_ids", "visible", "row", "at", "tokens", "shares", "weights")
LENGTHS = "row_lengths"  # (B,) tokens of each row, without the padding
SHOWN = "shown"  # (B,) which rows these are


class NonFiniteLossError(Exception):
    """The loss, or a gradient, is no number any more, here or in another process. `step` counts optimiser steps that
    were taken before it."""

    def __init__(self, what: str, step: int) -> None:
        super().__init__(f"{what} is not finite after {step} steps")
        self.what, self.step = what, step


def row_collator(rows: Sequence[Row], pad_token: int) -> Any:
    """Examples {"index": i} -> the tensors of a batch of rows."""

    def together(examples: Sequence[Mapping[str, int]]) -> dict[str, Tensor]:
        shown = [example["index"] for example in examples]
        chosen = [rows[index] for index in shown]
        batch = collate(chosen, pad_token)
        about = {LENGTHS: torch.tensor([len(row.tokens) for row in chosen]), SHOWN: torch.tensor(shown)}
        return {**{name: getattr(batch, name) for name in _FIELDS}, **about}

    return together


def batch_of(inputs: Mapping[str, Tensor]) -> Batch:
    """What the collator's tensors are; their kinds are not known any more."""
    return Batch(**{name: inputs[name] for name in _FIELDS}, kinds=())


class RowTrainer(_Trainer):  # type: ignore[misc]
    """`rows` are what the data set's indices mean; `loss_kind`: see loss.py; `trunk`: keeps what does not change, where
    there is one. Everything else is trl's."""

    trunk: KeptTrunk | None = None
    processing_class: Any

    def __init__(self, *args: Any, rows: Sequence[Row], pad_token: int, loss_kind: Kind, **words: Any) -> None:
        super().__init__(*args, data_collator=row_collator(rows, pad_token), **words)
        self.rows, self.loss_kind = rows, loss_kind
        # compute_loss divides by the weights of all accumulated batches itself.
        self.loss_is_scaled_for_ga = True
        self.tokens_seen = 0

    def _get_num_items_in_batch(self, batch_samples: list[Any], device: torch.device) -> Tensor | None:
        """Sum of the targets' weights over the optimiser step, on all processes: so a batch of four and four of one
        are the same step."""
        if not batch_samples:
            return None
        # added up in 64 bits on the CPU: Apple's devices have no such numbers
        parts = [b["weights"].cpu().sum(dtype=torch.float64) for b in batch_samples]
        total = torch.stack(parts).sum().float().to(device)
        if self.args.world_size > 1:
            total = self.accelerator.gather(total).sum()
        return total

    def compute_loss(
        self, model: Any, inputs: dict[str, Any], return_outputs: bool = False, num_items_in_batch: Any = None
    ) -> Tensor:
        assert not return_outputs
        batch = batch_of(inputs)
        self.tokens_seen += int(inputs[LENGTHS].sum())
        found = backbone(self.accelerator.unwrap_model(model))
        head = found.head.full_tensor() if hasattr(found.head, "full_tensor") else found.head
        total = soft_cross_entropy(
            batch.predicting(self.states(model, batch, inputs)),
            head.detach(),
            batch.tokens,
            batch.shares,
            batch.weights,
            softcap=found.softcap,
            kind=self.loss_kind,
        )
        if anywhere(not bool(torch.isfinite(total)), total.device):
            raise NonFiniteLossError("the loss", self.state.global_step)
        weight = batch.weights.sum() if num_items_in_batch is None else num_items_in_batch
        # gradients are averaged over processes, the weights were summed over them
        normalised: Tensor = total / weight.to(total.dtype) * self.args.world_size
        return normalised

    def states(self, model: Any, batch: Batch, inputs: Mapping[str, Tensor]) -> Tensor:
        """(B, T, H) of a batch of rows, after the last norm; from what is kept where there is a trunk."""
        if self.trunk is None:
            return hidden_states(model, batch)
        return self.trunk.hidden_states(model, batch, inputs[SHOWN].tolist(), inputs[LENGTHS].tolist())

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        self._metrics["train"].clear()  # trl's own, of the loss it would have computed
        super().log(logs, start_time)

    def create_model_card(self, *args: Any, **words: Any) -> None:
        """None here: the judge's card is written where a judge is assembled."""

    def _save(self, *args: Any, **words: Any) -> None:
        """A checkpoint, without the tokenizer: it is the base's, which a run goes on with; Gemma's is 33 MB."""
        tokenizer, self.processing_class = self.processing_class, None
        try:
            super()._save(*args, **words)
        finally:
            self.processing_class = tokenizer
