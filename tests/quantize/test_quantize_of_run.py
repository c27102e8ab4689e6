"""A judge tells of the training that its weights came from, and of no other."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import small_run
from small_gguf import write_small_gguf

from aipsy_judge.errors import InputError
from aipsy_judge.manifest import Base, Manifest
from quantize.assemble import assemble
from quantize.description import Description
from training.provenance import made_with, record
from training.recipe import Recipe

Kind = Callable[[Path], dict[str, Any]]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIPSY_JUDGE_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def run(tmp_path: Path) -> Path:
    small_run.train(tmp_path / "run")
    return tmp_path / "run"


def as_gguf(run: Path) -> dict[str, Any]:
    return {"model": str(small_run.job(run).gguf("Q8_0"))}


def as_folder(run: Path) -> dict[str, Any]:
    return {"model": str(small_run.job(run).mlx(8))}


def as_adapter(run: Path) -> dict[str, Any]:
    worn = run.parent / "worn.gguf"
    return {"model": str(write_small_gguf(worn)), "adapter": str(small_run.job(run).adapter_gguf())}


every_kind = pytest.mark.parametrize("kind", [as_gguf, as_folder, as_adapter])


def assembled(run: Path, weights: dict[str, Any], **changes: Any) -> Manifest:
    told: dict[str, Any] = {
        "name": "small",
        "about": "a judge for tests",
        "base": Base(name="nobody/small", licence="Apache-2.0"),
        "licence": "Apache-2.0",
        "contract": "compact",
        "run": str(run),
    }
    return assemble(Description(**{**told, **weights, **changes}), run.parent / "models", threads=1)


@every_kind
def test_what_a_run_exported_carries_its_recipe_commit_versions_and_temperatures(run: Path, kind: Kind) -> None:
    manifest = assembled(run, kind(run))
    made = manifest.made
    text = (run / "recipe.resolved.yaml").read_bytes()
    assert (made.recipe, made.recipe_sha256) == ("tiny", hashlib.sha256(text).hexdigest())
    assert (made.commit, made.versions) == (made_with()["commit"], made_with()["versions"])
    assert made.data == {"ratings": hashlib.sha256(b"ratings of first").hexdigest()}
    assert manifest.temperatures == {"empathy": 1.5}
    assert "by the recipe tiny" in (run.parent / "models" / "small" / "README.md").read_text()


@every_kind
def test_weights_of_another_run_are_refused(run: Path, kind: Kind, tmp_path: Path) -> None:
    small_run.train(tmp_path / "other", "the other")
    weights = kind(tmp_path / "other")
    kind(run)
    with pytest.raises(InputError, match="is not what the export of this run made") as caught:
        assembled(run, weights)
    assert "training.export" in caught.value.hint
    assert str(run) in str(caught.value)
    assert not (tmp_path / "models" / "small" / "manifest.yaml").exists()


@every_kind
def test_what_was_exported_before_the_run_was_trained_anew_is_refused(run: Path, kind: Kind) -> None:
    weights = kind(run)
    small_run.train(run, "second time", temperature=3.0)
    with pytest.raises(InputError, match="exported from another training than the one that lies in sft/"):
        assembled(run, weights)
    again = assembled(run, kind(run))
    assert again.temperatures == {"empathy": 3.0}


@pytest.mark.parametrize("kind", [as_gguf, as_folder])
def test_a_file_of_a_merged_model_that_was_merged_anew_since_is_refused(run: Path, kind: Kind) -> None:
    weights = kind(run)
    small_run.train(run, "second time")
    small_run.job(run).merged()
    with pytest.raises(InputError, match="exported from another training"):
        assembled(run, weights)


def test_the_base_without_training_carries_nothing_of_the_training(run: Path) -> None:
    job = small_run.job(run)
    job.gguf("Q8_0")
    bare = job.folder / "bare" / "bare.gguf"
    bare.parent.mkdir()
    write_small_gguf(bare)
    outputs = {"bare.gguf": hashlib.sha256(bare.read_bytes()).hexdigest()}
    (bare.parent / "stage.json").write_text(json.dumps({"key": {"inputs": {"base": "0" * 64}}, "outputs": outputs}))
    with pytest.raises(InputError, match="exported from another training"):
        assembled(run, {"model": str(bare)})


def test_a_later_program_in_the_runs_folder_does_not_change_what_it_was_made_with(run: Path) -> None:
    weights = as_adapter(run)
    text = (run / "recipe.resolved.yaml").read_bytes()
    record(run, later_recipe())
    told = json.loads((run / "provenance.json").read_text())
    (run / "provenance.json").write_text(json.dumps({**told, "commit": "a" * 40, "versions": {"torch": "1.0"}}))
    assert (run / "recipe.resolved.yaml").read_bytes() != text
    made = assembled(run, weights).made
    assert made.recipe_sha256 == hashlib.sha256(text).hexdigest()
    assert made.commit == made_with()["commit"] != "a" * 40
    assert made.versions == made_with()["versions"]


def later_recipe() -> Recipe:
    return small_run.recipe(seed=15)


def test_a_training_that_did_not_record_its_recipe_has_the_one_in_its_folder(run: Path) -> None:
    weights = as_adapter(run)
    path = run / "sft" / "stage.json"
    told = json.loads(path.read_text())
    del told["made"]["recipe_sha256"]
    path.write_text(json.dumps(told))
    text = (run / "recipe.resolved.yaml").read_bytes()
    assert assembled(run, weights).made.recipe_sha256 == hashlib.sha256(text).hexdigest()


def test_targets_that_were_made_anew_since_are_not_the_trainings_data(run: Path) -> None:
    weights, targets = as_adapter(run), (run / "targets" / "targets.jsonl").read_bytes()
    newer = run.parent / "newer.csv"
    newer.write_text("other ratings")
    small_run.make_targets(run, newer)
    assert assembled(run, weights).made.data == {"targets": hashlib.sha256(targets).hexdigest()}


@pytest.mark.parametrize("told", ['{"empathy": 0.5}', None])
def test_temperatures_that_the_training_did_not_make_are_refused(run: Path, told: str | None) -> None:
    weights, path = as_adapter(run), run / "sft" / "temperatures.json"
    if told is None:
        path.unlink()
    else:
        path.write_text(told)
    with pytest.raises(InputError, match="is not what the training made"):
        assembled(run, weights)
    assert assembled(run, weights, temperatures={"empathy": 2.0}).temperatures == {"empathy": 2.0}


@pytest.mark.parametrize(
    ("file", "change", "said"),
    [
        ("sft/stage.json", None, "the stage sft has not been made"),
        ("sft/stage.json", {"made": {"versions": [1]}}, "versions: an object"),
        ("sft/stage.json", {"made": {"created": "yesterday"}}, "created: "),
        ("sft/stage.json", {"made": {"commit": 3}}, "commit: "),
        ("sft/stage.json", {"made": [1]}, "made: an object"),
        ("targets/stage.json", {"key": [1]}, "key: an object"),
        ("targets/stage.json", {"key": {"inputs": "x"}}, "inputs: an object"),
        ("export/adapter-gguf/stage.json", {"outputs": "x"}, "outputs: an object"),
    ],
)
def test_a_run_folder_that_was_edited_is_one_error(
    run: Path, file: str, change: dict[str, Any] | None, said: str
) -> None:
    weights = as_adapter(run)
    if change is None:
        (run / file).unlink()
    else:
        (run / file).write_text(json.dumps({**json.loads((run / file).read_text()), **change}))
    with pytest.raises(InputError, match=said):
        assembled(run, weights)
