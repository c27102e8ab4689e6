"""Figures of a whole run. Every one stands beside its n; what has no value takes no part and is counted.

All are computed over what the scorer gave, not over what a reducer of the task makes of it: the epochs of a sample
are averaged first, over those that have a value, so n counts samples.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Mapping
from statistics import fmean, stdev

from inspect_ai.scorer import Metric, SampleScore, Value, metric

from .score_value import STATES

Figures = dict[str, str | int | float | bool | None]


@metric(scores="unreduced")
def means() -> Metric:
    """For the composite and every metric: mean over the samples that have a value, in points of the scale; NAME_n,
    how many; NAME_stderr = sd / sqrt(n), left out below two samples. A name that no sample has is left out."""

    def computed(scores: list[SampleScore]) -> Value:
        figures: Figures = {}
        for name, values in _by_name(scores, flags=False).items():
            figures[name] = fmean(values)
            figures[f"{name}_n"] = len(values)
            if len(values) > 1:
                figures[f"{name}_stderr"] = stdev(values) / math.sqrt(len(values))
        return figures

    return computed


@metric(scores="unreduced")
def rates() -> Metric:
    """For failure and every flag: NAME_rate, the share of samples with it among those of which it is known (epochs
    averaged first), and NAME_rate_n, how many those are."""

    def computed(scores: list[SampleScore]) -> Value:
        figures: Figures = {}
        for name, values in _by_name(scores, flags=True).items():
            figures[f"{name}_rate"] = fmean(values)
            figures[f"{name}_rate_n"] = len(values)
        return figures

    return computed


@metric(scores="unreduced")
def coverage() -> Metric:
    """Turns (or conversations, as the rubric's unit is) that were judged, and of every metric how many of them are
    scored, not applicable, unscored."""

    def computed(scores: list[SampleScore]) -> Value:
        figures: Figures = {"judged": 0}
        for score in scores:
            told = score.score.metadata or {}
            figures["judged"] = int(figures["judged"] or 0) + len(told.get("turns", ()))
            for name, counts in told.get("counts", {}).items():
                for state in STATES:
                    key = f"{name}_{state}"
                    figures[key] = int(figures.get(key) or 0) + counts[state]
        return figures

    return computed


def _by_name(scores: list[SampleScore], *, flags: bool) -> Mapping[str, list[float]]:
    """By name, one number a sample that has any: the mean of its epochs. Names in the order of the first score."""
    found: dict[str, dict[Hashable, list[float]]] = defaultdict(lambda: defaultdict(list))
    for place, score in enumerate(scores):
        value = score.score.value
        if not isinstance(value, Mapping):
            continue
        sample = score.sample_id if score.sample_id is not None else (place,)
        for name, number in value.items():
            if isinstance(number, bool) is flags and isinstance(number, bool | int | float):
                found[name][sample].append(float(number))
    return {name: [fmean(epochs) for epochs in samples.values()] for name, samples in found.items()}
