"""The stage that makes rows: what becomes one, what is dropped and counted, and when it is made anew."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from recipe_setup import FINE, Scores, make_project, read_recipe, talk
from toy_model import ToyModel

from aipsy_judge.errors import InputError
from training import render
from training.render import SUMMARY, make_rows
from training.rows import Row, read_rows

TALKS = [talk(f"talk-{n}", n, scenario=f"s{n}") for n in range(10)]


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> None:
    """The stage over a tokenizer that costs nothing."""
    monkeypatch.setattr(render, "base_tokens", lambda base: ToyModel())
    monkeypatch.setattr(render, "tokenizer_files", lambda base: {})


def judged(n: int, judge: str) -> tuple[Scores, bool]:
    """Items 0 and 5 fail on empathy, item 3 is a crisis."""
    crisis = n == 3
    return FINE | {"empathy": 1.0 if n % 5 == 0 else 4.0, "crisis_handling": 4.0 if crisis else None}, crisis


FEW = TALKS[:4]


def made(path: Path, *overrides: str) -> tuple[dict[str, list[Row]], dict[str, Any]]:
    folder = make_rows(read_recipe(path, *overrides), path.parent / "run").folder
    rows = {part: read_rows(folder / f"{part}.jsonl") for part in ("train", "validation")}
    return rows, json.loads((folder / SUMMARY).read_text())


@pytest.mark.usefixtures("toy")
def test_rows_are_those_of_the_train_and_validation_parts_and_none_of_the_test_part(tmp_path: Path) -> None:
    path = make_project(tmp_path, TALKS, judged, contract="compact")
    rows, summary = made(path)
    sample = [json.loads(line) for line in (tmp_path / "run" / "sample" / "sample.jsonl").read_text().splitlines()]
    for part, found in rows.items():
        wanted = {s["item_id"]: s["repeats"] for s in sample if s["part"] == part}
        assert {r.item_id: r.repeats for r in found} == wanted
        assert summary[part]["rows"] == len(wanted)
    assert any(r.repeats == 4 for r in rows["train"])
    assert not list((tmp_path / "run" / "rows").glob("test*"))


@pytest.mark.usefixtures("toy")
def test_an_item_that_is_too_long_is_dropped_whole_and_counted_never_cut(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    talks = [*TALKS[:-1], talk("talk-9", 9, turns=12, scenario="s0")]
    path = make_project(
        tmp_path, talks, judged, contract="compact", split={"train": 1.0, "validation": 0.0, "test": 0.0}
    )
    whole, _ = made(path)
    sizes = {r.item_id: len(r.tokens) for r in whole["train"]}
    limit = sorted(sizes.values())[-5]
    rows, summary = made(path, f"render.max_tokens={limit}")
    kept = {r.item_id: r.tokens for r in rows["train"]}
    assert set(kept) == {i for i, size in sizes.items() if size <= limit}
    assert kept == {r.item_id: r.tokens for r in whole["train"] if r.item_id in kept}
    dropped = len(sizes) - len(kept)
    assert dropped >= 3
    assert summary["train"]["dropped"] == {f"longer than {limit} tokens": dropped}
    assert f"{dropped} dropped (longer than {limit} tokens)" in capsys.readouterr().out


@pytest.mark.usefixtures("toy")
def test_a_limit_that_leaves_nothing_stops_with_the_reason(tmp_path: Path) -> None:
    path = make_project(tmp_path, TALKS, judged, contract="compact")
    with pytest.raises(InputError, match="no rows to train on"):
        made(path, "render.max_tokens=16")
    assert not (tmp_path / "run" / "rows").exists()


@pytest.mark.usefixtures("toy")
def test_rows_are_reused_until_something_they_rest_on_changes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = make_project(tmp_path, FEW, judged, contract="compact")

    def again(*overrides: str) -> bool:
        return make_rows(read_recipe(path, *overrides), tmp_path / "run").why is None

    assert not again()
    assert again()
    assert again("train.learning_rate=0.001")
    changes = "render.labels=hard", "targets.spread=0.25", "render.window=2", "render.skeleton_weight=0.05"
    for change in (*changes, "render.augment=0.5"):
        assert not again(change), change
    assert not again("contract=full", "render.max_tokens=9000")
    capsys.readouterr()


@pytest.mark.usefixtures("toy")
def test_augmentation_changes_train_rows_alone_and_none_of_their_targets(tmp_path: Path) -> None:
    path = make_project(tmp_path, TALKS, judged, contract="compact")
    plain, _ = made(path)
    dressed, _ = made(path, "render.augment=1.0")
    assert plain["validation"]
    assert dressed["validation"] == plain["validation"]
    assert [r.item_id for r in dressed["train"]] == [r.item_id for r in plain["train"]]
    for before, after in zip(plain["train"], dressed["train"], strict=True):
        assert [replace(t, at=0) for t in before.targets] == [replace(t, at=0) for t in after.targets]
        assert before.repeats == after.repeats
    changed = [a.tokens != b.tokens for a, b in zip(plain["train"], dressed["train"], strict=True)]
    assert sum(changed) > len(changed) / 2  # these talks have no sentences and no quotes: some kinds find nothing
    again, _ = made(path, "render.augment=1.0", "seed=15")
    assert [r.tokens for r in again["train"]] != [r.tokens for r in dressed["train"]]


@pytest.mark.usefixtures("toy")
def test_a_turn_at_which_nothing_is_said_is_dropped_and_counted(tmp_path: Path) -> None:
    talks = [dict(t) for t in TALKS]
    talks[0] = {**talks[0], "messages": [*talks[0]["messages"][:-1], {"role": "assistant", "content": " "}]}
    path = make_project(tmp_path, talks, judged, contract="compact")
    _, summary = made(path, "split.train=1.0", "split.validation=0.0", "split.test=0.0")
    assert summary["train"]["dropped"] == {"the assistant says nothing there": 1}


@pytest.mark.usefixtures("toy")
def test_the_preflight_is_told_and_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = make_project(tmp_path, TALKS, judged, contract="compact")
    rows, summary = made(path)
    told = capsys.readouterr().out
    assert "trained tokens a row" in told
    found = summary["train"]["preflight"]
    assert found["rows"] == len(rows["train"])
    assert found["shown"] == sum(r.repeats for r in rows["train"])
    assert found["trained"]["slot"]["least"] >= 6


@pytest.mark.slow
def test_the_programs_render_and_check_a_run_from_a_gguf(tmp_path: Path) -> None:
    from real_models import smollm2

    path = make_project(tmp_path, TALKS, judged, contract="compact", base={"gguf": str(smollm2())})
    for program, said in (("training.render", "train: "), ("training.preflight", "rows that train a slot")):
        done = subprocess.run(
            [sys.executable, "-m", program, str(path), "--out", str(tmp_path / "run")],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert said in done.stdout


@pytest.mark.slow
def test_help_needs_no_torch_and_no_transformers() -> None:
    for program in ("render", "preflight"):
        code = (
            "import sys; sys.modules['torch'] = sys.modules['transformers'] = None; "
            f"import training.{program} as p; p.main(['--help'], standalone_mode=False)"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert "RECIPE" in done.stdout
