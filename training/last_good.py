"""Stops a run at the first number that is none, with the adapter as it was when all was still well."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from transformers import TrainerCallback

from .processes import anywhere
from .row_trainer import NonFiniteLossError


class LastGood(TrainerCallback):
    """Keeps the weights of the last step whose losses were all finite, in the machine's memory.

    A step can be finite and yet spoil the weights; the loss after it then tells. So what is kept are the weights
    before the step, until a loss was finite with those after it.
    """

    def __init__(self) -> None:
        self._kept: dict[str, Tensor] = {}
        self.step: int | None = None

    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, model: Any = None, **_: Any) -> None:
        trainable = {name: p for name, p in model.named_parameters() if p.requires_grad}
        for name, parameter in trainable.items():
            here = _local(parameter)
            if name not in self._kept:
                self._kept[name] = torch.empty_like(here, device="cpu")
            self._kept[name].copy_(here)
        self.step = state.global_step
        gradients = [p.grad for p in trainable.values() if p.grad is not None]
        spoilt = not all(bool(torch.isfinite(g).all()) for g in gradients)
        if anywhere(spoilt, args.device):  # of a sharded weight each process has a part
            raise NonFiniteLossError("a gradient", state.global_step)

    def restore(self, model: Any) -> int | None:
        """Put them back; the number of steps that had been taken then, None where there were none yet."""
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                if name in self._kept:
                    _local(parameter).copy_(self._kept[name])
        return self.step


def _local(parameter: Any) -> Tensor:
    """This process's part of a parameter that is sharded, else the whole."""
    here: Any = parameter.detach()
    whole: Tensor = here.to_local() if hasattr(here, "to_local") else here
    return whole
