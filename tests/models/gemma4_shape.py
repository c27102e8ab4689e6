"""What every small Gemma 4 of the tests shares with 26B-A4B, and how its settings are published.

Every size is cut down; the ratios that code can get wrong are kept (2 key-value heads fewer in full layers, their heads
twice as wide, head x number of heads != hidden).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

RATIOS: dict[str, Any] = {
    "num_hidden_layers": 6,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "global_head_dim": 64,
    "num_global_key_value_heads": 1,
    "attention_k_eq_v": True,
    "max_position_embeddings": 4096,
    "final_logit_softcapping": 30.0,
    "hidden_size_per_layer_input": 0,
    "num_kv_shared_layers": 0,
    "enable_moe_block": True,
    "num_experts": 8,
    "top_k_experts": 2,
    "use_bidirectional_attention": "vision",
    "tie_word_embeddings": True,
    "bos_token_id": 2,
    "eos_token_id": 1,
    "pad_token_id": 0,
}


def whole_config(text: Any) -> Any:
    """Gemma4Config of a text config, with a vision tower as small as can be."""
    from transformers import Gemma4Config, Gemma4VisionConfig

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
    return Gemma4Config(text_config=text, vision_config=vision, audio_config=None)


def restore_config(path: Path, shape: Mapping[str, Any]) -> None:
    """The keys as published: saving rewrites two of them into `per_layer_config`, which other readers do not know."""
    config = json.loads(path.read_text())
    part = config["text_config"]
    part.pop("per_layer_config")
    for key in ("global_head_dim", "num_global_key_value_heads"):
        part[key] = shape[key]
    path.write_text(json.dumps(config, indent=2))
