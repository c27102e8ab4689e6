"""Rivals that read no meaning: a bag of words learnt on the recipe's train part, and a constant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from aipsy_judge.agreement.cases import below, known_cases
from aipsy_judge.agreement.library import stats_library
from aipsy_judge.conversation import Conversation, Message
from aipsy_judge.rubric import Metric, Rubric

from .held_out import HeldItem, Reply, group_numbers
from .held_out_bag import Bag, Kernels, Learnt, Texts
from .held_out_kept import Kept, key_of
from .held_out_said import Bools, FlagSaid, Floats, Held, MetricSaid, Said

BAG = "bag of words"
VERSION = 1  # of what is learnt and how: raise it when the same texts give other columns
ABOUT = "TF-IDF of words and word pairs, learnt on the train part"
CONSTANT = "constant"


class WordBag:
    """Learns values, failures, flags and where a metric applies on `train`; `held`: what of the train part is right."""

    def __init__(self, train: Sequence[HeldItem], held: Held, rubric: Rubric) -> None:
        self._rubric = rubric
        groups, _ = group_numbers(train)
        self._bag = bag = Bag([blocks(i.shown) for i in train], np.array(groups))
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
        words = self._bag.kernels([blocks(shown) for shown in items])
        flags = {f.name: self._flag(f.name, words) for f in self._rubric.flags}
        metrics = {m.name: self._metric(m, words, flags) for m in self._rubric.metrics}
        return Said(BAG, ABOUT, metrics, flags)

    def _flag(self, name: str, words: Kernels) -> FlagSaid:
        probability = self._models[name].predict(words)
        return _flag_of(probability)

    def _metric(self, metric: Metric, words: Kernels, flags: Mapping[str, FlagSaid]) -> MetricSaid:
        given = np.clip(self._models[metric.name].predict(words), metric.scale.minimum, metric.scale.maximum)
        says_na: Bools = np.zeros(len(given), dtype=bool)
        if metric.flag is not None:
            says_na = flags[metric.flag].value == 0
        elif metric.may_be_na:
            says_na = self._models[f"{metric.name} applies"].predict(words) < 0.5
        failing = self._models.get(f"{metric.name} fails")
        p_fail = failing.predict(words) if failing is not None else np.full(len(given), np.nan)
        scored: Floats = np.where(says_na, np.nan, given)
        return MetricSaid(scored, scored, given, says_na, np.ones(len(given), dtype=bool), p_fail)


def _flag_of(probability: Floats) -> FlagSaid:
    """Set from a half on."""
    value = np.where(np.isnan(probability), np.nan, (probability >= 0.5).astype(np.float64))
    return FlagSaid(value, probability, np.ones(len(probability), dtype=bool))


def bag_of_words(
    train: Sequence[HeldItem], held: Held, rubric: Rubric, items: Sequence[Reply], kept: Path | None
) -> tuple[Said, Mapping[str, Any]]:
    """What a WordBag says of the items, and what was chosen for it; taken from the journal `kept` if it was learnt from
    the same texts and targets there."""
    learnt = [[i.id, i.group, _text(i), asdict(i.target)] for i in train]  # groups make the folds
    library = stats_library("sklearn").__version__
    key = key_of(BAG, VERSION, library, rubric.hash, learnt, [_text(i) for i in items])
    with Kept(kept) as shelf:
        if key not in shelf.records:
            bag = WordBag(train, held, rubric)
            shelf.put(key, {"columns": _columns(bag.say([i.shown for i in items])), "chosen": bag.chosen})
        record = shelf.records[key]
    return _said(record["columns"]), record["chosen"]


def _text(item: Reply) -> str:
    return Conversation("", item.shown).content_hash


def _columns(said: Said) -> dict[str, Any]:
    metrics = {
        name: {"given": _plain(m.given), "na": m.na.tolist(), "p_fail": _plain(m.p_fail)}
        for name, m in said.metrics.items()
    }
    return {"metrics": metrics, "flags": {name: _plain(f.probability) for name, f in said.flags.items()}}


def _plain(values: Floats) -> list[float | None]:
    return [None if np.isnan(v) else float(v) for v in values]


def _column(told: Sequence[float | None]) -> Floats:
    return np.array([np.nan if v is None else v for v in told], dtype=np.float64)


def _said(columns: Mapping[str, Any]) -> Said:
    metrics = {}
    for name, told in columns["metrics"].items():
        given, na = _column(told["given"]), np.array(told["na"], dtype=bool)
        scored = np.where(na, np.nan, given)
        p_fail = _column(told["p_fail"])
        metrics[name] = MetricSaid(scored, scored, given, na, np.ones(len(na), dtype=bool), p_fail)
    flags = {}
    for name, told in columns["flags"].items():
        flags[name] = _flag_of(_column(told))
    return Said(BAG, ABOUT, metrics, flags)


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
    return known_cases(value, na, below(critical))


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
        flags[flag.name] = _flag_of(all_alike(share))
    return Said(CONSTANT, "mean and share of the train part", metrics, flags)
