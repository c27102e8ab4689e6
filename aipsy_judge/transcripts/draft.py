"""Draft: one conversation in the making, and what had to be left out or changed on the way."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from typing import Any

from ..conversation import Conversation, Message, Role
from ..strict_json import whole_characters
from .place import Place


class Draft:
    """Collects messages and warnings; every format's reader fills one per conversation."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.messages: list[Message] = []
        self._warnings: Counter[str] = Counter()

    def add(self, role: Role, text: str, *, spoken: bool = True) -> None:
        self.messages.append(Message(role, self.clean(text), spoken))

    def warn(self, what: str) -> None:
        self._warnings[what] += 1

    def clean(self, text: str) -> str:
        """`text` with lone surrogates replaced by U+FFFD. Nothing else is changed, bidi marks included."""
        cleaned = whole_characters(text)
        if cleaned != text:
            self.warn("half of a surrogate pair replaced by U+FFFD")
        return cleaned

    def conversation(self, id: object = None, metadata: Mapping[str, Any] | None = None) -> Conversation:
        """What was collected. An empty id says that the file gave none.

        Raises TranscriptError when there is no message at all, or the id is neither text nor a whole number.
        """
        if not self.messages:
            raise self.place.error(
                "a conversation without messages",
                hint="Remove it from the file, or give it at least one message with role and content.",
            )
        kept = {self.clean(k): v for k, v in self._strict(metadata or {}).items()}
        return Conversation(
            id=self._id(id),
            messages=tuple(self.messages),
            metadata=kept,
            source=str(self.place),
            warnings=tuple(w if n == 1 else f"{w} ({n} times)" for w, n in self._warnings.items()),
        )

    def _id(self, id: object) -> str:
        if id is None or id == "":
            return ""
        if isinstance(id, bool) or not isinstance(id, str | int):
            raise self.place.error("the id of a conversation must be text or a whole number")
        return self.clean(str(id)).strip()

    def _strict(self, metadata: Mapping[str, Any]) -> dict[str, Any]:
        """What strict JSON can hold: a run that stores NaN could not be read back by other programs."""
        kept = {}
        for key, value in metadata.items():
            try:
                kept[key] = self._json(value)
            except ValueError:
                self.warn(f"metadata {self.clean(key)[:40]!r} left out: it holds a number that is not finite")
        return kept

    def _json(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.clean(value)
        if isinstance(value, float) and not math.isfinite(value):
            raise ValueError
        if isinstance(value, dict):
            return {self.clean(k): self._json(v) for k, v in value.items()}
        if isinstance(value, list):
            return [self._json(v) for v in value]
        return value
