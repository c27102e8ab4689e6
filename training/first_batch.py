"""The longest batch is computed before the first step, so that a run which cannot fit ends at once and not after hours.

With a 4-bit base, layers' experts are moved to the machine's memory until it fits: the prediction that chose how many
is arithmetic, this is the device's own word.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from .recipe import Recipe
from .row_trainer import RowTrainer

if TYPE_CHECKING:
    from .host_layers import Settled

# CUDA's context lies outside what PyTorch reserves. Supposed, from reports.
CONTEXT_BYTES = 500_000_000


def settle_first_batch(
    trainer: RowTrainer,
    recipe: Recipe,
    device: torch.device,
    say: Callable[[str], None],
    budget_bytes: int | None = None,
) -> Settled | None:
    """Compute the longest batch, moving experts until its peak is within the budget; says what came of it.

    The budget is memory.device_gb less what is not there yet (the optimiser's states) or not PyTorch's (CUDA's
    context), or `budget_bytes`. None where nothing can be moved: no 4-bit experts, or a CPU without a budget given.
    Leaves weights, gradients, counters and the random state as they were. CapacityError where nothing fits.
    """
    if recipe.memory.base_bits != 4 or (device.type == "cpu" and budget_bytes is None):
        return None
    from .host_layers import expert_layers, settle  # bitsandbytes, which no other run needs

    if not expert_layers(trainer.model):
        return None
    budget = budget_bytes if budget_bytes is not None else budget_for(recipe, trainer)
    seen = trainer.tokens_seen
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        settled = settle(trainer.model, lambda: _compute(trainer, recipe, device), device, budget)
    trainer.model.zero_grad(set_to_none=True)
    trainer.tokens_seen = seen
    say(
        f"longest batch: {settled.peak_bytes / 1e9:.2f} GB at the peak, experts of {settled.on_host} layers in the"
        f" machine's memory ({settled.attempts} attempt{'s' if settled.attempts > 1 else ''})"
    )
    return settled


def budget_for(recipe: Recipe, trainer: RowTrainer) -> int:
    """Bytes that PyTorch may have reserved at the peak of the first batch."""
    trained: int = sum(p.numel() for p in trainer.model.parameters() if p.requires_grad)
    states = trained * {"adamw": 8, "paged_adamw_8bit": 2}[recipe.train.optimiser]
    return int(recipe.memory.device_gb * 1e9) - CONTEXT_BYTES - states


def _compute(trainer: RowTrainer, recipe: Recipe, device: torch.device) -> None:
    """Forward and backward of the longest rows together, as in training."""
    longest = sorted(range(len(trainer.rows)), key=lambda i: len(trainer.rows[i].tokens))[-recipe.train.batch :]
    inputs: dict[str, Any] = trainer.data_collator([{"index": i} for i in longest])
    inputs = {name: value.to(device) for name, value in inputs.items()}
    trainer.model.train()
    if recipe.train.checkpointing:
        trainer.model.get_base_model().activation_checkpointing_enable({"use_reentrant": False})
    with torch.autocast(device.type, torch.bfloat16, enabled=recipe.train.precision == "bf16"):
        loss = trainer.compute_loss(trainer.model, inputs)
    loss.backward()
