"""Whatever the bytes: conversations, or a TranscriptError that names the file, and never anything else."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from transcript_makers import zstd_zip

from aipsy_judge.conversation import ROLES, Conversation
from aipsy_judge.errors import TranscriptError
from aipsy_judge.transcripts import read, to_dict

Write = Callable[..., Path]
relaxed = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=30)

_KEYS = tuple(
    """
    id role content text type messages conversation conversations metadata spoken tool_calls function name mapping
    current_node parent children message author parts content_type recipient weight chat_messages sender uuid
    parent_message_uuid current_leaf_message_uuid from value system version status eval samples epoch target
    attachments prompt response audio transcript refusal turn conversation_id create_time channel files
    """.split()  # noqa: SIM905
)
_WORDS = (
    "user",
    "assistant",
    "system",
    "tool",
    "human",
    "gpt",
    "text",
    "image_url",
    "tool_use",
    "tool_result",
    "thinking",
    "attachment://x",
    "function_call",
    "reasoning",
    "a",
    "b",
    "all",
    "\ud83d",
)
_scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(_WORDS) | st.text(max_size=5)
_values = st.recursive(
    _scalars,
    lambda inner: st.lists(inner, max_size=4)
    | st.dictionaries(st.sampled_from(_KEYS) | st.text(max_size=3), inner, max_size=5),
    max_leaves=25,
)
_messages = st.fixed_dictionaries(
    {}, optional={"role": st.sampled_from(_WORDS), "content": _values, "tool_calls": _values, "spoken": _values}
)
_nodes = st.fixed_dictionaries(
    {},
    optional={
        "parent": st.sampled_from(["a", "b", "c", None]),
        "children": _values,
        "message": st.fixed_dictionaries(
            {}, optional={"author": st.just({"role": "user"}) | _values, "content": _values, "weight": _values}
        ),
    },
)
_shaped = st.one_of(
    st.fixed_dictionaries({"messages": st.lists(_messages, max_size=4)}, optional={"id": _values, "metadata": _values}),
    st.fixed_dictionaries(
        {"mapping": st.dictionaries(st.sampled_from(["a", "b", "c"]), _nodes)}, optional={"current_node": _values}
    ),
    st.fixed_dictionaries({"chat_messages": st.lists(st.dictionaries(st.sampled_from(_KEYS), _values), max_size=3)}),
    st.fixed_dictionaries(
        {"conversations": st.lists(st.dictionaries(st.sampled_from(["from", "value"]), _values), max_size=3)}
    ),
    st.fixed_dictionaries({"version": _values, "status": _values, "eval": st.just({}), "samples": _values}),
    st.fixed_dictionaries({"messages": st.lists(_messages), "epoch": _values, "target": _values, "id": _values}),
    st.dictionaries(st.sampled_from(_KEYS), _values, max_size=6),
)


def check(path: Path) -> list[Conversation]:
    """Read it. What comes out must be whole: valid Unicode, strict JSON, an id, messages."""
    conversations: list[Conversation] = []
    fault = None
    try:
        conversations = read(path)
    except TranscriptError as error:
        fault = error
    if fault is not None:
        assert fault.where
        assert path.name in str(fault)
        str(fault).encode()
    for conversation in conversations:
        assert conversation.id
        assert conversation.messages
        assert all(m.role in ROLES and isinstance(m.content, str) for m in conversation.messages)
        json.dumps(to_dict(conversation), ensure_ascii=False, allow_nan=False).encode()
    return conversations


@relaxed
@given(
    st.binary(max_size=200)
    | st.sampled_from([b"\xff\xfe", b"PK\3\4", b"{", b"[", b"User:"]).flatmap(
        lambda head: st.binary(max_size=100).map(lambda tail: head + tail)
    )
)
def test_arbitrary_bytes(write: Write, content: bytes) -> None:
    check(write(content))


@relaxed
@given(
    st.text(max_size=200)
    | st.lists(st.sampled_from(["User:", "[AI]", "role,text", '"', "\n", ";", "x", "{", "\r", "**AI:**"])).map("".join)
)
def test_arbitrary_text(write: Write, content: str) -> None:
    check(write(content.encode("utf-8", "replace")))


@relaxed
@given(_values | _shaped | st.lists(_shaped | _values, max_size=3), st.booleans())
def test_arbitrary_json(write: Write, value: Any, in_folder: bool) -> None:
    path = write(json.dumps(value), "folder/talk.json")
    check(path.parent if in_folder else path)


@relaxed
@given(st.lists(_shaped | _messages, min_size=1, max_size=4))
def test_arbitrary_jsonl(write: Write, values: list[Any]) -> None:
    check(write("\n".join(json.dumps(value) for value in values)))


_talk = json.dumps({"id": "s", "epoch": 1, "target": "", "messages": [{"role": "user", "content": "Hello"}]}).encode()


def _deflated() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("conversations.json", b"[" + _talk + b"]")
    return buffer.getvalue()


_ZIPS = (zstd_zip({"samples/s.json": _talk, "header.json": b"{}"}), _deflated())


@relaxed
@given(st.sampled_from(_ZIPS), st.data())
def test_zips_with_changed_bytes(write: Write, whole: bytes, data: st.DataObject) -> None:
    content = bytearray(whole)
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    conversations = check(write(bytes(content)))
    # The checksums hold: a change that goes unnoticed leaves the text as it was.
    assert all(c.messages[0].content == "Hello" for c in conversations)


@relaxed
@given(
    st.lists(
        st.tuples(st.sampled_from(ROLES), st.text(st.characters(exclude_categories=["Cs"]), max_size=20)),
        min_size=1,
        max_size=8,
    )
)
def test_every_format_keeps_the_number_of_turns(write: Write, talk: list[tuple[str, str]]) -> None:
    chat = {"messages": [{"role": r, "content": t} for r, t in talk]}
    parts = {"messages": [{"role": r, "content": [{"type": "text", "text": t}]} for r, t in talk]}
    sharegpt = {"conversations": [{"from": r, "value": t} for r, t in talk]}
    sample = {**chat, "id": 1, "epoch": 1, "target": ""}
    turns = sum(r == "assistant" for r, _ in talk)
    for n, value in enumerate((chat, parts, sharegpt, sample, chat["messages"])):
        [conversation] = read(write(value, str(n)))
        assert len(conversation.turns) == turns
        assert [m.content for m in conversation.messages] == [t for _, t in talk]
