"""Checkpoints of random weights and any size, written a tensor at a time, with an adapter for all their matrices."""

from __future__ import annotations

import json
import shutil
import struct
from collections.abc import Iterator
from math import prod
from pathlib import Path

import torch

HIDDEN, FF, HEADS, HEAD, KV_HEADS, RANK = 2048, 5632, 16, 128, 4, 16
LAYER_BYTES = 2 * (2 * HIDDEN * HIDDEN + 2 * HIDDEN * KV_HEADS * HEAD + 3 * HIDDEN * FF)
_ROWS = 4096


def write_checkpoint(folder: Path, tokenizer: Path, layers: int, seed: int = 14) -> Path:
    """A llama of `layers` layers in bfloat16, all in one file: the hardest case for whatever loads a file at a time.
    `tokenizer`: a folder whose tokenizer, template and settings are taken over."""
    folder.mkdir(parents=True)
    for path in tokenizer.iterdir():
        if path.suffix in (".json", ".jinja") and not path.name.startswith(("model", "dequantised")):
            shutil.copyfile(path, folder / path.name)
    config = json.loads((folder / "config.json").read_text())
    config |= {
        "hidden_size": HIDDEN,
        "intermediate_size": FF,
        "num_attention_heads": HEADS,
        "num_key_value_heads": KV_HEADS,
        "head_dim": HEAD,
        "num_hidden_layers": layers,
        "dtype": "bfloat16",
        "tie_word_embeddings": True,
    }
    (folder / "config.json").write_text(json.dumps(config))
    shapes: dict[str, tuple[int, ...]] = {
        "model.embed_tokens.weight": (int(config["vocab_size"]), HIDDEN),
        "model.norm.weight": (HIDDEN,),
    }
    for layer in range(layers):
        shapes |= {f"model.layers.{layer}.{name}": shape for name, shape in _layer().items()}
    _write(folder / "model.safetensors", shapes, torch.bfloat16, seed)
    return folder


def write_adapter(folder: Path, base: Path) -> Path:
    """Rank 16 on every matrix of every layer of `base`, nothing of it zero."""
    folder.mkdir(parents=True)
    layers = json.loads((base / "config.json").read_text())["num_hidden_layers"]
    shapes: dict[str, tuple[int, ...]] = {}
    for layer in range(layers):
        for name, shape in _layer().items():
            if len(shape) == 2:
                module = f"base_model.model.model.layers.{layer}.{name.removesuffix('.weight')}"
                shapes[f"{module}.lora_A.weight"] = (RANK, shape[1])
                shapes[f"{module}.lora_B.weight"] = (shape[0], RANK)
    _write(folder / "adapter_model.safetensors", shapes, torch.float32, 15)
    settings = {"peft_type": "LORA", "r": RANK, "lora_alpha": 2 * RANK, "bias": "none"}
    (folder / "adapter_config.json").write_text(json.dumps(settings))
    return folder


def _layer() -> dict[str, tuple[int, ...]]:
    return {
        "input_layernorm.weight": (HIDDEN,),
        "post_attention_layernorm.weight": (HIDDEN,),
        "self_attn.q_proj.weight": (HEADS * HEAD, HIDDEN),
        "self_attn.k_proj.weight": (KV_HEADS * HEAD, HIDDEN),
        "self_attn.v_proj.weight": (KV_HEADS * HEAD, HIDDEN),
        "self_attn.o_proj.weight": (HIDDEN, HEADS * HEAD),
        "mlp.gate_proj.weight": (FF, HIDDEN),
        "mlp.up_proj.weight": (FF, HIDDEN),
        "mlp.down_proj.weight": (HIDDEN, FF),
    }


def _write(path: Path, shapes: dict[str, tuple[int, ...]], dtype: torch.dtype, seed: int) -> None:
    """A safetensors file without ever holding it."""
    entries, at = {}, 0
    name_of = {torch.bfloat16: "BF16", torch.float32: "F32"}[dtype]
    for name, shape in shapes.items():
        size = prod(shape) * dtype.itemsize
        entries[name] = {"dtype": name_of, "shape": list(shape), "data_offsets": [at, at + size]}
        at += size
    head = json.dumps(entries).encode()
    made = torch.Generator().manual_seed(seed)
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(head)) + head)
        for shape in shapes.values():
            for rows in _rows(shape):
                values = torch.randn(rows, generator=made).mul_(shape[-1] ** -0.5).to(dtype)
                file.write(values.view(torch.uint8).numpy().tobytes())


def _rows(shape: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    if len(shape) == 1:
        yield shape
    else:
        for begin in range(0, shape[0], _ROWS):
            yield (min(_ROWS, shape[0] - begin), *shape[1:])
