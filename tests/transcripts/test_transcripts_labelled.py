"""Plain text with speakers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from transcript_makers import said

from aipsy_judge.conversation import Conversation
from aipsy_judge.errors import TranscriptError
from aipsy_judge.transcripts import read

Write = Callable[..., Path]
ReadOne = Callable[..., Conversation]

TALK = [("user", "Hello,\n\nhow are you?"), ("assistant", "Fine."), ("user", "Good.")]


@pytest.mark.parametrize(
    ("user", "assistant"),
    [
        ("User: ", "Assistant: "),
        ("USER:", "ASSISTANT:"),
        ("Human: ", "AI: "),
        ("Me: ", "Bot: "),
        ("Q: ", "A: "),
        ("[USER] ", "[AI] "),
        ("[User]: ", "[Assistant]: "),
        ("**User:** ", "**Assistant:** "),
        ("**User**: ", "**ChatGPT**: "),
        ("### User\n", "### Assistant\n"),
        ("## Human:\n\n", "## Claude:\n\n"),
        ("You said:\n", "ChatGPT said:\n"),
    ],
)
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_speakers_in_every_style(read_one: ReadOne, user: str, assistant: str, end: str) -> None:
    label = {"user": user, "assistant": assistant}
    text = "\n\n".join(label[role] + content for role, content in TALK) + "\n"
    conversation = read_one(text.replace("\n", end))
    assert said(conversation) == TALK
    assert conversation.warnings == ()


def test_a_system_message_may_come_first(read_one: ReadOne) -> None:
    assert said(read_one("System: Be kind.\nUser: Hi\nAI: Hello\n"))[0] == ("system", "Be kind.")


def test_a_tools_words_are_not_spoken(read_one: ReadOne) -> None:
    conversation = read_one("[USER] Hi\n[TOOL] found\n[AI] Hello\n")
    assert [m.spoken for m in conversation.messages] == [True, False, True]


@pytest.mark.parametrize("line", ["[USER] fake", "System: Linux", "A: an option", "**User:** x", "### Assistant"])
def test_a_line_of_a_reply_that_looks_like_another_speaker_stays_in_the_reply(read_one: ReadOne, line: str) -> None:
    conversation = read_one(f"User: Hi\nAssistant: Look:\n{line}\nthat was it\nUser: Ok\n")
    assert said(conversation)[1] == ("assistant", f"Look:\n{line}\nthat was it")
    assert len(conversation.messages) == 3
    assert "looks like a speaker" in conversation.warnings[0]


@pytest.mark.parametrize("line", ["AI: z", "assistant: z", "Human: quoted", "me: always tired"])
def test_a_second_name_for_a_speaker_is_an_error_for_it_may_be_a_quotation(write: Write, line: str) -> None:
    with pytest.raises(TranscriptError, match=r"line 3: .* was called '(Assistant|User)' before"):
        read(write(f"User: Hi\nAssistant: Look:\n{line}\n"))


@pytest.mark.parametrize("line", ["> AI: z", "Model: T-100", "Note: z", "- AI: z", "the AI: z"])
def test_a_line_that_only_resembles_a_speaker_is_text(read_one: ReadOne, line: str) -> None:
    conversation = read_one(f"User: Hi\nAssistant: Look:\n{line}\n")
    assert said(conversation)[1] == ("assistant", f"Look:\n{line}")
    assert conversation.warnings == ()


def test_speakers_inside_a_line_are_text(read_one: ReadOne) -> None:
    assert said(read_one("User: I said User: hello\nAI: and AI: hi\n"))[0] == ("user", "I said User: hello")


def test_a_text_in_which_nobody_is_the_assistant_warns(read_one: ReadOne) -> None:
    conversation = read_one("User: Hi\nLuna: hello\n")
    assert conversation.turns == ()
    assert "assistant" in conversation.warnings[0]


def test_an_empty_message_stays(read_one: ReadOne) -> None:
    assert said(read_one("User:\nAI: \n")) == [("user", ""), ("assistant", "")]


@pytest.mark.parametrize(
    "text",
    ["Dear diary,\nUser: hi\n", "hello", "# Notes\n", "Users: 3\n", "U\u017fer: hi\n", "[12:30] User: hi", "user hi"],
)
def test_text_that_does_not_begin_with_a_speaker_is_no_transcript(write: Write, text: str) -> None:
    with pytest.raises(TranscriptError, match="not a transcript"):
        read(write(text))


_line = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=20).map(lambda s: "x " + s + " x")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60)
@given(
    st.lists(
        st.tuples(st.sampled_from(["user", "assistant"]), st.lists(_line, min_size=1, max_size=3)),
        min_size=1,
        max_size=8,
    )
)
def test_as_many_turns_come_out_as_went_in(write: Write, talk: list[tuple[str, list[str]]]) -> None:
    text = "".join(f"{role.title()}: " + "\n".join(lines) + "\n\n" for role, lines in talk)
    [conversation] = read(write(text))
    assert said(conversation) == [(role, "\n".join(lines)) for role, lines in talk]
