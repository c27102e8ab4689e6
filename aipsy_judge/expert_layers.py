"""How many layers' experts must stay in RAM so that the rest of a mixture of experts fits the GPU."""

from __future__ import annotations

import re
from pathlib import Path

from .gguf_header import GgufHeader
from .gguf_model import check_model
from .machine import this_machine

GIB = 2**30
# Beside weights and cache: library context, compute buffers, and what the display takes.
OVERHEAD_BYTES = int(1.5 * GIB)
_EXPERT = re.compile(r"blk\.(\d+)\.ffn_(up|down|gate|gate_up)_(ch|)exps")


def expert_layers_in_ram(model: Path, cache_gb: float) -> int:
    """Layers, counted from the first, whose experts stay in RAM on this machine; 0 where there is no GPU with memory
    of its own, for there nothing is gained."""
    memory = [g.memory_bytes for g in this_machine().gpus if g.memory_bytes is not None]
    return layers_in_ram(check_model(model), max(memory), cache_gb) if memory else 0


def layers_in_ram(header: GgufHeader, gpu_bytes: int, cache_gb: float) -> int:
    """The fewest layers, from the first of the model on, whose experts must be left out for the rest, the cache and
    the overhead to fit `gpu_bytes`. Layers without experts (some models begin with them) count too."""
    by_layer: dict[int, int] = {}
    rest = 0
    for tensor in header.tensors:
        found = _EXPERT.match(tensor.name)
        if found:
            by_layer[int(found.group(1))] = by_layer.get(int(found.group(1)), 0) + tensor.size_bytes
        else:
            rest += tensor.size_bytes
    room = gpu_bytes - rest - int(cache_gb * GIB) - OVERHEAD_BYTES
    kept, left_out = sum(by_layer.values()), 0
    for layer in sorted(by_layer):
        if kept <= room:
            break
        kept -= by_layer[layer]
        left_out = layer + 1
    return left_out
