"""A LoRA adapter of random weights, as GGUF: it makes a small model's answers vary from turn to turn, which a judge
of 135 million parameters that nobody trained does not do by itself."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from gguf import GGUFWriter

from aipsy_judge.gguf_header import read_gguf_header

RANK = 8


def write_noise_adapter(base: Path, target: Path, strength: float, seed: int = 0) -> None:
    """Noise on the attention output and the MLP's way down of every layer; `strength` is its relative size."""
    header = read_gguf_header(base)
    rng = np.random.default_rng(seed)
    writer = GGUFWriter(target, str(header.metadata["general.architecture"]))
    writer.add_string("general.type", "adapter")
    writer.add_string("adapter.type", "lora")
    writer.add_float32("adapter.lora.alpha", float(RANK))
    for tensor in header.tensors:
        if not tensor.name.endswith(("attn_output.weight", "ffn_down.weight")):
            continue
        inner, outer = tensor.shape
        down = rng.normal(0.0, inner**-0.5, (RANK, inner))
        up = rng.normal(0.0, strength * RANK**-0.5, (outer, RANK))
        writer.add_tensor(f"{tensor.name}.lora_a", down.astype(np.float32))
        writer.add_tensor(f"{tensor.name}.lora_b", up.astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
