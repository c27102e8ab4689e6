"""Panels drawn with known faults, built from the published figures, and panels without any.

The planted panel has 20 scenarios x 10 turns, two scenarios of crisis, three generators that are the judges too:

  failures   17 % of items; 69 % of them in advice or boundary alone
  honest     sees 9 in 10 failures, noise of a point either way, no bias
  strict     sees 97 in 100 failures, half a point strict on empathy
  lenient    sees 1 in 10 failures; +1.89 on crisis handling; +0.99 on its own replies

No score is cut off at an end of the scale, so what is planted is what holds in the population.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from aipsy_judge.ratings import NA, SCORED, UNSCORED, Labels, Ratings, ratings_from_rows

METRICS = ("empathy", "tone_consistency", "crisis_handling", "advice_safety", "boundary_safety", "affective_complexity")
EMPATHY, TONE, CRISIS, ADVICE, BOUNDARY, AFFECT = range(6)
JUDGES = ("honest", "strict", "lenient")
FAILURES, ADVICE_OR_BOUNDARY = 0.17, 0.69


@dataclass(frozen=True)
class Drawn:
    """truth (I, 6) whole scores, NaN for N/A; judged (I, 3, 6); what each item is."""

    truth: np.ndarray
    judged: np.ndarray
    generator: np.ndarray
    crisis: np.ndarray
    turn: np.ndarray
    conversation: np.ndarray
    scenario: np.ndarray


def _either(random: np.random.Generator, chance: float, shape: Any) -> np.ndarray:
    return (random.random(shape) < chance).astype(float)


def draw_planted(repeats: int, seed: int, *, clustered: bool = False) -> Drawn:
    """20 scenarios x 3 generators x `repeats` conversations of 10 turns. `clustered`: failures come in bad talks."""
    random = np.random.default_rng(seed)
    scenario, generator, repeat, turn = (
        a.ravel() for a in np.meshgrid(range(20), range(3), range(repeats), range(1, 11), indexing="ij")
    )
    n = len(turn)
    conversation = (scenario * 3 + generator) * repeats + repeat
    crisis = scenario < 2
    truth = 3 + _either(random, 0.5, (n, 6))
    truth[:, CRISIS] = 3
    truth[:, ADVICE] = np.where(generator == 2, 3, truth[:, ADVICE])
    truth[generator == 2] = np.minimum(truth[generator == 2], 3)  # room above for the lenient judge's preference
    failing = _failing(random, n, conversation, clustered)
    fails = np.zeros((n, 6), dtype=bool)
    _mark(random, fails, failing, crisis)
    low = _either(random, 0.5, (n, 6)) + np.array([0, 0, 1, 1, 0, 0])
    truth = np.where(fails, low, truth)
    na = random.random((n, 6)) < np.array([0, 0, 0, 0.5, 0.4, 0.2])
    na[:, TONE], na[:, CRISIS] = turn == 1, ~crisis
    truth = np.where(na & ~fails, np.nan, truth)
    judged = np.stack(
        [_honest(random, truth, fails), _strict(random, truth, fails), _lenient(random, truth, fails, generator)], 1
    )
    return Drawn(truth, judged, generator, crisis, turn, conversation, scenario)


def _failing(random: np.random.Generator, n: int, conversation: np.ndarray, clustered: bool) -> np.ndarray:
    chance = np.full(n, FAILURES)
    if clustered:  # a quarter of the talks hold nearly all failures
        bad = random.random(conversation.max() + 1) < 0.25
        chance = np.where(bad[conversation], 0.62, 0.02)
    return random.random(n) < chance


def _mark(random: np.random.Generator, fails: np.ndarray, failing: np.ndarray, crisis: np.ndarray) -> None:
    """Which metrics of a failing item fail: advice or boundary alone, else one of the others."""
    common = failing & (random.random(len(failing)) < ADVICE_OR_BOUNDARY)
    advice = random.random(len(failing)) < 0.5
    fails[common & advice, ADVICE] = fails[common & ~advice, BOUNDARY] = True
    tail = np.flatnonzero(failing & ~common)
    which = random.choice([EMPATHY, AFFECT, CRISIS], len(tail))
    which = np.where(~crisis[tail] & (which == CRISIS), EMPATHY, which)
    fails[tail, which] = True


def _honest(random: np.random.Generator, truth: np.ndarray, fails: np.ndarray) -> np.ndarray:
    noise = random.choice([-1.0, 0.0, 1.0], truth.shape, p=[0.1, 0.8, 0.1])
    noise[:, [CRISIS, ADVICE]] = 0
    unseen = fails & (random.random(truth.shape) < 0.1)
    return np.where(fails, np.where(unseen, truth + 2, truth), truth + noise)


def _strict(random: np.random.Generator, truth: np.ndarray, fails: np.ndarray) -> np.ndarray:
    shift = np.zeros_like(truth)
    shift[:, EMPATHY] = -_either(random, 0.5, len(truth))
    unseen = fails & (random.random(truth.shape) < 0.03)
    return np.where(fails, np.where(unseen, truth + 2, truth), truth + shift)


def _lenient(random: np.random.Generator, truth: np.ndarray, fails: np.ndarray, generator: np.ndarray) -> np.ndarray:
    own = np.where(generator == 2, _own_shift(random, truth), 0.0)[:, None]
    seen = random.random(truth.shape) < 0.11  # of crises fewer: there it is the shift that decides
    # A failure it does not see gets a passing score, with room above for its preference.
    passed = np.where(np.arange(6) == ADVICE, 3.0, truth + 2)
    scores = np.where(fails, np.where(seen, truth, passed + own), truth + own)
    scores[:, CRISIS] = truth[:, CRISIS] + np.where(random.random(len(truth)) < 0.89, 2, 1)
    return scores


def _own_shift(random: np.random.Generator, truth: np.ndarray) -> np.ndarray:
    """Whole points that lift the composite by 0.99 in the mean; a failure that is seen is not lifted. On a crisis
    there is no room above crisis handling, so the other metrics are lifted for it."""
    weight = np.where(np.isnan(truth), 0, np.array([0.20, 0.10, 0.30, 0.15, 0.15, 0.10]))
    wanted = 0.995 * weight.sum(axis=1) / (weight.sum(axis=1) - weight[:, CRISIS])
    return np.minimum(np.floor(wanted) + (random.random(len(truth)) < wanted % 1), 2)


def table(drawn: Drawn, *, blocked: float = 0.0, every: int = 1, seed: int = 0) -> Ratings:
    """The ratings. `blocked`: the share of crisis items on which the lenient judge is refused; `every`: the expert
    rated each such conversation only."""
    n = len(drawn.turn)
    raters = ("expert", *JUDGES)
    refused = np.zeros(n, dtype=bool)
    order = np.random.default_rng(seed).permutation(np.flatnonzero(drawn.crisis))
    refused[order[: int(blocked * len(order))]] = True
    cube = np.concatenate([drawn.truth[:, None], drawn.judged], axis=1)
    flags = np.broadcast_to(drawn.crisis[:, None, None].astype(float), (n, 4, 1))
    cube = np.concatenate([cube, flags], axis=2)
    status = np.where(np.isnan(cube), NA, SCORED).astype(np.int8)
    status[refused, 3] = UNSCORED
    item, rater, metric = (a.ravel() for a in np.indices(cube.shape))
    keep = (rater > 0) | (drawn.conversation[item] % every == 0)
    score = np.where(status == SCORED, cube, np.nan).ravel()
    names = tuple(f"c{c}:t{t:02d}" for c, t in zip(drawn.conversation, drawn.turn, strict=True))
    by_judge = Labels(JUDGES, drawn.generator.astype(np.int32))
    return Ratings(
        item=Labels(names, _codes(item[keep])),
        rater=Labels(raters, _codes(rater[keep])),
        metric=Labels((*METRICS, "crisis_detected"), _codes(metric[keep])),
        score=score[keep],
        status=status.ravel()[keep],
        kinds={r: "expert" if r == "expert" else "judge" for r in raters},
        scales={**dict.fromkeys(METRICS, (0.0, 5.0)), "crisis_detected": (0.0, 1.0)},
        conversation=Labels(tuple(f"c{c}" for c in range(drawn.conversation.max() + 1)), _codes(drawn.conversation)),
        turn=_codes(drawn.turn),
        inclusion=np.full(n, np.nan),
        scenario=Labels(tuple(f"s{s}" for s in range(20)), _codes(drawn.scenario)),
        generator=by_judge,
        generator_family=by_judge,
        run=Labels((), np.full(int(keep.sum()), -1, dtype=np.int32)),
    )


def _codes(numbers: np.ndarray) -> np.ndarray:
    return numbers.astype(np.int32)


def null_panel(seed: int, conversations: int = 60, turns: int = 5) -> Ratings:
    """An expert and four judges who measure alike: clustered, crowded at the top, some ratings missing at random."""
    random = np.random.default_rng(seed)
    names = ("expert", "gpt-a", "claude-a", "gemini-a", "qwen-a")
    rows = []
    for c in range(conversations):
        mood, generator = random.normal(0, 0.7), names[1 + c % 4]
        for t in range(1, turns + 1):
            level = 4.1 + mood + random.normal(0, 0.6)
            crisis = random.random() < 0.3
            for rater in names:
                item = {
                    "item_id": f"c{c}:t{t}",
                    "conversation": f"c{c}",
                    "generator": generator,
                    "rater": rater,
                    "rater_kind": "expert" if rater == "expert" else "judge",
                }
                lost = rater != "expert" and random.random() < 0.05
                for metric in ("m1", "m2", "m3"):
                    score = float(np.clip(np.rint(level + random.normal(0, 0.8)), 0, 5))
                    cell = {"score": None if lost else score, "status": "unscored" if lost else "scored"}
                    rows.append({**item, "metric": metric, "scale_min": 0, "scale_max": 5, **cell})
                flag = {"score": None if lost else int(crisis), "status": "unscored" if lost else "scored"}
                rows.append({**item, "metric": "crisis", "scale_min": 0, "scale_max": 1, **flag})
    return ratings_from_rows(rows)
