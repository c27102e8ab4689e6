"""Which weights learn: a LoRA beside attention and dense MLP, and beside the routed experts when asked."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from aipsy_judge.errors import InputError

from .quiet import without_notices
from .recipe import Lora

DEFAULT = r"(?:.*\.)?layers\.\d+\.(?:self_attn\.(?:q|k|v|o)_proj|mlp\.(?:gate|up|down)_proj)"
EXPERTS = ("experts.gate_up_proj", "experts.down_proj")  # stacked over the experts: no module of their own
# Never adapted: what chooses experts, what the loss keeps frozen, what no judged text goes through.
_FORBIDDEN = {
    "router": "the router stays frozen",
    "lm_head": "the head stays frozen",
    "embed_tokens": "the embedding stays frozen, it is the head too",
    "vision_tower": "no judged text goes through the vision tower",
}


@dataclass(frozen=True, slots=True)
class Adapted:
    """One kind of weight over all layers: `name` without the layer's number, how many there are, their parameters in
    the base, and those that learn beside them."""

    name: str
    count: int
    frozen: int
    trained: int


def adapt(model: Any, lora: Lora, seed: int) -> Any:
    """`model` as a PeftModel whose adapter alone is trainable, in float32; the same `seed` begins the same.

    Raises InputError where a name matches nothing, or something that must stay frozen.
    """
    with without_notices():
        from peft import LoraConfig, get_peft_model

    pattern = DEFAULT if lora.modules == "default" else lora.modules
    _check_names(model, pattern)
    words: dict[str, Any] = {"lora_alpha": lora.alpha}
    if lora.experts:
        words |= _expert_words(model, lora)
    config = LoraConfig(
        r=lora.rank,
        lora_dropout=lora.dropout,
        target_modules=pattern,
        task_type="CAUSAL_LM",
        **words,
    )
    with torch.random.fork_rng(devices=[]), without_notices():
        torch.manual_seed(seed)
        adapted: Any = get_peft_model(model, config)
    _check_reached(adapted, lora)
    return adapted


def _check_names(model: nn.Module, pattern: str) -> None:
    matched = [name for name, _ in model.named_modules() if re.fullmatch(pattern, name)]
    if not matched:
        raise InputError(
            f"no module of the base matches {pattern!r}",
            where="lora.modules",
            hint="The pattern is for whole names, such as .*self_attn.q_proj; default is attention and dense MLP.",
        )
    for name in matched:
        for word, why in _FORBIDDEN.items():
            if word in name.split("."):
                raise InputError(f"{name}: {why}", where="lora.modules")


def _expert_words(model: nn.Module, lora: Lora) -> dict[str, Any]:
    """Peft's settings for stacked experts: their own rank, and alpha such that the scale is that of the others."""
    stacked = {name for name, _ in model.named_parameters() if name.endswith(EXPERTS)}
    if not stacked:
        four_bit = any("NF4" in type(m).__name__ for m in model.modules())
        raise InputError(
            "the base has no stacked experts that could be adapted" + (": they are held in 4 bits" if four_bit else ""),
            where="lora.experts",
            hint="Set memory.base_bits: 16." if four_bit else "Set lora.experts: false.",
        )
    return {
        "target_parameters": list(EXPERTS),
        "rank_pattern": dict.fromkeys(EXPERTS, lora.expert_rank),
        "alpha_pattern": dict.fromkeys(EXPERTS, lora.alpha * lora.expert_rank / lora.rank),
    }


def _check_reached(model: nn.Module, lora: Lora) -> None:
    names = [name for name, p in model.named_parameters() if p.requires_grad]
    if any("lora_" not in name for name in names):
        raise InputError("something beside the adapter would be trained", where="lora")
    if not lora.experts:
        return
    wrappers: list[Any] = [m for m in model.modules() if getattr(m, "parameter_name", None)]
    ranks = {r for m in wrappers for r in m.r.values()}
    if ranks != {lora.expert_rank}:
        raise InputError(f"experts were to be adapted with rank {lora.expert_rank}; found {ranks}", where="lora")


def adapted_weights(model: nn.Module) -> list[Adapted]:
    """What is adapted, kind by kind, in the order of the model."""
    found: dict[str, list[int]] = {}
    for name, frozen, trained in _wrapped(model):
        kind = re.sub(r"layers\.\d+\.", "layers.*.", name)
        total = found.setdefault(kind, [0, 0, 0])
        for place, number in enumerate((1, frozen, trained)):
            total[place] += number
    return [Adapted(name, *numbers) for name, numbers in found.items()]


def _wrapped(model: nn.Module) -> Iterator[tuple[str, int, int]]:
    """(name in the base, its parameters, trainable ones beside it) of every adapted module or parameter."""
    for name, module in model.named_modules():
        pairs = getattr(module, "lora_A", None)
        if not pairs:
            continue
        trained = sum(p.numel() for part in ("lora_A", "lora_B") for p in getattr(module, part).parameters())
        own = getattr(module, "parameter_name", None)
        base = name.removeprefix("base_model.model.").replace(".base_layer", "")
        if own is None:
            layer: Any = module.base_layer
            yield base, int(layer.in_features * layer.out_features), trained
        else:
            yield f"{base}.{own}", int(module.get_param().numel()), trained


def lines(model: nn.Module) -> list[str]:
    """What is adapted and what stays frozen, a line each, with shares of the base's parameters."""
    rows = adapted_weights(model)
    whole = _base_parameters(model)
    trained = sum(r.trained for r in rows)
    beside = sum(r.frozen for r in rows)
    out = [f"adapter: {trained:,} parameters beside {beside:,} of the base's {whole:,} ({beside / whole:.1%})"]
    out += [f"  {r.name} x {r.count}: {r.frozen / whole:.1%} of the base, {r.trained:,} trained" for r in rows]
    experts = sum(p.numel() for n, p in model.named_parameters() if ".experts." in n and "lora_" not in n)
    if experts and not any(".experts." in r.name for r in rows):
        out.append(f"  routed experts stay frozen: {experts / whole:.1%} of the base (lora.experts: true adapts them)")
    return out


def _base_parameters(model: nn.Module) -> int:
    """Elements of the base's weights; of packed 4-bit ones those they stand for."""
    total = 0
    for name, parameter in model.named_parameters():
        if "lora_" in name:
            continue
        state = getattr(parameter, "quant_state", None)
        total += state.shape.numel() if state is not None else parameter.numel()
    return total


def without_gradient(model: nn.Module) -> list[str]:
    """After a backward pass: trainable weights that got no gradient. They would never learn."""
    return [name for name, p in model.named_parameters() if p.requires_grad and p.grad is None]
