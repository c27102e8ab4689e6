"""What an optimiser step divides by is the weight of all its batches, in a type that every device has."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from training.row_trainer import RowTrainer

DEVICES = ["cpu", "meta", *(["mps"] if torch.backends.mps.is_available() else [])]


def step_weight(batches: list[dict[str, torch.Tensor]], device: str) -> Any:
    alone: Any = SimpleNamespace(args=SimpleNamespace(world_size=1))
    return RowTrainer._get_num_items_in_batch(alone, batches, torch.device(device))


@pytest.mark.parametrize("device", DEVICES)
def test_the_weight_of_a_step_lies_on_the_device_in_32_bits(device: str) -> None:
    """Apple's has no float64: the first step of a training there ended in an error."""
    weight = step_weight([{"weights": torch.full((3,), 0.1)}, {"weights": torch.ones(2)}], device)
    assert (weight.dtype, weight.device.type) == (torch.float32, device)


def test_it_is_the_sum_over_the_batches_without_the_rounding_of_many_small_ones() -> None:
    """16,777,216 = 2^24 is where float32 stops counting by ones: summed in it, the ones after it are lost."""
    batches = [{"weights": torch.tensor([2.0**24])}, *({"weights": torch.ones(1)} for _ in range(4))]
    assert float(step_weight(batches, "cpu")) == 2.0**24 + 4
    assert step_weight([], "cpu") is None
