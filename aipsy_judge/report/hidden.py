"""Text of a conversation in pieces, so that a report can set apart what hides or turns a line round."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache

from ..strict_json import whole_characters
from .visible import visible


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of text. Where `hidden`, `text` is the number of one character ("U+202E") and `name` what it is."""

    text: str
    hidden: bool = False
    name: str = ""


def pieces(text: str) -> list[Piece]:
    r"""Text as it stands, and each hidden character by its number.

    Hidden is what `visible` writes as an escape (bidi controls, zero width, control characters), and what is no
    character at all (U+FFFE and the like). Joiners stay: they are part of emoji and of several scripts.

    >>> [p.text for p in pieces("a\u202eb")]
    ['a', 'U+202E', 'b']
    """
    text = whole_characters(text.replace("\r\n", "\n"))
    found: list[Piece] = []
    start = 0
    for match in re.finditer(r"[^\x20-\x7e\n\t]", text):
        if _is_hidden(match.group()):
            found += [Piece(text[start : match.start()]), _named(match.group())]
            start = match.end()
    return [p for p in (*found, Piece(text[start:])) if p.text]


def plain(text: str) -> str:
    r"""The same as one text, hidden characters in brackets.

    >>> plain("a\u202eb")
    'a[U+202E]b'
    """
    if text.isascii() and text.isprintable():  # nearly everything that a report says
        return text
    return "".join(f"[{p.text}]" if p.hidden else p.text for p in pieces(text))


def on_one_line(text: str) -> str:
    """`plain`, with every stretch of white space made one space: for ids, names and sentences."""
    return plain(" ".join(text.split()))


def excerpt(text: str, length: int = 180) -> str:
    """The beginning of a text on one line, at most `length` characters, its end marked where it was cut."""
    line = on_one_line(text)
    return line if len(line) <= length else line[: length - 1].rstrip() + "…"


def _named(char: str) -> Piece:
    return Piece(f"U+{ord(char):04X}", True, unicodedata.name(char, "control character").lower())


@lru_cache(maxsize=4096)
def _is_hidden(char: str) -> bool:
    # `visible` is asked so that a terminal and a report agree on what is hidden.
    return _is_noncharacter(char) or (char not in "\n\t" and visible(char) != char)


def _is_noncharacter(char: str) -> bool:
    return ord(char) & 0xFFFE == 0xFFFE or 0xFDD0 <= ord(char) <= 0xFDEF
