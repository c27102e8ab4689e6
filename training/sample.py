"""Stage sample: which part each item is in, its stratum, and how often it is shown.

    python -m training.sample RECIPE

targets, conversations -> sample/sample.jsonl, rates.json, groups.json
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from aipsy_judge.atomic import write_text
from aipsy_judge.rubric import Rubric, load_rubric
from aipsy_judge.strict_json import dumps

from .data_files import conversation_paths, conversations
from .groups import SCENARIO, Grouping, find_groups
from .items import Item
from .program import recipe_program
from .recipe import Recipe
from .sample_rows import FILE, SampleRow, write_sample_rows
from .split import PARTS, split_items
from .stage import Made, Stage, make
from .strata import Rate, axes, rates, repeats, stratum
from .target_rows import FILE as TARGETS_FILE
from .target_rows import TargetRow, read_target_rows
from .targets import NAME as TARGETS
from .targets import make_targets

NAME, VERSION = "sample", 1
RATES, GROUPS = "rates.json", "groups.json"
SHOWN = 10


def make_sample(recipe: Recipe, out: Path) -> Made:
    """Reuse or make the stage, and before it the targets; says on stdout what it did, and the rates per axis."""
    targets = make_targets(recipe, out).folder / TARGETS_FILE
    return make(out, _stage(recipe, targets), lambda part: _work(recipe, targets, part), say=click.echo)


def _stage(recipe: Recipe, targets: Path) -> Stage:
    settings = {**recipe.part("seed", "split", "strata"), "rubric": load_rubric(recipe.rubric).hash}
    texts = {p.as_posix(): p for p in conversation_paths(recipe)}
    frozen = {"split.file": Path(recipe.split.file)} if recipe.split.file is not None else {}
    return Stage(NAME, VERSION, settings, {TARGETS: targets, **texts, **frozen})


def _work(recipe: Recipe, targets: Path, part: Path) -> None:
    rubric, rows, texts = load_rubric(recipe.rubric), list(read_target_rows(targets)), conversations(recipe)
    items = [Item(r.item_id, r.conversation, r.turn, r.scenario, r.generator) for r in rows]
    grouping = find_groups(items, texts, recipe.split)
    found = sample_rows(recipe, rubric, rows, items, grouping)
    write_sample_rows(part / FILE, found)
    table = _rates(rows, found, rubric)
    told = {p: {kind: {a: asdict(r) for a, r in of.items()} for kind, of in by.items()} for p, by in table.items()}
    write_text(part / RATES, dumps(told, indent=1) + "\n")
    write_text(part / GROUPS, dumps(_told_groups(grouping), indent=1) + "\n")
    for line in [*_group_lines(grouping, found), *_rate_lines(table, rubric)]:
        click.echo(f"  {line}")


def sample_rows(
    recipe: Recipe, rubric: Rubric, rows: Sequence[TargetRow], items: Sequence[Item], grouping: Grouping
) -> list[SampleRow]:
    """A row an item; only the train part shows any more than once."""
    assigned = split_items(items, grouping, recipe.split, recipe.seed)
    found = []
    for row in rows:
        kind = stratum(row, rubric, recipe.strata.kept_apart)
        part = assigned.part[row.item_id]
        times = repeats(kind, recipe.strata) if part == "train" else 1
        found.append(SampleRow(row.item_id, assigned.group[row.item_id], part, kind, times))
    return found


Table = Mapping[str, Mapping[str, Mapping[str, Rate]]]


def _rates(rows: Sequence[TargetRow], sample: Sequence[SampleRow], rubric: Rubric) -> Table:
    """part -> "natural" or "resulting" -> axis -> Rate."""
    both = list(zip(rows, sample, strict=True))
    return {
        part: {
            "natural": rates(((r, s.stratum, 1) for r, s in both if s.part == part), rubric),
            "resulting": rates(((r, s.stratum, s.repeats) for r, s in both if s.part == part), rubric),
        }
        for part in PARTS
    }


def _rate_lines(table: Table, rubric: Rubric) -> Iterator[str]:
    """A line an axis; validation and test are never changed, so one figure says both."""
    names = axes(rubric)
    width = max(map(len, names))
    yield f"{'axis':{width}}  {'train natural':>18} {'train resulting':>18} {'validation':>18} {'test':>18}"
    for axis in names:
        train, others = table["train"], [table[p]["natural"] for p in PARTS[1:]]
        cells = [train["natural"][axis], train["resulting"][axis], *(other[axis] for other in others)]
        yield f"{axis:{width}}  {' '.join(f'{_shown(c):>18}' for c in cells)}"


def _shown(rate: Rate) -> str:
    return "none" if rate.share is None else f"{rate.share:6.1%} ({rate.hits}/{rate.n})"


def _group_lines(grouping: Grouping, sample: Sequence[SampleRow]) -> Iterator[str]:
    sizes = Counter(row.part for row in sample)
    groups = {part: len({row.group for row in sample if row.part == part}) for part in PARTS}
    yield ", ".join(f"{part} {sizes[part]} items in {groups[part]} groups" for part in PARTS)
    joined = [link for link in grouping.links if link.why != SCENARIO]
    if joined:
        yield f"{len(joined)} pairs of conversations share text and were kept together (groups.json), such as"
    for link in joined[:SHOWN]:
        yield f"  {link.first} and {link.second}: {link.why}"
    largest = Counter(row.group for row in sample).most_common(1)
    if largest and largest[0][1] * 2 > len(sample) and len(sample) > 1:
        yield f"warning: one group ({largest[0][0]}) holds {largest[0][1]} of {len(sample)} items: see groups.json"


def _told_groups(grouping: Grouping) -> dict[str, Any]:
    return {"groups": grouping.members, "links": [asdict(link) for link in grouping.links]}


@recipe_program
def main(recipe: Recipe, out: Path) -> None:
    """Split the items of RECIPE and say how often each is shown."""
    make_sample(recipe, out)


if __name__ == "__main__":
    main()
