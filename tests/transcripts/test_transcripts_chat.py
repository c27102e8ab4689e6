"""Chat messages as OpenAI, Anthropic and others write them."""

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

USER = {"role": "user", "content": "What is the weather?"}
CALL = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"id": "1", "function": {"name": "weather", "arguments": "SECRET"}}],
}
RESULT = {"role": "tool", "tool_call_id": "1", "content": "rain"}
ANSWER = {"role": "assistant", "content": "It rains."}


def all_of(conversation: Conversation) -> list[tuple[str, str, bool]]:
    return [(m.role, m.content, m.spoken) for m in conversation.messages]


def test_content_as_a_list_of_parts_is_joined_with_newlines(read_one: ReadOne) -> None:
    conversation = read_one(
        {
            "messages": [
                {"role": "system", "content": [{"type": "text", "text": "Be kind."}]},
                {"role": "user", "content": [{"type": "input_text", "text": "one"}, "two"]},
                {"role": "assistant", "content": [{"type": "output_text", "text": "I hear you."}]},
            ]
        }
    )
    assert said(conversation) == [("system", "Be kind."), ("user", "one\ntwo"), ("assistant", "I hear you.")]
    assert conversation.warnings == ()


@pytest.mark.parametrize(
    ("part", "shown"),
    [
        ({"type": "image_url", "image_url": {"url": "data:SECRET"}}, "[image omitted]"),
        ({"type": "input_image"}, "[image omitted]"),
        ({"type": "input_audio", "input_audio": {"data": "SECRET"}}, "[audio omitted]"),
        ({"type": "video"}, "[video omitted]"),
        ({"type": "file", "file": {"filename": "SECRET"}}, "[file omitted]"),
        ({"type": "something_new", "data": "SECRET"}, "[part omitted]"),
    ],
)
def test_a_part_that_is_no_text_is_shown_as_omitted_with_a_warning(read_one: ReadOne, part: Any, shown: str) -> None:
    conversation = read_one([{"role": "user", "content": [{"type": "text", "text": "See:"}, part, part]}, ANSWER])
    assert conversation.messages[0].content == f"See:\n{shown}\n{shown}"
    assert conversation.warnings == (f"{shown[1:-1]} (2 times)",)
    assert "SECRET" not in repr(conversation)


@pytest.mark.parametrize("kind", ["thinking", "redacted_thinking", "reasoning", "thought"])
def test_thoughts_are_left_out_with_a_warning(read_one: ReadOne, kind: str) -> None:
    content = [{"type": kind, kind: "SECRET", "text": "SECRET"}, {"type": "text", "text": "Yes."}]
    conversation = read_one([USER, {"role": "assistant", "content": content}])
    assert conversation.turns[0].message.content == "Yes."
    assert conversation.warnings == ("thoughts left out",)
    assert "SECRET" not in repr(conversation)


def test_null_content_with_tool_calls_keeps_every_other_turn(read_one: ReadOne) -> None:
    conversation = read_one({"messages": [USER, CALL, RESULT, ANSWER]})
    assert all_of(conversation) == [
        ("user", "What is the weather?", True),
        ("assistant", "[tool call: weather]", False),
        ("tool", "rain", False),
        ("assistant", "It rains.", True),
    ]
    assert [t.message.content for t in conversation.turns] == ["It rains."]


@pytest.mark.parametrize("content", ["", "  ", [], [{"type": "text", "text": ""}]])
def test_empty_content_with_tool_calls_says_nothing(read_one: ReadOne, content: Any) -> None:
    assert len(read_one([USER, {**CALL, "content": content}, ANSWER]).turns) == 1


def test_text_with_a_tool_call_is_one_turn_and_one_call(read_one: ReadOne) -> None:
    conversation = read_one([USER, {**CALL, "content": "Let me look."}, RESULT, ANSWER])
    assert all_of(conversation)[1:3] == [
        ("assistant", "Let me look.", True),
        ("assistant", "[tool call: weather]", False),
    ]
    assert len(conversation.turns) == 2


def test_null_content_without_tool_calls_is_an_empty_turn(read_one: ReadOne) -> None:
    assert [t.message.content for t in read_one([USER, {"role": "assistant", "content": None}]).turns] == [""]


def test_a_refusal_is_said(read_one: ReadOne) -> None:
    conversation = read_one([USER, {"role": "assistant", "content": None, "refusal": "I cannot."}])
    assert conversation.turns[0].message.content == "I cannot."


def test_the_transcript_of_a_spoken_reply_is_its_text(read_one: ReadOne) -> None:
    reply = {"role": "assistant", "content": None, "audio": {"id": "a", "transcript": "Good evening."}}
    assert read_one([USER, reply]).turns[0].message.content == "Good evening."


@pytest.mark.parametrize(
    ("name", "role"),
    [("developer", "system"), ("function", "tool"), ("Human", "user"), (" AI ", "assistant"), ("model", "assistant")],
)
def test_names_of_roles_are_known(read_one: ReadOne, name: str, role: str) -> None:
    assert read_one([{"role": name, "content": "x"}]).messages[0].role == role


def test_legacy_function_calls_are_tool_calls(read_one: ReadOne) -> None:
    call = {"role": "assistant", "content": None, "function_call": {"name": "find", "arguments": "{}"}}
    conversation = read_one([USER, call, {"role": "function", "name": "find", "content": "x"}, ANSWER])
    assert [m.content for m in conversation.messages if not m.spoken] == ["[tool call: find]", "x"]


def test_anthropic_blocks_are_one_turn_behind_the_results_they_rest_on(read_one: ReadOne) -> None:
    blocks = [
        {"type": "text", "text": "Looking."},
        {"type": "tool_use", "name": "search", "input": {"q": "SECRET"}},
        {"type": "tool_result", "content": [{"type": "text", "text": "found"}]},
        {"type": "text", "text": "Here it is."},
    ]
    conversation = read_one({"system": "Be brief.", "messages": [USER, {"role": "assistant", "content": blocks}]})
    assert all_of(conversation) == [
        ("system", "Be brief.", True),
        ("user", "What is the weather?", True),
        ("assistant", "[tool call: search]", False),
        ("tool", "found", False),
        ("assistant", "Looking.\nHere it is.", True),
    ]


def test_a_user_message_of_tool_results_alone_is_not_said_by_the_user(read_one: ReadOne) -> None:
    result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1", "content": "rain"}]}
    assert all_of(read_one([USER, result, ANSWER]))[1] == ("tool", "rain", False)


def test_items_of_the_responses_api_are_read(read_one: ReadOne) -> None:
    items = [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hi"}]},
        {"type": "reasoning", "summary": []},
        {"type": "function_call", "name": "f", "arguments": "{}", "call_id": "1"},
        {"type": "function_call_output", "call_id": "1", "output": "42"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "It is 42."}]},
    ]
    conversation = read_one(items)
    assert all_of(conversation) == [
        ("user", "Hi", True),
        ("assistant", "[tool call: f]", False),
        ("tool", "42", False),
        ("assistant", "It is 42.", True),
    ]
    assert conversation.warnings == ("thoughts left out",)


def test_tool_call_names_stay_on_one_short_line(read_one: ReadOne) -> None:
    call = {**CALL, "tool_calls": [{"function": {"name": "a\nb" + "x" * 500}}, {}]}
    first, second = read_one([USER, call]).messages[1:]
    assert "\n" not in first.content
    assert len(first.content) < 90
    assert second.content == "[tool call: unnamed]"


@pytest.mark.parametrize("key", ["messages", "conversation", "conversations"])
def test_the_list_may_be_called_otherwise(read_one: ReadOne, key: str) -> None:
    assert len(read_one({key: [USER, ANSWER]}).turns) == 1


@pytest.mark.parametrize("message", [{"text": "Hi"}, {"parts": [{"text": "Hi"}]}, {"parts": ["Hi"]}])
def test_the_content_may_be_called_otherwise(read_one: ReadOne, message: Any) -> None:
    assert read_one([USER, {"role": "model", **message}]).turns[0].message.content == "Hi"


def test_recorded_items_keep_their_id_and_meta(read_one: ReadOne) -> None:
    conversation = read_one({"item_id": "s01:t02", "conversation": [USER, ANSWER], "meta": {"scenario": "s01"}})
    assert (conversation.id, conversation.metadata) == ("s01:t02", {"scenario": "s01"})


def test_jsonl_of_bare_lists_is_a_conversation_a_line(write: Write) -> None:
    text = json.dumps([USER, ANSWER]) + "\n" + json.dumps([USER, CALL, RESULT, ANSWER]) + "\n"
    assert [len(c.messages) for c in read(write(text))] == [2, 4]


def test_jsonl_of_messages_is_one_conversation(read_one: ReadOne) -> None:
    assert said(read_one("\n".join(json.dumps(m) for m in (USER, ANSWER)))) == [
        ("user", "What is the weather?"),
        ("assistant", "It rains."),
    ]


def test_jsonl_of_messages_that_name_their_conversation_is_grouped(write: Write) -> None:
    rows = [{**m, "conversation_id": id, "turn": n} for n, m in enumerate((USER, ANSWER)) for id in ("a", "b")]
    assert [(c.id, len(c.messages)) for c in read(write("\n".join(map(json.dumps, rows))))] == [("a", 2), ("b", 2)]


def test_a_prompt_with_its_response_is_a_conversation(write: Write) -> None:
    rows = [{"prompt": "a", "response": "b", "score": 3}, {"prompt": "c", "response": "d", "score": 1}]
    assert [said(c) for c in read(write(rows))] == [
        [("user", "a"), ("assistant", "b")],
        [("user", "c"), ("assistant", "d")],
    ]


@pytest.mark.parametrize("value", [{"a": 1}, {}, [1], [None], ["x"], {"messages": "x"}, {"messages": {"a": 1}}, [[1]]])
def test_an_unknown_shape_names_the_file_and_the_shapes_tried(write: Write, value: Any) -> None:
    with pytest.raises(TranscriptError, match=r"strange: not a transcript|strange, \$.*: not a transcript") as caught:
        read(write(value, "strange"))
    assert all(name in str(caught.value) for name in ("chat messages", "ShareGPT", "ChatGPT", "Claude", "Inspect"))
    assert "messages" in (caught.value.hint or "")


def test_an_error_repeats_no_text_of_the_conversation(write: Write) -> None:
    with pytest.raises(TranscriptError) as caught:
        read(write({"talk": "SECRET", "messages": None}))
    assert "SECRET" not in str(caught.value)
