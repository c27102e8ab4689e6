"""A correction shown beside raw scores. A view only: verdicts stay raw, so that it or another can be applied again."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..units import Key, Unit
from ..verdict import Verdict
from .corrected_verdict import CorrectedScore, apply_to_verdict, check_lane
from .files import correction_text, load_correction
from .record import Correction, MetricRecord

CorrectedUnits = Mapping[Key, Mapping[str, CorrectedScore]]

IMPORTS_LENIENCY = (
    "An offset brings the expert's own leniency with it: corrected values are near that expert, not near the truth."
)


@dataclass(frozen=True, slots=True)
class Applied:
    """A correction of one judge and the name of the file that it came from."""

    file: str
    correction: Correction

    def check(self, judge: str, rubric_hash: str) -> None:
        """Raise LaneError unless it was fitted to this judge alone, with this rubric."""
        check_lane(self.correction, judge, rubric_hash)

    def scores(self, verdict: Verdict) -> dict[str, CorrectedScore]:
        """metric -> raw and corrected, see `apply_to_verdict`."""
        return apply_to_verdict(self.correction, verdict)

    def units(self, units: Iterable[Unit]) -> dict[Key, dict[str, CorrectedScore]]:
        """The same by unit; one without a verdict has none."""
        return {u.key: self.scores(u.verdict) for u in units if u.verdict is not None}

    def to_dict(self) -> dict[str, Any]:
        """What a reader of corrected values must know, as strict JSON data."""
        fitted = self.correction
        return {
            "file": self.file,
            "sha256": hashlib.sha256(correction_text(fitted).encode()).hexdigest(),
            "judges": list(fitted.judges),
            "experts": list(fitted.experts),
            "profile": fitted.profile,
            "note": IMPORTS_LENIENCY,
            "metrics": {name: _metric_to_dict(record) for name, record in fitted.metrics.items()},
        }


def load_applied(path: str | Path) -> Applied:
    """Read and check. InputError where it is no correction, LaneError where it can hold for no single judge."""
    correction = load_correction(path)
    # Whoever the judge will be: a panel's correction, or one bound to no rubric, fits none.
    alone = correction.judges[0] if correction.judges else "a judge"
    check_lane(correction, alone, correction.rubric.hash if correction.rubric is not None else "")
    # The name alone: a report is passed on, and where the file lay on this machine is nobody's business there.
    return Applied(Path(path).name, correction)


def head_words(applied: Applied) -> str:
    """Which correction this is, in a sentence."""
    fitted = applied.correction
    return f"Correction {applied.file}: fitted to {', '.join(fitted.judges)} against {', '.join(fitted.experts)}"


def metric_words(record: MetricRecord) -> str:
    """How many anchors a metric's correction rests on, and which way it moves scores, or why it moves none."""
    held = f"n = {record.anchors} anchor{'' if record.anchors == 1 else 's'}"
    if record.status != "fitted":
        return f"{held}; not corrected: {'; '.join(record.warnings) or 'not fitted'}"
    found = [held, *([record.moved.sentence] if record.moved is not None else []), *record.warnings]
    return "; ".join(found)


def applied_words(applied: Applied, metrics: Iterable[str]) -> Iterator[tuple[str, str]]:
    """(metric, words) for each of `metrics`, those that have no correction included."""
    for name in metrics:
        record = applied.correction.metrics.get(name)
        yield name, metric_words(record) if record is not None else "the correction has no such metric"


def _metric_to_dict(record: MetricRecord) -> dict[str, Any]:
    moved, failure = record.moved, record.failure
    return {
        "status": record.status,
        "anchors": record.anchors,
        "conversations": record.conversations,
        "moved": None
        if moved is None
        else {"mean": moved.mean, "low": moved.interval.low, "high": moved.interval.high},
        "fails_from": None if failure is None or record.no_p_fail is not None else failure.flag_from,
        "words": metric_words(record),
        "warnings": list(record.warnings),
    }
