"""A training run: the same whatever its batches, the same when stopped and gone on with, or told where it broke."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from gemma4_checkpoint import gemma4_checkpoint
from rule_talks import rule_talks, write_rule_project
from safetensors.torch import load_file

from aipsy_judge.base_record import RECORD, base_record
from aipsy_judge.errors import InputError, JudgeError
from training import ridge_start, row_trainer, sft, stage
from training.adapter_files import WEIGHTS
from training.hf_tokens import HFTokens, base_tokens
from training.last_good import LastGood
from training.progress import FILE as LOG
from training.progress import _duration, read_log
from training.quiet import without_notices
from training.recipe import Base, Recipe
from training.recipe_reading import load_recipe
from training.render import make_rows
from training.resuming import CHECKPOINTS, last_whole_checkpoint
from training.row_trainer import row_collator
from training.rows import read_rows
from training.sft import train
from training.targets import make_targets

pytestmark = pytest.mark.slow
GOLDEN = Path(__file__).parents[1] / "golden" / "training_golden_run.json"
SHORT = ("train.steps=6", "train.batch=4", "train.schedule=constant", "train.warmup=0", "validate.every=null")


@pytest.fixture(scope="module", autouse=True)
def one_tokenizer() -> Iterator[None]:
    """Of 262,144 tokens, read once for all runs of this file: it takes as long as their steps, and none changes it."""
    read: dict[str | None, HFTokens] = {}

    def once(base: Base) -> HFTokens:
        if base.checkpoint not in read:
            read[base.checkpoint] = base_tokens(base)
        return read[base.checkpoint]

    with without_notices():
        from training import sft_run
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sft_run, "base_tokens", once)
        yield


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recipe over the tiny Gemma 4, its rows rendered."""
    folder = tmp_path_factory.mktemp("rule")
    # every third talk's warmth is unrated, so that rows have unlike numbers of targets
    talks = [replace(t, warmth=None) if n % 3 == 0 else t for n, t in enumerate(rule_talks(40))]
    recipe = load_recipe(write_rule_project(folder, gemma4_checkpoint(), talks))
    make_targets(recipe, folder / "run")
    make_rows(recipe, folder / "run")
    return folder


def prepared(project: Path, folder: Path, *overrides: str) -> tuple[Recipe, Path]:
    """The recipe and a run's folder of its own, trained nothing yet."""
    shutil.copytree(project / "run", folder)
    return load_recipe(project / "recipe.yaml", [*SHORT, *overrides]), folder


def losses(folder: Path) -> list[float]:
    return [row["loss"] for row in read_log(folder / "sft" / LOG)]


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(folder / WEIGHTS)


def silent(line: str) -> None:
    pass


@pytest.fixture(scope="module")
def straight(project: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six steps of batch 4, never stopped."""
    recipe, out = prepared(project, tmp_path_factory.mktemp("straight") / "run")
    train(recipe, out, silent)
    return out


def test_a_batch_of_four_and_four_of_one_are_the_same_run(project: Path, straight: Path, tmp_path: Path) -> None:
    """And the one that is committed. Targets weigh unlike in unlike rows, so a mean of means would differ at once.

    Tolerance: sums of float32 in another order; an expert chosen otherwise for one token would move a loss by 1e-3.
    """
    recipe, out = prepared(project, tmp_path / "run", "train.batch=1", "train.accumulate=4")
    train(recipe, out, silent)
    golden = json.loads(GOLDEN.read_text())
    assert losses(out) == pytest.approx(losses(straight), rel=2e-4)
    assert losses(straight) == pytest.approx(golden["losses"], rel=2e-3)
    assert losses(straight)[-1] < 0.8 * losses(straight)[0]


def test_a_run_that_was_stopped_goes_on_as_if_it_had_not_been(project: Path, straight: Path, tmp_path: Path) -> None:
    recipe, out = prepared(project, tmp_path / "run", "train.save_every=2")
    _train_until(recipe, out, "step 5/6")
    assert not (out / "sft").exists()
    saved = out / ".sft.part" / CHECKPOINTS / "checkpoint-4"
    assert (saved / WEIGHTS).is_file()
    assert not (saved / "tokenizer.json").exists()  # it is the base's, and larger than all else here
    (saved.parent / "checkpoint-5").mkdir()  # half written when it was killed
    told: list[str] = []
    train(recipe, out, told.append)
    assert "going on from step 4" in told
    assert not any("step 4/6" in line for line in told)
    assert losses(out) == pytest.approx(losses(straight), rel=1e-6)
    for name, tensor in weights(straight / "sft" / "adapter").items():
        torch.testing.assert_close(weights(out / "sft" / "adapter")[name], tensor, rtol=1e-5, atol=1e-7)
    assert not (out / "sft" / CHECKPOINTS).exists()


@pytest.mark.parametrize("when", ["before it is in place", "before what is for resuming is cleared"])
def test_a_run_that_is_killed_at_its_very_end_is_not_trained_again(
    project: Path, straight: Path, tmp_path: Path, when: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe, out = prepared(project, tmp_path / "run")

    def killed(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(*((stage, "_put") if when == "before it is in place" else (sft, "clear")), killed)
        with pytest.raises(KeyboardInterrupt):
            train(recipe, out, silent)
    told: list[str] = []
    train(recipe, out, told.append)
    assert not any(line.startswith("step ") for line in told)
    for name, tensor in weights(straight / "sft" / "adapter").items():
        torch.testing.assert_close(weights(out / "sft" / "adapter")[name], tensor, rtol=1e-5, atol=1e-7)
    assert [p.name for p in (out / "sft").iterdir() if p.name.startswith(".")] == []


def _train_until(recipe: Recipe, out: Path, beginning: str) -> None:
    def stop(line: str) -> None:
        if line.startswith(beginning):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(recipe, out, stop)


def test_sixteen_bits_and_recomputed_activations_train_alike(project: Path, straight: Path, tmp_path: Path) -> None:
    recipe, out = prepared(project, tmp_path / "run", "train.precision=bf16", "train.checkpointing=true")
    train(recipe, out, silent)
    # at this rate of learning differences grow from step to step
    assert losses(out)[:3] == pytest.approx(losses(straight)[:3], rel=0.05)
    assert losses(out)[-1] < 0.3 * losses(out)[0]
    assert all(t.dtype == torch.float32 for t in weights(out / "sft" / "adapter").values())


def test_routed_experts_are_trained_when_asked_and_saved(project: Path, tmp_path: Path) -> None:
    recipe, out = prepared(project, tmp_path / "run", "lora.experts=true", "train.steps=2")
    told: list[str] = []
    train(recipe, out, told.append)
    learnt = {name: t for name, t in weights(out / "sft" / "adapter").items() if ".experts." in name}
    assert len(learnt) == 6 * 4
    assert all(float(t.abs().max()) > 0 for name, t in learnt.items() if "lora_B" in name)
    assert any("experts.gate_up_proj x 6" in line for line in told)


def test_a_stage_whose_inputs_are_as_they_were_is_not_trained_again(project: Path, straight: Path) -> None:
    told: list[str] = []
    recipe = load_recipe(project / "recipe.yaml", SHORT)
    assert train(recipe, straight, told.append).why is None
    assert told == ["sft: nothing changed, reused"]
    other = load_recipe(project / "recipe.yaml", [*SHORT, "lora.rank=4"])
    _train_until(other, straight, "adapter:")


def test_the_adapter_says_which_base_it_was_trained_on(straight: Path) -> None:
    folder = straight / "sft" / "adapter"
    assert json.loads((folder / RECORD).read_text()) == base_record(gemma4_checkpoint()).to_dict()
    assert sorted(p.name for p in folder.iterdir()) == ["adapter_config.json", WEIGHTS, RECORD]
    assert all("lora_" in name for name in weights(folder))
    assert not any(word in name for name in weights(folder) for word in ("router", "experts", "vision"))
    assert (straight / "sft" / "curves.png").is_file()


@pytest.mark.parametrize("broken", ["loss", "gradient"])
def test_the_first_number_that_is_none_ends_the_run_and_keeps_what_was_good(
    project: Path, straight: Path, tmp_path: Path, broken: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The third step's loss (or a gradient of it) is NaN: what is kept are the weights after one or two steps, exactly,
    and the step that may have spoilt them is not among them where only the loss after it could tell."""
    calls: list[int] = []
    real = row_trainer.soft_cross_entropy

    def spoilt(hidden: torch.Tensor, *args: Any, **words: Any) -> torch.Tensor:
        calls.append(1)
        loss = real(hidden, *args, **words)
        if len(calls) < 3:
            return loss
        return loss * float("nan") if broken == "loss" else loss + hidden.sum().mul(0.0).sqrt().mul(0.0)

    monkeypatch.setattr(row_trainer, "soft_cross_entropy", spoilt)
    recipe, out = prepared(project, tmp_path / "run")
    with pytest.raises(JudgeError, match=rf"{broken} is not finite after 2 steps; the adapter after . steps is kept"):
        train(recipe, out, silent)
    assert not (out / "sft").exists()
    kept = weights(out / "sft-last-good")
    monkeypatch.setattr(row_trainer, "soft_cross_entropy", real)
    steps = 1 if broken == "loss" else 2
    recipe, other = prepared(project, tmp_path / "short", f"train.steps={steps}")
    train(recipe, other, silent)
    for name, tensor in weights(other / "sft" / "adapter").items():
        torch.testing.assert_close(kept[name], tensor, rtol=1e-5, atol=1e-7)


def test_an_adapter_that_learnt_nothing_is_no_result(project: Path, tmp_path: Path) -> None:
    recipe, out = prepared(project, tmp_path / "run", "train.learning_rate=1.0e-30", "train.steps=1")
    with pytest.raises(JudgeError, match="the adapter changes nothing"):
        train(recipe, out, silent)


def test_kept_states_change_nothing_of_a_run(project: Path, tmp_path: Path) -> None:
    """Two epochs and more of an adapter beside the upper layers, sliding and full ones, their lower layers computed
    each time and once."""
    upper = ("train.steps=16", r"lora.modules=.*layers\.[345]\.self_attn\.(q|o)_proj")
    told: list[str] = []
    recipe, computed = prepared(project, tmp_path / "computed", *upper)
    train(recipe, computed, silent)
    recipe, kept = prepared(project, tmp_path / "kept", *upper, "train.keep_trunk=true")
    train(recipe, kept, told.append)
    assert any(line.startswith("layers 0 to 2 are computed once a row") for line in told)
    assert losses(kept) == pytest.approx(losses(computed), rel=1e-6)
    for name, tensor in weights(computed / "sft" / "adapter").items():
        torch.testing.assert_close(weights(kept / "sft" / "adapter")[name], tensor, rtol=1e-5, atol=1e-7)


def test_a_run_from_directions_that_tell_goes_on_from_what_it_learnt_not_from_the_start(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ridge_start, "FEWEST", 15)
    words = ("lora.start=ridge", "train.save_every=2")
    told: list[str] = []
    recipe, whole = prepared(project, tmp_path / "whole", *words)
    train(recipe, whole, told.append)
    assert any(line.startswith("start: rows of A of") for line in told)
    recipe, stopped = prepared(project, tmp_path / "stopped", *words)
    _train_until(recipe, stopped, "step 5/6")
    told.clear()
    train(recipe, stopped, told.append)
    assert not any(line.startswith("start:") for line in told)
    assert losses(stopped) == pytest.approx(losses(whole), rel=1e-6)


def test_without_rows_there_is_nothing_to_train_on(project: Path, tmp_path: Path) -> None:
    recipe, out = prepared(project, tmp_path / "run")
    (out / "rows" / "train.jsonl").write_text("")
    with pytest.raises(InputError, match="no rows to train on"):
        train(recipe, out, silent)


def test_the_token_that_pads_trains_nothing_even_if_it_ends_a_turn(project: Path) -> None:
    """The end of a turn is trained where it ends one, although the same id pads the batch."""
    rows = read_rows(project / "run" / "rows" / "train.jsonl")[:6]
    end = 106
    batch = row_collator(rows, end)([{"index": n} for n in range(6)])
    trained = sum(len(r.targets) for r in rows)
    assert len(batch["weights"]) == trained
    assert batch[row_trainer.LENGTHS].tolist() == [len(r.tokens) for r in rows]
    assert batch[row_trainer.SHOWN].tolist() == list(range(6))
    assert all(int(a) < len(rows[int(r)].tokens) for r, a in zip(batch["row"], batch["at"], strict=True))


def test_a_half_written_checkpoint_is_none(tmp_path: Path) -> None:
    for step, whole in ((2, True), (4, False)):
        folder = tmp_path / f"checkpoint-{step}"
        folder.mkdir()
        if whole:
            (folder / "trainer_state.json").write_text("{}")
    assert last_whole_checkpoint(tmp_path) == tmp_path / "checkpoint-2"
    assert not (tmp_path / "checkpoint-4").exists()
    assert last_whole_checkpoint(tmp_path / "none") is None


def test_nothing_is_put_back_where_no_step_was_good() -> None:
    assert LastGood().restore(torch.nn.Linear(2, 2)) is None


def test_time_left_is_said_in_the_units_of_a_clock() -> None:
    assert [_duration(s) for s in (9.4, 75, 3725)] == ["9 s", "1 min 15 s", "1 h 02 min"]
