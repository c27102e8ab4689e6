"""A judge's folder from its parts: `python -m quantize.assemble DESCRIPTION.yaml`.

Writes models/NAME/: the weights (links, or copies where a link cannot be made; git ignores them), manifest.yaml and
README.md. Blessed where a verify of these very files passed by the limits that are in force.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
from collections import Counter
from pathlib import Path
from typing import Any, Literal

import click
from pydantic import ValidationError

from aipsy_judge.atomic import write_text
from aipsy_judge.cli.ending import told_errors
from aipsy_judge.contracts import load_contract
from aipsy_judge.errors import InputError
from aipsy_judge.file_hash import file_sha256
from aipsy_judge.gguf_adapter import check_adapter
from aipsy_judge.gguf_header import read_gguf_header
from aipsy_judge.gguf_model import check_model
from aipsy_judge.golden import DEFAULT_TOLERANCE, GoldenTurn, golden_turns, parse_golden
from aipsy_judge.judge import JudgeOptions
from aipsy_judge.judge_folder import template_sha256
from aipsy_judge.manifest import MANIFEST, AskedAs, JudgeFile, Manifest, Verified, parse_manifest, write_manifest
from aipsy_judge.opening import open_judge
from aipsy_judge.rubric import load_rubric
from aipsy_judge.strict_json import loads
from aipsy_judge.transcripts import iter_conversations

from .card import CARD, card_text
from .description import Description, load_description
from .limits import LIMITS, Limits, checks, load_limits
from .made_by import fitted_temperatures, made_by

MODELS = Path(__file__).resolve().parent.parent / "models"


def assemble(told: Description, models: Path, *, limits: Path = LIMITS, threads: int = 0) -> Manifest:
    """Make the judge's folder in `models`. Raises InputError, WeightsError or ManifestError."""
    load_contract(told.contract)
    if told.adapter is not None and _file_name(told.adapter) == _file_name(told.model):
        raise InputError(
            f"model and adapter are both called {_file_name(told.model)}: one would take the other's place",
            where=told.name,
            hint="Rename one of the files.",
        )
    folder = models / told.name
    folder.mkdir(parents=True, exist_ok=True)
    files = [_placed("model", told.model, folder)]
    header = check_model(files[0][1])
    if told.adapter is not None:
        files.append(_placed("adapter", told.adapter, folder))
        check_adapter(files[1][1], header)
    manifest = _manifest(told, files, limits)
    if told.golden:
        # stopped here, it must not look like a judge that is done
        write_manifest(folder / MANIFEST, manifest.model_copy(update={"blessed": False}))
        manifest = manifest.model_copy(update={"golden_turns": tuple(_golden(told, folder, threads))})
    write_manifest(folder / MANIFEST, manifest)
    write_text(folder / CARD, card_text(manifest, told))
    return manifest


def _manifest(told: Description, files: list[tuple[JudgeFile, Path]], limits: Path) -> Manifest:
    model = files[0][1]
    _check_names(told)
    rubric, run = load_rubric(told.rubric), Path(told.run) if told.run is not None else None
    template = template_sha256(model)
    if template is None:
        raise InputError("the model carries no chat template: nobody could ask it as it was trained", where=str(model))
    record = _verified(Path(told.verify)) if told.verify is not None else None
    data: dict[str, Any] = {
        **told.model_dump(include={"name", "about", "base", "licence", "contract", "window", "legal_mass_floor"}),
        **told.model_dump(include={"operating_points", "not_validated", "remarks"}),
        "format": 1,
        "files": [row.model_dump() for row, _ in files],
        "rubric": {"name": rubric.name, "hash": rubric.hash},
        "template_sha256": template,
        "context_tokens": _context_tokens(model, told.context_tokens),
        "quantisation": told.quantisation or quantisation(files),
        "made": made_by(run).model_dump(),
        "verify": record.model_dump() if record is not None else None,
        "temperatures": told.temperatures if told.temperatures is not None else fitted_temperatures(run),
        "blessed": _is_blessed(told, files, record, limits),
    }
    return parse_manifest(data, where=told.name)


def _is_blessed(told: Description, files: list[tuple[JudgeFile, Path]], record: Verified | None, limits: Path) -> bool:
    """A verify that passed counts for the files that it weighed and by the limits in force."""
    if record is None or not record.passed or told.held_back is not None:
        return False
    own = {row.role: row.sha256 for row, _ in files}
    if (record.candidate.model, record.candidate.adapter) != (own["model"], own.get("adapter")):
        raise InputError(
            "the verify is of other files than these", where=told.verify, hint="Run quantize.verify again."
        )
    asked = AskedAs(contract=told.contract, rubric=load_rubric(told.rubric).hash, window=told.window)
    if record.asked != asked:
        raise InputError(
            "the verify asked by another contract, rubric or window than this judge is asked by",
            where=told.verify,
            hint="Run quantize.verify again with the judge's own --contract, --rubric and --window.",
        )
    in_force = load_limits(limits)
    if record.limits_sha256 != in_force.sha256:
        raise InputError(
            "the verify was held to other limits than those in force", where=told.verify, hint="Run it again."
        )
    if not _is_held_to(record, in_force):
        raise InputError("its checks are not what the limits come to", where=told.verify, hint="Run verify again.")
    return True


def _is_held_to(record: Verified, limits: Limits) -> bool:
    """Whether the checks are those that the figures come to: a record can be edited, or cut."""
    figures = {c.figure: c.value for c in record.checks}
    return figures.keys() == limits.by_figure.keys() and checks(figures, limits) == record.checks


def _verified(path: Path) -> Verified:
    try:
        return Verified.model_validate_json(_record_json(path))
    except ValidationError as error:
        raise InputError(f"not what quantize.verify writes: {error.errors()[0]['msg']}", where=str(path)) from error


def _record_json(path: Path) -> str:
    from aipsy_judge.strict_json import dumps

    try:
        data = loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise InputError(f"cannot be read: {error}", where=str(path)) from error
    if not isinstance(data, dict) or "verified" not in data:
        raise InputError("not what quantize.verify writes", where=str(path))
    return dumps(data["verified"])


def _placed(role: Literal["model", "adapter"], named: str, folder: Path) -> tuple[JudgeFile, Path]:
    """The file's row in the manifest, and where it is; what is in no package comes into the judge's folder."""
    package, colon, name = named.partition(":")
    if colon and package.isidentifier():
        path = _in_package(package, name, named)
        row = JudgeFile(
            role=role,
            name=name,
            bytes=path.stat().st_size,
            sha256=file_sha256(path),
            package=package.replace("_", "-"),
        )
        return row, path
    source = Path(named).expanduser()
    if not source.is_file():
        raise InputError(f"there is no such {role}", where=named)
    read_gguf_header(source)  # what is no whole GGUF file must not take a name in the folder
    target = folder / source.name
    if not (target.exists() and os.path.samefile(source, target)):
        _link(source, target)
    return JudgeFile(role=role, name=target.name, bytes=target.stat().st_size, sha256=file_sha256(target)), target


def _file_name(named: str) -> str:
    return Path(named.rpartition(":")[2]).name


def _in_package(package: str, name: str, named: str) -> Path:
    try:
        spec = importlib.util.find_spec(package)
    except ValueError:  # a module that is loaded and was found in no file, such as __main__
        spec = None
    places = [Path(p) / name for p in (spec.submodule_search_locations or ())] if spec is not None else []
    found = next((p for p in places if p.is_file()), None)
    if found is None:
        raise InputError("the package is not installed, or does not carry this file", where=named)
    return found


def _link(source: Path, target: Path) -> None:
    """A second name for the file where the file system can, else a copy; whole or not at all."""
    part = target.with_name(target.name + ".part")
    part.unlink(missing_ok=True)
    try:
        os.link(source, part)
    except OSError:
        shutil.copyfile(source, part)
    part.replace(target)


def quantisation(files: list[tuple[JudgeFile, Path]]) -> str:
    """The types that hold most of the files' bytes, e.g. "Q8_0" or "Q4_1 + adapter F16"."""
    words = [_main_type(path) for _, path in files]
    return words[0] + (f" + adapter {words[1]}" if len(words) > 1 else "")


def _main_type(path: Path) -> str:
    import gguf

    held: Counter[int] = Counter()
    for tensor in read_gguf_header(path).tensors:
        held[tensor.kind] += tensor.size_bytes
    return str(gguf.GGMLQuantizationType(held.most_common(1)[0][0]).name)


def _check_names(told: Description) -> None:
    """A metric that is held back under a misspelt name would be scored."""
    rubric = load_rubric(told.rubric)
    known = {*rubric.metric_names, *(flag.name for flag in rubric.flags)}
    named = {"operating_points": told.operating_points.keys(), "not_validated": told.not_validated.keys()}
    for key, names in named.items():
        if strange := sorted(names - known):
            raise InputError(
                f"{key}: the rubric {rubric.name} has no {', '.join(strange)}",
                where=told.name,
                hint=f"Its metrics and flags: {', '.join(sorted(known))}.",
            )


def _context_tokens(model: Path, told: int | None) -> int:
    meta = read_gguf_header(model).metadata
    found = meta.get(f"{meta.get('general.architecture')}.context_length")
    if not isinstance(found, int) or found <= 0:
        if told is not None:
            return told
        raise InputError("the model does not say how long its context is", where=str(model), hint="Set context_tokens.")
    if told is not None and told > found:
        raise InputError(f"context_tokens is {told}; the model was made for {found}", where=str(model))
    return told or found


def _golden(told: Description, folder: Path, threads: int) -> list[GoldenTurn]:
    """What the judge reads here and now on the given conversations."""
    rows: list[dict[str, Any]] = []
    with open_judge(folder, rubric=told.rubric, options=JudgeOptions(threads=threads, unblessed=True)) as judge:
        for talk in iter_conversations([Path(p) for p in told.golden]):
            said = [{"role": m.role, "content": m.content} for m in talk.messages]
            rows += golden_turns(judge, said, tolerance=DEFAULT_TOLERANCE)
    if not rows:
        raise InputError("golden: the conversations hold no turn to be read", where=told.name)
    return parse_golden(rows, where=told.name)


@click.command(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.argument("description", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--models", type=click.Path(file_okay=False, path_type=Path), default=MODELS, help="Default: models/.")
@click.option("--limits", type=click.Path(exists=True, path_type=Path), default=LIMITS, help="In force; see verify.")
@click.option("--threads", type=click.IntRange(0), default=0, help="Threads for golden turns; 0: all processors.")
def main(description: Path, models: Path, limits: Path, threads: int) -> None:
    """Make a judge's folder: weights, manifest and model card."""
    with told_errors():
        manifest = assemble(load_description(description), models, limits=limits, threads=threads)
    said = "blessed" if manifest.blessed else "NOT blessed: score refuses it without --unblessed"
    click.echo(f"{models / manifest.name}: {said}")


if __name__ == "__main__":
    main()
