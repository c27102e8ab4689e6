"""A judge's folder from its parts: `python -m quantize.assemble DESCRIPTION.yaml`.

Writes models/NAME/: the weights (links, or copies where a link cannot be made; git ignores them), manifest.yaml and
README.md. Blessed where a verify of these very files passed by the limits that are in force.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
from aipsy_judge.manifest import (
    MANIFEST,
    AskedAs,
    JudgeFile,
    Manifest,
    Verified,
    Weighed,
    parse_manifest,
    write_manifest,
)
from aipsy_judge.model_folder import open_model_folder, refuse_adapter
from aipsy_judge.opening import open_judge
from aipsy_judge.reservations import held_back
from aipsy_judge.rubric import load_rubric
from aipsy_judge.strict_json import loads
from aipsy_judge.transcripts import iter_conversations

from .card import CARD, card_text
from .description import Description, load_description
from .exported import check_exported
from .full_weights import check_two
from .limits import LIMITS, Limits, checks, load_limits
from .made_by import fitted_temperatures, made_by
from .placing import file_name, place_file, place_model

MODELS = Path(__file__).resolve().parent.parent / "models"


def assemble(told: Description, models: Path, *, limits: Path = LIMITS, threads: int = 0) -> Manifest:
    """Make the judge's folder in `models`. Raises InputError, WeightsError or ManifestError."""
    load_contract(told.contract)
    if told.adapter is not None and file_name(told.adapter) == file_name(told.model):
        raise InputError(
            f"model and adapter are both called {file_name(told.model)}: one would take the other's place",
            where=told.name,
            hint="Rename one of the files.",
        )
    folder = models / told.name
    folder.mkdir(parents=True, exist_ok=True)
    manifest = _manifest(told, _weights(told, folder), limits)
    if told.golden:
        # stopped here, it must not look like a judge that is done
        write_manifest(folder / MANIFEST, manifest.model_copy(update={"blessed": False}))
        manifest = manifest.model_copy(update={"golden_turns": tuple(_golden(told, folder, threads))})
    write_manifest(folder / MANIFEST, manifest)
    write_text(folder / CARD, card_text(manifest, told))
    return manifest


@dataclass(frozen=True, slots=True)
class _Placed:
    """model: a GGUF file, or a folder of safetensors; rows: of all files, for the manifest."""

    rows: list[JudgeFile]
    model: Path
    adapter: Path | None

    def weighed(self) -> Weighed:
        """As verify weighs them."""
        adapter = file_sha256(self.adapter) if self.adapter is not None else None
        return Weighed(model=file_sha256(self.model), adapter=adapter)


def _weights(told: Description, folder: Path) -> _Placed:
    rows, model = place_model(told.model, folder)
    if told.adapter is None:
        if not model.is_dir():
            check_model(model)
        return _Placed(rows, model, None)
    if model.is_dir():
        refuse_adapter(Path(told.adapter))
    row, adapter = place_file("adapter", told.adapter, folder)
    check_adapter(adapter, check_model(model))
    return _Placed([*rows, row], model, adapter)


def _manifest(told: Description, files: _Placed, limits: Path) -> Manifest:
    model = files.model
    _check_names(told)
    rubric, run = load_rubric(told.rubric), Path(told.run) if told.run is not None else None
    template = template_sha256(model)
    if template is None:
        raise InputError("the model carries no chat template: nobody could ask it as it was trained", where=str(model))
    if run is not None:
        check_exported(run, files.rows)
    record = _verified(Path(told.verify)) if told.verify is not None else None
    data: dict[str, Any] = {
        **told.model_dump(include={"name", "about", "base", "licence", "contract", "window", "legal_mass_floor"}),
        **told.model_dump(include={"operating_points", "set_from", "not_validated", "remarks"}),
        "format": 1,
        "files": [row.model_dump() for row in files.rows],
        "rubric": {"name": rubric.name, "hash": rubric.hash},
        "template_sha256": template,
        "context_tokens": _context_tokens(model, told.context_tokens),
        "quantisation": told.quantisation or quantisation(model, files.adapter),
        "made": made_by(run).model_dump(),
        "verify": record.model_dump() if record is not None else None,
        "temperatures": told.temperatures if told.temperatures is not None else fitted_temperatures(run),
        "blessed": _is_blessed(told, files, record, limits),
    }
    return parse_manifest(data, where=told.name)


def _is_blessed(told: Description, files: _Placed, record: Verified | None, limits: Path) -> bool:
    """A verify that passed counts for the files that it weighed and by the limits in force."""
    if record is None or not record.passed or told.held_back is not None:
        return False
    if record.candidate != files.weighed():
        raise InputError(
            "the verify is of other files than these", where=told.verify, hint="Run quantize.verify again."
        )
    check_two(record.full, record.candidate, str(told.verify))
    _check_asked(told, record)
    in_force = load_limits(limits)
    if record.limits_sha256 != in_force.sha256:
        raise InputError(
            "the verify was held to other limits than those in force", where=told.verify, hint="Run it again."
        )
    if not _is_held_to(record, in_force):
        raise InputError("its checks are not what the limits come to", where=told.verify, hint="Run verify again.")
    return True


def _check_asked(told: Description, record: Verified) -> None:
    """What was proven is a judge that is asked this way, and whose answers count from this legal mass on."""
    rubric = load_rubric(told.rubric)
    own = AskedAs(
        contract=told.contract, rubric=rubric.hash, window=told.window, legal_mass_floor=told.legal_mass_floor
    ).model_dump(exclude={"held_back"})
    told_all = set(record.asked.held_back) - held_back(rubric, told.not_validated).keys() if record.asked else set()
    if told_all:
        raise InputError(
            f"the verify took {', '.join(sorted(told_all))} for held back, and this judge tells its value",
            where=told.verify,
            hint="Run quantize.verify again with --held-back for what stands in not_validated alone.",
        )
    found = record.asked.model_dump() if record.asked is not None else {}
    other = [key.replace("_", " ") for key in own if key not in found or found[key] != own[key]]
    if other:
        raise InputError(
            f"the verify asked by another {', '.join(other)} than this judge is asked by",
            where=told.verify,
            hint="Run quantize.verify again with the judge's own --contract, --rubric, --window and --floor.",
        )


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


def quantisation(model: Path, adapter: Path | None) -> str:
    """The types that hold most of the files' bytes, e.g. "Q8_0", "Q4_1 + adapter F16" or, of a folder, "8 bit"."""
    if model.is_dir():
        return open_model_folder(model).stored
    return _main_type(model) + (f" + adapter {_main_type(adapter)}" if adapter is not None else "")


def _main_type(path: Path) -> str:
    import gguf

    held: Counter[int] = Counter()
    for tensor in read_gguf_header(path).tensors:
        held[tensor.kind] += tensor.size_bytes
    return str(gguf.GGMLQuantizationType(held.most_common(1)[0][0]).name)


def _check_names(told: Description) -> None:
    """A metric that is held back under a misspelt name would be scored."""
    rubric = load_rubric(told.rubric)
    flags = {flag.name for flag in rubric.flags}
    known = {*rubric.metric_names, *flags}
    for key, names, legal in (
        ("operating_points", told.operating_points.keys(), known),
        ("not_validated", told.not_validated.keys(), known),
        ("set_from", told.set_from.keys(), flags),
    ):
        if strange := sorted(names - legal):
            raise InputError(
                f"{key}: the rubric {rubric.name} has no {', '.join(strange)}",
                where=told.name,
                hint=f"It has: {', '.join(sorted(legal))}.",
            )


def _context_tokens(model: Path, told: int | None) -> int:
    found: object
    if model.is_dir():
        found = open_model_folder(model).context_tokens
    else:
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
