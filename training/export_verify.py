"""Hold an exported file against the full model, on conversations of the validation part."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from aipsy_judge.atomic import write_pieces
from aipsy_judge.errors import EXIT_GATE, EXIT_OK, InputError
from aipsy_judge.manifest import LEGAL_MASS_FLOOR
from aipsy_judge.rubric import load_rubric
from aipsy_judge.strict_json import dumps, loads
from aipsy_judge.strict_yaml import load_yaml
from aipsy_judge.transcripts import to_dict

from .data_files import conversation_paths, conversations
from .provenance import CLONE
from .recipe import Recipe
from .sample_rows import FILE as SAMPLE_FILE
from .sample_rows import read_sample_rows
from .stage import Made, Stage, finished, make
from .target_rows import FILE as TARGETS_FILE
from .target_rows import read_target_rows

VERSION = 2
JUDGES = CLONE / "recipes" / "judges"  # descriptions of judges, each under its recipe's name
TEXTS, RECORD = "conversations.jsonl", "verify.json"


@dataclass(frozen=True, slots=True)
class Proof:
    """candidate (wearing `adapter`, if any) against full; `bare` is the untrained base, None where candidate is it."""

    name: str
    full: Path
    candidate: Path
    adapter: Path | None
    bare: Path | None


def validation_texts(recipe: Recipe, out: Path, folder: Path, say: Callable[[str], None]) -> Path:
    """A file of the conversations of the validation part, in an order that a hash decides: verify takes the first
    that hold enough turns, and in the order of writing those would be of one kind. InputError where there are none."""
    sample, targets = finished(out, "sample") / SAMPLE_FILE, finished(out, "targets") / TARGETS_FILE

    def work(part: Path) -> None:
        chosen = {row.item_id for row in read_sample_rows(sample) if row.part == "validation"}
        names = {row.conversation for row in read_target_rows(targets) if row.item_id in chosen}
        wanted = sorted(names, key=lambda name: hashlib.sha256(name.encode()).digest())
        if not wanted:
            raise InputError(
                "the validation part is empty, so nothing can be verified",
                hint="Give split.validation a share, or set export.verify: false.",
            )
        texts = conversations(recipe)
        write_pieces(part / TEXTS, (dumps(to_dict(texts[name])).encode() + b"\n" for name in wanted))

    inputs = {"sample": sample, "targets": targets, **{p.as_posix(): p for p in conversation_paths(recipe)}}
    return make(folder, Stage("verify-texts", VERSION, {}, inputs), work, say=say).folder / TEXTS


def verify(
    recipe: Recipe,
    folder: Path,
    proof: Proof,
    texts: Path,
    run: Callable[[Sequence[str]], int],
    say: Callable[[str], None],
) -> Made:
    """The stage that holds verify.json, whether the file passed or not. InputError where it could not be held."""
    words = ["quantize.verify", "--full", proof.full, "--candidate", proof.candidate, "--conversations", texts]
    words += ["--rubric", recipe.rubric, "--contract", recipe.contract]
    words += ["--candidate-adapter", proof.adapter] if proof.adapter is not None else []
    words += ["--units", recipe.export.verify_units] if recipe.export is not None else []
    words += ["--bare", proof.bare] if proof.bare is not None else []
    words += ["--window", recipe.render.window] if recipe.render.window is not None else []
    floor, held_back = as_described(recipe)
    words += ["--floor", floor, *(word for name in held_back for word in ("--held-back", name))]

    def work(part: Path) -> None:
        code = run([*map(str, words), "--out", str(part / RECORD)])
        if code not in (EXIT_OK, EXIT_GATE) or not (part / RECORD).is_file():
            raise InputError(f"python -m quantize.verify ended with {code}", hint="Its own message stands above.")

    files: dict[str, Path | None] = {"adapter": proof.adapter, "bare": proof.bare}
    limits = CLONE / "quantize" / "limits.yaml"
    inputs = {"full": proof.full, "candidate": proof.candidate, "texts": texts, "limits": limits}
    inputs |= {label: path for label, path in files.items() if path is not None}
    settings: dict[str, Any] = {"rubric": load_rubric(recipe.rubric).hash, **recipe.part("contract")}
    settings["render.window"] = recipe.render.window
    settings["export.verify_units"] = recipe.export.verify_units if recipe.export is not None else None
    settings |= {"legal_mass_floor": floor, "held_back": held_back}
    made = make(folder, Stage(proof.name, VERSION, settings, inputs), work, say=say)
    say(f"{proof.name}: {'passed' if passed(made.folder) else 'NOT passed, it will not be blessed'}")
    return made


def as_described(recipe: Recipe) -> tuple[float, list[str]]:
    """Floor of legal mass and metrics held back by the judge's description, recipes/judges/NAME.yaml with the recipe's
    name; where there is none, those of a description which names none. Others would prove nothing of what is shipped.
    InputError where the description is at fault."""
    path = JUDGES / f"{recipe.name}.yaml"
    if not path.is_file():
        return LEGAL_MASS_FLOOR, []
    try:
        told = load_yaml(path.read_text(encoding="utf-8"))
        floor, names = float(told.get("legal_mass_floor", LEGAL_MASS_FLOOR)), dict(told.get("not_validated") or {})
    except (AttributeError, TypeError, ValueError, yaml.YAMLError) as error:
        raise InputError(f"no description of a judge: {error}", where=str(path)) from error
    return floor, [m for m in load_rubric(recipe.rubric).metric_names if m in names]


def passed(folder: Path) -> bool:
    """Whether the file of this verify stage passed. InputError where its record is not one."""
    path = folder / RECORD
    try:
        return loads(path.read_bytes())["verified"]["passed"] is True
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"not a record of verify: {error!r}", where=str(path)) from error
