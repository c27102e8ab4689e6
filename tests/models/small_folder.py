"""A folder of safetensors with all that a model's folder has, a few kB, made without torch."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

TEMPLATE = "{% for m in messages %}<|s|>{{ m.role }}\n{{ m.content }}<|e|>\n{% endfor %}<|s|>assistant\n"
CONFIG: dict[str, Any] = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 32,
    "intermediate_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 16,
    "rms_norm_eps": 1e-5,
    "vocab_size": 260,
    "max_position_embeddings": 4096,
    "tie_word_embeddings": True,
    "rope_parameters": {"rope_theta": 500.0, "rope_type": "default"},
}


def write_small_folder(folder: Path, **config: Any) -> Path:
    """A Llama of random weights over bytes, two control tokens and a marker; `config` changes entries of CONFIG."""
    from safetensors.numpy import save_file

    folder.mkdir(parents=True, exist_ok=True)
    save_file(_tensors(CONFIG | config), folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "config.json").write_text(json.dumps(CONFIG | config))
    (folder / "generation_config.json").write_text('{"eos_token_id": [257, 259]}')
    eos = {"__type": "AddedToken", "content": "<|e|>", "lstrip": False, "normalized": False, "rstrip": False}
    (folder / "tokenizer_config.json").write_text(json.dumps({"bos_token": "<|s|>", "eos_token": eos}))
    (folder / "chat_template.jinja").write_text(TEMPLATE)
    _write_tokenizer(folder / "tokenizer.json")
    return folder


def _tensors(config: dict[str, Any]) -> dict[str, Any]:
    rng = np.random.default_rng(1)
    size, wide, head = config["hidden_size"], config["intermediate_size"], config["head_dim"]
    queries, keys = config["num_attention_heads"] * head, config["num_key_value_heads"] * head
    shapes = {
        "self_attn.q_proj": (queries, size),
        "self_attn.k_proj": (keys, size),
        "self_attn.v_proj": (keys, size),
        "self_attn.o_proj": (size, queries),
        "mlp.gate_proj": (wide, size),
        "mlp.up_proj": (wide, size),
        "mlp.down_proj": (size, wide),
        "input_layernorm": (size,),
        "post_attention_layernorm": (size,),
    }
    whole = {"model.embed_tokens.weight": (config["vocab_size"], size), "model.norm.weight": (size,)}
    for layer in range(config["num_hidden_layers"]):
        whole |= {f"model.layers.{layer}.{name}.weight": shape for name, shape in shapes.items()}
    return {
        name: (rng.normal(0, 0.4, shape) if len(shape) > 1 else 1 + rng.normal(0, 0.1, shape)).astype(np.float32)
        for name, shape in whole.items()
    }


def _write_tokenizer(path: Path) -> None:
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE(vocab={c: i for i, c in enumerate(letters)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken("<|s|>", special=True), AddedToken("<|e|>", special=True)])
    tokenizer.add_tokens([AddedToken("<|mark|>", special=False, normalized=False)])
    tokenizer.save(str(path))
