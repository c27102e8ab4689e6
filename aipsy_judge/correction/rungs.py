"""The rungs of the ladder: what each may learn from the anchors, and how far from doing nothing it may go.

Spreads are standard deviations on the unit scale, coarse on purpose and the same for every table; how much of them is
used is decided by the evidence of the anchors. They were chosen on part of the development tables (docs/log.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .design import Design
from .gaussian import Spread
from .numbers import Floats, Ints

# Rung -> prior share in the blend. "mean" does nothing; the richer rungs hold the plainer ones as a special case and
# shrink towards them, hence their larger share.
SHARES = {
    "mean": 1.0,
    "offset": 0.25,
    "line": 3.0,
    "weights": 3.0,
    "one judge": 2.0,
    "published": 0.25,
    "constant": 1.0,
    "steps": 2.0,
    "others": 4.0,
}
ABOUT = {
    "mean": "equal mean of the judges",
    "offset": "mean plus a shrunken offset",
    "line": "shrunken line on the mean",
    "weights": "a weight per judge, not negative, shrunk to equal",
    "one judge": "a shrunken line on one judge, averaged over which one it is",
    "published": "weights by alignment with the expert and recall of failures, no offset",
    "constant": "the anchors' mean, whatever the judges say",
    "steps": "a correction per judge and step of the scale: where the scale has a ceiling",
    "others": "what the judges said on the other metrics too",
}

BIAS = (0.05, 0.12, 0.3)  # offset
SLOPE, SLOPE_SD = 0.7, (0.1, 0.3)  # experts' scores follow the judges' mean with a slope of .2 to 1
# A judge's own weight, times the root of the number of judges; the widest, where one judge is far better than the
# others, is seven times less likely beforehand.
JUDGE_SD = ((0.06, 0.0), (0.2, 0.0), (0.6, -2.0))
ONE_SLOPE, ONE_SLOPE_SD = 0.8, 0.2
STEP_SD = (0.03, 0.1)
OTHERS_SLOPE = 0.6
# An expert's view of one quality colours the others: the mean of the other metrics, each signed by its correlation
# with this one, gets .3 beforehand; spreads of that, of single metrics, and log share.
HALO = 0.3
OTHERS_SD = ((0.1, 0.05, 0.0), (0.2, 0.2, 0.0), (0.3, 0.5, -1.0))
OTHERS_JUDGES = ((0.2, 0.12, 0.0), (0.3, 0.5, -2.0))  # slope, a judge's own weight, log share


@dataclass(frozen=True, slots=True, eq=False)
class Guess:
    """start (K,) coefficients before any anchor; `columns` that may move, and how far (roots over those columns)."""

    start: Floats
    columns: Ints
    spreads: tuple[Spread, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Rung:
    """One guess, or several that are averaged by their evidence."""

    name: str
    guesses: tuple[Guess, ...]

    @property
    def not_negative(self) -> bool:
        return self.name in ("weights", "one judge")


def learnt_rungs(design: Design) -> tuple[Rung, ...]:
    """The rungs that are regressions; "mean" and "published" are not."""
    return (
        _offset(design),
        _line(design),
        _weights(design),
        _one_judge(design),
        _constant(design),
        _steps(design),
        *((_others(design),) if design.sizes[2] else ()),
    )


def equal_start(design: Design, slope: float = 1.0) -> Floats:
    """Coefficients of centre + slope (mean of judges - centre)."""
    start = np.zeros(design.width)
    start[0] = design.centre
    start[design.blocks["judges"]] = slope / design.sizes[0]
    return start


def _root(*blocks: Floats) -> Floats:
    """Roots of independent blocks of columns, side by side."""
    root = np.zeros((sum(len(b) for b in blocks), sum(b.shape[1] for b in blocks)))
    row = column = 0
    for block in blocks:
        root[row : row + len(block), column : column + block.shape[1]] = block
        row, column = row + len(block), column + block.shape[1]
    return root


def _one(sd: float) -> Floats:
    return np.full((1, 1), sd)


def _judges(count: int, slope_sd: float, judge_sd: float | None) -> Floats:
    """All judges' weights together, and each on its own."""
    common = np.full((count, 1), slope_sd / count)
    return common if judge_sd is None else np.hstack([common, np.eye(count) * judge_sd / np.sqrt(count)])


def _columns(design: Design, *names: str) -> Ints:
    every = np.arange(design.width)
    return np.concatenate([every[design.blocks[n]] for n in names])


def _rung(name: str, design: Design, start: Floats, blocks: Sequence[str], spreads: list[Spread]) -> Rung:
    return Rung(name, (Guess(start, _columns(design, *blocks), tuple(spreads)),))


def _offset(design: Design) -> Rung:
    return _rung("offset", design, equal_start(design), ["offset"], [Spread(_one(b)) for b in BIAS])


def _constant(design: Design) -> Rung:
    return _rung("constant", design, equal_start(design, 0.0), ["offset"], [Spread(_one(sd)) for sd in (0.15, 0.4)])


def _line(design: Design) -> Rung:
    spreads = [Spread(_root(_one(b), _judges(design.sizes[0], s, None))) for b in BIAS for s in SLOPE_SD]
    return _rung("line", design, equal_start(design, SLOPE), ["offset", "judges"], spreads)


def _weights(design: Design) -> Rung:
    count = design.sizes[0]
    spreads = [
        Spread(_root(_one(b), _judges(count, slope, judge)), log_share)
        for b in BIAS
        for slope in SLOPE_SD
        for judge, log_share in JUDGE_SD
    ]
    return _rung("weights", design, equal_start(design, SLOPE), ["offset", "judges"], spreads)


def _one_judge(design: Design) -> Rung:
    guesses = []
    for j, place in enumerate(_columns(design, "judges")):
        start = np.zeros(design.width)
        start[0], start[place] = design.judges[j], ONE_SLOPE
        spreads = tuple(Spread(np.diag([b, ONE_SLOPE_SD])) for b in BIAS)
        guesses.append(Guess(start, np.array([0, place]), spreads))
    return Rung("one judge", tuple(guesses))


def _steps(design: Design) -> Rung:
    count, levels = design.sizes[0], len(design.thresholds)
    alike = np.kron(np.full((count, 1), 1.0 / count), np.eye(levels))
    spreads = [
        Spread(
            _root(_one(b), _judges(count, 0.2, 0.12), np.hstack([s * alike, s * np.eye(count * levels) / count**0.5]))
        )
        for b in BIAS
        for s in STEP_SD
    ]
    return _rung("steps", design, equal_start(design, SLOPE), ["offset", "judges", "steps"], spreads)


def _others(design: Design) -> Rung:
    count, _, metrics = design.sizes
    start = equal_start(design, OTHERS_SLOPE)
    start[design.blocks["others"]] = HALO * design.loadings / metrics
    signed, alike = design.loadings[:, None] / metrics, np.full((metrics, 1), 1.0 / metrics)
    spreads = [
        Spread(
            _root(
                _one(b),
                _judges(count, slope, judge),
                np.hstack([h * signed, o * alike, o * np.eye(metrics) / np.sqrt(metrics)]),
            ),
            rare + rarer,
        )
        for b in BIAS
        for slope, judge, rare in OTHERS_JUDGES
        for h, o, rarer in OTHERS_SD
    ]
    return _rung("others", design, start, ["offset", "judges", "others"], spreads)
