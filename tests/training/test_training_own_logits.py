"""A base is trained on the logits that it itself gives, or not at all: tiny models of random weights, each kind as
transformers has it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from gemma4_small import write_small_checkpoint

from aipsy_judge.errors import WeightsError
from training.model import load_base

SHAPE: dict[str, Any] = {
    "vocab_size": 64,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "num_hidden_layers": 2,
    "max_position_embeddings": 256,
}


def written(folder: Path, name: str, **config: Any) -> Path:
    """A checkpoint whose logits are about as wide as a trained model's, biases of its head included."""
    library: Any = transformers
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        model = getattr(library, f"{name}ForCausalLM")(getattr(library, f"{name}Config")(**SHAPE | config))
        with torch.no_grad():
            for weight in model.parameters():
                weight.add_(torch.randn_like(weight), alpha=0.1)
    model.save_pretrained(folder)
    return folder


def loaded(folder: Path, precision: str = "fp32") -> Any:
    return load_base(folder, precision=precision, device=torch.device("cpu"))


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize(
    ("name", "config"),
    [
        ("Granite", {"logits_scaling": 8.0}),
        ("Cohere", {"logit_scale": 0.0625}),
        ("Phi", {}),
        ("Mistral", {"sliding_window": 8}),
    ],
)
def test_a_base_whose_logits_or_window_are_its_own_is_refused(
    tmp_path: Path, name: str, config: dict[str, Any], precision: str
) -> None:
    folder = written(tmp_path / name, name, **config)
    with pytest.raises(WeightsError, match="other logits than the model itself gives") as caught:
        loaded(folder, precision)
    assert caught.value.where == str(folder)


def test_a_window_that_is_too_long_to_be_tried_and_of_no_named_layers_is_refused(tmp_path: Path) -> None:
    folder = written(tmp_path / "far", "Mistral", sliding_window=100_000, max_position_embeddings=1_000_000)
    with pytest.raises(WeightsError, match=r"looks back 100,000 positions .* does not say in which layers"):
        loaded(folder)


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize(
    ("name", "config"),
    [
        ("Llama", {}),
        ("Mistral", {"sliding_window": None}),
        ("Granite", {"logits_scaling": 1.0}),
        ("Qwen2", {}),
    ],
)
def test_a_base_without_such_is_loaded(tmp_path: Path, name: str, config: dict[str, Any], precision: str) -> None:
    assert not any(p.requires_grad for p in loaded(written(tmp_path / name, name, **config), precision).parameters())


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_gemma_4_is_loaded_with_its_soft_cap_and_its_window(tmp_path: Path, precision: str) -> None:
    folder = write_small_checkpoint(tmp_path / "gemma")
    assert json.loads((folder / "config.json").read_text())["text_config"]["sliding_window"] == 32
    assert loaded(folder, precision).config.final_logit_softcapping == 30.0
