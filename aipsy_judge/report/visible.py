"""Text of strangers made safe to print: nothing hidden, nothing reordered, no terminal command."""

from __future__ import annotations

import unicodedata

from ..strict_json import whole_characters

# Format characters that scripts and emoji need: soft hyphen, zero-width non-joiner and joiner.
HARMLESS_FORMAT = frozenset("\u00ad\u200c\u200d")


def visible(text: str, *, keep_newlines: bool = True) -> str:
    r"""`text` with controls, bidi overrides and other format characters written out as escapes.

    Letters of every script, combining marks and joined emoji pass unchanged. Half a surrogate pair becomes U+FFFD.
    Line separators other than a newline are escaped too, and newlines with `keep_newlines` False.

    >>> visible("safe \u202eoverride\x1b[31m")
    'safe \\u202eoverride\\x1b[31m'
    """
    text = whole_characters(text.replace("\r\n", "\n"))
    return "".join(_shown(c, keep_newlines) for c in text)


def _shown(char: str, keep_newlines: bool) -> str:
    if char == "\n" and keep_newlines:
        return char
    if char == "\t":
        return "    "
    hidden = unicodedata.category(char) in {"Cc", "Cf", "Zl", "Zp"} and char not in HARMLESS_FORMAT
    return char.encode("unicode_escape").decode("ascii") if hidden else char
