"""Plain text, the speaker before what is said: `User: ...`, `[AI] ...`, `**Human:** ...`, `### Assistant`, `Q: ...`.

A message goes on until the next line that begins with a speaker; blank lines at its ends are dropped. The file begins
with a speaker. Replies hold lines that look like speakers too: those in another style than the file's, and a system
message behind the others, are kept as text, with a warning. Where one style gives a role a second name ("AI:" where it
was "Assistant:") nobody can tell a turn from a quotation: that is an error. One file is one conversation.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..conversation import Conversation, Role
from .draft import Draft
from .place import Place
from .text_source import Text

# Fewer than in JSON: "Model:" or "Person:" at the start of a line is more often text than a speaker.
_WORDS: dict[str, Role] = {
    **dict.fromkeys(("user", "human", "customer", "client", "patient", "me", "you", "you said"), "user"),
    **dict.fromkeys(
        ("assistant", "ai", "ai assistant", "bot", "chatbot", "companion", "gpt", "chatgpt", "claude", "gemini"),
        "assistant",
    ),
    **dict.fromkeys(("chatgpt said", "claude said", "gemini said"), "assistant"),
    "system": "system",
    "tool": "tool",
}
_LETTERS: dict[str, Role] = {"q": "user", "a": "assistant"}
_NAME = "|".join(sorted(_WORDS, key=len, reverse=True))
# ASCII, for other letters fold to these: a long s is no s of "user".
_FLAGS = re.IGNORECASE | re.ASCII
# style: how a line begins that names its speaker.
_STYLES: dict[str, re.Pattern[str]] = {
    "[USER]": re.compile(rf"[ \t]*\[({_NAME})\][ \t]*:?", _FLAGS),
    "**User:**": re.compile(rf"[ \t]*(?:[-*][ \t]+)?\*\*({_NAME})(?:\*\*[ \t]*:|:[ \t]*\*\*)", _FLAGS),
    "### User": re.compile(rf"[ \t]*#{{1,6}}[ \t]*({_NAME})[ \t]*(?::|$)", _FLAGS),
    "User:": re.compile(rf"[ \t]*({_NAME})[ \t]*:", _FLAGS),
    "Q:": re.compile(r"[ \t]*([qa])[ \t]*:", _FLAGS),
}


@dataclass(frozen=True, slots=True)
class _Speaker:
    style: str
    name: str
    role: Role
    rest: str


def begins_with_speaker(text: Text) -> bool:
    line = text.first_line()
    # A carriage return alone ends a line in very old files; `first_line` knows line feeds only.
    return line is not None and _speaker(line.split("\r", 1)[0]) is not None


def read_labelled(text: Text) -> Conversation:
    draft = Draft(text.place)
    names: dict[Role, str] = {}
    style, role, said = "", None, list[str]()
    for number, line in enumerate(re.split(r"\r\n|\r|\n", text.whole()), start=1):
        speaker = _speaker(line)
        if speaker and _is_new_message(speaker, style, names):
            _refuse_second_name(speaker, names, text.place.on_line(number))
            _add(draft, role, said)
            style, role, said = speaker.style, speaker.role, [speaker.rest]
            continue
        if speaker:
            draft.warn("a line that looks like a speaker, but is not written as the others, kept as text")
        said.append(line)
    _add(draft, role, said)
    if "assistant" not in names:
        draft.warn("no line names the assistant (Assistant:, AI:, Bot:, ...)")
    return draft.conversation()


def _is_new_message(speaker: _Speaker, style: str, names: dict[Role, str]) -> bool:
    late_system = speaker.role == "system" and bool(names.keys() - {"system"})
    return style in ("", speaker.style) and not late_system


def _refuse_second_name(speaker: _Speaker, names: dict[Role, str], place: Place) -> None:
    first = names.setdefault(speaker.role, speaker.name)
    if first != speaker.name:
        raise place.error(
            f"{speaker.name!r} speaks, where the {speaker.role} was called {first!r} before",
            hint="Give each speaker one name; if the line is part of a message, begin it with '>' or write JSON.",
        )


def _add(draft: Draft, role: Role | None, said: list[str]) -> None:
    if role is not None:
        draft.add(role, "\n".join(said).strip(), spoken=role != "tool")


def _speaker(line: str) -> _Speaker | None:
    for style, pattern in _STYLES.items():
        if found := pattern.match(line):
            role = {**_WORDS, **_LETTERS}[found[1].lower()]
            return _Speaker(style, found[1], role, line[found.end() :])
    return None
