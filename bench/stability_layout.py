"""The same words laid out otherwise: white space, quotation marks, Markdown. Applied to every message, the judged one
too."""

from __future__ import annotations

import re
from itertools import cycle

# The end of a sentence inside a line: a word of small letters, its mark, one blank. "Mrs. Hana" and "1. first" have
# none.
_SENTENCE_GAP = re.compile(r"(?<=[a-z]{3}[.!?]) (?=\S)")
_OPENS = r"(?:^|(?<=[\s(\[{/\u2013\u2014-]))"
_OPENING_SENTENCE = re.compile(r"\A([^\n]*?[a-z]{3}[.!?])(?=\s)")
LEAST_SENTENCES = 3  # a short reply in bold would be loud, and that a reader may hold against it


def spaced(text: str) -> str:
    r"""Between sentences in turn two blanks and a line break; every line ends in two blanks.

    >>> spaced("Good. That helps. And ring me.")
    'Good.  That helps.  \nAnd ring me.'
    """
    gaps = cycle(("  ", "\n"))
    return _SENTENCE_GAP.sub(lambda _: next(gaps), text).replace("\n", "  \n")


def curly(text: str) -> str:
    """Quotation marks and apostrophes as a typesetter has them.

    >>> curly('"I\\'m here," she said. (\\'Here\\'?)')
    '“I’m here,” she said. (‘Here’?)'
    """
    double = re.sub(rf'{_OPENS}"', "\u201c", text, flags=re.MULTILINE).replace('"', "\u201d")
    single = re.sub(rf"(?:{_OPENS}|(?<=\u201c))'", "\u2018", double, flags=re.MULTILINE)
    return single.replace("'", "\u2019")


def marked_up(text: str) -> str:
    """Markdown as assistants write it: list marks as asterisks, and the opening sentence of a longer text in bold.

    >>> marked_up("Take both. They are here. I hope it helps.")
    '**Take both.** They are here. I hope it helps.'
    """
    if "*" in text:
        return text
    listed = re.sub(r"^- ", "* ", text, flags=re.MULTILINE)
    sentences = len(_SENTENCE_GAP.findall(text)) + 1
    return listed if sentences < LEAST_SENTENCES else _OPENING_SENTENCE.sub(r"**\1**", listed)
