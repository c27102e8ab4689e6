"""ChatGPT's data export: a tree of nodes, of which one thread was open."""

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


def node(parent: str | None, role: str, *parts: Any, **message: Any) -> dict[str, Any]:
    content = {"content_type": "text", "parts": list(parts)}
    return {"parent": parent, "children": [], "message": {"author": {"role": role}, "content": content, **message}}


def export(mapping: dict[str, Any], **chat: Any) -> dict[str, Any]:
    return {"title": "A chat", "conversation_id": "c1", "mapping": mapping, **chat}


ROOT = {"parent": None, "children": ["u1"], "message": None}
BRANCHING = {
    "root": ROOT,
    "u1": node("root", "user", "Hello", create_time=1.0),
    "old": node("u1", "assistant", "First reply", create_time=2.0),
    "new": node("u1", "assistant", "Second reply", create_time=3.0),
    "u2": node("new", "user", "Thanks", create_time=4.0),
    "end": node("u2", "assistant", "Bye", create_time=5.0),
}


@pytest.mark.parametrize(
    ("current", "texts"),
    [("end", ["Hello", "Second reply", "Thanks", "Bye"]), ("old", ["Hello", "First reply"])],
)
def test_only_the_thread_of_the_current_node_is_read(read_one: ReadOne, current: str, texts: list[str]) -> None:
    conversation = read_one([export(BRANCHING, current_node=current)])
    assert [m.content for m in conversation.messages] == texts
    assert (conversation.id, conversation.metadata["title"]) == ("c1", "A chat")
    assert conversation.warnings == ()


@pytest.mark.parametrize("current", [None, "gone", 3])
def test_without_a_current_node_the_newest_leaf_is_taken_with_a_warning(read_one: ReadOne, current: Any) -> None:
    conversation = read_one([export(BRANCHING, current_node=current)])
    assert [m.content for m in conversation.messages] == ["Hello", "Second reply", "Thanks", "Bye"]
    assert "current_node" in conversation.warnings[0]


def test_without_times_the_deepest_leaf_is_taken(read_one: ReadOne) -> None:
    mapping = {
        k: {**v, "message": v["message"] and {**v["message"], "create_time": None}} for k, v in BRANCHING.items()
    }
    reordered = {key: mapping[key] for key in ("end", "u2", "new", "u1", "root", "old")}
    assert read_one([export(reordered)]).messages[-1].content == "Bye"


def test_one_thread_without_current_node_needs_no_warning(read_one: ReadOne) -> None:
    assert read_one(export({"a": node(None, "user", "Hi"), "b": node("a", "assistant", "Hello")})).warnings == ()


def test_parents_are_found_by_the_children_where_they_are_not_named(read_one: ReadOne) -> None:
    mapping = {"a": {**node(None, "user", "Hi"), "children": ["b"]}, "b": node(None, "assistant", "Hello")}
    assert len(read_one(export(mapping, current_node="b")).messages) == 2


def test_a_cycle_ends_the_thread(read_one: ReadOne) -> None:
    mapping = {"a": node("b", "user", "Hi"), "b": node("a", "assistant", "Hello")}
    assert len(read_one(export(mapping, current_node="b")).messages) == 2
    assert len(read_one(export(mapping)).messages) == 2


def test_a_missing_beginning_is_told(read_one: ReadOne) -> None:
    conversation = read_one(export({"b": node("gone", "assistant", "Hello")}, current_node="b"))
    assert any("no beginning" in w for w in conversation.warnings)


@pytest.mark.parametrize(
    "hidden",
    [
        node("u", "system", "SECRET"),
        node("u", "assistant", "SECRET", weight=0),
        node("u", "user", "SECRET", metadata={"is_visually_hidden_from_conversation": True}),
        {
            "parent": "u",
            "message": {
                "author": {"role": "user"},
                "content": {"content_type": "user_editable_context", "user_profile": "SECRET"},
            },
        },
    ],
)
def test_hidden_nodes_are_left_out(read_one: ReadOne, hidden: Any) -> None:
    mapping = {"u": node(None, "user", "Hi"), "h": hidden, "a": node("h", "assistant", "Hello")}
    conversation = read_one(export(mapping, current_node="a"))
    assert said(conversation) == [("user", "Hi"), ("assistant", "Hello")]


@pytest.mark.parametrize(
    "message",
    [
        {"content": {"content_type": "thoughts", "thoughts": [{"content": "SECRET"}]}},
        {"content": {"content_type": "reasoning_recap", "content": "SECRET"}},
        {"content": {"content_type": "text", "parts": ["SECRET"]}, "channel": "analysis"},
    ],
)
def test_thoughts_are_left_out_with_a_warning(read_one: ReadOne, message: Any) -> None:
    thought = {"parent": "u", "message": {"author": {"role": "assistant"}, **message}}
    mapping = {"u": node(None, "user", "Hi"), "t": thought, "a": node("t", "assistant", "Hello")}
    conversation = read_one(export(mapping, current_node="a"))
    assert said(conversation) == [("user", "Hi"), ("assistant", "Hello")]
    assert conversation.warnings == ("thoughts left out",)


def test_tool_calls_and_results_are_not_spoken_and_placeholders_no_turns(read_one: ReadOne) -> None:
    run = {
        "author": {"role": "assistant"},
        "recipient": "python",
        "content": {"content_type": "code", "text": "SECRET"},
    }
    out = {"author": {"role": "tool"}, "content": {"content_type": "execution_output", "text": "42"}}
    mapping = {
        "u": node(None, "user", "Compute"),
        "p": node("u", "assistant", ""),
        "c": {"parent": "p", "message": run},
        "o": {"parent": "c", "message": out},
        "a": node("o", "assistant", "It is 42."),
    }
    conversation = read_one(export(mapping, current_node="a"))
    assert [(m.role, m.content, m.spoken) for m in conversation.messages] == [
        ("user", "Compute", True),
        ("assistant", "[tool call: python]", False),
        ("tool", "42", False),
        ("assistant", "It is 42.", True),
    ]


def test_an_empty_reply_that_is_the_only_one_stays(read_one: ReadOne) -> None:
    mapping = {
        "u": node(None, "user", "Hi"),
        "a": node("u", "assistant", ""),
        "v": node("a", "user", "Hello?"),
        "b": node("v", "assistant", "Here."),
    }
    assert [t.message.content for t in read_one(export(mapping, current_node="b")).turns] == ["", "Here."]


def test_pictures_are_omitted_and_spoken_words_are_read(read_one: ReadOne) -> None:
    mapping = {
        "u": node(None, "user", {"content_type": "image_asset_pointer", "asset_pointer": "x"}, "What is it?"),
        "a": node(
            "u",
            "assistant",
            {"content_type": "audio_transcription", "text": "A cat."},
            {"content_type": "audio_asset_pointer", "asset_pointer": "x"},
        ),
    }
    conversation = read_one(export(mapping, current_node="a"))
    assert said(conversation) == [("user", "[image omitted]\nWhat is it?"), ("assistant", "A cat.")]
    assert conversation.warnings == ("image omitted",)


def test_a_recording_without_transcription_is_omitted(read_one: ReadOne) -> None:
    mapping = {"u": node(None, "user", {"content_type": "audio_asset_pointer"})}
    assert read_one(export(mapping)).messages[0].content == "[audio omitted]"


@pytest.mark.parametrize("mapping", [{}, {"root": ROOT}, {"s": node(None, "system", "hidden")}])
def test_an_empty_chat_is_passed_over_and_told(write: Write, mapping: Any) -> None:
    told: list[tuple[str, str]] = []
    full = export({"u": node(None, "user", "Hi")}, conversation_id="full")
    path = write([export(mapping), full])
    assert [c.id for c in read(path, on_skip=lambda *what: told.append(what))] == ["full"]
    assert len(told) == 1
    assert "$[0]" in told[0][0]


def test_an_export_of_empty_chats_alone_is_an_error(write: Write) -> None:
    with pytest.raises(TranscriptError, match="no conversation to read"):
        read(write([export({})]))


@pytest.mark.parametrize(
    ("bad", "place"),
    [
        (3, r"mapping\.b: a node"),
        ({"parent": "a", "message": 3}, r"mapping\.b\.message: a message"),
        ({"parent": "a", "message": {"author": {"role": "user"}}}, r"mapping\.b\.message: a message"),
        (node("a", "narrator", "x"), r"author\.role: unknown role"),
        (node("a", "user", 3), r"parts\[0\]: a part"),
    ],
)
def test_a_faulty_node_is_an_error_that_names_it(write: Write, bad: Any, place: str) -> None:
    with pytest.raises(TranscriptError, match=place):
        read(write([export({"a": node(None, "user", "Hi"), "b": bad}, current_node="b")]))
