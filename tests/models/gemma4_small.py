"""Checkpoints of the true Gemma 4 architecture, made in a second: small vocabulary, sizes in blocks of 64."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

SHAPE: dict[str, Any] = {
    "vocab_size": 512,
    "hidden_size": 128,
    "intermediate_size": 192,
    "num_hidden_layers": 6,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "global_head_dim": 64,
    "num_global_key_value_heads": 1,
    "attention_k_eq_v": True,
    "sliding_window": 32,
    "max_position_embeddings": 4096,
    "final_logit_softcapping": 30.0,
    "hidden_size_per_layer_input": 0,
    "num_kv_shared_layers": 0,
    "enable_moe_block": True,
    "num_experts": 8,
    "top_k_experts": 2,
    "moe_intermediate_size": 64,
    "use_bidirectional_attention": "vision",
    "tie_word_embeddings": True,
    "bos_token_id": 2,
    "eos_token_id": 1,
    "pad_token_id": 0,
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
    from transformers import Gemma4Config, Gemma4ForConditionalGeneration, Gemma4VisionConfig

    vision = Gemma4VisionConfig(
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=2,
        head_dim=16,
        standardize=True,
        position_embedding_size=64,
    )
    text = text_config(**changed)
    whole = Gemma4ForConditionalGeneration(Gemma4Config(text_config=text, vision_config=vision, audio_config=None))
    inner = small_model(seed, **changed).model.state_dict()
    whole.model.language_model.load_state_dict(inner)
    whole.to(torch.bfloat16).save_pretrained(folder, max_shard_size=shard)
    path = folder / "config.json"
    config = json.loads(path.read_text())
    config["text_config"].pop("per_layer_config")  # saving folds two published keys into it
    for key in ("global_head_dim", "num_global_key_value_heads"):
        config["text_config"][key] = (SHAPE | changed)[key]
    path.write_text(json.dumps(config))
    return folder
