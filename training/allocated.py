"""How much memory a piece of work took at its peak, measured by the allocator itself.

On CUDA: what PyTorch had reserved at the peak, which is what a card must have (its own few hundred MB of context
beside). Elsewhere: bytes resident on the device before, and on top the peak of all allocations and releases that
PyTorch's own profiler recorded; the resident set of the process would count libraries and what malloc keeps back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import torch
from torch import Tensor, nn

from .nf4_experts import NF4Experts


def peak_of(work: Callable[[], object], model: nn.Module, device: torch.device) -> int:
    """Peak in bytes on `device` while `work` runs, `model`'s resident tensors included."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats(device)
        work()
        torch.cuda.synchronize(device)
        return torch.cuda.max_memory_reserved(device)
    before = resident_bytes(model)
    return before + allocation_peak(work)


def allocation_peak(work: Callable[[], object]) -> int:
    """Peak in bytes of what `work` allocated on the CPU above what was there when it began."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as trace:
        work()
    events = trace.profiler.kineto_results.events()
    changes = sorted((e.start_ns(), e.nbytes()) for e in events if e.name() == "[memory]" and _on_cpu(e))
    level = peak = 0
    for _, change in changes:
        level += change
        peak = max(peak, level)
    return peak


def resident_bytes(model: nn.Module) -> int:
    """Bytes of parameters, gradients and buffers, shared ones once; experts that wait on the host only as staged."""
    experts = [m for m in model.modules() if isinstance(m, NF4Experts) and m.on_host]
    waiting = {m.packed.untyped_storage().data_ptr() for m in experts}
    here = (t for t in _tensors(model) if t.untyped_storage().data_ptr() not in waiting)
    return storage_bytes(here) + max((m.staged_bytes for m in experts), default=0)


def storage_bytes(tensors: Iterable[Tensor]) -> int:
    """Bytes of the tensors' storages, each storage once."""
    return sum({t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for t in tensors}.values())


def _tensors(model: nn.Module) -> Iterable[Tensor]:
    for parameter in model.parameters():
        yield parameter
        if parameter.grad is not None:
            yield parameter.grad
        yield from _quantisation(parameter)
    yield from model.buffers()


def _quantisation(parameter: Tensor) -> Iterable[Tensor]:
    """The scales that bitsandbytes keeps beside a 4-bit parameter."""
    state = getattr(parameter, "quant_state", None)
    if state is None:
        return
    yield state.absmax
    if state.nested:
        yield from (state.offset, state.state2.absmax)


def _on_cpu(event: object) -> bool:
    return event.device_type() == torch.autograd.DeviceType.CPU  # type: ignore[attr-defined, no-any-return]
