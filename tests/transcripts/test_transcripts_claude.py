"""Claude's data export."""

from __future__ import annotations

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


def message(sender: str, text: str, **more: Any) -> dict[str, Any]:
    return {"sender": sender, "text": text, "content": [{"type": "text", "text": text}], **more}


def chat(*messages: Any, **more: Any) -> dict[str, Any]:
    return {"uuid": "c1", "name": "A chat", "account": {"uuid": "SECRET"}, "chat_messages": list(messages), **more}


def test_senders_and_texts_are_read(read_one: ReadOne) -> None:
    conversation = read_one([chat(message("human", "Hello"), message("assistant", "Hi"))])
    assert said(conversation) == [("user", "Hello"), ("assistant", "Hi")]
    assert (conversation.id, conversation.metadata) == ("c1", {"name": "A chat"})
    assert "SECRET" not in repr(conversation)


def test_text_blocks_are_preferred_to_the_flat_text(read_one: ReadOne) -> None:
    blocks = [{"type": "thinking", "thinking": "SECRET"}, {"type": "text", "text": "Yes."}]
    reply = message("assistant", "SECRET This block is not supported", content=blocks)
    conversation = read_one([chat(message("human", "Well?"), reply)])
    assert said(conversation)[1] == ("assistant", "Yes.")
    assert conversation.warnings == ("thoughts left out",)
    assert "SECRET" not in repr(conversation)


@pytest.mark.parametrize("content", [[], None, [{"type": "text", "text": ""}]])
def test_old_exports_hold_the_flat_text_alone(read_one: ReadOne, content: Any) -> None:
    assert said(read_one([chat(message("human", "Hello", content=content))])) == [("user", "Hello")]


def test_one_reply_with_tool_calls_inside_is_one_turn(read_one: ReadOne) -> None:
    blocks = [
        {"type": "text", "text": "Looking."},
        {"type": "tool_use", "name": "search", "input": {}},
        {"type": "tool_result", "name": "search", "content": [{"type": "text", "text": "found"}]},
        {"type": "text", "text": "Here."},
    ]
    conversation = read_one([chat(message("human", "Find"), message("assistant", "", content=blocks))])
    assert [t.message.content for t in conversation.turns] == ["Looking.\nHere."]
    assert [m.content for m in conversation.messages if not m.spoken] == ["[tool call: search]", "found"]


def test_files_are_omitted_with_a_warning(read_one: ReadOne) -> None:
    upload = message("human", "", attachments=[{"file_name": "SECRET"}], files=[{"file_name": "SECRET"}])
    conversation = read_one([chat(upload)])
    assert said(conversation) == [("user", "[file omitted]\n[file omitted]")]
    assert conversation.warnings == ("file omitted (2 times)",)


NIL = "00000000-0000-4000-8000-000000000000"
BRANCHES = [
    message("human", "Hello", uuid="a", parent_message_uuid=NIL),
    message("assistant", "First", uuid="b", parent_message_uuid="a"),
    message("assistant", "Second", uuid="c", parent_message_uuid="a"),
]


def test_the_current_leaf_names_the_thread(read_one: ReadOne) -> None:
    conversation = read_one([chat(*BRANCHES, current_leaf_message_uuid="b")])
    assert [m.content for m in conversation.messages] == ["Hello", "First"]
    assert conversation.warnings == ()


def test_without_it_the_last_thread_is_taken_with_a_warning(read_one: ReadOne) -> None:
    conversation = read_one([chat(*BRANCHES)])
    assert [m.content for m in conversation.messages] == ["Hello", "Second"]
    assert "branches" in conversation.warnings[0]


def test_an_empty_chat_is_passed_over_and_told(write: Write) -> None:
    told: list[tuple[str, str]] = []
    path = write([chat(), chat(message("human", "Hi"), uuid="c2")])
    assert [c.id for c in read(path, on_skip=lambda *what: told.append(what))] == ["c2"]
    assert len(told) == 1


@pytest.mark.parametrize(
    "bad", [3, None, {"text": "x"}, {"sender": "narrator", "text": "x"}, {"sender": "human", "text": 3}]
)
def test_a_faulty_message_is_an_error_that_names_it(write: Write, bad: Any) -> None:
    with pytest.raises(TranscriptError, match=r"chat_messages\[1\]"):
        read(write([chat(message("human", "Hi"), bad)]))
