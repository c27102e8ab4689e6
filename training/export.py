"""Stage export: from the adapter to files that a judge can be opened from, by the programs of `quantize/`.

    python -m training.export RECIPE

Each file is a stage of its own beneath export/: merged/, gguf-TYPE/, mlx-BITSbit/, adapter-gguf/, and for one of fewer
bits a verify-.../verify.json, which `quantize.assemble` needs to bless it. Exit code 1 where one did not pass.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import click

from aipsy_judge.errors import EXIT_GATE, EXIT_OK, InputError

from .base_folder import base_folder
from .child import run_child
from .export_verify import Proof, passed, validation_texts, verify
from .program import recipe_program
from .recipe import Recipe
from .stage import Made, Stage, finished, make

NAME, VERSION = "export", 1
FULL = "F16"  # what files of fewer bits are held against
UNPROVEN = ("F16", "BF16")  # as many bits as the merged model: nothing was lost that verify could find

Run = Callable[[Sequence[str]], int]


def run_program(words: Sequence[str]) -> int:
    """`python -m WORDS...` with this Python, its output where ours goes; its exit code."""
    return run_child([sys.executable, "-m", *words])


class Job:
    """One export: what was made or reused in it is not looked at again. Tests give a `run` that runs nothing."""

    def __init__(self, recipe: Recipe, out: Path, base: Path, adapter: Path, run: Run) -> None:
        self.recipe, self.base, self.adapter, self.run = recipe, base, adapter, run
        self.folder = out / NAME
        self._done: dict[str, Path] = {}

    def make(self, stage: Stage, *words: str, to: str, resumable: bool = False) -> Path:
        """The file `to` in the stage's folder, as the program `words` writes it when given --out."""

        def work(part: Path) -> None:
            code = self.run([*words, "--out", str(part / to)])
            if code != 0:
                raise InputError(f"python -m {words[0]} ended with {code}", hint="Its own message stands above.")

        if stage.name not in self._done:
            self._done[stage.name] = make(self.folder, stage, work, resumable=resumable, say=_say).folder / to
        return self._done[stage.name]

    def merged(self) -> Path:
        inputs = {"base": self.base, "adapter": self.adapter}
        words = ("quantize.merge", "--base", str(self.base), "--adapter", str(self.adapter))
        # Merging goes on by itself from what a killed merge left beside its output, and takes a whole one as it is.
        return self.make(Stage("merged", VERSION, {}, inputs), *words, to="model", resumable=True)

    def gguf(self, kind: str) -> Path:
        stage = Stage(f"gguf-{kind}", VERSION, {"name": self.recipe.name}, {"merged": self.merged()})
        words = ("quantize.to_gguf", str(stage.inputs["merged"]), "--type", kind)
        return self.make(stage, *words, to=f"{self.recipe.name}-{kind}.gguf")

    def mlx(self, bits: int) -> Path:
        stage = Stage(f"mlx-{bits}bit", VERSION, {"name": self.recipe.name}, {"merged": self.merged()})
        words = ("quantize.to_mlx", str(stage.inputs["merged"]), "--bits", str(bits))
        return self.make(stage, *words, to=f"{self.recipe.name}-{bits}bit")

    def adapter_gguf(self) -> Path:
        inputs = {"base": self.base, "adapter": self.adapter}
        stage = Stage("adapter-gguf", VERSION, {"name": self.recipe.name}, inputs)
        words = ["quantize.lora_gguf", "--base", str(self.base), "--adapter", str(self.adapter)]
        worn = self.base_gguf()
        # held to the file that will wear it; that changes nothing of what is written, which rests on base and adapter
        words += ["--base-gguf", str(worn)] if worn is not None else []
        return self.make(stage, *words, to=f"{self.recipe.name}.gguf")

    def bare(self, kind: str) -> Path:
        """The untrained base as a GGUF file: what shows that training did something."""
        worn = self.base_gguf()
        if worn is not None:
            return worn
        stage = Stage(f"bare-{kind}", VERSION, {}, {"base": self.base})
        return self.make(stage, "quantize.to_gguf", str(self.base), "--type", kind, to=f"bare-{kind}.gguf")

    def base_gguf(self) -> Path | None:
        if self.recipe.base.gguf is None:
            return None
        from .dequantised import gguf_path

        return gguf_path(self.recipe.base.gguf)


def export(recipe: Recipe, out: Path, run: Run = run_program) -> list[Made]:
    """Every file that the recipe's section export asks for; the verify stages, passed or not.

    Raises InputError where the recipe has no such section, training is not done, or a program fails.
    """
    told = recipe.export
    if told is None:
        raise InputError("the recipe has no section export", hint="Add export: {gguf: [Q8_0]}.")
    job = Job(recipe, out, base_folder(recipe), finished(out, "sft") / "adapter", run)
    files = {kind: job.gguf(kind) for kind in told.gguf}
    folders = {bits: job.mlx(bits) for bits in told.mlx}
    lossy = {kind: file for kind, file in files.items() if told.verify and kind not in UNPROVEN}
    proofs = [Proof(f"verify-{kind}", job.gguf(FULL), file, None, job.bare(kind)) for kind, file in lossy.items()]
    if told.verify:
        # both by MLX: its tokenizers and llama.cpp's spell some markers otherwise (docs/log.md)
        named = ((f"verify-mlx-{bits}bit", folder) for bits, folder in folders.items())
        proofs += [Proof(name, job.merged(), folder, None, job.base) for name, folder in named]
    if told.adapter_gguf:
        worn, adapter = job.base_gguf(), job.adapter_gguf()
        if told.verify and worn is not None:
            proofs.append(Proof("verify-adapter", job.gguf(FULL), worn, adapter, None))
        elif told.verify:
            _say("adapter-gguf: not verified, for no GGUF file of the base is named (base.gguf)")
    texts = validation_texts(recipe, out, job.folder, _say) if proofs else None
    return [verify(recipe, job.folder, proof, texts, run, _say) for proof in proofs if texts is not None]


def _say(line: str) -> None:
    click.echo(f"export {line}")


@recipe_program
def main(recipe: Recipe, out: Path) -> None:
    """Merge the adapter of RECIPE into its base and write and verify the files of its section export."""
    found = export(recipe, out)
    sys.exit(EXIT_OK if all(passed(made.folder) for made in found) else EXIT_GATE)


if __name__ == "__main__":
    main()
