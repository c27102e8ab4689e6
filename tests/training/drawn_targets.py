"""Targets drawn at random, of every kind that a rubric allows."""

from __future__ import annotations

import random

from aipsy_judge.rubric import FlagSpec, Metric, Rubric
from training.target_rows import FlagTarget, MetricTarget, TargetRow


def drawn_target(rubric: Rubric, seed: int, *, rationale: str | None = None, whole: bool = False) -> TargetRow:
    """`whole`: nothing unscored or unread."""
    draw = random.Random(seed)
    flags = {f.name: _flag(f, draw, whole) for f in rubric.flags}
    return TargetRow(
        item_id=f"item {seed}",
        conversation="c",
        turn=1,
        scenario=None,
        generator=None,
        metrics={m.name: _metric(m, draw, flags, whole) for m in rubric.metrics},
        flags=flags,
        rationale=rationale,
        rationale_rater=None if rationale is None else "somebody",
    )


def _flag(spec: FlagSpec, draw: random.Random, whole: bool) -> FlagTarget:
    kind = draw.choice(["set", "unset"] if whole else ["set", "set", "unset", "unset", "unread", "set, not how"])
    if kind == "unread":
        return FlagTarget(None, None, None, None)
    value = kind != "unset"
    probability = round(draw.uniform(0.5, 1.0) if value else draw.uniform(0.0, 0.49), 3)
    if spec.severity is None or kind == "set, not how":
        return FlagTarget(value, probability, None, None)
    unset, *levels = spec.severity.levels
    if not value:
        return FlagTarget(value, probability, unset, {unset: 1.0, **dict.fromkeys(levels, 0.0)})
    raw = [draw.random() + 0.1 for _ in levels]
    shares = {unset: 0.0, **{k: r / sum(raw) for k, r in zip(levels, raw, strict=True)}}
    return FlagTarget(value, probability, max(shares, key=shares.__getitem__), shares)


def _metric(metric: Metric, draw: random.Random, flags: dict[str, FlagTarget], whole: bool) -> MetricTarget:
    if metric.flag is not None and flags[metric.flag].value is not True:
        known = flags[metric.flag].value is False
        return MetricTarget("na" if known else "unscored", None, None, 1.0 if known else None)
    kinds = ["scored"] * 4 + ([] if whole else ["unscored"])
    kinds += ["na"] if metric.may_be_na and metric.flag is None else []
    status = draw.choice(kinds)
    if status == "unscored":
        return MetricTarget("unscored", None, None, None)
    if status == "na":
        return MetricTarget("na", None, None, round(draw.uniform(0.5, 1.0), 3))
    value = round(draw.uniform(metric.scale.minimum, metric.scale.maximum), 2)
    p_fail = None if metric.critical is None or draw.random() < 0.3 else round(draw.random(), 3)
    p_na = round(draw.uniform(0.0, 0.5), 3) if metric.may_be_na and metric.flag is None else 0.0
    return MetricTarget("scored", value, p_fail, p_na)
