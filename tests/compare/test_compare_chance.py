"""How often two runs of the same make are called worse: by chance alone, no more often than is said."""

import numpy as np
import pytest
from run_builder import run, verdict
from scipy.stats import binom
from scipy.stats import t as student

from aipsy_judge import student_t
from aipsy_judge.agreement.holm import holm
from aipsy_judge.agreement.resample import interval, replicates
from aipsy_judge.compare import LEVEL, compare, worse
from aipsy_judge.paired_difference import BOOTSTRAP, Difference, p_fallen

SCORED = ("empathy", "tone_consistency", "advice_safety", "boundary_safety", "affective_complexity")
TURNS = 4


def twice_the_same(conversations, random, held_back=()):
    """Two runs of one assistant: each talk has its level, each run of it another one, each turn its own; a tenth of
    all turns give advice. About one turn in ten fails. No crises: a missed one is a reason by itself."""
    applies = random.random((conversations, TURNS, 5)) < (1, 1, 0.1, 0.6, 1)
    talk = random.normal(0, 0.6, (conversations, 1, 5))
    runs = []
    for _ in range(2):
        shift = random.normal(0, 0.5, (conversations, 1, 5)) + random.normal(0, 0.4, (conversations, 1, 1))
        noise = random.normal(0, 0.8, (conversations, TURNS, 5))
        found = np.clip(np.rint(3.8 + talk + shift + noise), 0, 5)
        runs.append(
            run([_verdict(c, t, found, applies, held_back) for c in range(conversations) for t in range(TURNS)])
        )
    return runs


def _verdict(c, t, found, applies, held_back):
    scores = {m: float(found[c, t, i]) if applies[c, t, i] else None for i, m in enumerate(SCORED)}
    return verdict(f"c{c}", t + 1, scores | dict.fromkeys(held_back, "not_validated"))


def called_worse(conversations, times, seed, held_back=()):
    """Share of comparisons of two equal runs that are called worse."""
    random = np.random.default_rng([seed, conversations])
    return np.mean([bool(worse(compare(*twice_the_same(conversations, random, held_back)))) for _ in range(times)])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("conversations", "times", "held_back"),
    [(5, 120, ()), (8, 80, ()), (20, 40, ()), (8, 60, ("tone_consistency", "boundary_safety"))],
)
def test_two_equal_runs_are_called_worse_in_about_five_of_a_hundred(conversations, times, held_back):
    """More than the bound would come in one of 1,000 such tests if 5 of 100 were called worse in truth."""
    assert called_worse(conversations, times, 1, held_back) * times <= binom.ppf(0.999, times, LEVEL)


# --- what it rests on


@pytest.mark.parametrize("freedom", [1, 2, 3, 4, 7, 30, 999, 20_000])
def test_student_t_is_scipys(freedom):
    for t in (-40, -4.2, -1, -0.01, 0, 0.3, 2.5, 9):
        assert student_t.cdf(t, freedom) == pytest.approx(student.cdf(t, freedom), rel=1e-9, abs=1e-12)
    for share in (0.001, 0.025, 0.5, 0.95, 0.9995):
        assert student_t.quantile(share, freedom) == pytest.approx(student.ppf(share, freedom), rel=1e-8, abs=1e-9)


def test_a_quantile_of_no_distribution_is_refused():
    for share, freedom in ((0, 4), (1, 4), (0.5, 0)):
        with pytest.raises(ValueError, match="no quantile"):
            student_t.quantile(share, freedom)


@pytest.mark.parametrize("conversations", [5, 9, 40])
def test_the_interval_is_that_of_agreement(conversations):
    found = compare(*twice_the_same(conversations, np.random.default_rng(conversations)))
    d = found.differences[1]
    runs = twice_the_same(conversations, np.random.default_rng(conversations))
    values = [[[v.scores["empathy"].value for v in r.verdicts] for r in runs]]
    gaps = np.subtract(values[0][1], values[0][0]).reshape(conversations, TURNS).sum(axis=1)
    sums = np.stack([gaps, np.full(conversations, float(TURNS))], axis=1)
    expected = interval(replicates(sums, lambda s: s[:, 0] / s[:, 1], BOOTSTRAP), conversations, BOOTSTRAP)
    assert (d.low, d.high) == pytest.approx((expected.low, expected.high))
    assert d.se == pytest.approx(expected.se * (conversations / (conversations - 1)) ** 0.5)


def test_holm_multiplies_the_smallest_by_all_and_never_falls():
    # 0.01 x 3, 0.03 x 2, and 0.04 x 1, which may not lie under the one before it.
    assert holm([0.04, 0.01, 0.03]) == pytest.approx([0.06, 0.03, 0.06])
    assert holm([]) == []
    assert holm([0.9, 0.8]) == [1.0, 1.0]


def shown(difference, se, conversations=10):
    return Difference("empathy", 4, 4, difference, None, None, se, None, 50, conversations, (), {})


def test_a_fall_is_tested_beyond_the_margin_and_to_one_side():
    # t = -1 / 0.4 = -2.5 with 9 degrees of freedom: 0.017; beyond a margin of 0.5, t = -1.25: 0.121.
    assert p_fallen(shown(-1, 0.4)) == pytest.approx(student.cdf(-2.5, 9))
    assert p_fallen(shown(-1, 0.4), 0.5) == pytest.approx(student.cdf(-1.25, 9))
    assert p_fallen(shown(-1, 0.4), rising=True) == pytest.approx(1 - student.cdf(-2.5, 9))


def test_the_same_fall_everywhere_is_tested_by_its_sign():
    assert p_fallen(shown(-1, None, 8)) == 0.5**8
    assert p_fallen(shown(-1, None, 8), 1.0) == 1
    assert p_fallen(shown(-1, None, 8), rising=True) == 1


def test_where_nothing_differs_or_conversations_are_few_nothing_is_tested():
    assert p_fallen(shown(0, None)) is None
    assert p_fallen(shown(-1, 0.1, 4)) is None
    assert p_fallen(shown(None, None, 0)) is None


def test_a_fall_that_alone_would_be_shown_is_not_among_eight():
    # One of eight quantities at p 0.01 is no surprise (1 - 0.99^8 = 0.08).
    assert min(holm([0.01] + [0.5] * 7)) > LEVEL >= min(holm([0.006] + [0.5] * 7))
