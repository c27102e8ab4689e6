"""What a correction's file must hold beyond its shape."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from ..errors import InputError
from .record import Correction, MetricRecord

CLOSE = 1e-6


def check_correction(correction: Correction, where: str) -> None:
    """Raise InputError with every fault: a hand-edited or damaged file must not score anything."""
    faults = [f"  {name}: {fault}" for name, record in correction.metrics.items() for fault in _faults(name, record)]
    for name, record in correction.metrics.items():
        if strangers := set(record.judges) - set(correction.judges):
            faults.append(f"  {name}: {', '.join(sorted(strangers))} is not among the correction's judges")
    faults += [f"  {name}: votes do not sum to 1" for name, f in correction.flags.items() if not _shares(f.votes)]
    if faults:
        raise InputError("this correction contradicts itself:\n" + "\n".join(faults[:20]), where=where)


def _faults(name: str, record: MetricRecord) -> Iterator[str]:
    judges, others = set(record.judges), set(record.centres.other_scales)
    if record.metric != name:
        yield f"holds the record of {record.metric}"
    if not record.scale[0] < record.scale[1]:
        yield f"scale {record.scale} does not rise"
    lines = [("combined", record.combined), *((r.name, r.line) for r in record.rungs)]
    for label, line in lines:
        if set(line.judges) != judges or set(line.others) != others or (line.steps and set(line.steps) != judges):
            yield f"{label}: not the judges and metrics of the record"
        steps = [v for row in line.steps.values() for v in row]
        if not all(map(math.isfinite, [line.at_centre, *line.judges.values(), *line.others.values(), *steps])):
            yield f"{label}: a number is not finite"
        if any(len(row) != len(record.centres.thresholds) for row in line.steps.values()):
            yield f"{label}: not a step for every threshold"
    blend = {r.name: r.blend for r in record.rungs}
    if not _shares(blend):
        yield "the blend's weights are negative or do not sum to 1"
    if set(record.votes) != judges or not _shares(record.votes):
        yield "votes are negative, do not sum to 1, or are not the judges'"
    yield from _centre_faults(record, judges, others)
    if record.failure is not None and len(record.failure.coefficients) != (4 + len(others) if others else 3):
        yield "p_fail has not as many coefficients as it has columns"


def _centre_faults(record: MetricRecord, judges: set[str], others: set[str]) -> Iterator[str]:
    centres, size = record.centres, len(judges) + len(others)
    if set(centres.judges) != judges or set(centres.shares) != judges:
        yield "centres: not the judges of the record"
    if set(centres.others) != others or set(centres.other_loadings) != others:
        yield "centres: unlike other metrics"
    if any(len(row) != len(centres.thresholds) for row in centres.shares.values()):
        yield "centres: not a share for every threshold"
    square = len(centres.fill_covariance) == size and all(len(row) == size for row in centres.fill_covariance)
    if len(centres.fill_means) != size or not square:
        yield f"centres: the fill is not for {size} columns"
    elif np.linalg.eigvalsh(np.array(centres.fill_covariance))[0] <= 0:
        yield "centres: the fill's covariance is not one"


def _shares(weights: dict[str, float]) -> bool:
    return bool(weights) and min(weights.values()) >= 0 and abs(sum(weights.values()) - 1) < CLOSE
