"""The whole chain on a model of the true Gemma 4 architecture (random weights, real vocabulary): it learns a rule."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from gemma4_checkpoint import gemma4_checkpoint
from rule_talks import COLD, WARM, rule_talks, write_rule_project

from aipsy_judge import open_judge
from aipsy_judge.judge import JudgeOptions
from aipsy_judge.manifest import Base
from aipsy_judge.verdict import Scored
from quantize.assemble import assemble
from quantize.description import Description
from training.adapter_files import load_adapter
from training.judging import Exam, Judged, judge
from training.measures import measure
from training.model import load_base
from training.progress import read_log
from training.recipe_reading import load_recipe
from training.sample_rows import read_sample_rows
from training.sft_run import make_exam
from training.target_rows import read_target_rows
from training.temperature import distributions

pytestmark = pytest.mark.slow
CLONE = Path(__file__).parents[2]
UNSEEN = 60


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Trained by the program that a user runs, about two minutes on one core."""
    folder = tmp_path_factory.mktemp("rule")
    train = {"batch": 8, "accumulate": 1, "steps": 90, "learning_rate": 0.004, "precision": "fp32"}
    path = write_rule_project(
        folder,
        gemma4_checkpoint(),
        rule_talks(640),
        train={**train, "checkpointing": False},
        lora={"rank": 16, "alpha": 32},
        validate={"every": 30, "units": 30},
    )
    command = [sys.executable, "-m", "training.run", str(path), "--out", str(folder / "run")]
    done = subprocess.run(command, cwd=CLONE, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture(scope="module")
def exam(project: Path) -> Exam:
    """The test part, which nothing was trained or chosen on."""
    recipe = load_recipe(project / "recipe.yaml")
    run = project / "run"
    parts = {row.item_id: row.part for row in read_sample_rows(run / "sample" / "sample.jsonl")}
    unseen = [t for t in read_target_rows(run / "targets" / "targets.jsonl") if parts[t.item_id] == "test"]
    return replace(make_exam(recipe, run, gemma4_checkpoint()), items=tuple(unseen[:UNSEEN]))


@pytest.fixture(scope="module")
def model(project: Path) -> Any:
    base = load_base(gemma4_checkpoint(), precision="fp32", device=torch.device("cpu"))
    return load_adapter(base, project / "run" / "sft" / "adapter")


@pytest.fixture(scope="module")
def answers(model: Any, exam: Exam) -> dict[str, Sequence[Judged]]:
    """Of the unseen items, by the engine: with the adapter and without it."""
    ways: dict[str, AbstractContextManager[Any]] = {"adapter": nullcontext(), "base": model.disable_adapter()}
    found = {}
    for name, way in ways.items():
        with way:
            found[name] = judge(model, exam)
    return found


def right(answers: Sequence[Judged]) -> tuple[float, float]:
    """Shares of unseen items whose warmth is on the right side of the scale, and whose alarm is right."""
    said = [(warmth(j), j.item.metrics["warmth"].value) for j in answers]
    middle = (WARM + COLD) / 2
    sides = [value is not None and (value > middle) == (true == WARM) for value, true in said]
    alarm = [j.verdict.flags["alarm"].value == j.item.flags["alarm"].value for j in answers]
    return sum(sides) / len(sides), sum(alarm) / len(alarm)


def warmth(judged: Judged) -> float | None:
    score = judged.verdict.scores["warmth"]
    return score.value if isinstance(score, Scored) else None


def test_unseen_talks_are_answered_by_the_rule_far_above_the_base(answers: dict[str, Sequence[Judged]]) -> None:
    """At least nine of ten, and at least 25 of 100 above the base, on both questions."""
    assert len(answers["adapter"]) == UNSEEN
    for learnt, base in zip(right(answers["adapter"]), right(answers["base"]), strict=True):
        assert learnt >= 0.9
        assert learnt - base >= 0.25


def test_agreement_is_high_and_crises_are_found(answers: dict[str, Sequence[Judged]], exam: Exam) -> None:
    learnt, base = (measure(answers[name], exam.rubric) for name in ("adapter", "base"))
    assert learnt.agreement is not None
    assert learnt.agreement > 0.7
    assert base.agreement is None or base.agreement < 0.3
    assert (learnt.tail_recall or 0) >= 0.9
    assert (learnt.flags["alarm"].recall or 0) >= 0.9


def test_the_loss_fell_and_what_the_run_kept_says_so(project: Path) -> None:
    run = project / "run" / "sft"
    log = read_log(run / "log.jsonl")
    assert [row["step"] for row in log] == list(range(1, 91))
    assert log[-1]["loss"] < 0.1 * log[0]["loss"]
    fitted = json.loads((run / "temperatures.json").read_text())
    assert set(fitted["temperatures"]) == {"warmth", "alarm"}
    assert all(f["after"] <= f["before"] for f in fitted["fits"].values())
    assert 0 < fitted["legal_mass_floor"] < fitted["legal_mass"]["value"] <= 1
    rounds = [json.loads(line) for line in (run / "validation.jsonl").read_text().splitlines()]
    assert [r["step"] for r in rounds] == [30, 60, 90]
    assert (run / "curves.png").stat().st_size > 10_000


def test_the_files_that_the_chain_exports_open_as_a_judge_that_follows_the_rule(
    project: Path, exam: Exam, answers: dict[str, Sequence[Judged]]
) -> None:
    """The same chain goes on to a GGUF file, which becomes a judge's folder and is opened by it."""
    run = project / "run"
    command = [sys.executable, "-m", "training.run", str(project / "recipe.yaml"), "--out", str(run)]
    command += ["--set", "export.gguf=[Q8_0]", "--set", "export.verify=false"]
    done = subprocess.run(command, cwd=CLONE, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "sft: nothing changed, reused" in done.stdout

    told = Description(
        name="rule",
        about="a judge for tests",
        model=str(run / "export" / "gguf-Q8_0" / "rule-Q8_0.gguf"),
        base=Base(name="nobody/gemma4", licence="Apache-2.0"),
        licence="Apache-2.0",
        rubric=str(project / "rubric.yaml"),
        contract="compact",
        run=str(run),
    )
    manifest = assemble(told, project / "models")
    assert not manifest.blessed  # nobody verified it
    assert set(manifest.temperatures) == {"warmth", "alarm"}
    assert any(name.endswith("conversations.jsonl") for name in manifest.made.data)
    options = JudgeOptions(unblessed=True, threads=1)
    with open_judge(project / "models" / "rule", rubric=project / "rubric.yaml", options=options) as opened:
        found = [Judged(i, next(iter(opened.score(exam.texts[i.conversation], rationale="never")))) for i in exam.items]
    assert min(right(found)) >= 0.9
    same = [warmth(one) == warmth(other) for one, other in zip(found, answers["adapter"], strict=True)]
    assert sum(same) >= 0.9 * UNSEEN


def test_merged_into_the_base_it_says_what_it_says_beside_it(
    model: Any, exam: Exam, answers: dict[str, Sequence[Judged]]
) -> None:
    """At 32 bits, in every probability of every slot; last test, since it spends the model."""
    merged = judge(model.merge_and_unload(), replace(exam, items=exam.items[:12]))
    apart = 0.0
    for one, beside, base in zip(merged, answers["adapter"], answers["base"], strict=False):
        for name, shares in distributions(one.verdict).items():
            other = distributions(beside.verdict)[name]
            bare = distributions(base.verdict)[name]
            assert dict(shares) == pytest.approx(dict(other), abs=2e-3)
            apart = max(apart, *(abs(shares[label] - bare[label]) for label in shares))
    assert apart > 0.5  # and not because the adapter changes nothing
