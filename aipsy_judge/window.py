"""How much of a conversation's beginning is left out: what the judge is never shown, or what does not fit."""

from __future__ import annotations

from collections.abc import Callable

from .conversation import Conversation

Encode = Callable[[Conversation, int], list[int]]
"""The prompt that rates what the message of this index closes."""


def first_shown(upto: int, newest: int | None) -> int:
    """Index of the first message shown where only the `newest` ones up to `upto` are; None: all.

    >>> first_shown(9, 4), first_shown(2, 4), first_shown(9, None)
    (6, 0, 0)
    """
    return 0 if newest is None else max(0, upto + 1 - newest)


def fit(
    encode: Encode, conversation: Conversation, upto: int, *, room: int, newest: int | None, may_drop: bool
) -> tuple[list[int], int]:
    """The prompt and how many of the oldest messages it leaves out.

    With `may_drop`, beyond those that the judge is never shown, as few more as it takes to fit `room` tokens. The
    prompt can be too long all the same: of a talk that the judged message opens, nothing can be left out.
    """

    def without(count: int) -> list[int]:
        return encode(Conversation(conversation.id, conversation.messages[count:]), upto - count)

    first = first_shown(upto, newest)
    prompt = without(first)
    if len(prompt) <= room or not may_drop or upto == first:
        return prompt, first
    low, high = first + 1, upto  # the smallest number left out that fits lies in low..high, if any does
    while low < high:
        middle = (low + high) // 2
        if len(without(middle)) <= room:
            high = middle
        else:
            low = middle + 1
    return without(low), low


def window_notes(upto: int, dropped: int, newest: int | None) -> list[str]:
    """Remarks for the verdict on what was left out, and why."""
    first = first_shown(upto, newest)
    notes = [f"newest_messages:{newest}"] if first else []
    return notes + ([f"windowed:{dropped}"] if dropped > first else [])
