"""Which layers' experts wait in the machine's memory, and how many: chosen from a budget, corrected by the first batch.

Layers are moved in an order whose every beginning is spread over the depth of the model, so that the layers between
two staged ones give the copy time, and a later move never brings a layer back.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn

from aipsy_judge.errors import CapacityError

from .allocated import peak_of
from .expert_staging import Staging
from .nf4_experts import NF4Experts

AT_A_TIME = 2  # layers moved after an attempt that failed without telling by how much


@dataclass(frozen=True)
class Settled:
    """What the first longest batch showed: layers on the host, attempts, and the peak in bytes of the last one."""

    on_host: int
    attempts: int
    peak_bytes: int


def host_order(layers: int) -> tuple[int, ...]:
    """All layers, numbered from 0, in the order of moving: by reversed binary digits (van der Corput, 1935).

    >>> host_order(6)
    (0, 4, 2, 1, 5, 3)
    """
    digits = max(1, (layers - 1).bit_length())
    return tuple(sorted(range(layers), key=lambda layer: f"{layer:0{digits}b}"[::-1]))


def expert_layers(model: nn.Module) -> list[NF4Experts]:
    """The 4-bit experts of a model, from the first layer up."""
    return [module for module in model.modules() if isinstance(module, NF4Experts)]


def put_on_host(model: nn.Module, count: int, device: torch.device) -> None:
    """Have the experts of `count` layers at least wait in the machine's memory and be staged on `device`."""
    layers = expert_layers(model)
    chosen = [layers[i] for i in sorted(host_order(len(layers))[:count])]
    if not chosen:
        return
    staging = next((e.staging for e in layers if e.staging is not None), None)
    staging = staging or Staging(device, chosen[0].layout.bytes)
    waiting = [e for e in layers if e.on_host or e in chosen]
    for number, experts in enumerate(waiting):
        experts.stay_on_host(staging, number)
    staging.renumber([e.packed for e in waiting])


def on_host(model: nn.Module) -> int:
    """How many layers' experts wait in the machine's memory."""
    return sum(experts.on_host for experts in expert_layers(model))


def settle(model: nn.Module, longest: Callable[[], None], device: torch.device, budget_bytes: int) -> Settled:
    """Run `longest`, forward and backward of the longest batch, until its peak is within `budget_bytes`.

    Each time it is not, or the device is out of memory, more layers' experts are moved to the machine's memory. What
    `longest` leaves behind (gradients) is the caller's to drop. CapacityError when everything has been moved.
    """
    layers = expert_layers(model)
    for attempt in range(1, len(layers) + 2):
        peak = _attempt(longest, model, device)
        if peak is not None and peak <= budget_bytes:
            return Settled(on_host(model), attempt, peak)
        _move_more(model, device, None if peak is None else peak - budget_bytes, budget_bytes)
    raise AssertionError("every attempt moves a layer, so they end")


def _attempt(longest: Callable[[], None], model: nn.Module, device: torch.device) -> int | None:
    """The peak in bytes, or None where the device was out of memory."""
    try:
        return peak_of(longest, model, device)
    except torch.OutOfMemoryError:
        pass
    # Outside the handler: the exception's frames hold the tensors of the failed attempt.
    for parameter in model.parameters():
        parameter.grad = None
    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()
    return None


def _move_more(model: nn.Module, device: torch.device, over_bytes: int | None, budget_bytes: int) -> None:
    layers = expert_layers(model)
    now = on_host(model)
    if now == len(layers):
        by = "the device is out of memory" if over_bytes is None else f"{over_bytes / 1e9:.2f} GB too much"
        raise CapacityError(
            f"the longest batch does not fit {budget_bytes / 1e9:.2f} GB"
            + (f" with the experts of all {now} layers in the machine's memory: {by}" if now else f": {by}"),
            hint="Lower render.max_tokens or train.batch; `python -m training.memory RECIPE` says by how much.",
        )
    each = layers[0].layout.bytes
    # The first two moved give back nothing net: staging takes two buffers.
    more = AT_A_TIME if over_bytes is None else -(-over_bytes // each)
    put_on_host(model, min(len(layers), now + more + (2 if now == 0 else 0)), device)
    if device.type == "cuda":
        torch.cuda.empty_cache()
