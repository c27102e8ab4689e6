"""What something is held against is full weights: of a GGUF file, of the adapter that it wears, of a folder."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file
from small_folder import write_small_folder
from small_gguf import write_small_adapter, write_small_gguf

from aipsy_judge.errors import WeightsError
from quantize.full_weights import check_full
from quantize.side import Side


def test_full_weights_that_wear_a_quantised_adapter_are_not_full(tmp_path: Path) -> None:
    write_small_gguf(tmp_path / "full.gguf")
    rng = np.random.default_rng(0)
    names = [f"blk.{layer}.attn_q.weight" for layer in range(2)]
    tensors = {f"{n}.lora_{x}": rng.normal(0, 0.1, (32, 32)).astype(np.float16) for n in names for x in "ab"}
    write_small_adapter(tmp_path / "half.gguf", names=(), tensors=tensors, rank=32)
    check_full(Side(tmp_path / "full.gguf", tmp_path / "half.gguf"))
    write_small_adapter(tmp_path / "coarse.gguf", names=(), tensors=tensors, rank=32, quantised=True)
    with pytest.raises(WeightsError, match=r"coarse.*Q8_0"):
        check_full(Side(tmp_path / "full.gguf", tmp_path / "coarse.gguf"))


def test_a_folder_of_quantised_weights_is_not_full_either(tmp_path: Path) -> None:
    plain = write_small_folder(tmp_path / "plain")
    check_full(Side(plain))
    coarse = write_small_folder(tmp_path / "coarse", quantization={"bits": 4, "group_size": 32})
    with pytest.raises(WeightsError, match="quantised"):
        check_full(Side(coarse))
    bytes_only = write_small_folder(tmp_path / "bytes")
    save_file({"w.weight": np.zeros((4, 4), np.uint32)}, bytes_only / "model.safetensors")
    with pytest.raises(WeightsError, match=r"w\.weight.*U32"):
        check_full(Side(bytes_only))
