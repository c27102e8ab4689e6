"""Stages: made whole, reused by hashes, made anew when what they rest on changed, never half."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from aipsy_judge.errors import InputError
from aipsy_judge.strict_json import loads
from training.provenance import PROVENANCE, RECIPE, record
from training.recipe_reading import parse_recipe
from training.stage import RECORD, Made, Stage, finished, make


class Killed(BaseException):
    """Stands for a kill: nothing after it runs."""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "input.txt"
    path.write_text("one", encoding="utf-8")
    return path


def upper(source: Path) -> Callable[[Path], None]:
    def work(part: Path) -> None:
        (part / "out.txt").write_text(source.read_text(encoding="utf-8").upper(), encoding="utf-8")

    return work


def made(
    out: Path, source: Path, *, version: int = 1, setting: int = 0, work: Callable[[Path], None] | None = None
) -> Made:
    stage = Stage("upper", version, {"setting": setting}, {"source": source})
    return make(out, stage, work or upper(source))


def state(folder: Path) -> dict[str, tuple[int, int, bytes]]:
    """Every file: inode, time of writing, content."""
    return {
        p.relative_to(folder).as_posix(): (p.stat().st_ino, p.stat().st_mtime_ns, p.read_bytes())
        for p in sorted(folder.rglob("*"))
        if p.is_file()
    }


def test_an_unchanged_stage_is_reused_and_nothing_is_rewritten(tmp_path: Path, source: Path) -> None:
    out = tmp_path / "run"
    assert made(out, source).why == "not made yet"
    before = state(out)
    assert made(out, source, work=lambda part: pytest.fail("was made again")).why is None
    assert state(out) == before


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda source, folder: source.write_text("two", encoding="utf-8"), "source changed, made anew"),
        (lambda source, folder: (folder / "out.txt").write_text("?"), "its own files were changed, made anew"),
        (lambda source, folder: (folder / "out.txt").unlink(), "its own files were changed, made anew"),
        (lambda source, folder: (folder / "more.txt").write_text("?"), "its own files were changed, made anew"),
        (lambda source, folder: (folder / RECORD).write_text("{"), "stage.json is damaged, made anew"),
        (lambda source, folder: (folder / RECORD).unlink(), "stage.json is missing, made anew"),
    ],
)
def test_a_change_is_found_by_content_and_named(
    tmp_path: Path, source: Path, change: Callable[[Path, Path], object], why: str
) -> None:
    out = tmp_path / "run"
    made(out, source)
    change(source, out / "upper")
    assert made(out, source).why == why
    assert (out / "upper" / "out.txt").read_text(encoding="utf-8") == source.read_text(encoding="utf-8").upper()
    assert sorted(p.name for p in (out / "upper").iterdir()) == ["out.txt", RECORD]


def test_another_setting_or_version_of_the_code_makes_it_anew(tmp_path: Path, source: Path) -> None:
    out = tmp_path / "run"
    made(out, source)
    assert made(out, source, setting=1).why == "setting changed, made anew"
    assert made(out, source, setting=1, version=2).why == "version changed, made anew"


def test_an_input_that_was_touched_but_says_the_same_changes_nothing(tmp_path: Path, source: Path) -> None:
    out = tmp_path / "run"
    made(out, source)
    os.utime(source, (1, 1))
    assert made(out, source).why is None


def test_a_killed_stage_is_not_there_and_begins_again(tmp_path: Path, source: Path) -> None:
    out = tmp_path / "run"

    def dies(part: Path) -> None:
        (part / "half.txt").write_text("half", encoding="utf-8")
        raise Killed

    with pytest.raises(Killed):
        made(out, source, work=dies)
    with pytest.raises(InputError, match="has not been made"):
        finished(out, "upper")
    made(out, source)
    assert sorted(p.name for p in finished(out, "upper").iterdir()) == ["out.txt", RECORD]


def test_a_stage_that_fails_leaves_the_former_one_as_it_was(tmp_path: Path, source: Path) -> None:
    out = tmp_path / "run"
    made(out, source)
    before = state(out / "upper")

    def dies(part: Path) -> None:
        raise Killed

    with pytest.raises(Killed):
        made(out, source, setting=1, work=dies)
    assert state(out / "upper") == before


def test_a_resumable_stage_goes_on_in_its_part_only_if_it_rests_on_the_same(tmp_path: Path, source: Path) -> None:
    out, seen = tmp_path / "run", []
    stage = Stage("long", 1, {}, {"source": source})

    def work(part: Path) -> None:
        steps = part / "steps.txt"
        seen.append(steps.read_text(encoding="utf-8") if steps.exists() else "")
        steps.write_text(f"{seen[-1]}.", encoding="utf-8")
        if len(seen) < 3:
            raise Killed

    for change in ("one", "one", "two"):
        source.write_text(change, encoding="utf-8")
        if len(seen) < 2:
            with pytest.raises(Killed):
                make(out, stage, work, resumable=True)
        else:
            make(out, stage, work, resumable=True)
    assert seen == ["", ".", ""]


def test_killed_between_the_two_renames_the_former_stage_is_put_back(tmp_path: Path, source: Path) -> None:
    out = tmp_path / "run"
    made(out, source)
    (out / "upper").rename(out / ".upper.old")
    assert made(out, source, work=lambda part: pytest.fail("was made again")).why is None


def test_an_input_that_changes_while_it_is_read_makes_no_stage(tmp_path: Path, source: Path) -> None:
    out = tmp_path / "run"

    def work(part: Path) -> None:
        source.write_text("other", encoding="utf-8")

    with pytest.raises(InputError, match="changed while it was read"):
        made(out, source, work=work)
    assert not (out / "upper").exists()


def test_two_programs_cannot_make_one_stage_at_once(tmp_path: Path, source: Path) -> None:
    out = tmp_path / "run"

    def work(part: Path) -> None:
        with pytest.raises(InputError, match="another program is making this stage"):
            made(out, source)

    made(out, source, work=work)


def test_a_missing_input_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read") as caught:
        made(tmp_path / "run", tmp_path / "gone.txt")
    assert caught.value.where == str(tmp_path / "gone.txt")


def test_a_run_records_recipe_commit_versions_and_machine_and_rewrites_nothing_that_says_the_same(
    tmp_path: Path,
) -> None:
    recipe = parse_recipe("name: made\nbase: {checkpoint: f}\ndata: {conversations: a, ratings: b}\n")
    record(tmp_path, recipe)
    before = state(tmp_path)
    record(tmp_path, recipe)
    assert state(tmp_path) == before
    told = loads((tmp_path / PROVENANCE).read_bytes())
    assert told["rubric"]["name"] == "aipsy-judge-v1"
    assert {"python", "numpy", "pydantic"} <= set(told["versions"])
    assert told["machine"]["memory_bytes"] > 2**28
    assert "commit" in told
    record(tmp_path, parse_recipe((tmp_path / RECIPE).read_text(encoding="utf-8"), ["seed=15"]))
    assert "seed: 15" in (tmp_path / RECIPE).read_text(encoding="utf-8")
