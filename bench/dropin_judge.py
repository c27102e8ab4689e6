"""A stand-in judge for the run: small weights that nobody trained, with noise and without the floor under answers.

Untrained, they say the same of nearly every turn and put next to no probability on some of the legal answers, which
the floor rightly refuses. Here is asked whether what a judge says arrives, not what it is worth: so a LoRA adapter of
noise makes the answers vary with the text, and the folder says what it is, and is not blessed.
"""

from __future__ import annotations

import datetime
import shutil
from pathlib import Path
from typing import Literal

from aipsy_judge.errors import WeightsError
from aipsy_judge.judge_folder import template_sha256
from aipsy_judge.manifest import MANIFEST, Base, JudgeFile, Made, Manifest, TrainedRubric, write_manifest
from aipsy_judge.rubric import load_rubric
from aipsy_judge.weights import file_sha256, find_weights

from .noise_adapter import write_noise_adapter

SMALLEST = "smollm2-untrained"
SMALLEST_CONTEXT = 8192  # tokens that it was made for
NOISE, SEED = 2.0, 1  # tried: with these its answers differ between turns under every contract


def stand_in(folder: Path, contract: str, weights: str = SMALLEST) -> Path:
    """A folder that `--judge FOLDER --unblessed` opens: `weights` (a name or a GGUF file) asked by `contract`."""
    model = find_weights(weights).model
    rubric = load_rubric()
    folder.mkdir(parents=True, exist_ok=True)
    beside = folder / model.name
    if not beside.exists():
        try:
            beside.symlink_to(model.resolve())
        except OSError:
            shutil.copyfile(model, beside)
    template = template_sha256(model)
    if template is None:
        raise WeightsError("the weights carry no chat template", where=str(model))
    adapter = folder / "noise.gguf"
    write_noise_adapter(model, adapter, NOISE, SEED)
    manifest = Manifest(
        format=1,
        name=f"noise-{contract}",
        about="untrained weights with noise on them: for measuring transport; what it says is no judgement",
        blessed=False,
        files=(_file("model", model), _file("adapter", adapter)),
        base=Base(name=model.stem, licence="see the weights"),
        licence="see the weights",
        rubric=TrainedRubric(name=rubric.name, hash=rubric.hash),
        contract=contract,
        template_sha256=template,
        context_tokens=SMALLEST_CONTEXT,
        quantisation="as the file is",
        made=Made(date=datetime.date.today()),
        legal_mass_floor=0.0,
    )
    write_manifest(folder / MANIFEST, manifest)
    return folder


def _file(role: Literal["model", "adapter"], path: Path) -> JudgeFile:
    return JudgeFile(role=role, name=path.name, bytes=path.stat().st_size, sha256=file_sha256(path))
