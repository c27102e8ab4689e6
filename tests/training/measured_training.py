"""Trains random models of the true architecture for two steps and says what memory they took, as a program:

    python tests/training/measured_training.py '[{"four_bit": true, "tokens": 512, "process": false, ...}]'

Prints a line of JSON for each: bytes resident by part and the allocator's peak of the second step; or, if "process" is
true, the process's peak in it above what it had before the model was made, which tells something of the first alone.
"""

from __future__ import annotations

import gc
import json
import re
import sys
from pathlib import Path
from typing import Any

TARGETS = r"model\.layers\.\d+\.(self_attn\.[qkvo]_proj|mlp\.(gate|up|down)_proj)"
WARM = {"hidden_size": 128, "intermediate_size": 128, "vocab_size": 512, "num_experts": 8, "moe_intermediate_size": 64}
PARTS = {
    "experts": r"\.experts",
    "attention": r"self_attn\.._proj",
    "dense MLP": r"\.mlp\.",
    "embedding": "embed_tokens",
}


def measure(asked: dict[str, Any]) -> dict[str, Any]:
    import torch
    from gemma4_small import small_model

    from training.lora import adapt
    from training.recipe import Lora

    torch.set_num_threads(1)
    torch.manual_seed(0)
    before = _resident()
    model: Any = small_model(**asked["shape"]).requires_grad_(False).to(getattr(torch, asked["dtype"]))
    if asked["four_bit"]:
        _quantise(model)
    parts = _parts(model)
    adapted = adapt(model, Lora(rank=asked["rank"]), 0)
    if asked["checkpointing"]:
        model.activation_checkpointing_enable({"use_reentrant": False})
    trained = [p for p in adapted.parameters() if p.requires_grad]
    optimiser = torch.optim.AdamW(trained, lr=1e-4)

    def whole_step() -> None:
        _step(model, asked)
        optimiser.step()
        optimiser.zero_grad(set_to_none=False)

    gc.collect()  # what waits for it is not to be released within a step that is measured
    whole_step()  # from here on gradients and the optimiser's states are there
    gc.collect()
    if asked["process"]:
        _reset_high_water()
        whole_step()
        return {"process": _high_water() - before}
    from training.allocated import allocation_peak, storage_bytes

    states = [v for s in optimiser.state.values() for v in s.values() if v.dim()]
    return {
        "weights": parts,
        "adapter": storage_bytes(trained),
        "adapter: gradients": storage_bytes(p.grad for p in trained),
        "adapter: optimiser": storage_bytes(states),
        "step_peak": allocation_peak(lambda: _step(model, asked)),
    }


def _step(model: Any, asked: dict[str, Any]) -> None:
    """Forward and backward of one batch in which every token is predicted from, as the trainer computes it."""
    import torch

    from training.loss import soft_cross_entropy

    size, rows = asked["tokens"], asked["rows"]
    ids = torch.randint(1, asked["shape"]["vocab_size"], (rows, size))
    visible = torch.ones(size, size, dtype=torch.bool).tril().repeat(rows, 1, 1, 1)
    window = visible.triu(-1023)
    masks = {"full_attention": visible, "sliding_attention": window}
    with torch.autocast("cpu", torch.bfloat16, enabled=asked["dtype"] == "bfloat16"):
        states = model.model(input_ids=ids, attention_mask=masks, use_cache=False).last_hidden_state.flatten(0, 1)
    count = len(states)
    loss = soft_cross_entropy(
        states,
        model.lm_head.weight,
        torch.ones(count, 1, dtype=torch.int64),
        torch.ones(count, 1),
        torch.ones(count),
        softcap=30.0,
    )
    (loss / count).backward()


def _quantise(model: Any) -> None:
    import bitsandbytes as bnb

    from training.nf4_experts import NF4Experts

    for name, module in list(model.named_modules()):
        if name.endswith(".experts"):
            model.set_submodule(name, NF4Experts.of(module))
        elif re.fullmatch(TARGETS, name):
            kind = {"compute_dtype": module.weight.dtype, "quant_type": "nf4"}
            made = bnb.nn.Linear4bit(module.in_features, module.out_features, bias=False, **kind)
            made.weight = bnb.nn.Params4bit(module.weight.data, quant_type="nf4").to("cpu")
            model.set_submodule(name, made.requires_grad_(False))
    model.is_loaded_in_4bit = True


def _parts(model: Any) -> dict[str, int]:
    from training.allocated import _quantisation, storage_bytes

    tensors = [*model.named_parameters(), *((n, b) for n, b in model.named_buffers() if n.endswith(".packed"))]
    found: dict[str, list[Any]] = {part: [] for part in [*PARTS, "router and norms"]}
    for name, tensor in tensors:
        part = next((part for part, pattern in PARTS.items() if re.search(pattern, name)), "router and norms")
        found[part] += [tensor, *_quantisation(tensor)]
    return {part: storage_bytes(held) for part, held in found.items()}


def _resident() -> int:
    return _status("VmRSS")


def _high_water() -> int:
    return _status("VmHWM")


def _status(key: str) -> int:
    found = re.search(rf"^{key}:\s+(\d+) kB$", Path("/proc/self/status").read_text(), re.M)
    assert found is not None
    return int(found.group(1)) * 1024


def _reset_high_water() -> None:
    Path("/proc/self/clear_refs").write_text("5")  # Linux: proc(5)


if __name__ == "__main__":
    sys.path[:0] = ["tests/models", "."]
    tasks = json.loads(sys.argv[1])
    # libraries loaded, the profiler's too, their buffers taken
    measure(tasks[0] | {"shape": tasks[0]["shape"] | WARM, "tokens": 32, "process": False})
    for task in tasks:
        gc.collect()  # nothing of the model before is released while this one is measured
        print(json.dumps(measure(task)))
