"""Merging: the sums by hand, the files byte by byte, and everything that is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from small_checkpoints import (
    EXPERTS,
    IN,
    LAYERS,
    OUT,
    Q0,
    TARGETS,
    all_matrices,
    base_tensors,
    expert_change,
    pair,
    rs_scale,
    write_adapter,
    write_base,
)

import quantize.merge_shard
from aipsy_judge.errors import WeightsError
from quantize.merge import merge


def merged_tensors(folder: Path) -> dict[str, torch.Tensor]:
    found: dict[str, torch.Tensor] = {}
    for file in sorted(folder.glob("*.safetensors")):
        found |= load_file(file)
    return found


def by_hand(scale: float = 2.0, rank: int = 2) -> dict[str, torch.Tensor]:
    """base_tensors with all_matrices added: 32 bits, rounded once."""
    exact = {name: tensor.float() for name, tensor in base_tensors().items()}
    for module, (a, b) in all_matrices(rank).items():
        if module.endswith("base_layer"):
            name = module.removesuffix(".base_layer") + ".gate_up_proj"
            exact[name] += expert_change(a, b, EXPERTS, rank, scale)
        elif module.endswith("experts"):
            exact[module + ".down_proj"] += expert_change(a, b, EXPERTS, rank, scale)
        else:
            exact[module + ".weight"] += b @ a * scale
    return {name: tensor.to(torch.bfloat16) for name, tensor in exact.items()}


def assert_equal_up_to_a_step(found: dict[str, torch.Tensor], wanted: dict[str, torch.Tensor]) -> None:
    """At most one step of bfloat16 (2^-7 relative) apart, where a sum fell on a rounding boundary, and hardly ever."""
    assert found.keys() == wanted.keys()
    for name, tensor in wanted.items():
        assert found[name].dtype == tensor.dtype
        assert torch.allclose(found[name].float(), tensor.float(), rtol=2**-7, atol=1e-6), name
        assert (found[name] == tensor).float().mean() > 0.98, name


def test_plain_and_stacked_weights_get_scale_times_b_a(tmp_path: Path, base: Path) -> None:
    adapter = write_adapter(tmp_path / "adapter", base, all_matrices(), target_parameters=TARGETS)
    record = merge(base, adapter, tmp_path / "out")
    assert_equal_up_to_a_step(merged_tensors(tmp_path / "out"), by_hand())
    assert record["effect"]["tensors"] == 4 * LAYERS
    assert record["effect"]["tensors_unchanged"] == 0
    assert 0 < record["effect"]["rounding_to_change"] < 0.01  # the change is as large as the weights here


def test_rows_in_blocks_of_any_size_give_the_same_file(
    tmp_path: Path, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    adapter = write_adapter(tmp_path / "adapter", base, all_matrices(), target_parameters=TARGETS)
    first = merge(base, adapter, tmp_path / "one")
    monkeypatch.setattr(quantize.merge_shard, "BLOCK_BYTES", 40)  # 2 rows of some, less than one row of others
    second = merge(base, adapter, tmp_path / "two")
    assert_equal_up_to_a_step(merged_tensors(tmp_path / "one"), merged_tensors(tmp_path / "two"))
    assert first["effect"]["values"] == second["effect"]["values"]


def test_everything_else_is_the_bases_byte_by_byte(tmp_path: Path, base: Path) -> None:
    adapter = write_adapter(tmp_path / "adapter", base, {Q0: pair(OUT, IN)})
    merge(base, adapter, tmp_path / "out")
    names = {p.name for p in base.iterdir()} - {"README.md", "modeling.py"}
    assert {p.name for p in (tmp_path / "out").iterdir()} == names | {"merged.json"}
    for name in names:
        if not name.endswith(".safetensors"):
            assert (tmp_path / "out" / name).read_bytes() == (base / name).read_bytes(), name
    before, after = merged_tensors(base), merged_tensors(tmp_path / "out")
    assert [n for n in before if not torch.equal(before[n], after[n])] == [Q0 + ".weight"]


def test_rank_stabilised_scale_is_alpha_over_the_root_of_the_rank(tmp_path: Path, base: Path) -> None:
    adapter = write_adapter(
        tmp_path / "adapter", base, all_matrices(rank=4), r=4, lora_alpha=6, use_rslora=True, target_parameters=TARGETS
    )
    merge(base, adapter, tmp_path / "out")
    assert_equal_up_to_a_step(merged_tensors(tmp_path / "out"), by_hand(rs_scale(6, 4), rank=4))


def test_rank_and_alpha_patterns_hold_where_they_match(tmp_path: Path, base: Path) -> None:
    matrices = {
        Q0: pair(OUT, IN, rank=3),
        "model.language_model.layers.1.self_attn.q_proj": pair(OUT, IN, rank=2, seed=7),
        "model.language_model.layers.0.experts": pair(OUT, IN, rank=1, experts=EXPERTS, seed=8),
    }
    patterns = {
        "rank_pattern": {r"layers\.0\.self_attn.q_proj": 3, "experts.gate_up_proj": 1},
        "alpha_pattern": {"layers.0.self_attn.q_proj": 9, "experts.gate_up_proj": 5},
    }
    adapter = write_adapter(
        tmp_path / "adapter", base, matrices, target_parameters=["layers.0.experts.gate_up_proj"], **patterns
    )
    merge(base, adapter, tmp_path / "out")
    found, before = merged_tensors(tmp_path / "out"), base_tensors()
    # alpha / rank: 9 / 3 where the pattern holds, 4 / 2 elsewhere, 5 / 1 for the experts
    for (module, (a, b)), scale in zip(list(matrices.items())[:2], (3.0, 2.0), strict=True):
        wanted = (before[module + ".weight"].float() + scale * (b @ a)).to(torch.bfloat16)
        assert torch.allclose(found[module + ".weight"].float(), wanted.float(), rtol=2**-7, atol=1e-6)
    name = "model.language_model.layers.0.experts.gate_up_proj"
    wanted = (before[name].float() + expert_change(*matrices[name.rpartition(".")[0]], EXPERTS, 1, 5.0)).bfloat16()
    assert torch.allclose(found[name].float(), wanted.float(), rtol=2**-7, atol=1e-6)


def test_an_adapter_of_the_text_model_fits_the_model_with_a_vision_tower(tmp_path: Path, base: Path) -> None:
    adapter = write_adapter(tmp_path / "adapter", base, {Q0.replace("language_model.", ""): pair(OUT, IN)})
    merge(base, adapter, tmp_path / "out")
    found, before = merged_tensors(tmp_path / "out"), merged_tensors(base)
    assert [n for n in before if not torch.equal(before[n], found[n])] == [Q0 + ".weight"]


@pytest.mark.parametrize(
    ("config", "named"),
    [
        ({"use_dora": True}, "use_dora"),
        ({"bias": "all"}, "bias"),
        ({"modules_to_save": ["lm_head"]}, "modules_to_save"),
        ({"fan_in_fan_out": True}, "fan_in_fan_out"),
        ({"init_lora_weights": "pissa_niter_4"}, "pissa"),
        ({"a_setting_of_a_later_release": {"x": 1}}, "a_setting_of_a_later_release"),
        ({"peft_type": "LOHA"}, "LOHA"),
        ({"r": 0}, "r must be"),
        ({"r": float("nan")}, "r must be"),
        ({"lora_alpha": float("inf")}, "lora_alpha must be"),
        ({"lora_alpha": True}, "lora_alpha must be"),
        ({"rank_pattern": [1]}, "rank_pattern must be"),
        ({"rank_pattern": {"(": 1}}, "not a regular expression"),
        ({"alpha_pattern": {"q_proj": 0}}, "not a number above 0"),
        ({"alpha_pattern": {"q_proj": "a"}}, "not a number above 0"),
        ({"target_parameters": 3}, "target_parameters must be"),
        ({"target_modules": "("}, "not a regular expression"),
        ({"rank_pattern": {"q_proj": 2}, "alpha_pattern": {"q_proj": 1, "self_attn.q_proj": 2}}, "several values"),
        ({"r": 4}, "rank 2"),
    ],
)
def test_a_setting_that_is_not_known_to_be_exact_is_refused_by_name(
    tmp_path: Path, base: Path, config: dict[str, object], named: str
) -> None:
    adapter = write_adapter(tmp_path / "adapter", base, {Q0: pair(OUT, IN)}, **config)
    with pytest.raises(WeightsError, match=named):
        merge(base, adapter, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("module", "matrices"),
    [
        ("model.language_model.layers.9.self_attn.q_proj", pair(OUT, IN)),  # no such layer
        ("model.language_model.layers.0.experts", pair(IN, OUT // 2, experts=EXPERTS)),  # not named as a target
        (Q0, pair(OUT, IN + 1)),  # another base's shape
    ],
)
def test_a_pair_that_fits_nothing_is_an_error_that_names_it(
    tmp_path: Path, base: Path, module: str, matrices: tuple[torch.Tensor, torch.Tensor]
) -> None:
    good = "model.language_model.layers.1.self_attn.q_proj"
    adapter = write_adapter(tmp_path / "adapter", base, {good: pair(OUT, IN), module: matrices})
    with pytest.raises(WeightsError) as caught:
        merge(base, adapter, tmp_path / "out")
    assert module in str(caught.value)


def test_a_half_of_a_pair_is_an_error(tmp_path: Path, base: Path) -> None:
    adapter = write_adapter(tmp_path / "adapter", base, {Q0: pair(OUT, IN)})
    a, _ = pair(OUT, IN)
    save_file({f"base_model.model.{Q0}.lora_A.weight": a}, adapter / "adapter_model.safetensors")
    with pytest.raises(WeightsError, match="do not belong together"):
        merge(base, adapter, tmp_path / "out")


def test_stacked_weights_of_equal_shape_are_not_guessed(tmp_path: Path) -> None:
    tensors = base_tensors() | {
        "model.language_model.layers.0.experts.up_proj": torch.zeros(EXPERTS, OUT, IN, dtype=torch.bfloat16)
    }
    base = write_base(tmp_path / "base", tensors)
    both = {
        "model.language_model.layers.0.experts.base_layer": pair(OUT, IN, experts=EXPERTS),
        "model.language_model.layers.0.experts": pair(OUT, IN, experts=EXPERTS),
    }
    targets = ["layers.0.experts.gate_up_proj", "layers.0.experts.up_proj"]
    adapter = write_adapter(tmp_path / "adapter", base, both, target_parameters=targets)
    with pytest.raises(WeightsError, match="several ways"):
        merge(base, adapter, tmp_path / "out")


def test_an_adapter_that_changes_nothing_is_an_error(tmp_path: Path, base: Path) -> None:
    a, b = pair(OUT, IN)
    adapter = write_adapter(tmp_path / "adapter", base, {Q0: (a, torch.zeros_like(b))})
    with pytest.raises(WeightsError, match="changes none"):
        merge(base, adapter, tmp_path / "out")


def test_values_beyond_the_stored_type_are_an_error(tmp_path: Path) -> None:
    base = write_base(tmp_path / "base", base_tensors(torch.float16))
    a, b = pair(OUT, IN)
    adapter = write_adapter(tmp_path / "adapter", base, {Q0: (a * 300, b * 300)})
    with pytest.raises(WeightsError, match=r"q_proj.*infinite"):
        merge(base, adapter, tmp_path / "out")


@pytest.mark.parametrize("nested", [False, True])
def test_a_base_that_says_it_is_quantised_is_refused(tmp_path: Path, nested: bool) -> None:
    said = {"quantization_config": {"quant_method": "bitsandbytes", "load_in_4bit": True}}
    base = write_base(tmp_path / "base", **({"text_config": said} if nested else said))
    adapter = write_adapter(tmp_path / "adapter", base, {Q0: pair(OUT, IN)})
    with pytest.raises(WeightsError, match="bitsandbytes"):
        merge(base, adapter, tmp_path / "out")


def test_a_base_stored_in_few_bits_is_refused_whatever_it_says(tmp_path: Path) -> None:
    tensors = base_tensors() | {"model.language_model.x.weight": torch.zeros(4, 4, dtype=torch.uint8)}
    base = write_base(tmp_path / "base", tensors)
    adapter = write_adapter(tmp_path / "adapter", base, {Q0: pair(OUT, IN)})
    with pytest.raises(WeightsError, match="stored as U8"):
        merge(base, adapter, tmp_path / "out")


@pytest.mark.parametrize("targets", [["q_proj", "down_proj"], r".*\.(q_proj|down_proj)"])
def test_an_adapter_that_lacks_a_layer_is_an_error(tmp_path: Path, base: Path, targets: object) -> None:
    plain = {m: p for m, p in all_matrices().items() if m.endswith("_proj")}
    first = {m: p for m, p in plain.items() if ".layers.0." in m}
    adapter = write_adapter(tmp_path / "half", base, first, target_modules=targets)
    with pytest.raises(WeightsError, match="target 2 weights more") as caught:
        merge(base, adapter, tmp_path / "out")
    assert "layers.1.mlp.down_proj.weight" in str(caught.value)
    chosen = write_adapter(tmp_path / "chosen", base, first, target_modules=targets, layers_to_transform=[0])
    merge(base, chosen, tmp_path / "one layer")
    merge(base, write_adapter(tmp_path / "whole", base, plain, target_modules=targets), tmp_path / "both layers")
