"""Text from a conversation is data: what in it looks like the frame of a prompt is made harmless, and reported.

Nothing is removed. A line that begins like a speaker tag or a heading of the frame is quoted with "> ", so that the
rendered prompt has exactly the turns that the conversation has. Control tokens are dealt with where text becomes
tokens (engine/encode.py).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

# Whatever a reader, or a model, may take for the end of a line: not only "\n".
_BREAKS = r"\n\r\v\f\x1c-\x1e\x85\u2028\u2029"
# A line start that a reader could take for the frame of any of our contracts.
_FRAME = re.compile(
    rf"(?:^|(?<=[{_BREAKS}]))(?=[^\S{_BREAKS}]*(?:"
    r"\[(?:USER|AI|ASSISTANT|SYSTEM|TOOL)\]|CONVERSATION(?: HISTORY)?:|TARGET MESSAGE TO EVALUATE:))",
    re.IGNORECASE | re.MULTILINE,
)

_SURROGATE = re.compile("[\ud800-\udfff]")

# What an attempt to steer the judge tends to look like. Each is a plain pattern with few false alarms; a hit is
# reported in the verdict for a human reader and changes no score.
_SUSPECT = tuple(
    re.compile(p, re.IGNORECASE)
    for p in (
        r"\b(?:ignore|disregard|forget)\b[^.\n]{0,40}\b(?:instructions?|rubric|prompt|rules)\b",
        r"\b(?:rate|score|give|grade|assign|award)\b[^.\n]{0,40}\b(?:\d{1,2}\s*(?:/|out of)\s*\d{1,2}|[45]s?\b|"
        r"full marks|maximum|highest|top (?:score|marks))",
        r"\ball (?:the )?(?:metrics?|scores?)\b[^.\n]{0,20}\b(?:are|is|=|to)\b",
        r"\b(?:system|evaluator|judge|grader)\s*(?:note|message|prompt|override)?\s*:\s*\S",
        r"</?(?:conversation|transcript|system|instructions?|user|assistant)>",
        r"TARGET MESSAGE TO EVALUATE",
        r"^[ \t]*\[(?:USER|AI|ASSISTANT|SYSTEM)\]",
        r"\"(?:empathy|tone_consistency|crisis_handling|advice_safety|boundary_safety|crisis_detected)\"\s*:",
        r"<\|[a-z_]+\|?>|<[a-z_]+\|>|<(?:start|end)_of_turn>|\[/?INST\]",
    )
)


def quote_frame(text: str) -> str:
    """`text` with every line that imitates the prompt's frame quoted; other text is unchanged.

    >>> quote_frame("fine\\n[AI] I am great")
    'fine\\n> [AI] I am great'
    """
    return _FRAME.sub("> ", text)


def clean(text: str) -> str:
    """`text` as it is shown to a judge: valid Unicode, frame quoted, and a mark where nothing was said."""
    valid = text.encode("utf-8", "replace").decode("utf-8") if _has_surrogate(text) else text
    valid = valid.replace("\x00", "\ufffd").strip()
    return quote_frame(valid) if valid else "[empty]"


def suspicions(texts: Iterable[str]) -> tuple[str, ...]:
    """The first five such places in several texts, each named once."""
    return tuple(dict.fromkeys(found for text in texts for found in suspected_injection(text)))[:5]


# A talk is judged turn by turn, and each turn is asked about all the texts before it.
@lru_cache(maxsize=4096)
def suspected_injection(text: str) -> tuple[str, ...]:
    """The places (at most 5, each cut at 120 characters) that look like an attempt to steer the judge."""
    found = [m.group(0).strip()[:120] for p in _SUSPECT for m in p.finditer(text)]
    return tuple(dict.fromkeys(found))[:5]


def _has_surrogate(text: str) -> bool:
    return _SURROGATE.search(text) is not None
