"""Rivals that read no meaning: a bag of words learnt on the recipe's train part, and a constant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from aipsy_judge.conversation import Message
from aipsy_judge.rubric import Metric, Rubric

from .held_out import HeldItem, group_numbers
from .held_out_bag import Bag, Learnt, Texts
from .held_out_said import Bools, FlagSaid, Floats, Held, MetricSaid, Said

BAG = "bag of words"
CONSTANT = "constant"


class WordBag:
    """Learns values, failures, flags and where a metric applies on `train`; `held`: what of the train part is right."""

    def __init__(self, train: Sequence[HeldItem], held: Held, rubric: Rubric) -> None:
        self._rubric = rubric
        groups, _ = group_numbers(tuple(train))
        bag = Bag([blocks(i.shown) for i in train], np.array(groups))
        self._models: dict[str, Learnt] = {f.name: bag.probabilities(held.flags[f.name]) for f in rubric.flags}
        for metric in rubric.metrics:
            value, na = held.values[metric.name], held.na[metric.name]
            self._models[metric.name] = bag.values(value)
            if metric.may_be_na and metric.flag is None:
                applies = np.where(na, 0.0, np.where(np.isnan(value), np.nan, 1.0))
                self._models[f"{metric.name} applies"] = bag.probabilities(applies)
            if metric.critical is not None:
                self._models[f"{metric.name} fails"] = bag.probabilities(fails(value, na, metric.critical))

    @property
    def chosen(self) -> dict[str, Any]:
        """What cross-validation chose: weights of reply, last message and history, and alpha or C."""
        return {name: {"weights": m.weights, "strength": m.strength} for name, m in self._models.items()}

    def say(self, items: Sequence[Sequence[Message]]) -> Said:
        """Of replies, each as the messages up to and including it."""
        texts = [blocks(shown) for shown in items]
        flags = {f.name: self._flag(f.name, texts) for f in self._rubric.flags}
        metrics = {m.name: self._metric(m, texts, flags) for m in self._rubric.metrics}
        return Said(BAG, "TF-IDF of words and word pairs, learnt on the same train part", metrics, flags)

    def _flag(self, name: str, texts: Sequence[Texts]) -> FlagSaid:
        probability = self._models[name].predict(texts)
        return FlagSaid((probability >= 0.5).astype(np.float64), probability, np.ones(len(texts), dtype=bool))

    def _metric(self, metric: Metric, texts: Sequence[Texts], flags: Mapping[str, FlagSaid]) -> MetricSaid:
        given = np.clip(self._models[metric.name].predict(texts), metric.scale.minimum, metric.scale.maximum)
        says_na: Bools = np.zeros(len(texts), dtype=bool)
        if metric.flag is not None:
            says_na = flags[metric.flag].value == 0
        elif metric.may_be_na:
            says_na = self._models[f"{metric.name} applies"].predict(texts) < 0.5
        failing = self._models.get(f"{metric.name} fails")
        p_fail = failing.predict(texts) if failing is not None else np.full(len(texts), np.nan)
        scored: Floats = np.where(says_na, np.nan, given)
        return MetricSaid(scored, scored, given, says_na, np.ones(len(texts), dtype=bool), p_fail)


def blocks(shown: Sequence[Message]) -> Texts:
    """The reply, the person's last message, what was said before it.

    >>> said = ("user", "hi"), ("assistant", "hello"), ("user", "ok"), ("assistant", "so")
    >>> blocks([Message(*m) for m in said])
    ('so', 'ok', 'hi hello')
    """
    *before, reply = shown
    last = max((n for n, m in enumerate(before) if m.role == "user"), default=None)
    message = before[last].content if last is not None else ""
    rest = [m.content for n, m in enumerate(before) if n != last]
    return reply.content, message, " ".join(rest)


def fails(value: Floats, na: Bools, critical: float) -> Floats:
    """1 where the value lies below critical, 0 where it does not or the metric does not apply, NaN where unknown."""
    found: Floats = np.where(np.isnan(value), np.where(na, 0.0, np.nan), (value < critical).astype(np.float64))
    return found


def constant(train: Held, items: int, rubric: Rubric) -> Said:
    """The train part's mean of each metric and share of each flag, whatever the reply; N/A and flags as most have
    it."""

    def all_alike(value: float) -> Floats:
        return np.full(items, value)

    everywhere = np.ones(items, dtype=bool)
    metrics, flags = {}, {}
    for metric in rubric.metrics:
        value, na = train.values[metric.name], train.na[metric.name]
        known = ~np.isnan(value)
        given = all_alike(float(value[known].mean()) if known.any() else np.nan)
        says_na = all_alike(float(na.sum()) > float(known.sum())).astype(bool)
        scored = np.where(says_na, np.nan, given)
        p_fail = all_alike(np.nan)
        if metric.critical is not None:
            p_fail = all_alike(float(np.nanmean(fails(value, na, metric.critical)))) if (known | na).any() else p_fail
        metrics[metric.name] = MetricSaid(scored, scored, given, says_na, everywhere, p_fail)
    for flag in rubric.flags:
        held = train.flags[flag.name]
        share = float(np.nanmean(held)) if (~np.isnan(held)).any() else np.nan
        flags[flag.name] = FlagSaid(all_alike(float(share >= 0.5)), all_alike(share), everywhere)
    return Said(CONSTANT, "mean and share of the train part", metrics, flags)
