"""An adapter that does not fit its base, or does nothing, is refused before anything is loaded."""

from __future__ import annotations

import numpy as np
import pytest
from gguf import GGMLQuantizationType, GGUFWriter, quants
from small_gguf import write_small_adapter, write_small_gguf

from aipsy_judge.errors import WeightsError
from aipsy_judge.gguf_adapter import check_adapter
from aipsy_judge.gguf_header import read_gguf_header
from aipsy_judge.gguf_model import check_model

Q = "blk.0.attn_q.weight"


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    return check_model(write_small_gguf(tmp_path_factory.mktemp("base") / "base.gguf"))


def ones(*shape):
    return np.ones(shape, np.float32)


def zeros(*shape):
    return np.zeros(shape, np.float32)


def test_an_adapter_that_fits_passes(tmp_path, base):
    path = write_small_adapter(tmp_path / "a.gguf", names=(Q, "blk.1.attn_output.weight"))
    assert len(check_adapter(path, base).tensors) == 4
    halves = {f"{Q}.lora_a": ones(4, 32).astype(np.float16), f"{Q}.lora_b": ones(32, 4).astype(np.float16)}
    check_adapter(write_small_adapter(tmp_path / "f16.gguf", tensors=halves), base)
    # looked up, not multiplied: a is (tokens, rank), b is (rank, embedding), as they lie in memory
    looked_up = {"token_embd.weight.lora_a": ones(264, 4), "token_embd.weight.lora_b": ones(32, 4)}
    check_adapter(write_small_adapter(tmp_path / "e.gguf", names=(), tensors=looked_up), base)


@pytest.mark.parametrize(
    ("made", "said"),
    [
        ({"kind": "control_vector"}, "not a LoRA adapter"),
        ({"arch": "gemma4"}, "for the architecture 'gemma4'; the base is 'llama'"),
        ({"alpha": None}, "alpha is None"),
        ({"alpha": 0.0}, "alpha is 0.0"),
        ({"alpha": -8.0}, "alpha is -8.0"),
        ({"names": ()}, "holds no tensors"),
        ({"names": ("blk.7.attn_q.weight",)}, "changes 'blk.7.attn_q.weight', which the base does not have"),
        ({"tensors": {f"{Q}.lora_b": None}}, "one half of the change"),
        ({"tensors": {f"{Q}.lora_a": None}}, "one half of the change"),
        ({"tensors": {"blk.0.attn_norm.weight": ones(32)}}, "would pass over or refuse"),
        ({"tensors": {f"{Q}.lora_a": ones(3, 32)}}, "does not fit"),
        ({"tensors": {f"{Q}.lora_a": ones(4, 16)}}, "does not fit"),
        ({"tensors": {f"{Q}.lora_b": ones(16, 4)}}, "does not fit"),
        ({"tensors": {f"{Q}.lora_a": ones(4)}}, "is no matrix"),
        ({"rank": 33}, "has rank 33, more than its base"),
        ({"tensors": {f"{Q}.lora_a": zeros(4, 32)}}, "changes nothing"),
        ({"tensors": {f"{Q}.lora_b": zeros(32, 4)}}, "changes nothing"),
        ({"tensors": {f"{Q}.lora_b": np.full((32, 4), np.nan, np.float32)}}, "holds what is no number"),
        ({"tensors": {f"{Q}.lora_b": np.full((32, 4), np.inf, np.float16)}}, "holds what is no number"),
        ({"tensors": {f"{Q}.lora_b": np.ones((32, 4), np.int32)}}, "is of type 26"),
    ],
)
def test_an_adapter_that_does_not_fit_or_does_nothing_is_refused(tmp_path, base, made, said):
    with pytest.raises(WeightsError, match=said):
        check_adapter(write_small_adapter(tmp_path / "a.gguf", **made), base)


def test_a_quantised_adapter_is_read_by_its_scales(tmp_path, base):
    def write(values):
        writer = GGUFWriter(tmp_path / "q8.gguf", "llama")
        writer.add_string("general.type", "adapter")
        writer.add_string("adapter.type", "lora")
        writer.add_float32("adapter.lora.alpha", 32.0)
        kind = GGMLQuantizationType.Q8_0
        for half in ("lora_a", "lora_b"):
            writer.add_tensor(f"{Q}.{half}", quants.quantize(values, kind), raw_dtype=kind)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        return tmp_path / "q8.gguf"

    assert check_adapter(write(ones(32, 32)), base).tensors
    with pytest.raises(WeightsError, match="changes nothing"):
        check_adapter(write(zeros(32, 32)), base)


def test_a_bfloat16_adapter_is_read(tmp_path, base):
    def write(bits):
        writer = GGUFWriter(tmp_path / "bf16.gguf", "llama")
        writer.add_string("general.type", "adapter")
        writer.add_string("adapter.type", "lora")
        writer.add_float32("adapter.lora.alpha", 4.0)
        for half, shape in (("lora_a", (4, 32)), ("lora_b", (32, 4))):
            data = np.full(shape, bits, np.uint16).view(np.uint8)
            writer.add_tensor(f"{Q}.{half}", data, raw_dtype=GGMLQuantizationType.BF16)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        return tmp_path / "bf16.gguf"

    assert read_gguf_header(write(0x3F80)).tensors[0].kind == 30
    check_adapter(write(0x3F80), base)  # 1.0
    with pytest.raises(WeightsError, match="no number"):
        check_adapter(write(0x7F80), base)  # infinity
    with pytest.raises(WeightsError, match="changes nothing"):
        check_adapter(write(0), base)
