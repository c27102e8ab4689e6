"""Checkpoints and adapters of a few kilobytes, as files: no model class, only names, shapes and values."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

from aipsy_judge.base_record import base_record

EXPERTS, OUT, IN = 3, 12, 8
LAYERS = 2
Q0 = "model.language_model.layers.0.self_attn.q_proj"  # the module of the smallest adapter that changes something
TARGETS = ["experts.gate_up_proj", "experts.down_proj"]  # target_parameters of all_matrices
TEMPLATE = "{% for m in messages %}{{ m.content }}{% endfor %}é"


def base_tensors(dtype: torch.dtype = torch.bfloat16, seed: int = 0) -> dict[str, torch.Tensor]:
    made = torch.Generator().manual_seed(seed)

    def of(*shape: int) -> torch.Tensor:
        return torch.randn(shape, generator=made).to(dtype)

    tensors = {"model.language_model.embed_tokens.weight": of(20, IN)}
    for layer in range(LAYERS):
        at = f"model.language_model.layers.{layer}"
        tensors |= {
            f"{at}.self_attn.q_proj.weight": of(OUT, IN),
            f"{at}.mlp.down_proj.weight": of(IN, OUT),
            f"{at}.experts.gate_up_proj": of(EXPERTS, OUT, IN),
            f"{at}.experts.down_proj": of(EXPERTS, IN, OUT // 2),
            f"{at}.norm.weight": of(IN),
        }
    return tensors


def write_base(folder: Path, tensors: dict[str, torch.Tensor] | None = None, **config: Any) -> Path:
    """Two files with an index, tokenizer, template and generation settings beside them."""
    folder.mkdir(parents=True)
    tensors = base_tensors() if tensors is None else tensors
    names = sorted(tensors)
    parts = [names[::2], names[1::2]]
    weight_map: dict[str, str] = {}
    for number, part in enumerate(parts, 1):
        file = f"model-{number:05}-of-00002.safetensors"
        save_file({n: tensors[n] for n in part}, folder / file, metadata={"format": "pt"})
        weight_map |= dict.fromkeys(part, file)
    total = sum(t.nbytes for t in tensors.values())
    index = {"metadata": {"total_size": total}, "weight_map": weight_map}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    (folder / "config.json").write_text(json.dumps({"model_type": "gemma4", "odd  spacing": 1, **config}))
    (folder / "generation_config.json").write_text('{"eos_token_id": [1, 106]}')
    (folder / "tokenizer.json").write_bytes('{"é": "\r\n"}'.encode())
    (folder / "chat_template.jinja").write_bytes(TEMPLATE.encode())
    (folder / "README.md").write_text("the base's own card")
    (folder / "modeling.py").write_text("raise SystemExit")
    return folder


def write_adapter(
    folder: Path, base: Path | None, matrices: dict[str, tuple[torch.Tensor, torch.Tensor]], **config: Any
) -> Path:
    """matrices: module path (wrappers included) -> (A, B)."""
    folder.mkdir(parents=True)
    settings = {"peft_type": "LORA", "r": 2, "lora_alpha": 4, "bias": "none", **config}
    (folder / "adapter_config.json").write_text(json.dumps(settings))
    tensors = {}
    for module, (a, b) in matrices.items():
        tensors[f"base_model.model.{module}.lora_A.weight"] = a.contiguous()
        tensors[f"base_model.model.{module}.lora_B.weight"] = b.contiguous()
    save_file(tensors, folder / "adapter_model.safetensors")
    if base is not None:
        (folder / "base.json").write_text(json.dumps(base_record(base).to_dict()))
    return folder


def pair(rows: int, columns: int, rank: int = 2, experts: int = 1, seed: int = 1) -> tuple[torch.Tensor, torch.Tensor]:
    made = torch.Generator().manual_seed(seed)
    a = torch.randn(experts * rank, columns, generator=made)
    return a, torch.randn(rows, rank * experts, generator=made)


def expert_change(a: torch.Tensor, b: torch.Tensor, experts: int, rank: int, scale: float) -> torch.Tensor:
    """The change of stacked experts, entry by entry of PEFT's layout: A has an expert's rows together, B has the
    experts side by side within each rank."""
    change = torch.zeros(experts, b.shape[0], a.shape[1])
    for e in range(experts):
        for r in range(rank):
            change[e] += torch.outer(b[:, r * experts + e], a[e * rank + r])
    return change * scale


def all_matrices(rank: int = 2) -> dict[str, tuple[torch.Tensor, torch.Tensor]]:
    """A pair for everything that base_tensors has, except embedding and norms."""
    found: dict[str, tuple[torch.Tensor, torch.Tensor]] = {}
    for layer in range(LAYERS):
        at = f"model.language_model.layers.{layer}"
        found |= {
            f"{at}.self_attn.q_proj": pair(OUT, IN, rank, seed=10 * layer),
            f"{at}.mlp.down_proj": pair(IN, OUT, rank, seed=10 * layer + 1),
            f"{at}.experts.base_layer": pair(OUT, IN, rank, EXPERTS, seed=10 * layer + 2),
            f"{at}.experts": pair(IN, OUT // 2, rank, EXPERTS, seed=10 * layer + 3),
        }
    return found


def rs_scale(alpha: float, rank: int) -> float:
    return alpha / math.sqrt(rank)
