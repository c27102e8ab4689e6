"""Was the prompt given back instead of an answer? A verdict found in an echo is not the judge's."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

# Characters without blanks. Long enough that a judge's own sentence does not hit it by chance, short enough that an
# echo of a paragraph does: any echoed stretch of twice this length holds a whole window.
_WINDOW = 120
_SHORTEST = 40  # a prompt shorter than this is too short to tell an echo by


def is_echo(source: str, around: str, prompt: Iterable[str]) -> bool:
    """True where the text around the object repeats the prompt, or the object itself stands in the prompt.

    source  text of the object that was read ("" where there is none); around  the visible text beside it
    """
    beside, inside = _dense(around), _dense(source)
    for message in map(_dense, prompt):
        # An empty or tiny object would be found anywhere.
        if len(inside) >= _SHORTEST and inside in message:
            return True
        if len(beside) >= _SHORTEST and any(window in beside for window in _windows(message)):
            return True
    return False


def _dense(text: str) -> str:
    return re.sub(r"\s+", "", text)


def _windows(text: str) -> Iterator[str]:
    if _SHORTEST <= len(text) < _WINDOW:
        yield text
    for start in range(0, len(text) - _WINDOW + 1, _WINDOW):
        yield text[start : start + _WINDOW]
