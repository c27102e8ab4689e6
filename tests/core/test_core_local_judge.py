"""What must not become a number, and what must not be judged twice, where a talk or a model is out of the ordinary."""

from __future__ import annotations

import numpy as np
import pytest
from toy_model import ToyModel

from aipsy_judge.contract import COMPACT, FULL
from aipsy_judge.conversation import Conversation, Message
from aipsy_judge.errors import BackendError, CapacityError
from aipsy_judge.local_judge import LocalJudge
from aipsy_judge.rubric import load_rubric, parse_rubric
from aipsy_judge.subjects import subjects
from aipsy_judge.verdict import Scored, Unscored
from aipsy_judge.weights import Weights

RUBRIC = load_rubric()
CONTEXT = 5600  # the rubric, an answer, and a few messages of 100 words


@pytest.fixture
def weights(tmp_path, monkeypatch):
    monkeypatch.setenv("AIPSY_JUDGE_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "toy.gguf"
    path.write_bytes(b"toy")
    return Weights(name="toy", model=path)


class Broken(ToyModel):
    """Gives one logit that is no number, from the given evaluation on."""

    def __init__(self, bad: float, after: int) -> None:
        super().__init__()
        self._bad, self._after = bad, after

    def evaluate(self, feeds):
        rows = super().evaluate(feeds)
        self._after -= 1
        if self._after < 0:
            for row in rows:
                row[0] = self._bad
        return rows


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("after", [0, 3, 9, 40])
def test_a_model_that_gives_no_numbers_is_an_error_never_a_score(weights, bad, after):
    """Of NaN the first option would win every slot; 40 evaluations in, the rationale is being written."""
    talk = Conversation("c", (Message("user", "hello"), Message("assistant", "hi")))
    with (
        LocalJudge(Broken(bad, after), weights, RUBRIC, FULL) as judge,
        pytest.raises(BackendError, match="gave no numbers"),
    ):
        judge.score(talk, rationale="always")


def test_who_is_not_waited_for_any_more_is_given_up_between_two_prompts(weights):
    """The prompts of a long talk take long before anything is evaluated."""
    talk = Conversation("c", tuple(Message(r, "the judge") for r in ("user", "assistant") * 30))
    with LocalJudge(ToyModel(), weights, RUBRIC, FULL) as judge:
        whole, encoded = judge._prompts, []
        judge._prompts = lambda talk, subject, room: encoded.append(subject) or whole(talk, subject, room)

        def give_up_after_three():
            if len(encoded) == 3:
                raise KeyboardInterrupt

        judge.watch(give_up_after_three)
        with pytest.raises(KeyboardInterrupt):
            judge.score(talk, rationale="never")
    assert len(encoded) == 3


@pytest.mark.parametrize("call", [0, 29, 30, 150], ids=lambda n: f"call-{n}")
def test_who_is_not_waited_for_any_more_is_given_up_while_the_plan_is_made(weights, call):
    """Of 30 turns with 7 questions each, first the options are tokenised (30 calls), then they become a tree (210)."""
    talk = Conversation("c", tuple(Message(r, f"{r} {n}") for n in range(30) for r in ("user", "assistant")))
    model = ToyModel()
    with LocalJudge(model, weights, RUBRIC, COMPACT) as judge:
        left = [30 + call]  # a call a prompt comes before

        def give_up() -> None:
            if not left[0]:
                raise KeyboardInterrupt
            left[0] -= 1

        judge.watch(give_up)
        with pytest.raises(KeyboardInterrupt):
            judge.score(talk, rationale="never")
        assert model.work.tokens == 0
        judge.watch(lambda: None)
        assert len(judge.score(talk, rationale="never")) == 30


def test_a_long_first_message_is_refused_not_windowed_into_an_empty_talk(weights):
    talk = Conversation(
        "c", (Message("assistant", "the judge " * 400), Message("user", "?"), Message("assistant", "x"))
    )
    with LocalJudge(ToyModel(context_tokens=CONTEXT), weights, RUBRIC, FULL, window=True) as judge:
        first, second = judge.score(talk, rationale="never")
    assert {s.reason for s in first.scores.values() if isinstance(s, Unscored)} == {"context_overflow"}
    assert not any(isinstance(s, Scored) for s in first.scores.values())
    assert second.notes[0].startswith("windowed:")


@pytest.mark.parametrize("contract", [FULL, COMPACT])
def test_turns_that_a_window_makes_alike_get_the_same_answer_each(weights, contract):
    talk = Conversation("c", tuple(Message(r, "the judge " * 60) for r in ("user", "assistant") * 30))
    context = CONTEXT if contract is FULL else 600
    with LocalJudge(ToyModel(context_tokens=context), weights, RUBRIC, contract, window=True) as judge:
        assert judge.forecast(talk) is not None
        verdicts = judge.score(talk, rationale="never")
    assert [v.turn for v in verdicts] == list(range(1, 31))
    assert verdicts[-1].scores == verdicts[-2].scores
    assert verdicts[-1].content_hash != verdicts[-2].content_hash
    assert verdicts[-1].notes != verdicts[-2].notes


def test_a_cache_that_fills_up_midway_leaves_finished_verdicts_as_they_are(weights):
    """A fault of the plan: what was final before it must not come back a second time as unscored."""

    class Filling(ToyModel):
        full = False

        def evaluate(self, feeds):
            if self.full:
                raise CapacityError("the cache is full")
            return super().evaluate(feeds)

    talk = Conversation("c", tuple(Message(r, f"the judge {i}" * 4) for i in range(8) for r in ("user", "assistant")))
    with LocalJudge(ToyModel(), weights, RUBRIC, FULL) as wide:
        cells = int(wide.forecast(talk).cells * 0.9)
    model, seen = Filling(), []

    def note(verdict):
        seen.append(verdict.turn)
        model.full = True

    with LocalJudge(model, weights, RUBRIC, FULL, memory_gb=(cells + 0.5) * model.cell_bytes / 2**30) as judge:
        verdicts = judge.score(talk, rationale="never", on_verdict=note)
    assert sorted(seen) == list(range(1, 9))
    lost = [all(isinstance(s, Unscored) for s in v.scores.values()) for v in verdicts]
    assert not lost[0]
    assert lost[-1]


def many_metrics(unit: str) -> str:
    rows = [
        f"  - {{name: quality_{i}, title: Q{i}, question: How good, scale: {{minimum: 1, maximum: 10}},\n"
        f"     applies: {'always' if i % 2 else 'sometimes'}, {'' if i % 2 else 'applies_when: it matters, '}"
        f"anchors: {{1: bad, 10: good}}}}"
        for i in range(19)
    ]
    return f"name: many\nversion: '1'\nunit: {unit}\nintroduction: Rate.\nmetrics:\n" + "\n".join(rows) + "\n"


@pytest.mark.parametrize("contract", [FULL, COMPACT])
def test_nineteen_metrics_of_one_to_ten_over_whole_conversations(weights, contract):
    rubric = parse_rubric(many_metrics("conversation"), where="here")
    talk = Conversation("c", tuple(Message(r, f"{r} {i}") for i in range(3) for r in ("user", "assistant")))
    values, seen = set(), []
    for seed in range(5):
        with LocalJudge(ToyModel(seed), weights, rubric, contract) as judge:
            (verdict,) = judge.score(talk, rationale="never", on_verdict=seen.append)
        assert verdict.turn is None
        assert verdict.content_hash == talk.content_hash
        assert list(verdict.scores) == list(rubric.metric_names)
        for metric in rubric.metrics:
            score = verdict.scores[metric.name]
            assert isinstance(score, Scored) or metric.may_be_na
            if isinstance(score, Scored):
                values.add(score.value)
                assert 1 <= score.value <= 10
                assert 1 <= score.reading.expected <= 10
                assert set(score.reading.distribution) - {"N/A"} == set(map(str, range(1, 11)))
                assert abs(sum(score.reading.distribution.values()) - 1) < 1e-9
    assert len(seen) == 5
    assert {1.0, 10.0} <= values  # "1" is the beginning of "10": both can be chosen


def test_a_conversation_without_an_assistant_has_no_subject_and_a_silent_one_is_empty():
    rubric = parse_rubric(many_metrics("conversation"), where="here")
    assert subjects(Conversation("c", (Message("user", "hello"),)), rubric) == []
    silent = Conversation("c", (Message("user", "hello"), Message("assistant", " "), Message("user", "?")))
    (subject,) = subjects(silent, rubric)
    assert (subject.turn, subject.upto, subject.empty) == (None, 2, True)
    (turn,) = subjects(silent, RUBRIC)
    assert (turn.turn, turn.upto, turn.empty) == (1, 1, True)
