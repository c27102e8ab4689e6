"""A temperature per slot, fitted on the validation part: dividing logits by it makes probabilities mean what they say.

It changes no choice, only how sure the judge is said to be.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aipsy_judge.verdict import Flag, Reading, Unscored, Verdict

from .judging import Exam, Judged
from .render_answer import Pen, write

FILE = "temperatures.json"
LEAST, MOST = 0.25, 4.0
FEWEST = 20  # items; with fewer the fit is of chance, and 1 is as good
LOW = 0.01  # the quantile of legal mass that the suggested floor rests on
_TINY = 1e-12


@dataclass(frozen=True, slots=True)
class Fitted:
    """temperature  LEAST to MOST; 1 where `n` is below FEWEST
    before, after   mean cross entropy with the soft targets, nats, at temperature 1 and as fitted; None where n is 0
    at_bound        the best lies at the end of what is allowed: the slot has hardly been learnt
    """

    temperature: float
    n: int
    before: float | None
    after: float | None
    at_bound: bool = False


def fit_temperature(said: NDArray[np.float64], wanted: NDArray[np.float64]) -> Fitted:
    """said, wanted: (I, L) probabilities over the slot's L labels, at temperature 1 and as the targets have them.

    A distribution at temperature T is its own to the power 1/T, made to sum 1. That is what dividing logits by T
    gives where an option is told apart by its first token, which holds for the shipped rubrics. The cross entropy is
    convex in 1/T.
    """
    from scipy.optimize import minimize_scalar

    if not len(said):
        return Fitted(1.0, 0, None, None)
    logs = np.log(np.maximum(said, _TINY))

    def loss(log_temperature: float) -> float:
        scaled = logs / math.exp(log_temperature)
        scaled -= np.logaddexp.reduce(scaled, axis=1, keepdims=True)
        return float(-(wanted * scaled).sum(axis=1).mean())

    before = loss(0.0)
    if len(said) < FEWEST:
        return Fitted(1.0, len(said), before, before)
    bounds = (math.log(LEAST), math.log(MOST))
    found = minimize_scalar(loss, bounds=bounds, method="bounded", options={"xatol": 1e-4})
    if loss(found.x) >= before:
        return Fitted(1.0, len(said), before, before)
    at_bound = bool(min(abs(found.x - b) for b in bounds) < 1e-2)
    return Fitted(round(math.exp(float(found.x)), 4), len(said), before, loss(found.x), at_bound)


def fit_all(judged: Sequence[Judged], exam: Exam, pen: Pen) -> dict[str, Any]:
    """What temperatures.json holds: a temperature per slot, how it was had, and a floor of legal mass."""
    pairs = slot_pairs(judged, pen)
    fitted = {name: fit_temperature(*stacked(rows)) for name, rows in pairs.items()}
    masses = [m for j in judged for m in legal_masses(j.verdict)]
    low = float(np.quantile(masses, LOW)) if masses else None
    return {
        "temperatures": {name: f.temperature for name, f in fitted.items()},
        "fits": {name: asdict(f) for name, f in fitted.items()},
        "units": len(judged),
        "legal_mass": {"quantile": LOW, "value": low, "readings": len(masses)},
        # Half of what hardly any validation reading fell below: what lies under it is unlike anything seen.
        "legal_mass_floor": None if low is None else round(low / 2, 4),
    }


@dataclass(frozen=True, slots=True)
class Pair:
    """What the judge said and what the target wants, probabilities over `labels`."""

    labels: tuple[str, ...]
    said: tuple[float, ...]
    wanted: tuple[float, ...]


def slot_pairs(judged: Iterable[Judged], pen: Pen) -> dict[str, list[Pair]]:
    """Slot -> a pair of every item on which both are known and the same labels were legal (after another flag other
    labels may be)."""
    found: dict[str, list[Pair]] = {}
    for one in judged:
        said = distributions(one.verdict)
        for form in pen.forms.values():
            for slot in write(pen, form, one.item).slots:
                shares, read = slot.wanted.shares, said.get(slot.name)
                if not shares or not read or set(read) != set(slot.ways):
                    continue
                labels = tuple(sorted(read))
                pair = Pair(labels, tuple(read[x] for x in labels), tuple(shares.get(x, 0.0) for x in labels))
                found.setdefault(slot.name, []).append(pair)
    return dict(sorted(found.items()))


def distributions(verdict: Verdict) -> dict[str, Mapping[str, float]]:
    """Slot -> probability per label, of all slots that were read."""
    found: dict[str, Mapping[str, float]] = {}
    for name, score in verdict.scores.items():
        reading = score.reading
        if reading is not None and reading.distribution:
            found[name] = reading.distribution
    for name, flag in verdict.flags.items():
        if flag.distribution:
            found[name] = flag.distribution
    return found


def legal_masses(verdict: Verdict) -> Iterable[float]:
    """Of every reading of a verdict."""
    read: list[Reading | Flag | None] = [s.reading for s in verdict.scores.values()]
    read += [f for f in verdict.flags.values() if not isinstance(f.unscored, Unscored)]
    for one in read:
        if one is not None and one.legal_mass is not None:
            yield one.legal_mass


def stacked(pairs: Sequence[Pair]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(I, L) each, said and wanted, of the pairs over that set of labels which most have; the others are left out."""
    ((labels, _),) = Counter(p.labels for p in pairs).most_common(1)
    kept = [p for p in pairs if p.labels == labels]
    return np.array([p.said for p in kept]), np.array([p.wanted for p in kept])
