"""A judge's model card, written from its manifest: what it is, what was proven, what it is not for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import click

from aipsy_judge.atomic import write_text
from aipsy_judge.cli.ending import told_errors
from aipsy_judge.errors import RubricError
from aipsy_judge.manifest import Check, Manifest, Verified, read_manifest
from aipsy_judge.reservations import held_back
from aipsy_judge.rubric import load_rubric
from aipsy_judge.weights import why_not_blessed

from .description import Description, load_description

CARD = "README.md"
INTENDED = (
    "Helping a person decide which turns of a conversation to read first, on that person's own machine.",
    "Comparing versions of an assistant with the same judge, rubric and contract (one lane), with intervals.",
)
LIMITS = (
    "Scores are directional and for human review. They are no diagnosis, no certificate and no proof that a "
    "conversation was safe.",
    "A failure that is not reported may be there all the same: do not use it as the only gate.",
    "Scores of another judge, rubric or contract are not comparable with these.",
    "Its values are those of the people whose ratings it was trained on, their leniency and blind spots included.",
)


def card_text(manifest: Manifest, told: Description | None = None) -> str:
    """The card as Markdown. `told` adds figures, uses and limits that only a description knows."""
    blocks = [
        _front_matter(manifest),
        f"# {manifest.name}",
        manifest.about,
        *_blessing(manifest),
        _section("Intended use", [*INTENDED, *(told.intended if told else ())]),
        _section("Limits", [*_own_limits(manifest, told), *(told.limits if told else ()), *LIMITS]),
        _section("How it is asked", list(_asked(manifest))),
        *([_section("Measured", told.figures)] if told and told.figures else []),
        _proven(manifest.verify),
        _section("How it was made", list(_made(manifest))),
        _files(manifest),
        _use(manifest),
    ]
    return "\n\n".join(blocks) + "\n"


def _front_matter(manifest: Manifest) -> str:
    """What model hubs read."""
    library = "mlx" if manifest.is_folder else "gguf"
    return f"---\nlicense: {manifest.licence.lower()}\nbase_model: {manifest.base.name}\nlibrary_name: {library}\n---"


def _blessing(manifest: Manifest) -> list[str]:
    if manifest.blessed:
        return []
    return [
        f"**Not blessed: {why_not_blessed(manifest)}.** `aipsy-judge score` refuses it without `--unblessed`; its "
        "scores are not to be relied on."
    ]


def _own_limits(manifest: Manifest, told: Description | None) -> Iterator[str]:
    yield from manifest.remarks
    held = _held_back(manifest, told)
    for name, reason in held.items():
        yield f"{name} is not scored: {reason}."
    for name, least in manifest.set_from.items():
        if name not in held:
            yield f"{name} is set from a probability of {least:g} on, chosen on validation data."
    for name, point in manifest.operating_points.items():
        if name in held:  # nothing held back is ever marked (reservations.unsure)
            continue
        words = [f"a confidence under {point.confidence:g}"] if point.confidence is not None else []
        words += [f"a probability of failure from {point.p_fail:g}"] if point.p_fail is not None else []
        yield f"{name} is marked “unsure: for review” at {' or '.join(words)}."


def _held_back(manifest: Manifest, told: Description | None) -> Mapping[str, str]:
    """By the judge's rubric where that is at hand; a manifest itself does not tell which metric hangs on which flag."""
    try:
        rubric = load_rubric(told.rubric if told is not None else manifest.rubric.name)
    except RubricError:
        return manifest.not_validated
    return held_back(rubric, manifest.not_validated) if rubric.hash == manifest.rubric.hash else manifest.not_validated


def _asked(manifest: Manifest) -> Iterator[str]:
    yield f"Rubric {manifest.rubric.name} (`{manifest.rubric.hash[:12]}`), contract {manifest.contract}."
    yield f"At most {manifest.context_tokens} tokens, prompt and answer."
    if manifest.window is not None:
        yield f"It is shown the newest {manifest.window} messages only."
    yield f"Chat template sha256 `{manifest.template_sha256[:12]}`; a file with another one is refused."
    if manifest.temperatures:
        rows = ", ".join(f"{name} {t:.3g}" for name, t in manifest.temperatures.items())
        yield f"Temperatures fitted on validation data: {rows}."
    yield f"Under a legal mass of {manifest.legal_mass_floor:g} a metric is unscored."


def _proven(record: Verified | None) -> str:
    head = "## Proven against the full weights"
    if record is None:
        return f"{head}\n\nIt was not verified."
    said = f"{record.units} units, {record.answers} free answers, {record.date}, {record.library}."
    rows = ["| figure | value | limit | |", "|---|---|---|---|", *(_row(c) for c in record.checks)]
    return f"{head}\n\n{said}\n\n" + "\n".join(rows)


def _row(check: Check) -> str:
    value = f"{check.value:.4g}" if check.value is not None else "could not be had"
    limit = f"≥ {check.least:g}" if check.least is not None else f"≤ {check.most:g}"
    return f"| {check.figure} | {value} | {limit} | {'ok' if check.passed else '**failed**'} |"


def _made(manifest: Manifest) -> Iterator[str]:
    base, made = manifest.base, manifest.made
    yield f"Base: {base.name}{f' at {base.revision}' if base.revision else ''} ({base.licence})."
    yield (
        f"Made {made.date}"
        + (f" by the recipe {made.recipe}" if made.recipe else "")
        + (f", commit {made.commit[:12]}." if made.commit else ".")
    )
    for name, digest in made.data.items():
        yield f"Data: {name}, sha256 `{digest[:12]}`."
    if made.versions:
        yield "Versions: " + ", ".join(f"{name} {v}" for name, v in made.versions.items()) + "."


def _files(manifest: Manifest) -> str:
    rows = ["| file | bytes | sha256 |", "|---|---|---|"]
    for file in manifest.files:
        brought = f" (package {file.package})" if file.package is not None else ""
        rows.append(f"| {file.name}{brought} | {file.bytes} | `{file.sha256}` |")
    return f"## Files\n\n{manifest.quantisation}\n\n" + "\n".join(rows)


def _use(manifest: Manifest) -> str:
    flag = "" if manifest.blessed else " --unblessed"
    lines = [f"aipsy-judge score talk.json --judge {manifest.name}{flag}"]
    if manifest.golden_turns:
        lines.append(f"aipsy-judge doctor --prove {manifest.name}{flag}")
    return "## Use\n\n```sh\n" + "\n".join(lines) + "\n```"


def _section(title: str, sentences: Sequence[str]) -> str:
    return f"## {title}\n\n" + "\n".join(f"* {s}" for s in sentences)


@click.command(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--description", type=click.Path(exists=True, path_type=Path), help="For figures, uses and limits.")
def main(folder: Path, description: Path | None) -> None:
    """Write README.md of a judge's folder again from its manifest."""
    with told_errors():
        told = load_description(description) if description is not None else None
        write_text(folder / CARD, card_text(read_manifest(folder), told))


if __name__ == "__main__":
    main()
