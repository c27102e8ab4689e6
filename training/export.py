"""Stage export: from the adapter to files that a judge can be opened from, by the programs of `quantize/`.

    python -m training.export RECIPE

Each file is a stage of its own beneath export/: merged/, gguf-TYPE/, mlx-BITS/, adapter-gguf/.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import click

from aipsy_judge.errors import InputError

from .base_folder import base_folder
from .program import recipe_program
from .recipe import Export, Recipe
from .stage import Made, Stage, finished, make

NAME, VERSION = "export", 1
ADAPTER = Path("sft") / "adapter"
Run = Callable[[Sequence[str]], None]


def export(recipe: Recipe, out: Path, run: Run | None = None) -> list[Made]:
    """Every file that the recipe's section export asks for. Raises InputError where it has none, or a program fails."""
    run = run or run_program
    if recipe.export is None:
        raise InputError("the recipe has no section export", hint="Add export: {gguf: [Q8_0]}.")
    adapter = finished(out, "sft") / ADAPTER.name
    base, folder = base_folder(recipe), out / NAME
    made = []
    if recipe.export.gguf or recipe.export.mlx:
        made.append(_merge(base, adapter, folder, run))
        merged = made[0].folder / "model"
        for name, work in _converted(recipe.name, recipe.export, merged, run):
            made.append(make(folder, Stage(name, VERSION, {"name": recipe.name}, {"merged": merged}), work, say=_say))
    if recipe.export.adapter_gguf:
        made.append(_adapter_gguf(recipe.name, base, adapter, folder, run))
    return made


def _merge(base: Path, adapter: Path, folder: Path, run: Run) -> Made:
    stage = Stage("merged", VERSION, {}, {"base": base, "adapter": adapter})
    words = ["quantize.merge", "--base", str(base), "--adapter", str(adapter), "--out"]
    # Merging goes on by itself from a killed merge that it finds beside its output.
    return make(folder, stage, lambda part: run([*words, str(part / "model")]), resumable=True, say=_say)


def _converted(name: str, told: Export, merged: Path, run: Run) -> Iterator[tuple[str, Callable[[Path], None]]]:
    """(stage, its work) for every file made of the merged model."""
    for kind in told.gguf:

        def to_gguf(part: Path, kind: str = kind) -> None:
            run(["quantize.to_gguf", str(merged), "--type", kind, "--out", str(part / f"{name}-{kind}.gguf")])

        yield f"gguf-{kind}", to_gguf
    for bits in told.mlx:

        def to_mlx(part: Path, bits: int = bits) -> None:
            run(["quantize.to_mlx", str(merged), "--bits", str(bits), "--out", str(part / f"{name}-{bits}bit")])

        yield f"mlx-{bits}bit", to_mlx


def _adapter_gguf(name: str, base: Path, adapter: Path, folder: Path, run: Run) -> Made:
    stage = Stage("adapter-gguf", VERSION, {"name": name}, {"base": base, "adapter": adapter})
    words = ["quantize.lora_gguf", "--base", str(base), "--adapter", str(adapter), "--out"]
    return make(folder, stage, lambda part: run([*words, str(part / f"{name}-adapter.gguf")]), say=_say)


def run_program(words: Sequence[str]) -> None:
    """`python -m WORDS...` with this Python, its output where ours goes. InputError where it fails; it said why."""
    done = subprocess.run([sys.executable, "-m", *words], check=False)
    if done.returncode != 0:
        raise InputError(f"python -m {words[0]} ended with {done.returncode}", hint="Its own message stands above.")


def _say(line: str) -> None:
    click.echo(f"export {line}")


@recipe_program
def main(recipe: Recipe, out: Path) -> None:
    """Merge the adapter of RECIPE into its base and write the files of its section export."""
    export(recipe, out)


if __name__ == "__main__":
    main()
