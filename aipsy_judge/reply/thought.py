"""Thinking that a model wrote into its visible reply: removed before anything is read, whatever it contains."""

from __future__ import annotations

import re

# Opening and closing mark, by model family: DeepSeek and Qwen; Anthropic style; Gemma 4; Magistral; gpt-oss.
_MARKS = (
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("<|channel>thought", "<channel|>"),
    ("[THINK]", "[/THINK]"),
    ("<|channel|>analysis<|message|>", "<|end|>"),
)
_PATTERNS = tuple(tuple(re.compile(re.escape(mark), re.IGNORECASE) for mark in pair) for pair in _MARKS)


def thought_ends(text: str) -> list[int]:
    """Where thinking may have ended: behind each closing mark, the first twenty in order."""
    return sorted(m.end() for _, closing in _PATTERNS for m in closing.finditer(text))[:20]


def without_thought(text: str) -> tuple[str, bool]:
    """The visible part, and whether there was thinking.

    From the first opening mark to the last closing one all is thought, for thinking may quote a closing mark. A
    closing mark alone ends thinking that began in the prompt; an opening mark alone begins thinking that never ended.

    >>> without_thought('<think>{"empathy":1}</think>{"empathy":4}')
    ('{"empathy":4}', True)
    """
    found = False
    for opening, closing in _PATTERNS:
        ends = list(closing.finditer(text))
        if ends:
            start = opening.search(text, 0, ends[-1].start())
            text = text[: start.start() if start else 0] + text[ends[-1].end() :]
            found = True
        unended = opening.search(text)
        if unended:
            text = text[: unended.start()]
            found = True
    return text, found
