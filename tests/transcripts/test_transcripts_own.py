"""This project's own format, and what holds for every format: ids, metadata, empty and missing messages."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from transcript_makers import said

from aipsy_judge.conversation import ROLES, Conversation, Message
from aipsy_judge.errors import TranscriptError
from aipsy_judge.transcripts import read, to_dict

Write = Callable[..., Path]
ReadOne = Callable[..., Conversation]

HELLO = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi"}]

_text = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
_messages = st.builds(Message, st.sampled_from([r for r in ROLES if r != "tool"]), _text, st.booleans()) | st.builds(
    Message, st.just("tool"), _text, st.just(False)
)
_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | _text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_text, inner, max_size=3),
    max_leaves=6,
)
_conversations = st.builds(
    Conversation,
    id=_text.map(str.strip).filter(bool),
    messages=st.lists(_messages, min_size=1, max_size=6).map(tuple),
    metadata=st.dictionaries(_text, _json, max_size=3),
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60)
@given(st.lists(_conversations, min_size=1, max_size=4, unique_by=lambda c: c.id), st.sampled_from(["json", "jsonl"]))
def test_what_is_written_is_read_again(write: Write, conversations: list[Conversation], form: str) -> None:
    records = [to_dict(c) for c in conversations]
    text = json.dumps(records) if form == "json" else "\n".join(map(json.dumps, records))
    again = read(write(text))
    assert [(c.id, c.messages, dict(c.metadata)) for c in again] == [
        (c.id, c.messages, dict(c.metadata)) for c in conversations
    ]
    assert [len(c.turns) for c in again] == [len(c.turns) for c in conversations]
    assert all(not c.warnings for c in again)


def test_missing_ids_come_from_the_file_and_the_number(write: Write) -> None:
    path = write([{"messages": HELLO}, {"id": "own", "messages": HELLO}, {"id": "", "messages": HELLO}], "chats.json")
    assert [c.id for c in read(path)] == ["chats.json#1", "own", "chats.json#3"]


def test_ids_do_not_change_when_the_folder_is_moved(write: Write, tmp_path: Path) -> None:
    write({"messages": HELLO}, "here/a/talk.json")
    before = [c.id for c in read(tmp_path / "here")]
    (tmp_path / "here").rename(tmp_path / "there")
    assert [c.id for c in read(tmp_path / "there")] == before == ["a/talk.json#1"]


def test_a_whole_number_may_be_an_id(read_one: ReadOne) -> None:
    assert read_one({"id": 0, "messages": HELLO}).id == "0"


@pytest.mark.parametrize("id", [True, 1.5, ["a"], {"a": 1}])
def test_an_id_that_is_neither_text_nor_number_is_an_error(write: Write, id: Any) -> None:
    with pytest.raises(TranscriptError, match="the id of a conversation"):
        read(write({"id": id, "messages": HELLO}))


def test_an_id_that_comes_twice_names_both_places(write: Write) -> None:
    lines = [json.dumps({"id": id, "messages": HELLO}) for id in ("a", "b", "a")]
    with pytest.raises(TranscriptError, match=r"chats.jsonl, line 3: the id 'a' .* conversation 1 of .*chats.jsonl"):
        read(write("\n".join(lines), "chats.jsonl"))


def test_an_id_that_comes_in_two_files_names_both(write: Write) -> None:
    one, two = (write({"id": "same", "messages": HELLO}, name) for name in ("one.json", "two.json"))
    with pytest.raises(TranscriptError, match=r"two.json: the id 'same' .* conversation 1 of .*one.json"):
        read([one, two])


def test_metadata_that_is_not_finite_is_left_out_with_a_warning(read_one: ReadOne) -> None:
    text = '{"messages": [{"role": "user", "content": "x"}], "metadata": {"a": NaN, "b": [1e999], "c": 0.5}}'
    conversation = read_one(text)
    assert conversation.metadata == {"c": 0.5}
    assert len(conversation.warnings) == 2
    assert json.dumps(dict(conversation.metadata), allow_nan=False)


@pytest.mark.parametrize("empty", ["", "   ", [], None, [{"type": "text", "text": ""}]])
def test_an_empty_turn_stays_a_turn(read_one: ReadOne, empty: Any) -> None:
    conversation = read_one(
        {"messages": [{"role": "user", "content": empty}, {"role": "assistant", "content": empty}, *HELLO]}
    )
    assert [m.content.strip() for m in conversation.messages] == ["", "", "Hello", "Hi"]
    assert len(conversation.turns) == 2


def test_the_assistant_may_come_first(read_one: ReadOne) -> None:
    conversation = read_one([{"role": "assistant", "content": "Welcome"}, *HELLO])
    assert said(conversation) == [("assistant", "Welcome"), ("user", "Hello"), ("assistant", "Hi")]


def test_a_conversation_without_an_assistant_has_no_turns(read_one: ReadOne) -> None:
    assert read_one([{"role": "system", "content": "Be kind."}]).turns == ()


@pytest.mark.parametrize("nothing", [{"messages": []}, [], [[]], {"conversations": []}, [{"messages": []}]])
def test_zero_messages_are_an_error_that_names_the_file(write: Write, nothing: Any) -> None:
    with pytest.raises(TranscriptError, match=r"nothing\.json"):
        read(write(nothing, "nothing.json"))


@pytest.mark.parametrize("blank", ["", "\n \r\n\t", "\ufeff", "\ufeff\n"])
def test_an_empty_file_is_an_error(write: Write, blank: str) -> None:
    with pytest.raises(TranscriptError, match="empty"):
        read(write(blank))


def test_consecutive_roles_and_a_late_system_message_stay_as_they_are(read_one: ReadOne) -> None:
    roles = ["user", "user", "assistant", "assistant", "system", "user", "assistant"]
    conversation = read_one([{"role": role, "content": str(n)} for n, role in enumerate(roles)])
    assert [m.role for m in conversation.messages] == roles
    assert [(t.number, t.index) for t in conversation.turns] == [(1, 2), (2, 3), (3, 6)]


def test_other_keys_of_a_message_leave_no_trace(read_one: ReadOne) -> None:
    extras = {"id": "m1", "timestamp": 17, "name": "SECRET", "metadata": {"email": "SECRET@example.org"}}
    conversation = read_one({"id": "c", "email": "SECRET", "messages": [{**m, **extras} for m in HELLO]})
    assert said(conversation) == [("user", "Hello"), ("assistant", "Hi")]
    assert "SECRET" not in repr(conversation)


@pytest.mark.parametrize(
    "text",
    [
        "\u0645\u0631\u062d\u0628\u0627 abc \u202eevil",
        "\U0001f468\u200d\U0001f469\u200d\U0001f467",
        "a" + "\u0301" * 300,
        "\u0000x\x1b[31m",
    ],
)
def test_right_to_left_marks_emoji_and_combining_marks_pass_unchanged(read_one: ReadOne, text: str) -> None:
    assert read_one([{"role": "assistant", "content": text}]).turns[0].message.content == text


@pytest.mark.parametrize("half", ["\\ud83d", "\\udcb2", "\\ud83d\\ud83d"])
def test_half_a_surrogate_pair_becomes_the_replacement_character(read_one: ReadOne, half: str) -> None:
    message = f'{{"role": "user", "content": "a{half}b"}}'
    conversation = read_one(f'{{"id": "{half}x", "metadata": {{"{half}": "{half}"}}, "messages": [{message}]}}')
    json.dumps(to_dict(conversation), ensure_ascii=False).encode("utf-8")  # raises where a half is left
    assert conversation.messages[0].content == "a" + "\ufffd" * half.count("\\") + "b"
    assert any("surrogate" in w for w in conversation.warnings)


def test_a_whole_surrogate_pair_is_one_character(read_one: ReadOne) -> None:
    conversation = read_one('[{"role": "user", "content": "\\ud83d\\ude14"}]')
    assert conversation.messages[0].content == "\U0001f614"
    assert conversation.warnings == ()


@pytest.mark.parametrize(
    ("message", "place"),
    [
        ({"role": "narrator", "content": "x"}, r"messages\[1\].role: unknown role 'narrator'"),
        ({"role": 3, "content": "x"}, r"messages\[1\].role: unknown role"),
        ({"content": "x"}, r"messages\[1\].role: unknown role"),
        ({"role": "user"}, r"messages\[1\]: a message without content"),
        ({"role": "user", "content": 5}, r"messages\[1\].content: content must be text"),
        ({"role": "user", "content": [5]}, r"messages\[1\].content\[0\]: a part"),
        ({"role": "user", "content": "x", "spoken": "no"}, r"messages\[1\].spoken: spoken must be true or false"),
        ("x", r"messages\[1\]: a message must be an object"),
        (None, r"messages\[1\]: a message must be an object"),
    ],
)
def test_a_faulty_message_is_an_error_that_names_its_place(write: Write, message: Any, place: str) -> None:
    with pytest.raises(TranscriptError, match=r"talk\.json, \$\." + place):
        read(write({"messages": [HELLO[0], message]}, "talk.json"))
