"""One prompt for whoever asks, trains or proves: the judge's own, windowed as it was trained."""

from __future__ import annotations

from dataclasses import replace

import pytest
from toy_model import ToyModel

from aipsy_judge.asked_prompt import asked_prompt
from aipsy_judge.contract import COMPACT, FULL
from aipsy_judge.conversation import Conversation, Message
from aipsy_judge.engine.encode import encode
from aipsy_judge.local_judge import LocalJudge
from aipsy_judge.rubric import load_rubric
from aipsy_judge.weights import Weights

RUBRIC = load_rubric()
TALK = Conversation("c", tuple(Message(r, f"{r} {n}") for n in range(4) for r in ("user", "assistant")))


@pytest.mark.parametrize("contract", [FULL, COMPACT], ids=lambda c: c.name)
@pytest.mark.parametrize(("newest", "left_out"), [(None, 0), (3, 3), (6, 0), (99, 0)])
def test_the_newest_messages_up_to_the_judged_one_are_shown(contract, newest, left_out):
    model = ToyModel()
    by_hand = contract.messages(RUBRIC, replace(TALK, messages=TALK.messages[left_out:]), 5 - left_out)
    assert asked_prompt(model, contract, RUBRIC, TALK, 5, newest) == encode(model, by_hand)


@pytest.mark.parametrize("newest", [None, 3])
def test_a_judge_asks_by_it(tmp_path, monkeypatch, newest):
    monkeypatch.setenv("AIPSY_JUDGE_CACHE", str(tmp_path / "cache"))
    (tmp_path / "toy.gguf").write_bytes(b"toy")
    weights = Weights(name="toy", model=tmp_path / "toy.gguf", window=newest)
    model = ToyModel()
    with LocalJudge(model, weights, RUBRIC, FULL) as judge:
        asked, refused = judge._prepare(TALK, 0)
        assert refused == []
        assert [a.prompt for a in asked] == [
            asked_prompt(model, FULL, RUBRIC, TALK, turn.index, newest) for turn in TALK.turns
        ]
