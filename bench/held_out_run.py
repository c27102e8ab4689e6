"""Judges one part of a recipe, and what else there is to hold a judge against, on the same items; everything found."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from aipsy_judge import open_judge
from aipsy_judge.agreement import Bootstrap
from aipsy_judge.judge import JudgeOptions
from aipsy_judge.rubric import Rubric
from training.recipe import Recipe
from training.split import Part

from .held_out import HeldItem, HeldOut, Reply, group_numbers, held_out
from .held_out_figures import Ground, all_figures, counts
from .held_out_free import free_answers
from .held_out_judging import Judged, judge_items, spent_to_dict
from .held_out_paired import Difference, differences, not_validated
from .held_out_report import figures_to_dict
from .held_out_rival import has_own_contract, is_forced, open_rival
from .held_out_said import Held, Said, held_by_raters, held_by_target, said_by_judge, said_by_rater
from .held_out_shipped import Shipped, as_shipped
from .held_out_words import BAG, bag_of_words, constant

Say = Callable[[str], None]
UNTRAINED = "smollm2-untrained"
FORCED = ", forced"  # behind the name of weights that are asked without a floor on the probability of legal answers


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is asked for.

    judge      anything that open_judge takes; adapter: a LoRA GGUF beside it
    contract   asked of weights that were trained for none; None: the recipe's
    verdicts   a journal of verdicts; None: none is kept
    most       at most so many conversations (groups), drawn by `seed`; None: all
    free       on so many replies the judge answers freely too; None: on none
    """

    judge: str
    rivals: tuple[str, ...] = (UNTRAINED,)
    adapter: Path | None = None
    contract: str | None = None
    part: Part = "test"
    work: Path | None = None
    verdicts: Path | None = None
    most: int | None = None
    free: int | None = None
    seed: int = 14
    resamples: int = 1000
    options: JudgeOptions = field(default_factory=JudgeOptions)


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """Everything of one run. `judged`: contestant -> how its verdicts were made; `figures`: reference -> contestant
    -> figures; against the recipe's target: `differences`, `reasons` (a manifest's not_validated), and `shipped` (the
    judge with its manifest)."""

    rubric: Rubric
    part: Part
    items: tuple[HeldItem, ...]
    held: tuple[Held, ...]
    contestants: tuple[Said, ...]
    judged: Mapping[str, Judged]
    figures: Mapping[str, Mapping[str, Any]]
    differences: tuple[Difference, ...]
    reasons: Mapping[str, str]
    chosen: Mapping[str, Any]
    bootstrap: Bootstrap
    free: Mapping[str, Any] | None = None
    shipped: Shipped | None = None

    @property
    def judge(self) -> Said:
        return self.contestants[0]


def run(recipe: Recipe, wanted: Wanted, say: Say) -> Found:
    """Judge, learn the rivals, and measure."""
    with work_folder(wanted.work) as work:
        whole = held_out(recipe, wanted.part, work)
        items = drawn(whole.items, wanted.most, wanted.seed)
        judged, free = judge_all(recipe, wanted, items, say)
    contestants, chosen = contestants_of(whole, items, judged, wanted.verdicts, say)
    raters = {r: part_in_target(recipe.targets.source, r) for r in whole.ratings.judges}
    contestants += [said_by_rater(whole.ratings, r, part, items, whole.rubric) for r, part in raters.items()]
    held = tuple(_references(recipe, whole, items))
    groups, n_groups = group_numbers(items)
    ground = Ground(np.array(groups), n_groups, Bootstrap(resamples=wanted.resamples))
    say("figures")
    figures = {h.name: {s.name: all_figures(s, h, whole.rubric, ground) for s in contestants} for h in held}
    rivals = [s for s in contestants[1:] if s.name in judged or s.name == BAG]
    found = [d for r in rivals for d in differences(contestants[0], r, held[0], whole.rubric, ground)]
    against = [d for d in found if d.rival == BAG]
    reasons = not_validated(against, whole.rubric.metric_names, wanted.part)
    return Found(
        whole.rubric,
        wanted.part,
        items,
        held,
        tuple(contestants),
        judged,
        figures,
        tuple(found),
        reasons,
        chosen,
        ground.bootstrap,
        free,
        as_shipped(next(iter(judged.values())), items, held[0], whole.rubric, ground),
    )


def part_in_target(source: str, rater: str) -> str:
    """What stands beside a rater: agreement with a target that was made from it proves little."""
    if source == f"rater:{rater}":
        return "the target is this rater"
    return "the target is another rater" if source.startswith("rater:") else "the target was made from this rater"


def drawn(items: Sequence[HeldItem], most: int | None, seed: int) -> tuple[HeldItem, ...]:
    """The items of at most `most` groups, drawn by `seed`."""
    names = list(dict.fromkeys(i.group for i in items))
    if most is None or most >= len(names):
        return tuple(items)
    chosen = set(np.random.default_rng(seed).permutation(names)[:most].tolist())
    return tuple(i for i in items if i.group in chosen)


@contextmanager
def work_folder(given: Path | None) -> Iterator[Path]:
    if given is not None:
        given.mkdir(parents=True, exist_ok=True)
        yield given
        return
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


def judge_all(
    recipe: Recipe, wanted: Wanted, items: Sequence[Reply], say: Say
) -> tuple[dict[str, Judged], Mapping[str, Any] | None]:
    """Name -> verdicts, the judge first, one judge in memory at a time; and its free answers."""
    asked = wanted.contract
    if asked is None and not has_own_contract(wanted.judge, wanted.options):
        asked = recipe.contract
    found, free = {}, None
    with open_judge(
        wanted.judge, rubric=recipe.rubric, contract=asked, adapter=wanted.adapter, options=wanted.options
    ) as judge:
        contract = judge.lane.contract
        found[_named(wanted)] = judge_items(judge, items, wanted.verdicts, say)
        if wanted.free is not None:
            free = free_answers(judge, items, wanted.free, wanted.seed, wanted.verdicts)
    for name in wanted.rivals:
        with open_rival(name, recipe.rubric, contract, wanted.options) as rival:
            label = f"{name}{FORCED if is_forced(rival) else ''}"
            if label not in found:
                found[label] = judge_items(rival, items, wanted.verdicts, say)
    return found, free


def _named(wanted: Wanted) -> str:
    name = Path(wanted.judge).name if Path(wanted.judge).exists() else wanted.judge
    return name if wanted.adapter is None else f"{name} + {wanted.adapter.stem}"


def contestants_of(
    whole: HeldOut, items: Sequence[Reply], judged: Mapping[str, Judged], kept: Path | None, say: Say
) -> tuple[list[Said], Mapping[str, Any]]:
    """Judges, bag of words and constant, which learn on the train part; and what was chosen for the bag of words."""
    rubric = whole.rubric
    found = [
        said_by_judge(name, f"{of.lane['judge']}, contract {of.lane['contract']}", of.verdicts, items, rubric)
        for name, of in judged.items()
    ]
    if not whole.train:
        return found, {}
    say("bag of words")
    train = held_by_target(whole.train, rubric, "the train part's target")
    bag, chosen = bag_of_words(whole.train, train, rubric, items, kept)
    return [*found, bag, constant(train, len(items), rubric)], chosen


def _references(recipe: Recipe, whole: HeldOut, items: Sequence[HeldItem]) -> Iterator[Held]:
    yield held_by_target(items, whole.rubric, f"the recipe's target ({recipe.targets.source})")
    raters = whole.ratings.of_kind("adjudicated", "expert")
    if raters:
        about = f"{' and '.join(raters)}, items weighted by the inverse of their chance to be drawn"
        held = held_by_raters(whole.ratings, raters, items, whole.rubric, "adjudicated", about)
        if held is not None:
            yield held


def to_dict(found: Found) -> dict[str, Any]:
    """Everything as strict JSON data."""
    names = found.rubric.metric_names
    return {
        "rubric": {"name": found.rubric.name, "hash": found.rubric.hash},
        "part": found.part,
        "items": len(found.items),
        "groups": len({i.group for i in found.items}),
        "bootstrap": {
            "resamples": found.bootstrap.resamples,
            "level": found.bootstrap.level,
            "seed": found.bootstrap.seed,
        },
        "references": {h.name: h.about for h in found.held},
        "contestants": {
            s.name: {
                "about": s.about,
                "withheld": s.withheld,
                "counts": {m: _counts(s, m) for m in names},
                "legal_mass_median": {k: float(np.median(v)) for k, v in s.legal_mass.items()},
            }
            for s in found.contestants
        },
        "judged": {
            name: {**j.lane, "settings": dict(j.settings), "remarks": list(j.remarks), **spent_to_dict(j.spent)}
            for name, j in found.judged.items()
        },
        "figures": {h: {s: figures_to_dict(f) for s, f in of.items()} for h, of in found.figures.items()},
        "differences": [d.to_dict() for d in found.differences],
        "not_validated": dict(found.reasons),
        "free_answers": found.free,
        "as_shipped": found.shipped.to_dict() if found.shipped is not None else None,
        "bag_of_words": dict(found.chosen),
    }


def _counts(said: Said, metric: str) -> dict[str, int]:
    found = counts(said.metrics[metric])
    return {"scored": found.scored, "na": found.na, "unscored": found.unscored}
