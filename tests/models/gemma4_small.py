"""Checkpoints of the true Gemma 4 architecture, made in a second: small vocabulary, sizes in blocks of 64."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gemma4_shape import RATIOS, restore_config, whole_config

SHAPE: dict[str, Any] = RATIOS | {
    "vocab_size": 512,
    "hidden_size": 128,
    "intermediate_size": 192,
    "sliding_window": 32,
    "moe_intermediate_size": 64,
}


def text_config(**changed: Any) -> Any:
    """Gemma4TextConfig of SHAPE with entries changed."""
    from transformers import Gemma4TextConfig

    return Gemma4TextConfig(**SHAPE | changed)


def small_model(seed: int = 0, **changed: Any) -> Any:
    """Gemma4ForCausalLM, float32, away from the values that hide mistakes (norms and scales of 1, logits near 0)."""
    import torch
    from transformers import Gemma4ForCausalLM

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = Gemma4ForCausalLM(text_config(**changed))
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                if "norm" in name or name.endswith("scale"):
                    parameter.add_(torch.randn_like(parameter), alpha=0.1)
            model.model.embed_tokens.weight.mul_(10)
            for layer in model.model.layers:
                layer.layer_scalar.fill_(0.9)
    return model


def write_small_checkpoint(folder: Path, *, seed: int = 0, shard: str = "1MB", **changed: Any) -> Path:
    """The checkpoint as published: the multimodal class's tensor names, bfloat16, several shards, a vision tower."""
    import torch
    from transformers import Gemma4ForConditionalGeneration

    whole = Gemma4ForConditionalGeneration(whole_config(text_config(**changed)))
    inner = small_model(seed, **changed).model.state_dict()
    whole.model.language_model.load_state_dict(inner)
    whole.to(torch.bfloat16).save_pretrained(folder, max_shard_size=shard)
    restore_config(folder / "config.json", SHAPE | changed)
    return folder
