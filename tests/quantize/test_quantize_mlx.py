"""MLX folders: what is quantised and what is not, that they load and say what the source says."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from gemma4_small import write_small_checkpoint
from safetensors.torch import load_file
from small_checkpoints import write_base
from small_folder import write_small_folder
from taught import divergence, foreign_warnings_off, hf_logits

from aipsy_judge.errors import InputError, MissingExtraError, WeightsError
from quantize.to_mlx import MadeFolder, to_mlx

needs_mlx = pytest.mark.skipif(
    importlib.util.find_spec("mlx_lm") is None, reason="mlx-lm is not installed: pip install 'mlx[cpu]' mlx-lm"
)
TOKENS = [2, 17, 300, 45, 45, 201, 8, 99, 411, 3, 77, 150]


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from tokenizers import Tokenizer, models
    from transformers import PreTrainedTokenizerFast

    folder = tmp_path_factory.mktemp("mlx") / "gemma4"
    with foreign_warnings_off():
        write_small_checkpoint(folder)
        words = {f"t{i}": i for i in range(512)}
        made = PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.WordLevel(words, unk_token="t3")))
        made.save_pretrained(folder)
    # mlx-lm takes the vocabulary of the true model for granted unless the outer settings say another
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"vocab_size": 512}))
    (folder / "generation_config.json").write_text('{"eos_token_id": [1, 106, 50]}')
    (folder / "chat_template.jinja").write_text("{{ messages[0].content }}\n")
    return folder


@pytest.fixture(scope="module")
def eight_bits(source: Path) -> MadeFolder:
    return to_mlx(source, source.parent / "8bit")


def mlx_logits(folder: Path, tokens: list[int] = TOKENS) -> np.ndarray:
    import mlx.core as mx
    from mlx_lm import load

    model, _ = load(str(folder))
    model.set_dtype(mx.float32)  # arithmetic at 16 bits would blur more than 8-bit weights do
    return np.array(model(mx.array([tokens]))[0].astype(mx.float32))


@needs_mlx
@pytest.mark.slow
def test_all_matrices_but_the_routers_are_quantised(source: Path, eight_bits: MadeFolder) -> None:
    found = load_file(eight_bits.path / "model.safetensors")
    before = {k: v for f in source.glob("*.safetensors") for k, v in load_file(f).items()}
    routers = [name for name in found if "router.proj" in name]
    assert len(routers) == 6
    for name in routers:
        assert name.endswith(".weight")
        layer = name.split(".layers.")[1]
        assert torch.equal(found[name], before[f"model.language_model.layers.{layer}"])
    packed = {name.removesuffix(".scales") for name in found if name.endswith(".scales")}
    plain = [n for n, t in found.items() if t.ndim > 1 and n.rpartition(".")[0] not in packed and n not in routers]
    assert not plain
    # 8 bits and a scale and offset of 16 bits each for 64 weights: 8.5; norms and routers add a little
    assert 8.5 <= eight_bits.bits_per_weight < 9.0


@needs_mlx
@pytest.mark.slow
def test_settings_and_tokenizer_are_the_sources(source: Path, eight_bits: MadeFolder) -> None:
    config = json.loads((eight_bits.path / "config.json").read_text())
    quantisation = {key: config.pop(key) for key in ("quantization", "quantization_config")}
    assert config == json.loads((source / "config.json").read_text())
    assert (quantisation["quantization"]["bits"], quantisation["quantization"]["group_size"]) == (8, 64)
    for path in source.iterdir():
        if not path.name.startswith(("model", "config")):
            assert (eight_bits.path / path.name).read_bytes() == path.read_bytes(), path.name


@needs_mlx
@pytest.mark.slow
def test_a_quantised_folder_says_what_its_source_says(source: Path, eight_bits: MadeFolder) -> None:
    full = hf_logits(source, TOKENS)
    near = np.median(divergence(full, mlx_logits(eight_bits.path)))
    four = to_mlx(source, source.parent / "4bit", bits=4)
    far = np.median(divergence(full, mlx_logits(four.path)))
    assert 4.5 <= four.bits_per_weight < 5.0
    # median KL in nats (measured: 0.0009 and 0.24); random weights are the hardest to quantise
    assert near < 0.01
    assert 10 * near < far < 1.0


@needs_mlx
@pytest.mark.slow
def test_an_mlx_folder_is_not_overwritten_nor_converted_twice(source: Path, eight_bits: MadeFolder) -> None:
    with pytest.raises(InputError, match="already"):
        to_mlx(source, eight_bits.path)
    with pytest.raises(WeightsError, match="quantised"):
        to_mlx(eight_bits.path, source.parent / "again")


def test_settings_that_transformers_saved_again_are_refused(tmp_path: Path) -> None:
    base = write_base(
        tmp_path / "base",
        architectures=["Gemma4ForConditionalGeneration"],
        text_config={"model_type": "gemma4_text", "per_layer_config": {}},
    )
    with pytest.raises(WeightsError, match="global_head_dim") as caught:
        to_mlx(base, tmp_path / "out")
    assert "base's own config.json" in str(caught.value.hint)


def test_without_mlx_it_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base = write_base(tmp_path / "base", architectures=["LlamaForCausalLM"], model_type="llama")
    monkeypatch.setitem(sys.modules, "mlx_lm", None)
    with pytest.raises(MissingExtraError, match="mlx-lm"):
        to_mlx(base, tmp_path / "out")
    assert not list(tmp_path.glob("*out*"))


@needs_mlx
@pytest.mark.slow
def test_rotary_settings_under_their_newer_name_are_written_under_the_older_too(tmp_path: Path) -> None:
    """Or mlx-lm takes a default base for them without a word, and every position is turned by the wrong angle."""
    source = write_small_folder(tmp_path / "llama")
    made = to_mlx(source, tmp_path / "8bit", group=32)
    assert json.loads((made.path / "config.json").read_text())["rope_theta"] == 500.0
    tokens = list(range(40, 90))
    near = np.median(divergence(hf_logits(source, tokens), mlx_logits(made.path, tokens)))
    assert near < 0.01
