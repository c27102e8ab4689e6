"""Stage targets: what each rated item's slots are to say.

    python -m training.targets RECIPE

ratings, conversations -> targets/targets.jsonl, summary.json and, where one was fitted, correction.json
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np

from aipsy_judge.atomic import write_text
from aipsy_judge.conversation import Conversation
from aipsy_judge.correction import save_correction
from aipsy_judge.ratings import Ratings, load_ratings
from aipsy_judge.rubric import Rubric, load_rubric
from aipsy_judge.strict_json import dumps

from .data_files import conversations, inputs, rating_paths
from .groups import find_groups
from .items import Item, find_items
from .program import recipe_program
from .provenance import record
from .rater_texts import rater_verdicts, refuse_other_texts
from .recipe import Recipe
from .slot_targets import target_rows
from .split import split_items
from .stage import Made, Stage, make
from .target_rows import FILE, TargetRow, write_target_rows
from .target_source import find_source
from .votes import Bools

NAME, VERSION = "targets", 1
SUMMARY, CORRECTION = "summary.json", "correction.json"


def stage(recipe: Recipe) -> Stage:
    """What the targets rest on; the split only where it says which anchors may be seen."""
    told = recipe.part("targets")["targets"]
    settings: dict[str, Any] = {"rubric": load_rubric(recipe.rubric).hash, "targets.source": recipe.targets.source}
    settings["data.turns"] = recipe.data.turns
    keys = []
    if recipe.targets.source == "correction":
        keys.append("targets.correction")
        if recipe.targets.correction is None:
            settings |= {f"targets.{k}": told[k] for k in ("anchors", "fit_on")} | recipe.part("seed")
            if recipe.targets.fit_on == "train":
                settings |= recipe.part("split")
                keys.append("split.file")
    return Stage(NAME, VERSION, settings, inputs(recipe, *keys))


def make_targets(recipe: Recipe, out: Path) -> Made:
    """Reuse or make the stage; says on stdout what it did and what the reader must know."""
    found = stage(recipe)
    record(out, recipe)
    return make(out, found, lambda part: _work(recipe, part), say=click.echo)


def _work(recipe: Recipe, part: Path) -> None:
    rubric, paths = load_rubric(recipe.rubric), rating_paths(recipe)
    ratings, texts = load_ratings(paths), conversations(recipe)
    told = None if recipe.data.items is None else Path(recipe.data.items)
    items = find_items(ratings, texts, rubric, told, last=recipe.data.turns == "last")
    verdicts = rater_verdicts(paths, rubric)
    refuse_other_texts(items, texts, verdicts)
    source = find_source(recipe, ratings, rubric, _trained(recipe, items, texts))
    rows = target_rows(source, items, texts, verdicts, rubric)
    write_target_rows(part / FILE, rows)
    if source.correction is not None and recipe.targets.correction is None:
        save_correction(part / CORRECTION, source.correction)
    summary = _summary(rows, [*ratings.warnings, *_strange(ratings, rubric), *source.notes])
    write_text(part / SUMMARY, dumps(summary, indent=1) + "\n")
    for line in _lines(summary):
        click.echo(f"  {line}")


def _trained(recipe: Recipe, items: Sequence[Item], texts: Mapping[str, Conversation]) -> Bools | None:
    """(I,) items whose anchors a correction may be fitted to; None for all, or where none is fitted."""
    fits = recipe.targets.source == "correction" and recipe.targets.correction is None
    if not fits or recipe.targets.fit_on == "all":
        return None
    found = split_items(items, find_groups(items, texts, recipe.split), recipe.split, recipe.seed)
    return np.array([found.part[i.id] == "train" for i in items], dtype=bool)


def _summary(rows: Sequence[TargetRow], notes: Sequence[str]) -> dict[str, Any]:
    metrics: dict[str, Counter[str]] = {}
    for row in rows:
        for name, target in row.metrics.items():
            metrics.setdefault(name, Counter())[target.status] += 1
    flags = {name: Counter(str(r.flags[name].value).lower() for r in rows) for name in (rows[0].flags if rows else ())}
    return {
        "items": len(rows),
        "conversations": len({r.conversation for r in rows}),
        "metrics": {name: {s: count[s] for s in ("scored", "na", "unscored")} for name, count in metrics.items()},
        "flags": {n: {"true": c["true"], "false": c["false"], "unread": c["none"]} for n, c in flags.items()},
        "rationales": sum(r.rationale is not None for r in rows),
        "notes": list(notes),
    }


def _lines(summary: Mapping[str, Any]) -> list[str]:
    lines = [
        f"{summary['items']} items of {summary['conversations']} conversations, {summary['rationales']} rationales"
    ]
    for name, counts in {**summary["metrics"], **summary["flags"]}.items():
        lines.append(f"{name}: " + ", ".join(f"{count} {status}" for status, count in counts.items()))
    return [*lines, *(f"note: {note}" for note in summary["notes"])]


def _strange(ratings: Ratings, rubric: Rubric) -> list[str]:
    known = {
        *rubric.metric_names,
        *(f.name for f in rubric.flags),
        *(f.severity.name for f in rubric.flags if f.severity),
    }
    strange = [m for m in ratings.metrics if m not in known]
    return [f"the rubric {rubric.name} has no {', '.join(strange)}: left unused"] if strange else []


@recipe_program
def main(recipe: Recipe, out: Path) -> None:
    """Make the targets of RECIPE: what each rated item's slots are to say."""
    make_targets(recipe, out)


if __name__ == "__main__":
    main()
