"""A flag that is set from a probability on: what changes with it, and that nothing else does."""

from __future__ import annotations

from dataclasses import replace

import pytest
from toy_model import ToyModel

from aipsy_judge.contract import COMPACT, FULL
from aipsy_judge.conversation import Conversation, Message
from aipsy_judge.engine.choice import SlotReading
from aipsy_judge.errors import ManifestError
from aipsy_judge.local_judge import LocalJudge
from aipsy_judge.readings import read_flags
from aipsy_judge.rubric import load_rubric
from aipsy_judge.set_from import decided
from aipsy_judge.verdict import NotApplicable, Scored
from aipsy_judge.weights import Weights

RUBRIC = load_rubric()
FLAG = "crisis_detected"
TALK = Conversation("c", tuple(Message(role, f"{role} {n}") for n in range(6) for role in ("user", "assistant")))


@pytest.fixture
def weights(tmp_path, monkeypatch):
    monkeypatch.setenv("AIPSY_JUDGE_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "toy.gguf"
    path.write_bytes(b"toy")
    return Weights(name="toy", model=path)


def judged(weights, contract=COMPACT, **changes):
    with LocalJudge(ToyModel(), replace(weights, **changes), RUBRIC, contract) as judge:
        return judge.score(TALK, rationale="never"), judge.settings


def flag(readings, **set_from):
    return read_flags(RUBRIC, decided(RUBRIC, readings, set_from), 0.05)[FLAG]


def test_a_crisis_that_is_spread_over_levels_is_set_at_the_most_probable_of_them():
    told = {"none": 0.4, "indirect": 0.25, "direct": 0.35}
    readings = {FLAG: SlotReading("none", distribution=told, legal_mass=0.9)}
    assert flag(readings).value is False
    found = flag(readings, crisis_detected=0.6)
    assert (found.value, found.severity) == (True, "direct")
    assert (found.probability, found.distribution, found.legal_mass) == (pytest.approx(0.6), told, 0.9)
    assert flag(readings, crisis_detected=0.61).value is False


def test_above_a_half_it_takes_more_than_the_most_probable_answer():
    readings = {FLAG: SlotReading("direct", distribution={"none": 0.3, "indirect": 0.1, "direct": 0.6}, legal_mass=0.9)}
    assert flag(readings, crisis_detected=0.8).value is False


def test_what_could_not_be_read_is_not_decided_either():
    readings = {FLAG: SlotReading("none", distribution={"none": 0.1, "indirect": 0.1, "direct": 0.8}, legal_mass=0.01)}
    assert flag(readings, crisis_detected=0.2).value is None


def test_a_judge_scores_what_hangs_on_the_flag_and_tells_what_it_said(weights):
    plain, _ = judged(weights)
    by_risk = sorted(v.flags[FLAG].probability for v in plain)
    least = (by_risk[0] + by_risk[-1]) / 2  # some lie above, some below
    found, settings = judged(weights, set_from={FLAG: least})
    assert settings["set_from"] == {FLAG: least}
    assert {v.flags[FLAG].value for v in found} == {True, False}
    for before, after in zip(plain, found, strict=True):
        is_set = before.flags[FLAG].probability >= least
        assert after.flags[FLAG].value is is_set
        assert (after.flags[FLAG].severity != "none") is is_set
        assert after.flags[FLAG].probability == before.flags[FLAG].probability
        assert isinstance(after.scores["crisis_handling"], Scored if is_set else NotApplicable)
        others = [n for n in RUBRIC.metric_names if n != "crisis_handling"]
        assert [after.scores[n] for n in others] == [before.scores[n] for n in others]
        # the stored answer says what the verdict says
        assert f"{FLAG}:{after.flags[FLAG].severity}" in after.raw


@pytest.mark.parametrize(
    ("contract", "names", "said"),
    [(COMPACT, {"empathy": 0.5}, "no flag of the rubric"), (FULL, {FLAG: 0.5}, "its answer says more")],
    ids=["a metric", "one object"],
)
def test_what_cannot_be_decided_so_is_refused(weights, contract, names, said):
    with pytest.raises(ManifestError, match=said):
        judged(weights, contract, set_from=names)
