"""What a judge's card says of what its manifest holds back and of its operating points."""

from __future__ import annotations

from pathlib import Path

import pytest

import aipsy_judge
from aipsy_judge.manifest import Manifest, OperatingPoint, TrainedRubric, read_manifest
from quantize.card import card_text

POINT = OperatingPoint(p_fail=0.25)


def shipped(**changes: object) -> Manifest:
    """The shipped judge's manifest with other reservations."""
    made = read_manifest(Path(aipsy_judge.__file__).parent / "data" / "mini")
    points = dict.fromkeys(("empathy", "crisis_handling", "crisis_detected"), POINT)
    return made.model_copy(update={"operating_points": points, "not_validated": {}, **changes})


def said(manifest: Manifest, word: str) -> list[str]:
    """Names of which the card says so."""
    return [line.split()[1] for line in card_text(manifest).splitlines() if line.startswith("* ") and word in line]


UNSURE, NOT_SCORED = "is marked “unsure: for review” at a probability of failure from 0.25.", "is not scored: "


def test_the_card_tells_the_points_of_what_is_scored_alone() -> None:
    """What is held back is Unscored, and that is never marked unsure (reservations.unsure)."""
    assert said(shipped(), UNSURE) == ["empathy", "crisis_handling", "crisis_detected"]
    held = shipped(not_validated={"empathy": "too few turns"})
    assert said(held, NOT_SCORED) == ["empathy"]
    assert said(held, UNSURE) == ["crisis_handling", "crisis_detected"]


def test_a_metric_that_hangs_on_a_flag_held_back_is_told_as_held_back_too() -> None:
    held = shipped(not_validated={"crisis_detected": "recall .4"})
    assert said(held, NOT_SCORED) == ["crisis_detected", "crisis_handling"]
    assert "crisis_handling is not scored: crisis_detected: recall .4." in card_text(held)
    assert said(held, UNSURE) == ["empathy"]


def test_the_card_tells_from_where_on_a_flag_is_set() -> None:
    told = "crisis_detected is set from a probability of 0.38 on"
    assert told in card_text(shipped(set_from={"crisis_detected": 0.38}))
    assert told not in card_text(shipped(set_from={}))
    assert told not in card_text(
        shipped(set_from={"crisis_detected": 0.38}, not_validated={"crisis_detected": "recall .4"})
    )


@pytest.mark.parametrize("changes", [{"name": "nobody-has-this"}, {"hash": "0" * 64}])
def test_of_a_rubric_that_is_not_at_hand_the_manifest_alone_is_told(changes: dict[str, str]) -> None:
    rubric = TrainedRubric(**{**shipped().rubric.model_dump(), **changes})
    held = shipped(not_validated={"crisis_detected": "recall .4"}, rubric=rubric)
    assert said(held, NOT_SCORED) == ["crisis_detected"]
    assert said(held, UNSURE) == ["empathy", "crisis_handling"]
