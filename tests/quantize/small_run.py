"""A training run of a few bytes whose records are those of the real stages and the real export: only what the programs
of the export would write is drawn."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from small_folder import write_small_folder
from small_gguf import LAYERS, write_small_adapter, write_small_gguf

from training.export import Job
from training.provenance import record
from training.recipe import Recipe
from training.recipe_reading import parse_recipe
from training.stage import Stage, make

TEXT = "name: tiny\nbase: {checkpoint: base}\ndata: {conversations: talks, ratings: ratings}\n"


def recipe(seed: int = 14) -> Recipe:
    return parse_recipe(f"{TEXT}seed: {seed}\n")


def train(run: Path, says: str = "first", temperature: float = 1.5) -> None:
    """Targets and training; what they write follows `says`: another word is another training."""
    run.mkdir(exist_ok=True)
    record(run, recipe())
    ratings = run.parent / f"ratings-{run.name}.csv"
    ratings.write_text(f"ratings of {says}")

    def sft(part: Path) -> None:
        (part / "adapter").mkdir()
        (part / "adapter" / "adapter_model.safetensors").write_bytes(says.encode())
        (part / "temperatures.json").write_text(json.dumps({"empathy": temperature}))

    make_targets(run, ratings)
    make(run, Stage("sft", 1, {}, {"targets": run / "targets" / "targets.jsonl"}), sft)


def make_targets(run: Path, ratings: Path) -> None:
    def work(part: Path) -> None:
        (part / "targets.jsonl").write_bytes(ratings.read_bytes())

    make(run, Stage("targets", 1, {}, {"ratings": ratings}), work)


def job(run: Path) -> Job:
    """The run's export; its files follow the adapter."""
    base, adapter = run.parent / "base", run / "sft" / "adapter"
    base.mkdir(exist_ok=True)
    (base / "config.json").write_text("{}")

    def program(words: Sequence[str]) -> int:
        target, says = Path(words[words.index("--out") + 1]), (adapter / "adapter_model.safetensors").read_text()
        if words[0] == "quantize.lora_gguf":
            names = tuple(f"blk.{layer}.attn_q.weight" for layer in range(LAYERS))
            write_small_adapter(target, names=names, strength=0.1 + len(says) / 100)
        elif words[0] == "quantize.to_gguf":
            write_small_gguf(target, texts={"general.name": says}, quantised=True)
        else:
            write_small_folder(target, trained_by=says)
        return 0

    return Job(recipe(), run, base, adapter, program)
