"""Weights drawn where they are needed, in the shape in which a checkpoint's tensors are read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor


@dataclass(frozen=True)
class DrawnTensor:
    """Normal values of a seed of its own; `[:]` draws it whole, `[i]` one entry of its first axis."""

    shape: tuple[int, ...]
    seed: int
    scale: float
    offset: float
    device: torch.device

    def get_shape(self) -> list[int]:
        return list(self.shape)

    def __getitem__(self, index: Any) -> Tensor:
        whole = isinstance(index, slice)
        generator = torch.Generator(self.device).manual_seed(self.seed + (0 if whole else index))
        shape = self.shape if whole else self.shape[1:]
        drawn = torch.randn(shape, generator=generator, device=self.device, dtype=torch.bfloat16)
        return drawn.mul_(self.scale).add_(self.offset)


def drawn_checkpoint(config: Any, device: torch.device) -> Iterator[tuple[str, DrawnTensor]]:
    """All tensors of a Gemma 4 text model: norms and scales about 1, the rest as a new model is initialised."""
    from transformers import AutoModelForCausalLM

    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
    for number, (name, tensor) in enumerate(model.state_dict().items()):
        about_one = "norm" in name or name.endswith(("scale", "scalar"))
        # The embedding is wide enough for logits to exceed the soft cap's straight part.
        scale = 0.02 if about_one else 0.05 if "embed" in name else 0.02
        yield name, DrawnTensor(tuple(tensor.shape), 1000 * number, scale, float(about_one), device)
