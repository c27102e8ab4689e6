"""Folders of safetensors that MLX's build for processors computes, and the same weights as GGUF files."""

from __future__ import annotations

import importlib.util
from functools import cache
from pathlib import Path

import pytest
from gemma4_checkpoint import folder_once, gemma4_checkpoint
from made_once import CACHE, one_at_a_time

from quantize.to_gguf import to_gguf

needs_mlx = pytest.mark.skipif(
    importlib.util.find_spec("mlx_lm") is None, reason="mlx-lm is not installed: pip install 'mlx[cpu]' mlx-lm"
)


@cache
def gemma4_f32() -> Path:
    """The Gemma 4 of random weights at 32 bits: of experts MLX computes no other type on a processor."""
    return folder_once(CACHE / "gemma4-f32-v1", _widen)


def _widen(folder: Path) -> None:
    from safetensors.torch import load_file, save_file

    for path in gemma4_checkpoint().iterdir():
        if path.suffix == ".safetensors":
            wide = {name: tensor.float() for name, tensor in load_file(path).items()}
            save_file(wide, folder / path.name, metadata={"format": "pt"})
        else:
            (folder / path.name).hardlink_to(path)


@cache
def gemma4_f32_gguf() -> Path:
    """The same weights for llama.cpp, which keeps keys and values at 16 bits."""
    target = CACHE / "gemma4-f32-v1.gguf"
    with one_at_a_time(target):
        if not target.is_file():
            to_gguf(gemma4_checkpoint(), target, "F32")
    return target
