"""Paired differences: the judge against a rival on the very same items, and what was not shown of it.

The judge's value counts where it scored; the rival's there is its value given that the metric applies, whatever it
says of that, so that N/A lets no rival off an item. Probabilities of failure are those of all items: N/A has one too.
Where a rival tells nothing all the same (it could not be scored; or no value, for a flag that it did not set leaves
none to read), neither side counts, and `let_off` says how often. Both are resampled by the same draws of groups.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from aipsy_judge.agreement.estimate import Interval
from aipsy_judge.agreement.icc import pair_icc
from aipsy_judge.agreement.pair_statistic import PairStatistic, cells
from aipsy_judge.agreement.pairs import Pairs
from aipsy_judge.agreement.resample import Bootstrap, interval
from aipsy_judge.rubric import Rubric

from .held_out_figures import COMPOSITE, Ground, risk_auc, whole, whole_of
from .held_out_said import Floats, Held, Said
from .held_out_words import fails

ICC, AUC = "icc", "auc"


@dataclass(frozen=True, slots=True)
class Difference:
    """mine - theirs of one figure on `n` items of `groups` groups; None with a `reason` where it is undefined. Of the
    `known` items that the reference tells, so many the judge `told`; of these the rival was `let_off` so many."""

    metric: str
    figure: str
    rival: str
    mine: float | None
    theirs: float | None
    difference: float | None
    low: float | None
    high: float | None
    n: int
    groups: int
    reason: str | None
    told: int
    known: int
    let_off: int

    @property
    def won(self) -> bool:
        """The whole interval lies above 0."""
        return self.low is not None and self.low > 0

    @property
    def chosen(self) -> bool:
        """The judge told fewer than half of the items: it may have chosen those that it does well on."""
        return 2 * self.told < self.known

    def to_dict(self) -> dict[str, Any]:
        return asdict(self) | {"won": self.won}


def differences(judge: Said, rival: Said, held: Held, rubric: Rubric, ground: Ground) -> list[Difference]:
    """ICC(A,1) of every metric, of the composite and of the flags' probability; AUC of failure and of the flags."""
    found = []
    for metric in rubric.metrics:
        a, b, truth = judge.metrics[metric.name], rival.metrics[metric.name], held.values[metric.name]
        name = metric.name
        found.append(_difference(name, ICC, rival.name, pair_icc("A,1"), a.expected, b.given, truth, held, ground))
        if metric.critical is not None:
            failing = fails(truth, held.na[name], metric.critical)
            found.append(_risk(name, rival.name, a.p_fail, b.p_fail, failing, held, ground))
    mine, theirs = whole_of(judge, "expected", rubric).value, whole_of(rival, "expected", rubric).value
    truth = whole(rubric, held.values, held.na).value
    found.append(_difference(COMPOSITE, ICC, rival.name, pair_icc("A,1"), mine, theirs, truth, held, ground))
    for flag in rubric.flags:
        p, q, set_ = judge.flags[flag.name].probability, rival.flags[flag.name].probability, held.flags[flag.name]
        found.append(_difference(flag.name, ICC, rival.name, pair_icc("A,1"), p, q, set_, held, ground))
        found.append(_risk(flag.name, rival.name, p, q, set_, held, ground))
    return found


def _risk(name: str, rival: str, mine: Floats, theirs: Floats, case: Floats, held: Held, ground: Ground) -> Difference:
    return _difference(name, AUC, rival, risk_auc(), 1 - mine, 1 - theirs, 1 - case, held, ground)


def _difference(
    metric: str,
    figure: str,
    rival: str,
    statistic: PairStatistic,
    mine: Floats,
    theirs: Floats,
    truth: Floats,
    held: Held,
    ground: Ground,
) -> Difference:
    both = ~np.isnan(mine) & ~np.isnan(theirs)
    a = ground.pairs(np.where(both, mine, np.nan), truth, held.weights)
    b = ground.pairs(np.where(both, theirs, np.nan), truth, held.weights)
    name = (metric, figure, rival)
    alone = ground.pairs(mine, truth, held.weights)
    seen = (len(alone), len(alone) + alone.dropped, len(alone) - len(a))
    if not len(a):
        return Difference(*name, None, None, None, None, None, 0, 0, "no item that both and the reference tell", *seen)
    values, reasons = [], []
    for pairs in (a, b):
        reason = statistic.why_not(pairs)
        reasons.append(reason)
        values.append(None if reason is not None else _value(pairs, statistic))
    reason = next((r for r in reasons if r is not None), None)
    if reason is None and None in values:
        reason = "its denominator is 0"
    if values[0] is None or values[1] is None:
        return Difference(*name, values[0], values[1], None, None, None, len(a), a.occupied, reason, *seen)
    spread = _interval(a, b, statistic, ground.bootstrap)
    low, high = (spread.low, spread.high) if spread is not None else (None, None)
    why = spread.reason if spread is not None else None
    return Difference(*name, values[0], values[1], values[0] - values[1], low, high, len(a), a.occupied, why, *seen)


def _value(pairs: Pairs, statistic: PairStatistic) -> float | None:
    table = cells(pairs)
    with np.errstate(divide="ignore", invalid="ignore"):
        value = float(statistic.kernel(table, table.counts())[0])
    return value if np.isfinite(value) else None


def _interval(a: Pairs, b: Pairs, statistic: PairStatistic, bootstrap: Bootstrap) -> Interval | None:
    """Both have the same groups, so that both get the same draws (resample.draws)."""
    if not bootstrap.resamples:
        return None
    found = []
    for pairs in (a, b):
        table = cells(pairs)
        with np.errstate(divide="ignore", invalid="ignore"):
            found.append(np.concatenate([statistic.kernel(table, c) for c in table.resampled(bootstrap)]))
    if statistic.case_groups is None:
        return interval(found[0] - found[1], a.occupied, bootstrap)
    return interval(found[0] - found[1], statistic.case_groups(a), bootstrap, of_cases=True)


def not_validated(found: Iterable[Difference], metrics: Iterable[str], part: str) -> dict[str, str]:
    """Metrics on which the judge was not shown to be better than the rival, or scored fewer than half of the items that
    the target scores, with the reason: a manifest's `not_validated`.
    Without any difference nothing was shown of any metric."""
    by_metric: Mapping[str, Difference] = {d.metric: d for d in found if d.figure == ICC}
    if not by_metric:
        return dict.fromkeys(metrics, "no train part, so there is no bag of words to be held against")
    return {m: _sentence(by_metric[m], part) for m in metrics if by_metric[m].chosen or not by_metric[m].won}


def _sentence(d: Difference, part: str) -> str:
    if d.chosen:
        return (
            f"scored only {d.told} of {d.known} replies of the {part} part that the target scores: with fewer than "
            f"half nothing is shown against a {d.rival}"
        )
    where = f"on {d.n} replies of the {part} part ({d.groups} conversations)"
    if d.difference is None or d.mine is None or d.theirs is None:
        return f"not shown to be better than a {d.rival} {where}: {d.reason}"
    spread = f"[{d.low:+.2f}, {d.high:+.2f}]" if d.low is not None and d.high is not None else f"({d.reason})"
    return (
        f"not shown to be better than a {d.rival} {where}: ICC(A,1) {d.mine:.2f} against {d.theirs:.2f}, "
        f"difference {d.difference:+.2f} {spread}"
    )
