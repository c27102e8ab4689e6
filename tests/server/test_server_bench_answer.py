"""The benchmark's layout of a verdict: what a judge on a server said of the context is handed on, however it wrote."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from run_builder import RUBRIC, verdict

from aipsy_judge.backends.fake import FakeBackend, FakeJudge
from aipsy_judge.contract import FULL
from aipsy_judge.conversation import Conversation, Message
from aipsy_judge.errors import BackendError, CapacityError
from aipsy_judge.served_judge import ServedJudge
from aipsy_judge.server.bench_answer import bench_answer
from aipsy_judge.server.naming import identity
from aipsy_judge.server.refusal import Refusal

WHO = identity(FakeJudge(RUBRIC))


def answered(raw, rationale="It listens.", **who):
    text = bench_answer(replace(verdict("c", 1), raw=raw, rationale=rationale), RUBRIC, {**WHO, **who})

    def refuse(name):
        pytest.fail(f"the answer holds {name}")

    return text, json.loads(text, parse_constant=refuse)


@pytest.mark.parametrize(
    ("raw", "context"),
    [
        ('{"context_analysis": {"mood": "calm"}, "scores": {}}', {"mood": "calm"}),
        ('```json\n{"context_analysis": {"mood": "calm",}, "scores": {}}\n```', {"mood": "calm"}),
        (
            '<think>hm</think>Here: {"context_analysis": {"n": 1, "x": [0.5, true, null]}}',
            {"n": 1, "x": [0.5, True, None]},
        ),
        ('{"context_analysis": {"sure": NaN, "far": 1e999}}', {"sure": None, "far": None}),
    ],
)
def test_the_context_is_read_as_the_verdict_is(raw, context):
    assert answered(raw)[1]["context_analysis"] == context


@pytest.mark.parametrize(
    "raw",
    [
        None,
        "",
        "no JSON",
        '{"scores": {}}',
        '{"context_analysis": "calm"}',
        '{"context_analysis": {}, "context_analysis": {"mood": "calm"}}',
        '{"a": 1} {"context_analysis": {}}',
        '{"context_analysis": ' + '{"a": ' * 5_000 + "1" + "}" * 5_001,
    ],
)
def test_where_there_is_none_the_answer_is_whole_without_it(raw):
    data = answered(raw)[1]
    assert list(data) == ["scores", "judge", "reasoning"]
    assert data["scores"]["empathy"] == 4


def test_what_lies_too_deep_is_left_out():
    raw = '{"context_analysis": ' + '{"a": ' * 200 + "1" + "}" * 201
    assert '"a": null' in answered(raw)[0]


def test_no_fence_of_the_judges_stands_in_the_answer():
    text, data = answered('{"context_analysis": {"mood": "```json {} ```"}}', rationale="```json {}```")
    assert "```" not in text
    assert data["context_analysis"] == {"mood": "'''json {} '''"}


def test_a_judge_that_answers_by_its_own_contract_says_nothing_of_the_context():
    assert "context_analysis" not in answered('{"context_analysis": {"mood": "calm"}}', answered_as_own=True)[1]


@pytest.mark.parametrize(
    ("failure", "status", "may_pass"),
    [
        (BackendError("overloaded", retryable=True), 503, True),
        (BackendError("slow", retryable=True, reason="timeout"), 503, True),
        (BackendError("a request that it does not know"), 503, False),
        (CapacityError("too long"), 422, False),
        ("no verdict", 422, False),
    ],
)
def test_a_failure_of_the_judges_server_that_may_pass_is_told_apart_from_a_turn_that_cannot_be_judged(
    failure, status, may_pass
):
    judge = ServedJudge(FakeBackend().enqueue(failure), RUBRIC, FULL)
    (verdict,) = judge.score(Conversation("c", (Message("user", "a"), Message("assistant", "b"))))
    with pytest.raises(Refusal, match="could not be judged") as refused:
        bench_answer(verdict, RUBRIC, WHO)
    assert refused.value.status == status
    assert (refused.value.retry_after is not None) is may_pass
