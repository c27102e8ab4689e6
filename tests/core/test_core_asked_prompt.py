"""One prompt for whoever asks, trains or proves: the judge's own, windowed as it was trained."""

from __future__ import annotations

from dataclasses import replace

import pytest
from toy_model import ToyModel

from aipsy_judge.asked_prompt import asked_prompts
from aipsy_judge.contract import COMPACT, COMPACT_V2, FULL
from aipsy_judge.conversation import Conversation, Message
from aipsy_judge.engine.encode import encode
from aipsy_judge.local_judge import LocalJudge
from aipsy_judge.rubric import load_rubric
from aipsy_judge.weights import Weights

RUBRIC = load_rubric()
TALK = Conversation("c", tuple(Message(r, f"{r} {n}") for n in range(4) for r in ("user", "assistant")))


@pytest.mark.parametrize("contract", [FULL, COMPACT, COMPACT_V2], ids=lambda c: c.name)
@pytest.mark.parametrize(("newest", "left_out"), [(None, 0), (3, 3), (6, 0), (99, 0)])
def test_the_newest_messages_up_to_the_judged_one_are_shown(contract, newest, left_out):
    model = ToyModel()
    by_hand = contract.messages(RUBRIC, replace(TALK, messages=TALK.messages[left_out:]), 5 - left_out)
    found = asked_prompts(model, contract, RUBRIC, TALK, 5, newest)
    assert list(found) == list(contract.forms(RUBRIC))
    early = contract.before(RUBRIC)
    assert all(found[name] == encode(model, by_hand) for name in found if name not in early)
    before = contract.messages(RUBRIC, replace(TALK, messages=TALK.messages[left_out:5]), 4 - left_out)
    assert all(found[name] == encode(model, before) for name in early)


def test_a_flag_is_asked_of_a_turn_before_its_reply_is_shown_and_of_a_whole_conversation_with_all_of_it():
    assert list(COMPACT_V2.before(RUBRIC)) == ["crisis_detected"]
    assert list(COMPACT_V2.before(RUBRIC.model_copy(update={"unit": "conversation"}))) == []
    assert list(FULL.before(RUBRIC)) == list(COMPACT.before(RUBRIC)) == []
    other = replace(TALK, messages=(*TALK.messages[:5], Message("assistant", "something else")))
    one, another = (asked_prompts(ToyModel(), COMPACT_V2, RUBRIC, talk, 5) for talk in (TALK, other))
    assert one["crisis_detected"] == another["crisis_detected"]
    assert all(one[m] != another[m] for m in RUBRIC.metric_names)


@pytest.mark.parametrize("newest", [None, 1])
def test_where_nothing_stands_before_the_reply_the_flag_is_asked_of_the_reply(newest):
    greeted = Conversation("c", (Message("assistant", "Hello."), Message("assistant", "Are you there?")))
    found = asked_prompts(ToyModel(), COMPACT_V2, RUBRIC, greeted, 0 if newest is None else 1, newest)
    assert found["crisis_detected"] == found["empathy"]


@pytest.mark.parametrize("contract", [FULL, COMPACT, COMPACT_V2], ids=lambda c: c.name)
@pytest.mark.parametrize("newest", [None, 3])
def test_a_judge_asks_by_it(tmp_path, monkeypatch, newest, contract):
    monkeypatch.setenv("AIPSY_JUDGE_CACHE", str(tmp_path / "cache"))
    (tmp_path / "toy.gguf").write_bytes(b"toy")
    weights = Weights(name="toy", model=tmp_path / "toy.gguf", window=newest)
    model = ToyModel()
    with LocalJudge(model, weights, RUBRIC, contract) as judge:
        asked, refused = judge._prepare(TALK, 0)
        assert refused == []
        assert [a.prompts for a in asked] == [
            asked_prompts(model, contract, RUBRIC, TALK, turn.index, newest) for turn in TALK.turns
        ]
