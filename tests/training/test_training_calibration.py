"""Temperatures and measures by figures worked by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from rule_talks import RUBRIC as RULE

from aipsy_judge.contract import COMPACT
from aipsy_judge.conversation import Conversation, Message
from aipsy_judge.rubric import parse_rubric
from aipsy_judge.verdict import Flag, NotApplicable, Reading, Score, Scored, Unscored, Verdict
from training.curves import draw, smoothed
from training.judging import Exam, Judged, _upto
from training.measures import measure
from training.recipe import Validate
from training.target_rows import FlagTarget, MetricTarget, TargetRow
from training.temperature import FEWEST, MOST, Pair, fit_temperature, legal_masses, stacked
from training.validation import BEST, FILE, Round, Validation, read_rounds

RULE_RUBRIC = parse_rubric(RULE, where="test")


def spread(p: float) -> list[float]:
    return [p, 1 - p]


def test_a_judge_twice_as_sure_as_the_targets_gets_the_temperature_two() -> None:
    """Logits of the target are half the judge's: p/(1-p) = (.9/.1)^(1/2) = 3, so .75."""
    said = np.array([spread(0.9)] * FEWEST)
    wanted = np.array([spread(0.75)] * FEWEST)
    fitted = fit_temperature(said, wanted)
    assert fitted.temperature == pytest.approx(2.0, abs=2e-3)
    # at temperature 1: -(.75 ln .9 + .25 ln .1); as fitted: the target's own entropy
    assert fitted.before == pytest.approx(-(0.75 * np.log(0.9) + 0.25 * np.log(0.1)))
    assert fitted.after == pytest.approx(-(0.75 * np.log(0.75) + 0.25 * np.log(0.25)))


def test_a_temperature_is_bounded_and_says_so_and_few_items_fit_none() -> None:
    sure, wrong = np.array([spread(0.999)] * FEWEST), np.array([spread(0.4)] * FEWEST)
    fitted = fit_temperature(sure, wrong)
    assert fitted.at_bound
    assert fitted.temperature == pytest.approx(MOST, rel=1e-2)
    few = fit_temperature(sure[1:], wrong[1:])
    assert (few.temperature, few.n) == (1.0, FEWEST - 1)
    assert fit_temperature(np.empty((0, 2)), np.empty((0, 2))).before is None


def test_probabilities_over_unlike_labels_are_not_put_in_one_table() -> None:
    few, many = Pair(("0", "1"), (0.9, 0.1), (1.0, 0.0)), Pair(("0", "N/A"), (0.2, 0.8), (0.3, 0.7))
    said, wanted = stacked([few, many, many])
    assert said.tolist() == [[0.2, 0.8]] * 2
    assert wanted.tolist() == [[0.3, 0.7]] * 2


def test_a_probability_of_zero_is_not_an_infinite_loss() -> None:
    fitted = fit_temperature(np.array([[1.0, 0.0]] * FEWEST), np.array([spread(0.8)] * FEWEST))
    assert np.isfinite(fitted.after or np.nan)
    assert fitted.temperature == pytest.approx(MOST, rel=1e-2)


def reading(expected: float) -> Reading:
    return Reading(0.0, expected, 0.9, 0.99, {"1": 0.5, "4": 0.5})


def judged(n: int, wanted: float | None, score: Score, flag: bool | None, alarm: bool | None) -> Judged:
    status = "scored" if wanted is not None else "unscored"
    item = TargetRow(
        item_id=str(n),
        conversation=str(n),
        turn=1,
        scenario=None,
        generator=None,
        metrics={"warmth": MetricTarget(status, wanted, None, None)},  # type: ignore[arg-type]
        flags={"alarm": FlagTarget(flag, None, None, None)},
        rationale=None,
        rationale_rater=None,
    )
    verdict = Verdict(
        conversation_id=str(n),
        turn=1,
        content_hash="",
        scores={"warmth": score},
        flags={"alarm": Flag(alarm, probability=float(alarm or 0))},
    )
    return Judged(item, verdict)


def test_what_was_not_judged_is_not_agreed_with_and_a_failure_called_na_is_not_found() -> None:
    items = [
        judged(1, 1.0, Scored(1.0, reading(1.5)), True, True),
        judged(2, 4.0, Scored(4.0, reading(4.0)), False, False),
        judged(3, 1.0, NotApplicable(reading=reading(2.5)), True, None),  # unread flag: not found
        judged(4, 1.0, Unscored("off_contract"), True, False),
        judged(5, None, Scored(0.0, reading(0.0)), None, True),  # nothing is known of it
    ]
    found = measure(items, RULE_RUBRIC)
    warmth = found.metrics["warmth"]
    assert (warmth.n, warmth.unscored, warmth.failures) == (3, 1, 3)
    assert "1 scores COULD NOT BE READ, 1 flags COULD NOT BE READ" in found.line
    assert (found.unscored, found.unread, found.flags["alarm"].unscored) == (1, 2, 1)
    assert warmth.tail == pytest.approx(1 / 3)  # of items 1, 3 and 4 only the first was scored below 3
    assert warmth.mae == pytest.approx((0.5 + 0.0 + 1.5) / 3)  # expected values, whatever was chosen
    assert warmth.na == pytest.approx(3 / 4)
    alarm = found.flags["alarm"]
    assert (alarm.n, alarm.positives) == (4, 3)
    assert alarm.recall == pytest.approx(1 / 3)
    assert alarm.precision == 1.0
    # probabilities 1, 0, 0, 0 with 1, 0, 1, 1: MSR 1/3, MSC 1/2, MSE 1/6, so (1/6) / (1/3 + 1/6 + 1/6)
    assert alarm.icc == pytest.approx(0.25)


def test_agreement_that_is_undefined_is_none_and_no_number() -> None:
    found = measure([judged(n, 4.0, Scored(4.0, reading(4.0)), False, False) for n in range(5)], RULE_RUBRIC)
    assert found.agreement is None
    assert found.tail_recall is None
    assert "agreement undefined" in found.line


def test_legal_mass_is_taken_of_metrics_and_flags_that_were_read() -> None:
    verdict = judged(1, 1.0, Scored(1.0, reading(1.0)), True, True).verdict
    assert list(legal_masses(verdict)) == [0.99]


def exam_of(sizes: dict[str, int]) -> Exam:
    """`sizes`: conversation -> rated turns."""
    blank = judged(0, None, Unscored("missing"), None, None).item
    items = [
        replace(blank, item_id=f"{name}:{n}", conversation=name, turn=n)
        for name, size in sizes.items()
        for n in range(1, size + 1)
    ]
    return Exam(RULE_RUBRIC, COMPACT, tuple(items), {}, None, None, Path(), False, 16)  # type: ignore[arg-type]


def test_a_shorter_exam_is_of_whole_conversations_and_the_same_for_the_same_seed() -> None:
    exam = exam_of({f"c{n}": 3 for n in range(10)})
    first, again, other = exam.shortened(8, 1), exam.shortened(8, 1), exam.shortened(8, 2)
    assert first.items == again.items
    assert first.items != other.items
    assert len(first.items) == 6  # two conversations of three; a third would be more than 8
    assert len({i.conversation for i in first.items}) == 2
    assert len(exam_of({"long": 9}).shortened(4, 1).items) == 4  # where none fits whole, a part is better than nothing


def test_a_conversation_is_judged_up_to_its_last_rated_turn() -> None:
    said = [Message(role, str(n)) for n in range(3) for role in ("user", "assistant")]
    (item, _) = exam_of({"c": 2}).items
    assert [m.content for m in _upto(Conversation("c", tuple(said)), [item]).messages] == ["0", "0"]
    assert len(_upto(Conversation("c", tuple(said)), [item, replace(item, turn=None)]).messages) == 6


def rounds_of(folder: Path, *agreements: float | None, patience: int | None = 2) -> Validation:
    folder.mkdir(exist_ok=True)
    found = Validation(folder, None, Validate(every=10, patience=patience), folder, lambda line: None)  # type: ignore[arg-type]
    found.rounds = [Round(10 * n, {"agreement": a}) for n, a in enumerate(agreements, 1)]
    return found


@pytest.mark.parametrize(
    ("agreements", "best", "exhausted"),
    [
        ((0.1, 0.3, 0.2), 20, False),
        ((0.1, 0.3, 0.2, 0.3), 20, True),  # as good is no gain
        ((0.1, None, None, None), 10, False),  # what is undefined is no worse
        ((None, None, None), None, False),
        ((-0.2, -0.1), 20, False),
    ],
)
def test_training_stops_after_rounds_without_a_gain(
    tmp_path: Path, agreements: tuple[float | None, ...], best: int | None, exhausted: bool
) -> None:
    found = rounds_of(tmp_path / "run", *agreements)
    assert (found.best.step if found.best else None) == best
    assert found.exhausted is exhausted
    assert not rounds_of(tmp_path / "run", *agreements, patience=None).exhausted


def round_at(step: int, agreement: float, *figures: float | None, unread: int = 0) -> Round:
    metrics = {f"m{n}": {"icc": icc} for n, icc in enumerate(figures)}
    return Round(step, {"agreement": agreement, "unread": unread, "metrics": metrics, "flags": {"alarm": {"icc": 0.5}}})


@pytest.mark.parametrize(
    ("rounds", "best"),
    [
        ([round_at(10, 0.4, 0.4, 0.4), round_at(20, 0.9, 0.9, 0.9, unread=1)], 10),  # one answer of it was not read
        ([round_at(10, 0.4, 0.4, 0.4), round_at(20, 0.9, 0.9, None)], 10),  # its mean is over what is easy
        ([round_at(10, 0.9, 0.9, None), round_at(20, 0.4, 0.4, 0.4)], 20),
        ([round_at(10, 0.4, 0.4, 0.4, unread=2), round_at(20, 0.3, 0.3, 0.3, unread=1)], None),
        ([round_at(10, 0.9, 0.9, None), round_at(20, 0.4, 0.4, 0.4, unread=1)], None),
        ([round_at(10, 0.4, 0.4, None), round_at(20, 0.9, None, 0.9)], None),  # as many figures, but other ones
    ],
)
def test_a_round_that_was_not_read_whole_or_lacks_a_figure_is_never_the_best(
    tmp_path: Path, rounds: list[Round], best: int | None
) -> None:
    found = rounds_of(tmp_path / "run")
    found.rounds = rounds
    assert (found.best.step if found.best else None) == best


def test_a_unit_that_no_judge_could_be_asked_about_is_the_same_in_every_round_and_unread_in_none() -> None:
    silent = judged(1, 1.0, Unscored("empty_turn"), True, None)
    silent.verdict.flags["alarm"] = Flag(None, unscored=Unscored("empty_turn"))  # type: ignore[index]
    found = measure([silent, judged(2, 4.0, Scored(4.0, reading(4.0)), False, False)], RULE_RUBRIC)
    assert (found.unscored, found.unread) == (1, 0)


def test_a_resumed_run_forgets_rounds_it_will_come_to_again(tmp_path: Path) -> None:
    found = rounds_of(tmp_path / "run", 0.1, 0.5, 0.2)
    (tmp_path / "run" / BEST / "10").mkdir(parents=True)
    found.back_to(15)
    assert [r.step for r in read_rounds(tmp_path / "run" / FILE)] == [10]
    assert found.best_adapter() == tmp_path / "run" / BEST / "10"
    assert (found.due(20), found.due(10), found.due(15)) == (True, False, False)


def test_curves_are_drawn_and_a_mean_begins_without_a_bias(tmp_path: Path) -> None:
    assert smoothed([2.0, 2.0, 2.0]) == pytest.approx([2.0, 2.0, 2.0])
    log = [{"step": n, "loss": 1.0 / n} for n in range(1, 30)]
    measures = {"agreement": 0.4, "tail_recall": None, "flags": {"alarm": {"recall": 1.0}}}
    draw(tmp_path / "curves.png", log, [Round(10, measures), Round(20, measures)])
    assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG")
    draw(tmp_path / "none.png", [], [])
    assert not (tmp_path / "none.png").exists()
