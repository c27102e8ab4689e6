"""Inspect logs, as JSON and as `.eval`."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from transcript_makers import said, zstd_zip

from aipsy_judge.conversation import Conversation
from aipsy_judge.errors import TranscriptError
from aipsy_judge.transcripts import read

Write = Callable[..., Path]
ReadOne = Callable[..., Conversation]

LONG = "A long text that stands as an attachment."
HEADER = {"version": 2, "status": "success", "eval": {"task": "bench/task", "model": "some/model", "run_id": "SECRET"}}


def sample(id: Any = "s01", epoch: int = 1, **more: Any) -> dict[str, Any]:
    messages = [
        {"id": "m1", "role": "user", "content": "attachment://abc"},
        {
            "id": "m2",
            "role": "assistant",
            "content": [{"type": "reasoning", "reasoning": "SECRET"}, {"type": "text", "text": "Hi"}],
        },
        {"role": "assistant", "content": "", "tool_calls": [{"id": "1", "function": "search", "arguments": {}}]},
        {"role": "tool", "content": "found", "function": "search"},
        {"role": "assistant", "content": "Done"},
    ]
    fields = {
        "id": id,
        "epoch": epoch,
        "input": "x",
        "target": "y",
        "messages": messages,
        "scores": {"judge": "SECRET"},
    }
    return {**fields, "attachments": {"abc": LONG}, **more}


def as_eval(*samples: dict[str, Any], header: Any = HEADER) -> bytes:
    entries = {f"samples/{s['id']}_epoch_{s['epoch']}.json": json.dumps(s).encode() for s in samples}
    return zstd_zip({"_journal/start.json": b"{}", **entries, "header.json": json.dumps(header).encode()})


def check(conversation: Conversation) -> None:
    assert said(conversation) == [("user", LONG), ("assistant", "Hi"), ("assistant", "Done")]
    assert [m.content for m in conversation.messages if not m.spoken] == ["[tool call: search]", "found"]
    assert conversation.id == "s01_epoch_1"
    assert conversation.metadata == {"sample": "s01", "epoch": 1, "task": "bench/task", "model": "some/model"}
    assert "SECRET" not in repr(conversation)


def test_an_eval_with_zstd_entries_is_read(read_one: ReadOne) -> None:
    check(read_one(as_eval(sample())))


def test_a_json_log_is_read(read_one: ReadOne) -> None:
    check(read_one({**HEADER, "samples": [sample()]}))


def test_a_single_sample_is_read(read_one: ReadOne) -> None:
    conversation = read_one(sample())
    assert (conversation.id, conversation.messages[0].content) == ("s01_epoch_1", LONG)


def test_a_deflated_eval_is_read(read_one: ReadOne) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("samples/s01_epoch_1.json", json.dumps(sample()))
        archive.writestr("header.json", json.dumps(HEADER))
    check(read_one(buffer.getvalue()))


def test_samples_and_epochs_come_in_natural_order(write: Write) -> None:
    path = write(as_eval(sample("s10"), sample("s2"), sample("s2", epoch=2)))
    assert [c.id for c in read(path)] == ["s2_epoch_1", "s2_epoch_2", "s10_epoch_1"]


def test_a_text_missing_among_the_attachments_is_an_error(write: Write) -> None:
    with pytest.raises(TranscriptError, match=r"messages\[0\]\.content: .*attachment"):
        read(write(as_eval(sample(attachments={}))))


def test_attachments_inside_parts_are_resolved(read_one: ReadOne) -> None:
    message = {
        "role": "user",
        "content": [{"type": "text", "text": "attachment://abc"}, {"type": "image", "image": "attachment://img"}],
    }
    assert read_one(sample(messages=[message])).messages[0].content == f"{LONG}\n[image omitted]"


def test_a_sample_that_failed_before_it_began_is_passed_over_and_told(write: Write) -> None:
    told: list[tuple[str, str]] = []
    path = write(as_eval(sample("s1", messages=[], error={"message": "x"}), sample("s2")))
    assert [c.id for c in read(path, on_skip=lambda *what: told.append(what))] == ["s2_epoch_1"]
    assert [reason for _, reason in told] == ["a sample without messages"]


def test_a_sample_that_ended_in_an_error_is_read_with_a_warning(read_one: ReadOne) -> None:
    assert any("error" in w for w in read_one(as_eval(sample(error={"message": "x"}))).warnings)


@pytest.mark.parametrize("content", [zstd_zip({"header.json": b"{}"}), zstd_zip({"_journal/start.json": b"{}"})])
def test_an_eval_without_samples_is_an_error(write: Write, content: bytes) -> None:
    with pytest.raises(TranscriptError, match="without samples"):
        read(write(content))


@pytest.mark.parametrize("samples", [None, [], "x"])
def test_a_json_log_without_samples_is_an_error(write: Write, samples: Any) -> None:
    with pytest.raises(TranscriptError, match="without samples"):
        read(write({**HEADER, "samples": samples}))


def test_an_eval_without_a_header_is_read_all_the_same(read_one: ReadOne) -> None:
    conversation = read_one(zstd_zip({"samples/s01_epoch_1.json": json.dumps(sample()).encode()}))
    assert conversation.metadata == {"sample": "s01", "epoch": 1}


def test_a_faulty_sample_names_its_entry_and_place(write: Write) -> None:
    path = write(as_eval(sample(messages=[{"role": "narrator", "content": "x"}])), "log.eval")
    with pytest.raises(TranscriptError, match=r"log\.eval, samples/s01_epoch_1\.json, \$\.messages\[0\]\.role"):
        read(path)


@pytest.mark.parametrize("broken", [{}, {"messages": 3}, 3])
def test_a_json_log_with_a_broken_sample_is_an_error(write: Write, broken: Any) -> None:
    with pytest.raises(TranscriptError, match=r"samples\[1\]"):
        read(write({**HEADER, "samples": [sample(), broken]}))
