"""The chain as one command: programs in order, gone on with after a kill, nothing made twice."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner
from recipe_setup import FINE, Scores, items_of, lines, make_project, rating_rows, read_recipe, talk, write_ratings

from aipsy_judge.errors import EXIT_INTERRUPTED, InputError
from aipsy_judge.manifest import LEGAL_MASS_FLOOR
from aipsy_judge.strict_json import loads
from training import sample, targets
from training.export import Job, export
from training.export_verify import passed
from training.recipe import Recipe
from training.run import STAGES, commands, run
from training.run import main as run_main
from training.sample import make_sample
from training.stage import Stage, make

ROOT = Path(__file__).resolve().parents[2]
TALKS = [talk(f"c{n:02d}", n, scenario=f"s{n // 2}") for n in range(24)]


def judged(n: int, judge: str) -> tuple[Scores, bool]:
    crisis = n % 8 == 3
    scores = {**FINE, "empathy": 1.0 + n % 4, "crisis_handling": 2.0 if crisis else None}
    return scores, crisis


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return make_project(tmp_path, TALKS, judged)


def state(folder: Path) -> dict[str, tuple[int, int]]:
    """Every file: inode and time of writing."""
    files = (p for p in sorted(folder.rglob("*")) if p.is_file())
    return {p.relative_to(folder).as_posix(): (p.stat().st_ino, p.stat().st_mtime_ns) for p in files}


def chain(recipe: Path, out: Path) -> list[str]:
    return [sys.executable, "-m", "training.run", str(recipe), "--out", str(out), "--until", "sample"]


def test_a_second_run_reuses_all_and_writes_nothing(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, recipe = project.parent / "run", read_recipe(project)
    make_sample(recipe, out)
    before = state(out)
    capsys.readouterr()
    make_sample(recipe, out)
    assert state(out) == before
    assert capsys.readouterr().out.splitlines() == [
        "targets: nothing changed, reused",
        "sample: nothing changed, reused",
    ]


@pytest.mark.parametrize(
    ("override", "remade"),
    [
        ("train.steps=3", []),
        ("render.labels=hard", []),
        ("targets.spread=0.7", []),
        ("strata.factor=2", ["sample: strata.factor changed, made anew"]),
        ("seed=15", ["sample: seed changed, made anew"]),
        ("split.near_duplicate=0.5", ["sample: split.near_duplicate changed, made anew"]),
        ("targets.source=rater:judge-a", ["targets: targets.source changed, made anew"]),
    ],
)
def test_a_changed_key_makes_anew_only_what_reads_it(
    project: Path, override: str, remade: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    # Both judges say the same, so that one of them alone gives equal targets: what rests on them is reused then.
    out = project.parent / "run"
    make_sample(read_recipe(project), out)
    capsys.readouterr()
    make_sample(read_recipe(project, override), out)
    said = [line for line in capsys.readouterr().out.splitlines() if not line.startswith(" ")]
    assert [line for line in said if "reused" not in line] == remade


def test_a_changed_rating_makes_the_targets_anew_and_what_rests_on_them(project: Path) -> None:
    out, recipe = project.parent / "run", read_recipe(project)
    first = make_sample(recipe, out)
    worse = [
        row
        for n, item in enumerate(items_of(TALKS))
        for row in rating_rows(item, "judge-a", "judge", {**judged(n, "")[0], "tone_consistency": 1.0})
    ]
    write_ratings(project.parent / "ratings.csv", worse)
    assert make_sample(recipe, out).why == "targets changed, made anew"
    assert first.folder == out / "sample"


def test_the_programs_are_run_in_order_each_with_the_resolved_recipe(project: Path, tmp_path: Path) -> None:
    recipe = read_recipe(project)
    plain = [words[2:] for words in commands(recipe, tmp_path)]
    resolved = [str(tmp_path / "recipe.resolved.yaml"), "--out", str(tmp_path)]
    assert plain == [[f"training.{name}", *resolved] for name in ("targets", "sample", "render", "sft")]
    exporting = read_recipe(project, "export.gguf=[Q8_0]")
    assert commands(exporting, tmp_path)[-1][2] == "training.export"
    assert [w[2] for w in commands(exporting, tmp_path, "sample")] == ["training.targets", "training.sample"]


def test_the_chain_stops_at_the_first_failure_with_its_exit_code(tmp_path: Path) -> None:
    marks = [tmp_path / name for name in "ab"]
    touch = [[sys.executable, "-c", f"open({str(m)!r}, 'w').close()"] for m in marks]
    assert run([touch[0], [sys.executable, "-c", "raise SystemExit(3)"], touch[1]]) == 3
    assert [m.exists() for m in marks] == [True, False]
    killed = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
    assert run([[sys.executable, "-c", killed]]) == 128 + signal.SIGKILL
    stopped = "import os, signal; signal.signal(signal.SIGINT, signal.SIG_DFL); os.kill(os.getpid(), signal.SIGINT)"
    assert run([[sys.executable, "-c", stopped]]) == EXIT_INTERRUPTED


@pytest.mark.parametrize("program", [run_main, targets.main, sample.main], ids=["run", "targets", "sample"])
def test_a_bad_recipe_ends_every_program_with_2_before_anything_is_made(program: object, project: Path) -> None:
    out = project.parent / "run"
    done = CliRunner().invoke(program, [str(project), "--out", str(out), "--set", "train.epocs=2"])  # type: ignore[arg-type]
    assert done.exit_code == 2
    assert "did you mean train.epochs?" in done.stderr
    assert not out.exists()


def test_a_missing_file_ends_the_chain_before_anything_is_made(project: Path) -> None:
    (project.parent / "ratings.csv").unlink()
    out = project.parent / "run"
    done = CliRunner().invoke(run_main, [str(project), "--out", str(out)])
    assert (done.exit_code, out.exists()) == (2, False)
    assert "data.ratings: no such file" in done.stderr


def kill_in(stage: str, recipe: Path, out: Path) -> bool:
    """Start the chain and kill it and its children in this stage; whether it was not over yet."""
    part = out / f".{stage}.part"
    process = subprocess.Popen(chain(recipe, out), cwd=ROOT, stdout=subprocess.DEVNULL, start_new_session=True)
    deadline = time.monotonic() + 120
    while not part.exists() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.001)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    return part.exists() and not (out / stage).exists()


@pytest.mark.slow
@pytest.mark.parametrize("stage", ["targets", "sample"])
def test_a_chain_killed_in_a_stage_goes_on_and_ends_as_if_it_had_not_been(project: Path, stage: str) -> None:
    whole = project.parent / "whole"
    subprocess.run(chain(project, whole), check=True, capture_output=True, cwd=ROOT)
    # On a busy machine the stage may be over before the kill arrives.
    tries = (project.parent / f"killed-{n}" for n in range(5))
    killed = next(out for out in tries if kill_in(stage, project, out))
    subprocess.run(chain(project, killed), check=True, capture_output=True, cwd=ROOT)
    for name in ("targets/targets.jsonl", "sample/sample.jsonl", "sample/rates.json", "sample/groups.json"):
        assert (killed / name).read_bytes() == (whole / name).read_bytes()
    assert not (killed / f".{stage}.part").exists()
    before = state(killed)
    subprocess.run(chain(project, killed), check=True, capture_output=True, cwd=ROOT)
    assert state(killed) == before


# export


@pytest.fixture
def trained(tmp_path: Path, project: Path) -> tuple[Recipe, Path, list[list[str]]]:
    """A recipe with an export, a run whose adapter is there, and where the programs' words are gathered."""
    base = tmp_path / "base"
    base.mkdir()
    (base / "config.json").write_text("{}", encoding="utf-8")
    recipe = read_recipe(project, f"base.checkpoint={base}", "export.gguf=[Q8_0, F16]", "export.adapter_gguf=true")

    def sft(part: Path) -> None:
        (part / "adapter").mkdir()
        (part / "adapter" / "adapter_model.safetensors").write_bytes(b"weights")

    make_sample(recipe, tmp_path / "run")
    make(tmp_path / "run", Stage("sft", 1, {}, {}), sft)
    return recipe, tmp_path / "run", []


def write_what_is_asked(told: list[list[str]], words: Sequence[str]) -> int:
    told.append(list(words))
    target = Path(words[words.index("--out") + 1])
    if words[0] in ("quantize.merge", "quantize.to_mlx"):
        target.mkdir()
        target /= "model.safetensors"
    found = {"verified": {"passed": "Q4_K_M" not in str(words)}}
    target.write_text(json.dumps(found) if words[0] == "quantize.verify" else words[0], encoding="utf-8")
    return 0 if found["verified"]["passed"] or words[0] != "quantize.verify" else 1


def test_an_export_merges_once_converts_from_the_merged_model_and_verifies_on_validation_texts(
    trained: tuple[Recipe, Path, list[list[str]]],
) -> None:
    recipe, out, told = trained
    made = export(recipe, out, lambda words: write_what_is_asked(told, words))
    programs = ["merge", "to_gguf", "to_gguf", "to_gguf", "lora_gguf", "verify"]
    assert [w[0] for w in told] == [f"quantize.{name}" for name in programs]
    assert told[1][1:4] == [str(out / "export" / "merged" / "model"), "--type", "Q8_0"]
    assert told[3][1:4] == [str(recipe.base.checkpoint), "--type", "Q8_0"]  # the untrained base, to compare with
    asked = told[-1]
    assert asked[asked.index("--full") + 1].endswith("made-F16.gguf")
    assert asked[asked.index("--contract") + 1] == "full"
    texts = [line["id"] for line in lines(Path(asked[asked.index("--conversations") + 1]))]
    parts = {row["item_id"].partition(":")[0]: row["part"] for row in lines(out / "sample" / "sample.jsonl")}
    assert set(texts) == {c for c, part in parts.items() if part == "validation"}
    assert texts == sorted(texts, key=lambda name: hashlib.sha256(name.encode()).digest())
    assert [passed(m.folder) for m in made] == [True]
    assert (out / "export" / "adapter-gguf" / "made.gguf").is_file()


def test_an_adapter_is_held_to_the_gguf_file_that_will_wear_it_where_there_is_one(
    trained: tuple[Recipe, Path, list[list[str]]], project: Path, tmp_path: Path
) -> None:
    recipe, out, told = trained
    assert recipe.base.checkpoint is not None
    base, file = Path(recipe.base.checkpoint), tmp_path / "base.gguf"
    file.write_bytes(b"stands for the base")
    worn = read_recipe(project, "base.checkpoint=null", f"base.gguf={file}", "export.adapter_gguf=true")
    for told_by, wanted in ((worn, ["--base-gguf", str(file)]), (recipe, [])):
        job = Job(told_by, out, base, out / "sft" / "adapter", lambda words: write_what_is_asked(told, words))
        job.adapter_gguf()
        assert told.pop()[5:-2] == wanted
        shutil.rmtree(out / "export")


def test_an_export_is_gone_on_with_and_only_what_changed_is_made(
    trained: tuple[Recipe, Path, list[list[str]]],
) -> None:
    recipe, out, told = trained
    export(recipe, out, lambda words: write_what_is_asked(told, words))
    told.clear()
    export(recipe, out, lambda words: write_what_is_asked(told, words))
    assert told == []
    (out / "sft" / "adapter" / "adapter_model.safetensors").write_bytes(b"others")
    export(recipe, out, lambda words: write_what_is_asked(told, words))
    # The merged model came out the same here, so the files made of it stand; the adapter's own file does not.
    assert [w[0] for w in told] == ["quantize.merge", "quantize.lora_gguf"]


def test_a_file_that_does_not_pass_is_kept_with_its_record_and_told(
    trained: tuple[Recipe, Path, list[list[str]]], project: Path
) -> None:
    recipe, out, told = trained
    poor = read_recipe(project, f"base.checkpoint={recipe.base.checkpoint}", "export.gguf=[Q8_0, Q4_K_M]")
    made = export(poor, out, lambda words: write_what_is_asked(told, words))
    assert {m.folder.name: passed(m.folder) for m in made} == {"verify-Q8_0": True, "verify-Q4_K_M": False}


@pytest.mark.parametrize(("described", "floor"), [(None, LEGAL_MASS_FLOOR), ("legal_mass_floor: 0.4", 0.4)])
def test_an_export_proves_the_floor_of_legal_mass_that_the_judge_of_that_name_ships(
    trained: tuple[Recipe, Path, list[list[str]]], monkeypatch: pytest.MonkeyPatch, described: str | None, floor: float
) -> None:
    recipe, out, told = trained
    monkeypatch.setattr("training.export_verify.JUDGES", out.parent)
    if described is not None:
        base = "base: {name: nobody/base, licence: Apache-2.0}\nlicence: Apache-2.0\ncontract: full"
        text = f"name: made\nabout: a judge\nmodel: made.gguf\n{base}\n{described}\n"
        (out.parent / "made.yaml").write_text(text, encoding="utf-8")
    (proof,) = export(recipe, out, lambda words: write_what_is_asked(told, words))
    assert told[-1][told[-1].index("--floor") + 1] == str(floor)
    assert loads((proof.folder / "stage.json").read_bytes())["key"]["settings"]["legal_mass_floor"] == floor


def test_an_export_takes_for_held_back_what_the_judge_of_that_name_holds_back(
    trained: tuple[Recipe, Path, list[list[str]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe, out, told = trained
    monkeypatch.setattr("training.export_verify.JUDGES", out.parent)
    (out.parent / "made.yaml").write_text("not_validated: {crisis_detected: few, empathy: few}\n", encoding="utf-8")
    (proof,) = export(recipe, out, lambda words: write_what_is_asked(told, words))
    given = [told[-1][n + 1] for n, word in enumerate(told[-1]) if word == "--held-back"]
    assert given == loads((proof.folder / "stage.json").read_bytes())["key"]["settings"]["held_back"] == ["empathy"]


def test_an_mlx_folder_is_held_against_the_full_weights_too(
    trained: tuple[Recipe, Path, list[list[str]]], project: Path
) -> None:
    recipe, out, told = trained
    mlx = read_recipe(project, f"base.checkpoint={recipe.base.checkpoint}", "export.gguf=[]", "export.mlx=[8]")
    made = export(mlx, out, lambda words: write_what_is_asked(told, words))
    assert [m.folder.name for m in made] == ["verify-mlx-8bit"]
    asked = told[-1]
    named = {option: asked[asked.index(option) + 1] for option in ("--full", "--candidate", "--bare")}
    folders = [out / "export" / "merged" / "model", out / "export" / "mlx-8bit" / "made-8bit"]
    assert list(named.values()) == [*map(str, folders), str(mlx.base.checkpoint)]


def test_an_export_that_fails_leaves_no_file(trained: tuple[Recipe, Path, list[list[str]]]) -> None:
    recipe, out, told = trained

    def fails(words: Sequence[str]) -> int:
        return 3 if words[0] == "quantize.to_gguf" else write_what_is_asked(told, words)

    with pytest.raises(InputError, match=r"quantize\.to_gguf ended with 3"):
        export(recipe, out, fails)
    assert (out / "export" / "merged").is_dir()
    assert not (out / "export" / "gguf-Q8_0").exists()


def test_an_export_before_training_says_what_is_missing(
    trained: tuple[Recipe, Path, list[list[str]]], project: Path
) -> None:
    recipe, out, _ = trained
    with pytest.raises(InputError, match="the stage sft has not been made"):
        export(recipe, project.parent / "nothing-here")
    with pytest.raises(InputError, match="no section export"):
        export(read_recipe(project), out)


def test_the_documentation_stops_the_chain_after_stages_that_there_are() -> None:
    texts = [p.read_text(encoding="utf-8") for p in (ROOT / "README.md", *(ROOT / "docs").glob("*.md"))]
    named = [name for text in texts for name in re.findall(r"--until (\w+)", text)]
    assert named
    assert set(named) <= set(STAGES)
