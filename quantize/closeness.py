"""How near two models' next-token distributions are, over answers that one of them wrote."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aipsy_judge.backends.protocol import Feed, Logits

from .trunk import Trunk

KEPT = 512  # tokens of a distribution that are kept; with 262,144 of them a whole one takes a megabyte a token


@dataclass(frozen=True, slots=True)
class Kept:
    """A distribution by its most probable tokens.

    tokens, log_p  shape (kept,), the most probable first; rest: probability of all others together
    """

    tokens: NDArray[np.intp]
    log_p: NDArray[np.float64]
    rest: float


@dataclass(frozen=True, slots=True)
class Near:
    """Over `tokens` places: mean and 99th percentile of the KL divergence in nats, share with the same first token;
    None where there was none."""

    tokens: int
    mean: float | None
    high: float | None
    top1: float | None


def keep(logits: Logits, kept: int = KEPT) -> Kept:
    """The distribution of `logits`, its `kept` most probable tokens one by one and the others as one."""
    log_p = _log_softmax(logits)
    first = np.argpartition(-log_p, kept)[:kept] if kept < len(log_p) else np.arange(len(log_p))
    tokens = first[np.argsort(-log_p[first], kind="stable")]
    return Kept(tokens, log_p[tokens], max(0.0, 1.0 - float(np.exp(log_p[tokens]).sum())))


def divergence(p: Kept, logits: Logits) -> float:
    """KL(p || q) in nats, q given by its logits; 0 or more. Tokens that were not kept count as one, so this is a lower
    bound, too low by no more than what those few can differ among themselves."""
    log_q = _log_softmax(logits)[p.tokens]
    inside = float((np.exp(p.log_p) * (p.log_p - log_q)).sum())
    rest_q = max(1.0 - float(np.exp(log_q).sum()), 1e-30)
    outside = p.rest * float(np.log(p.rest / rest_q)) if p.rest > 1e-12 else 0.0
    return max(0.0, inside + outside)


def follow(trunk: Trunk, lead: Sequence[int], answer: Sequence[int]) -> list[Logits]:
    """Logits before every token of `answer`, the answer being fed as it stands behind `lead` (a prompt and its cue); as
    many rows as it has tokens."""
    first = trunk.branch(1, lead)
    start = first.start + len(first.tokens)
    feeds = [first, *(Feed(1, start + n, [token], want_logits=True) for n, token in enumerate(answer[:-1]))]
    rows = trunk.evaluate(feeds)
    trunk.drop(1)
    return rows


def place(p: Kept, logits: Logits) -> tuple[float, bool]:
    """The divergence at one place, and whether the most probable token is the same."""
    return divergence(p, logits), int(logits.argmax()) == int(p.tokens[0])


def near(places: Sequence[tuple[float, bool]]) -> Near:
    """The figures over all places."""
    if not places:
        return Near(0, None, None, None)
    values = np.array([kl for kl, _ in places])
    same = float(np.mean([alike for _, alike in places]))
    return Near(len(places), float(values.mean()), float(np.quantile(values, 0.99)), same)


def _log_softmax(logits: Logits) -> NDArray[Any]:
    values = logits.astype(np.float64)
    values -= values.max()
    normalised: NDArray[np.float64] = values - np.log(np.exp(values).sum())
    return normalised
