"""Options of the verbs that read a ratings table: what to read, how to understand it, how to resample."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from ..agreement import Bootstrap
    from ..ratings import Kind, Ratings, Yardstick

_OPTIONS: list[Callable[[Any], Any]] = [
    click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path)),
    click.option("--empty", type=click.Choice(["na", "missing"]), help="What a row without score and status means."),
    click.option("--kind", "kinds", multiple=True, metavar="RATER=KIND", help="expert, adjudicated, crowd or judge."),
    click.option(
        "--scale", "scales", multiple=True, metavar="METRIC=MIN:MAX", help="Convert a metric (*: all) to this scale."
    ),
    click.option(
        "--scale-of",
        "declared",
        multiple=True,
        metavar="METRIC=MIN:MAX",
        help="Scale of a metric (*: all) where the rows state none.",
    ),
    click.option(
        "--rubric",
        default="auto",
        show_default=True,
        help="Thresholds and weights: a rubric's name or file; none; auto: the default rubric if the table is on it.",
    ),
    click.option(
        "--critical",
        multiple=True,
        metavar="METRIC=VALUE",
        help="A score strictly below is a failure; METRIC=none: no threshold.",
    ),
    click.option(
        "--reference", "held_right", multiple=True, metavar="RATER", help="Who is right; default: the experts."
    ),
    click.option("--rater", "raters", multiple=True, metavar="RATER", help="Only these raters. Default: all others."),
    click.option(
        "--by",
        type=click.Choice(["conversation", "scenario", "item"]),
        default="conversation",
        show_default=True,
        help="What is resampled as a whole for the intervals.",
    ),
    click.option("--resamples", type=click.IntRange(0, 100_000), default=1000, show_default=True),
    click.option("--level", type=click.FloatRange(0.5, 0.999), default=0.95, show_default=True),
    click.option("--seed", type=int, default=14, show_default=True),
]


def ratings_options(function: Any) -> Any:
    """Give a command the options; it gets one argument `table: TableOptions` beside its own."""

    def wrapped(**given: Any) -> Any:
        names = TableOptions.__dataclass_fields__
        table = TableOptions(**{name: given.pop(name) for name in names})
        return function(table=table, **given)

    wrapped.__doc__, wrapped.__name__ = function.__doc__, function.__name__
    wrapped.__click_params__ = getattr(function, "__click_params__", [])  # type: ignore[attr-defined]
    for option in reversed(_OPTIONS):
        option(wrapped)
    return wrapped


@dataclass(frozen=True, slots=True)
class TableOptions:
    """What was asked for, as typed."""

    paths: tuple[Path, ...]
    empty: Any
    kinds: tuple[str, ...]
    scales: tuple[str, ...]
    declared: tuple[str, ...]
    rubric: str
    critical: tuple[str, ...]
    held_right: tuple[str, ...]
    raters: tuple[str, ...]
    by: Any
    resamples: int
    level: float
    seed: int

    def ratings(self) -> Ratings:
        from ..ratings import load_ratings

        return load_ratings(
            self.paths,
            empty=self.empty,
            kinds=_kinds(self.kinds),
            scales=_scales("--scale", self.scales),
            declared_scales=_scales("--scale-of", self.declared),
        )

    def yardstick(self, ratings: Ratings) -> Yardstick:
        from ..ratings import make_yardstick
        from ..rubric import Rubric, load_rubric

        critical = {
            name: None if v == "none" else _float("--critical", v) for name, v in _pairs("--critical", self.critical)
        }
        rubric: Rubric | None = None
        if self.rubric == "auto":
            default = load_rubric()
            on_it = all(
                ratings.scales.get(m.name) == (m.scale.minimum, m.scale.maximum) for m in default.metrics if m.weight
            )
            rubric = default if on_it else None
        elif self.rubric != "none":
            rubric = load_rubric(self.rubric)
        return make_yardstick(ratings, rubric, critical=critical)

    def bootstrap(self) -> Bootstrap:
        from ..agreement import Bootstrap

        return Bootstrap(self.resamples, self.level, self.seed, self.by)


def _pairs(option: str, texts: Sequence[str]) -> list[tuple[str, str]]:
    split = [text.rpartition("=") for text in texts]
    for (name, _, value), text in zip(split, texts, strict=True):
        if not name or not value:
            raise click.UsageError(f"{option} {text!r}: NAME=VALUE is wanted")
    return [(name, value) for name, _, value in split]


def _kinds(texts: Sequence[str]) -> dict[str, Kind]:
    from ..ratings import KINDS

    found: dict[str, Kind] = {}
    for rater, kind in _pairs("--kind", texts):
        match = next((k for k in KINDS if k == kind), None)
        if match is None:
            raise click.UsageError(f"--kind {rater}={kind}: one of {', '.join(KINDS)} is wanted")
        found[rater] = match
    return found


def _scales(option: str, texts: Sequence[str]) -> dict[str, tuple[float, float]]:
    found = {}
    for metric, ends in _pairs(option, texts):
        low, _, high = ends.partition(":")
        found[metric] = (_float(option, low), _float(option, high))
        if not found[metric][0] < found[metric][1]:
            raise click.UsageError(f"{option} {metric}={ends}: the first must be below the second")
    return found


def _float(option: str, text: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise click.UsageError(f"{option}: {text!r} is not a number") from error
