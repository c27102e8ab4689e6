"""What a slot is to say: figures worked by hand, and laws over drawn targets."""

from __future__ import annotations

import dataclasses
from collections import Counter

import pytest
from drawn_targets import drawn_target
from hypothesis import given
from hypothesis import strategies as st

from aipsy_judge.answer import NA, NO, YES
from aipsy_judge.errors import InputError
from aipsy_judge.rubric import load_rubric
from training.labels import LEAD, SlotTarget, rounded, slot_target, soft_shares
from training.target_rows import FlagTarget, MetricTarget, TargetRow

RUBRIC = load_rubric()
NUMBERS = [str(n) for n in range(6)]
ADVICE = RUBRIC.metric("advice_safety")  # 0 to 5, critical 3, N/A allowed
BASE = drawn_target(RUBRIC, 0, whole=True)
SET = FlagTarget(True, 0.8, "direct", {"none": 0.0, "indirect": 0.25, "direct": 0.75})


def item(
    name: str = "advice_safety",
    target: MetricTarget | None = None,
    flag: FlagTarget = FlagTarget(False, 0.1, "none", {"none": 1.0, "indirect": 0.0, "direct": 0.0}),  # noqa: B008
    item_id: str = "one",
) -> TargetRow:
    metrics = BASE.metrics if target is None else {**BASE.metrics, name: target}
    return dataclasses.replace(BASE, item_id=item_id, metrics=metrics, flags={"crisis_detected": flag})


def asked(name: str, labels: list[str], row: TargetRow, *, spread: float = 0.5, hard: bool = False) -> SlotTarget:
    ways = {label: (n,) for n, label in enumerate(labels)}
    return slot_target(name, ways, row, RUBRIC, spread=spread, hard=hard)


def scored(value: float, p_fail: float | None = None, p_na: float | None = 0.0) -> MetricTarget:
    return MetricTarget("scored", value, p_fail, p_na)


def test_a_value_on_a_step_has_the_normal_distributions_mass_in_the_middle() -> None:
    # sd 0.5: within half a point lies P(|z| < 1) = 0.6827, half to one and a half above P(1 < z < 3) = 0.1573
    shares = soft_shares(ADVICE, 3.0, None, 0.5)
    assert shares["3"] == pytest.approx(0.6827, abs=1e-4)
    assert shares["2"] == shares["4"] == pytest.approx(0.1573, abs=1e-4)
    # at an end what lies beyond counts there: P(z > -1) = 0.8413
    assert soft_shares(ADVICE, 5.0, None, 0.5)["5"] == pytest.approx(0.8413, abs=1e-4)


def test_the_mass_below_the_threshold_becomes_p_fail_and_keeps_its_form_on_either_side() -> None:
    plain, bent = soft_shares(ADVICE, 3.0, None, 0.5), soft_shares(ADVICE, 3.0, 0.4, 0.5)
    assert sum(bent[k] for k in "012") == pytest.approx(0.4)
    assert bent["4"] / bent["3"] == pytest.approx(plain["4"] / plain["3"])
    assert bent["1"] / bent["2"] == pytest.approx(plain["1"] / plain["2"])


def test_p_fail_far_from_the_value_lands_on_the_nearest_failing_step() -> None:
    shares = soft_shares(ADVICE, 5.0, 0.3, 0.2)
    assert shares["2"] == pytest.approx(0.3)
    assert shares["5"] == pytest.approx(0.7, abs=0.01)
    assert soft_shares(ADVICE, 0.0, 0.0, 0.2)["3"] == pytest.approx(1.0)


@given(
    st.sampled_from(RUBRIC.metrics),
    st.floats(0, 5),
    st.none() | st.floats(0, 1),
    st.sampled_from([0.0, 0.05, 0.5, 1.0, 4.0]),
)
def test_soft_shares_are_a_distribution_whose_failing_mass_is_p_fail(metric, value, p_fail, spread) -> None:  # type: ignore[no-untyped-def]
    shares = soft_shares(metric, value, p_fail, spread)
    assert list(shares) == NUMBERS
    assert min(shares.values()) >= 0
    assert sum(shares.values()) == pytest.approx(1.0)
    if p_fail is not None:
        assert sum(s for k, s in shares.items() if int(k) < metric.critical) == pytest.approx(p_fail)


@pytest.mark.parametrize(("value", "step"), [(2.5, 2), (2.51, 3), (2.49, 2), (0.5, 0), (4.5, 4), (5.0, 5), (-1.5, -2)])
def test_a_half_goes_towards_the_harsher_side(value: float, step: int) -> None:
    assert rounded(value) == step


def test_hard_labels_take_the_step_that_the_value_rounds_to() -> None:
    found = asked("advice_safety", [*NUMBERS, NA], item(target=scored(3.5, p_fail=0.9, p_na=0.4)), hard=True)
    assert found == SlotTarget("3", {"3": 1.0})
    assert asked("advice_safety", [*NUMBERS, NA], item(target=scored(3.5)), spread=0.0).shares == {"3": 1.0}


def test_the_share_of_na_is_its_votes_and_the_numbers_share_the_rest() -> None:
    found = asked("advice_safety", [*NUMBERS, NA], item(target=scored(4.0, p_na=0.2)))
    assert found.label == "4"
    assert found.shares[NA] == pytest.approx(0.2, abs=1e-3)
    assert found.shares["4"] == pytest.approx(0.8 * 0.6827, abs=1e-3)


def test_na_does_not_outvote_the_numbers_of_a_metric_that_is_scored() -> None:
    found = asked("advice_safety", [*NUMBERS, NA], item(target=scored(3.5, p_na=0.45)))
    assert found.label == "3"
    assert found.shares["3"] - found.shares[NA] == pytest.approx(LEAD)
    assert sum(found.shares.values()) == pytest.approx(1.0)


def test_the_label_leads_at_every_branching_of_its_tokens() -> None:
    # 9 has a token of its own; 10, 11 and 12 share one and would be followed together
    ways = {"9": (9,), "10": (1, 0), "11": (1, 1), "12": (1, 2)}
    odd = RUBRIC.model_copy(
        update={"metrics": [ADVICE.model_copy(update={"scale": ADVICE.scale.model_copy(update={"maximum": 12})})]}
    )
    found = slot_target("advice_safety", ways, item(target=scored(9.4)), odd, spread=0.9, hard=False)
    assert found.label == "9"
    assert found.shares["9"] - sum(found.shares[k] for k in ("10", "11", "12")) == pytest.approx(LEAD)


def test_a_metric_that_is_na_says_so_alone() -> None:
    found = asked("advice_safety", [*NUMBERS, NA], item(target=MetricTarget("na", None, None, 0.7)))
    assert found == SlotTarget(NA, {NA: 1.0})


def test_na_where_the_rubric_lets_the_metric_apply_always_is_an_error() -> None:
    with pytest.raises(InputError, match="apply always"):
        asked("empathy", NUMBERS, item("empathy", MetricTarget("na", None, None, 1.0)))


@pytest.mark.parametrize("value", [-0.1, 5.1, 9.0])
def test_a_value_off_the_scale_is_an_error_that_names_item_and_metric(value: float) -> None:
    with pytest.raises(InputError, match=r"one, advice_safety: the target .* off the scale 0 to 5"):
        asked("advice_safety", [*NUMBERS, NA], item(target=scored(value)))


@pytest.mark.parametrize("hard", [False, True])
def test_an_unscored_metric_trains_nothing_and_its_label_tells_nothing(hard: bool) -> None:
    target = MetricTarget("unscored", None, None, None)
    labels = [*NUMBERS, NA]
    found = [asked("advice_safety", labels, item(target=target, item_id=f"i{n}"), hard=hard) for n in range(700)]
    assert not any(f.shares for f in found)
    counts = Counter(f.label for f in found)
    # 700 even draws of 7: 100 each, standard deviation 9.3
    assert set(counts) == set(labels)
    assert max(abs(c - 100) for c in counts.values()) < 40
    assert found[3] == asked("advice_safety", labels, item(target=target, item_id="i3"), hard=hard)


def test_a_flag_has_its_probability_and_a_set_one_leads_at_even_votes() -> None:
    assert asked("crisis_detected", [NO, YES], item()).shares == pytest.approx({NO: 0.9, YES: 0.1})
    even = asked("crisis_detected", [NO, YES], item(flag=dataclasses.replace(SET, probability=0.5)))
    assert even.label == YES
    assert even.shares[YES] - even.shares[NO] == pytest.approx(LEAD)
    assert asked("crisis_detected", [NO, YES], item(), hard=True).shares == {NO: 1.0}


def test_one_slot_for_flag_and_severity_has_the_levels_shares() -> None:
    levels = ["none", "indirect", "direct"]
    found = asked("crisis_detected", levels, item(flag=SET))
    assert found.label == "direct"
    assert found.shares == pytest.approx({"none": 0.2, "indirect": 0.2, "direct": 0.6})
    unset = asked("crisis_detected", levels, item())
    assert unset.label == "none"
    assert unset.shares == pytest.approx({"none": 0.9, "indirect": 0.05, "direct": 0.05})


def test_a_level_that_nobody_names_has_no_share() -> None:
    sure = FlagTarget(True, 1.0, "indirect", {"none": 0.0, "indirect": 1.0, "direct": 0.0})
    assert asked("crisis_detected", ["none", "indirect", "direct"], item(flag=sure)).shares == {"indirect": 1.0}


def test_a_set_flag_is_never_read_as_unset_because_its_levels_share_the_votes() -> None:
    split = FlagTarget(True, 0.6, "direct", {"none": 0.0, "indirect": 0.45, "direct": 0.55})
    found = asked("crisis_detected", ["none", "indirect", "direct"], item(flag=split))
    assert found.label == "direct"
    assert max(found.shares, key=found.shares.__getitem__) == "direct"


def test_severity_is_trained_only_where_somebody_tells_it() -> None:
    legal = ["indirect", "direct"]
    assert asked("crisis_severity", legal, item(flag=SET)).shares == pytest.approx({"indirect": 0.25, "direct": 0.75})
    untold = asked("crisis_severity", legal, item(flag=FlagTarget(True, 0.9, None, None)))
    assert not untold.shares
    assert untold.label in legal


def test_a_metric_that_hangs_on_a_flag_follows_the_flag_not_its_own_target() -> None:
    target = scored(4.0)
    unset = asked("crisis_handling", [*NUMBERS, NA], item("crisis_handling", target))
    assert unset == SlotTarget(NA, {NA: 1.0})
    # asked without N/A, as contract compact does, there is nothing to train
    assert not asked("crisis_handling", NUMBERS, item("crisis_handling", target)).shares
    unread = item("crisis_handling", target, FlagTarget(None, None, None, None))
    assert not asked("crisis_handling", NUMBERS, unread).shares
    set_ = item("crisis_handling", target, SET)
    assert asked("crisis_handling", NUMBERS, set_).label == "4"


def test_a_slot_of_the_contracts_own_is_unknown() -> None:
    assert not asked("conversation_type", ["support", "venting"], item()).shares


@given(st.integers(0, 10**6), st.booleans())
def test_whatever_the_target_the_label_is_legal_and_leads(seed: int, hard: bool) -> None:
    row = drawn_target(RUBRIC, seed)
    for metric in RUBRIC.metrics:
        labels = [*NUMBERS, NA] if metric.may_be_na else NUMBERS
        found = asked(metric.name, labels, row, hard=hard)
        assert found.label in labels
        if found.shares:
            assert set(found.shares) <= set(labels)
            assert sum(found.shares.values()) == pytest.approx(1.0)
            assert all(s > 0 for s in found.shares.values())
            others = [s for k, s in found.shares.items() if k != found.label]
            assert found.shares[found.label] > max(others, default=0.0)
        else:
            assert row.metrics[metric.name].status == "unscored"
