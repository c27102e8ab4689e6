"""Plain text, the speaker before what is said: `User: ...`, `[AI] ...`, `**Human:** ...`, `### Assistant`, `Q: ...`.

A message goes on until the next line that begins with a speaker; blank lines at its ends are dropped. The file begins
with a speaker. Replies hold lines that look like speakers too ("Model: ...", a quoted "Human:"), so the style and the
name by which a file first calls a role are that role's for the whole file, and a system message stands before all
others: any other line of the kind is kept as text, with a warning. One file is one conversation.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..conversation import Conversation, Role
from .draft import Draft
from .roles import ROLE_NAMES
from .text_source import Text

_WORDS: dict[str, Role] = {
    **{name: role for name, role in ROLE_NAMES.items() if role != "tool"},
    **dict.fromkeys(("me", "you", "you said"), "user"),
    **dict.fromkeys(("chatgpt said", "claude said", "gemini said"), "assistant"),
    "tool": "tool",
}
_LETTERS: dict[str, Role] = {"q": "user", "a": "assistant"}
_NAME = "|".join(sorted(_WORDS, key=len, reverse=True))
# style: how a line begins that names its speaker.
_STYLES: dict[str, re.Pattern[str]] = {
    "[USER]": re.compile(rf"[ \t]*\[({_NAME})\][ \t]*:?", re.IGNORECASE),
    "**User:**": re.compile(rf"[ \t]*(?:[-*][ \t]+)?\*\*({_NAME})(?:\*\*[ \t]*:|:[ \t]*\*\*)", re.IGNORECASE),
    "### User": re.compile(rf"[ \t]*#{{1,6}}[ \t]*({_NAME})[ \t]*(?::|$)", re.IGNORECASE),
    "User:": re.compile(rf"[ \t]*({_NAME})[ \t]*:", re.IGNORECASE),
    "Q:": re.compile(r"[ \t]*([qa])[ \t]*:", re.IGNORECASE),
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
    for line in re.split(r"\r\n|\r|\n", text.whole()):
        speaker = _speaker(line)
        if speaker and _is_new_message(speaker, style, names):
            _add(draft, role, said)
            style, role, said = speaker.style, speaker.role, [speaker.rest]
            names[role] = speaker.name
            continue
        if speaker:
            draft.warn("a line that looks like a speaker, but is not written as the others, kept as text")
        said.append(line)
    _add(draft, role, said)
    if "assistant" not in names:
        draft.warn("no line names the assistant (Assistant:, AI:, Bot:, ...)")
    return draft.conversation()


def _is_new_message(speaker: _Speaker, style: str, names: dict[Role, str]) -> bool:
    if style and speaker.style != style:
        return False
    if speaker.role == "system" and names.keys() - {"system"}:
        return False
    return names.get(speaker.role, speaker.name) == speaker.name


def _add(draft: Draft, role: Role | None, said: list[str]) -> None:
    if role is not None:
        draft.add(role, "\n".join(said).strip(), spoken=role != "tool")


def _speaker(line: str) -> _Speaker | None:
    for style, pattern in _STYLES.items():
        if found := pattern.match(line):
            name = found[1].lower()
            return _Speaker(style, name, {**_WORDS, **_LETTERS}[name], line[found.end() :])
    return None
