"""A recipe is checked whole: every fault at once, each with its line, its key and what is legal."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from recipe_setup import read_recipe

from training.recipe import Recipe, keys, resolved_text
from training.recipe_faults import nearest
from training.recipe_reading import RecipeError, parse_recipe

ROOT = Path(__file__).resolve().parents[2]
LAUNCHERS = {"fsdp2"}  # what accelerate is told, not a recipe
SHIPPED = [p for p in sorted((ROOT / "recipes").glob("*.yaml")) if p.stem not in LAUNCHERS]
SOUND = "name: made\nbase: {checkpoint: folder}\ndata: {conversations: a.jsonl, ratings: b.csv}\n"


def faults(text: str, *overrides: str) -> str:
    with pytest.raises(RecipeError) as caught:
        parse_recipe(text, overrides, where="x.yaml")
    assert caught.value.exit_code == 2
    return str(caught.value)


def test_every_fault_is_told_at_once_with_its_line_and_what_is_legal() -> None:
    said = faults(
        "name: Made Up\n"
        "seed: -1\n"
        "base: {checkpoint: a, gguf: b}\n"
        "data: {ratings: b.csv}\n"
        "contract: compct\n"
        "train:\n"
        "  epocs: 3\n"
        "  precision: fp16\n"
        "split: {train: 0.5, validation: 0.1, test: 0.1}\n"
    )
    assert said.splitlines()[0] == "x.yaml: 8 faults in the recipe:"
    told = {line.strip() for line in said.splitlines()[1:]}
    assert "line 2: seed: is -1 (legal: a whole number from 0)" in told
    assert "line 3: base: exactly one of checkpoint and gguf is needed" in told
    assert "line 5: contract: is 'compct' (legal: full, compact, compact-v2 or aipsy-bench-v1)" in told
    assert "line 7: train.epocs: no such key; did you mean train.epochs?" in told
    assert "line 9: split: train + validation + test is 0.7, not 1" in told
    assert any(t.startswith("line 4: data.conversations: is needed") for t in told)
    assert any(t.startswith("line 8: train.precision: is 'fp16' (legal: bf16 or fp32") for t in told)
    assert any(t.startswith("line 1: name: is 'Made Up'") for t in told)


@pytest.mark.parametrize(
    ("key", "hint"),
    [
        ("train.learning_rat", "did you mean train.learning_rate?"),
        ("trian", "did you mean train?"),
        ("rank", "did you mean lora.rank?"),
        ("render.rank", "did you mean lora.rank?"),
        ("validate.evry", "did you mean validate.every?"),
        ("memory.colour", "known: device_gb, host_gb, base_bits"),
    ],
)
def test_an_unknown_key_is_answered_with_the_nearest_known_one(key: str, hint: str) -> None:
    assert nearest(key) == hint


@pytest.mark.parametrize(
    ("line", "key"),
    [
        ("lora: {experts: true, dropout: 0.1}", "lora"),
        ("lora: {experts: true}\nmemory: {base_bits: 4}", "lora.experts"),
        ('lora: {modules: "("}', "lora"),
        ("train: {packing: true}", "train.packing"),
        ("train: {batch: 1.5}", "train.batch"),
        ("train: {batch: true}", "train.batch"),
        ("train: {learning_rate: .nan}", "train.learning_rate"),
        ("train: {learning_rate: fast}", "train.learning_rate"),
        ("train: {epochs: 0}", "train.epochs"),
        ("memory: {base_bits: 8}", "memory.base_bits"),
        ("memory: 16", "memory"),
        ("targets: {source: median}", "targets.source"),
        ("targets: {source: 'rater:'}", "targets.source"),
        ("targets: {source: mean, correction: c.json}", "targets"),
        ("targets: {anchors: [7]}", "targets.anchors"),
        ("strata: {kept_apart: [advise_safety]}", "strata.kept_apart"),
        ("strata: {factor: 0}", "strata.factor"),
        ("split: {near_duplicate: 0}", "split.near_duplicate"),
        ("render: {max_tokens: 0}", "render.max_tokens"),
        ("rubric: no-such-rubric", "rubric"),
        ("rubric: empa-turns\ncontract: aipsy-bench-v1\nrender: {rationale: never}", "contract"),
        ("contract: aipsy-bench-v1\nrender: {rationale: agreeing}", "render.rationale"),
        ("export: {gguf: [q9]}", "export.gguf"),
        ("base: {}", "base"),
    ],
)
def test_what_cannot_be_trained_is_refused_before_anything_runs(line: str, key: str) -> None:
    # Replaced, not written twice: a key that stands twice is a fault of its own.
    base = "" if line.startswith("base") else "base: {checkpoint: folder}\n"
    said = faults(f"name: made\n{base}data: {{conversations: a.jsonl, ratings: b.csv}}\n{line}\n")
    assert f": {key}: " in said
    assert said.startswith("x.yaml: 1 fault in the recipe")


def test_a_recipe_that_leaves_the_rationale_out_is_told_what_the_benchmarks_contract_needs() -> None:
    said = faults(SOUND + "contract: aipsy-bench-v1\n")
    assert "render.rationale: is agreeing; under aipsy-bench-v1" in said
    assert "(legal: never)" in said
    assert parse_recipe(SOUND + "contract: aipsy-bench-v1\nrender: {rationale: never}\n").contract == "aipsy-bench-v1"


def test_an_override_is_checked_like_the_file_and_named_as_such() -> None:
    said = faults(SOUND, "train.steps=none-at-all", "train.stps=3", "nonsense")
    assert "--set: train.steps: is 'none-at-all' (legal: optimiser steps instead of epochs, 1 and up, or null)" in said
    assert "--set train.stps: no such key; did you mean train.steps?" in said
    assert "--set nonsense: is not KEY=VALUE" in said
    assert said.startswith("x.yaml: 3 faults")


def test_overrides_are_yaml_values_and_the_last_holds() -> None:
    recipe = parse_recipe(
        SOUND,
        ["train.steps=5", "train.steps=7", "data.ratings=[a.csv, b.csv]", "export.gguf=[Q8_0, F16]", "split.file=null"],
    )
    assert recipe.train.steps == 7
    assert recipe.data.ratings == ("a.csv", "b.csv")
    assert recipe.export is not None
    assert recipe.export.gguf == ("Q8_0", "F16")
    assert recipe.split.file is None


def test_a_number_without_a_dot_before_its_exponent_is_a_number() -> None:
    # YAML 1.1 reads 2e-4 as text, which a trainer would then multiply with.
    recipe = parse_recipe(SOUND + "train: {learning_rate: 2e-4}\n")
    assert recipe.train.learning_rate == 0.0002


def test_a_key_written_twice_is_refused_not_silently_overridden() -> None:
    assert "key written twice: seed" in faults(SOUND + "seed: 1\nseed: 2\n")


@pytest.mark.parametrize("text", ["", "- a\n", "name: [", "7"])
def test_what_is_no_mapping_is_one_clear_error(text: str) -> None:
    faults(text)


def test_a_resolved_recipe_reads_back_to_the_same_recipe() -> None:
    recipe = parse_recipe(SOUND, ["train.learning_rate=3e-5", "render.window=6"])
    again = parse_recipe(resolved_text(recipe))
    assert again == recipe
    assert {k for k, _ in keys()} >= {"train.steps", "validate.every"}


@pytest.mark.parametrize("path", SHIPPED, ids=lambda p: p.stem)
def test_a_shipped_recipe_is_valid_and_its_name_is_its_file(path: Path) -> None:
    assert read_recipe(path).name == path.stem


@pytest.mark.parametrize("path", SHIPPED, ids=lambda p: p.stem)
def test_every_key_of_a_shipped_recipe_stands_there_with_its_unit_and_legal_values(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines()
    stated = Recipe.model_validate(yaml.safe_load(text)).to_dict()
    legal = dict(keys())
    for key, words in legal.items():
        section, _, name = key.rpartition(".")
        if section and stated.get(section) is None:
            continue
        start = lines.index(f"{section}:") if section else -1
        place = next(n for n in range(start + 1, len(lines)) if lines[n].strip().startswith(f"{name}:"))
        assert words in f"{lines[place - 1]}\n{lines[place]}", f"{key} is not explained in {path.name}"


def test_recipes_and_help_need_no_torch() -> None:
    code = (
        "import sys, training.run, training.targets, training.sample, training.export\n"
        "from training.recipe_reading import load_recipe\n"
        "load_recipe('recipes/gemma4-16gb.yaml')\n"
        "print([m for m in ('torch', 'transformers', 'pandas', 'scipy') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("modules", ["(", "a{99999999999}"])
def test_an_expression_that_is_none_is_told(modules: str) -> None:
    assert "modules is not a regular expression" in faults(SOUND + f"lora: {{modules: '{modules}'}}\n")
