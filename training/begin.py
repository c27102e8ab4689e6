"""What a run begins with: the device, the base with a fresh adapter, what is kept between epochs, where it starts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from aipsy_judge.errors import InputError

from .kept_trunk import KeptTrunk
from .lora import adapt
from .lora import lines as adapter_lines
from .model import load_base
from .processes import processes
from .recipe import Recipe
from .ridge_start import start_from_ridge
from .row_trainer import RowTrainer
from .rows import Row

Say = Callable[[str], None]


def the_device() -> torch.device:
    """CUDA where there is one, then Apple's, else the CPU."""
    if torch.cuda.is_available():
        return torch.device("cuda", torch.cuda.current_device())
    return torch.device("mps" if torch.backends.mps.is_available() else "cpu")


def begin(recipe: Recipe, base: Path, device: torch.device, say: Say) -> Any:
    """The base with a fresh adapter; says what is adapted."""
    loaded = load_base(
        base,
        precision=recipe.train.precision,
        device=device,
        base_bits=recipe.memory.base_bits,
        on_host=_on_host(recipe),
    )
    model = adapt(loaded, recipe.lora, recipe.seed)
    for line in adapter_lines(model):
        say(line)
    return model


def _on_host(recipe: Recipe) -> int:
    """Layers whose experts wait in the machine's memory: as predicted; the first longest batch corrects it."""
    if recipe.memory.base_bits != 4:
        return 0
    from .memory import sizes_of
    from .memory_parts import predict

    return predict(recipe, sizes_of(recipe)[1]).staged


def kept_trunk(recipe: Recipe, model: Any, rows: Sequence[Row], say: Say) -> KeptTrunk | None:
    """None unless the recipe asks for it. InputError where it cannot be had."""
    if not recipe.train.keep_trunk:
        return None
    if processes() > 1:
        raise InputError("several processes share the layers: none can be left out", where="train.keep_trunk")
    trunk = KeptTrunk(model, rows, recipe.memory.host_gb)
    say(f"layers 0 to {trunk.first - 1} are computed once a row; their states take {trunk.bytes / 1e9:.2f} GB")
    return trunk


def start(recipe: Recipe, trainer: RowTrainer, say: Say) -> None:
    """Set the adapter to where it starts from, as the recipe says. InputError where that cannot be had."""
    if recipe.lora.start == "random":
        return
    if processes() > 1:
        raise InputError("several processes: the adapter can start from random only", where="lora.start")
    say(start_from_ridge(trainer, recipe.seed))
