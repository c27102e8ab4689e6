"""Rows of A that tell the targets before the first step, and everything else as it was."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from random_run import word_tokenizer
from transformers import LlamaConfig, LlamaForCausalLM

from aipsy_judge.errors import InputError
from training import ridge_start
from training.lora import adapt
from training.recipe import Lora, Recipe
from training.ridge_start import Slots, directions, drawn, start_from_ridge
from training.rows import Row, RowTree, Target, slot_kind
from training.sft_run import make_trainer

MODULES = r"model\.layers\.[12]\.self_attn\.(q|k|v|o)_proj"
RANK = 8


def slots(seed: int = 0, count: int = 900) -> tuple[Slots, np.ndarray]:
    """Answers of slots a and b: in each the share of the first token follows one direction of the input."""
    draw = np.random.default_rng(seed)
    tells = {"a": draw.normal(size=60), "b": draw.normal(size=60)}
    means = {"a": 30 * draw.normal(size=60), "b": 30 * draw.normal(size=60)}
    names = np.array(["a", "b"] * count)
    noise = draw.normal(size=(2 * count, 60))
    inputs = np.stack([means[n] + x for n, x in zip(names, noise, strict=True)]).astype(np.float32)
    first = np.array([1 / (1 + np.exp(-x @ tells[n] / 4)) for n, x in zip(names, noise, strict=True)])
    shares = np.stack([first, 1 - first], 1).astype(np.float32)
    return Slots(names, shares, {"one": inputs}), inputs


def test_directions_tell_their_slot_s_target_and_nothing_of_which_slot_it_is() -> None:
    told, inputs = slots()
    found = directions(inputs, told, ["a", "b"])
    assert found.shape == (2 * 1, 60)  # two shares that sum to 1 differ along one axis
    for row, name in zip(found, ("a", "b"), strict=True):
        own = told.names == name
        target = told.shares[own, 0]
        assert abs(np.corrcoef(inputs[own] @ row, target)[0, 1]) > 0.95
        assert (inputs[own] @ row).std() == pytest.approx(1, abs=0.1)
        fresh, new = slots(1)  # other means, other tells: it is about these answers, not about the numbers
        assert abs(np.corrcoef(new[fresh.names == name] @ row, fresh.shares[fresh.names == name, 0])[0, 1]) < 0.6
    means = np.stack([inputs[told.names == n].mean(0) for n in ("a", "b")])
    assert np.abs(found @ means.T).max() < 1e-3 * np.abs(means).max() * np.abs(found).max()


def test_where_inputs_are_alike_nothing_is_told() -> None:
    told, inputs = slots()
    alike = np.where((told.names == "a")[:, None], inputs[0], inputs[1])
    assert directions(alike, told, ["a", "b"]).shape == (0, 60)
    half = np.where((told.names == "a")[:, None], inputs[0], inputs)
    assert directions(half, told, ["a", "b"]).shape == (1, 60)


def model() -> Any:
    torch.manual_seed(1)
    shape = {"hidden_size": 32, "intermediate_size": 48, "num_attention_heads": 4, "num_hidden_layers": 3}
    base = LlamaForCausalLM(LlamaConfig(vocab_size=64, **shape)).requires_grad_(False)
    return adapt(base, Lora(rank=RANK, modules=MODULES), 14)


def rows(count: int) -> list[Row]:
    """The answer at slot `tone` is the word that the prompt held; at `rare` few ask."""
    draw = np.random.default_rng(3)
    found = []
    for n in range(count):
        word = int(draw.integers(10, 14))
        tree = RowTree()
        end = tree.grow(-1, [3, word, *draw.integers(20, 40, 4).tolist(), 5])
        targets = [Target(end, (word,), (1.0,), 1.0, slot_kind("tone")), Target(end, (6,), (1.0,), 0.1, "skeleton")]
        if n % 50 == 0:
            targets.append(Target(end - 1, (7,), (1.0,), 1.0, slot_kind("rare")))
        found.append(tree.row(f"r{n}", targets))
    return found


def trainer(folder: Path, count: int = 120) -> Any:
    recipe = Recipe.model_validate(
        {
            "name": "t",
            "base": {"checkpoint": "x"},
            "data": {"conversations": ["x"], "ratings": ["x"]},
            "train": {"precision": "fp32", "checkpointing": False, "steps": 1},
        }
    )
    return make_trainer(recipe, model(), word_tokenizer(), rows(count), folder, torch.device("cpu"))


def rows_of_a(of: Any) -> dict[str, torch.Tensor]:
    return {n: p.detach().clone() for n, p in of.model.named_parameters() if "lora_A" in n}


def test_rows_of_a_are_set_and_all_else_stays(tmp_path: Path) -> None:
    made = trainer(tmp_path / "a")
    before, state = rows_of_a(made), torch.random.get_rng_state()
    said = start_from_ridge(made, 14)
    assert said == "start: rows of A of 4 modules from 123 answers of tone"
    assert torch.equal(torch.random.get_rng_state(), state)
    assert made.model.training
    for name, weight in rows_of_a(made).items():
        changed = (weight != before[name]).any(1).tolist()
        if "k_proj" in name or "v_proj" in name:
            assert not any(changed)
        else:  # two directions of the one slot that has enough answers
            assert changed == [True, True, *[False] * (RANK - 2)]
    assert all(not p.any() for n, p in made.model.named_parameters() if "lora_B" in n)
    again = trainer(tmp_path / "b")
    start_from_ridge(again, 14)
    for name, weight in rows_of_a(again).items():
        assert torch.equal(weight, rows_of_a(made)[name])


def test_what_the_set_rows_read_tells_the_target_better_than_random_rows_do(tmp_path: Path) -> None:
    made = trainer(tmp_path, 300)
    before = rows_of_a(made)
    start_from_ridge(made, 14)
    read = ridge_start.look_at(made, range(300))
    told, inputs = read.names == "tone", read.inputs["base_model.model.model.layers.2.self_attn.o_proj"]
    name = "base_model.model.model.layers.2.self_attn.o_proj.lora_A.default.weight"

    def left(weight: torch.Tensor) -> float:
        """Share of the targets' variance that two rows leave unexplained."""
        seen = inputs[told] @ weight[:2].numpy().T
        seen, shares = seen - seen.mean(0), read.shares[told] - read.shares[told].mean(0)
        rest = shares - seen @ np.linalg.lstsq(seen, shares, rcond=None)[0]
        return float((rest**2).sum() / (shares**2).sum())

    assert left(rows_of_a(made)[name]) < 0.7 * left(before[name])


def test_rows_are_drawn_until_there_are_answers_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ridge_start, "ANSWERS", 10)
    found = drawn(rows(120), 14)
    assert len(found) in (9, 10)  # a row asks once or twice
    assert found == drawn(rows(120), 14) != drawn(rows(120), 15)


def test_too_few_answers_are_said(tmp_path: Path) -> None:
    made = trainer(tmp_path, 40)
    with pytest.raises(InputError, match="no slot has 100 answers"):
        start_from_ridge(made, 14)
