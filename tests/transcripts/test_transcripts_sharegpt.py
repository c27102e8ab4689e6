"""ShareGPT."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from transcript_makers import said

from aipsy_judge.conversation import Conversation
from aipsy_judge.errors import TranscriptError
from aipsy_judge.transcripts import read

Write = Callable[..., Path]
ReadOne = Callable[..., Conversation]

TALK = [{"from": "human", "value": "Hello"}, {"from": "gpt", "value": "Hi"}]


@pytest.mark.parametrize("key", ["conversations", "conversation"])
def test_from_and_value_are_role_and_text(read_one: ReadOne, key: str) -> None:
    conversation = read_one({"id": "s1", key: TALK, "system": "Be kind."})
    assert conversation.id == "s1"
    assert said(conversation) == [("system", "Be kind."), ("user", "Hello"), ("assistant", "Hi")]


@pytest.mark.parametrize(("speaker", "role"), [("user", "user"), ("bing", "assistant"), ("assistant", "assistant")])
def test_speakers_go_by_several_names(read_one: ReadOne, speaker: str, role: str) -> None:
    assert read_one({"conversations": [{"from": speaker, "value": "x"}]}).messages[0].role == role


def test_function_calls_and_observations_are_not_spoken(read_one: ReadOne) -> None:
    call = {"from": "function_call", "value": '{"name": "find", "arguments": {"q": "SECRET"}}'}
    conversation = read_one({"conversations": [TALK[0], call, {"from": "observation", "value": "42"}, TALK[1]]})
    assert [(m.role, m.content) for m in conversation.messages if not m.spoken] == [
        ("assistant", "[tool call: find]"),
        ("tool", "42"),
    ]
    assert len(conversation.turns) == 1


@pytest.mark.parametrize("value", ["not json", "[" * 5000, "3", "", None])
def test_a_function_call_of_any_text_is_a_call(read_one: ReadOne, value: Any) -> None:
    conversation = read_one({"conversations": [TALK[0], {"from": "function_call", "value": value}, TALK[1]]})
    assert conversation.messages[1].content == "[tool call: unnamed]"


def test_jsonl_and_a_bare_list_are_read(write: Write) -> None:
    lines = "\n".join(json.dumps({"id": n, "conversations": TALK}) for n in range(3))
    assert [c.id for c in read(write(lines, "lines"))] == ["0", "1", "2"]
    assert [len(c.turns) for c in read(write(TALK, "bare"))] == [1]


@pytest.mark.parametrize("message", [{"from": "human"}, {"value": "x"}, {"from": "narrator", "value": "x"}, 3, None])
def test_a_faulty_message_is_an_error_that_names_it(write: Write, message: Any) -> None:
    with pytest.raises(TranscriptError, match=r"conversations\[1\]"):
        read(write({"conversations": [TALK[0], message]}))
