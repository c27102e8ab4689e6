"""Bounded free text: the rationale, written after the scores by the same branch.

The grammar is small enough to be a mask over the vocabulary: any text without quotes, backslashes and control
characters, up to a closing quote or a number of tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ..backends.protocol import Logits


@dataclass(frozen=True, slots=True)
class ProseMask:
    """allowed: token may stand in the text, shape (vocabulary,); closing: token begins with the closing quote."""

    allowed: NDArray[np.bool_]
    closing: NDArray[np.bool_]


def prose_mask(vocabulary: Sequence[bytes], end_tokens: frozenset[int]) -> ProseMask:
    """Control tokens (no bytes) and end tokens are never allowed."""
    allowed = np.array([bool(p) and not any(b < 32 or b in b'"\\' for b in p) for p in vocabulary])
    closing = np.array([p.startswith(b'"') for p in vocabulary])
    for token in end_tokens:
        allowed[token] = closing[token] = False
    return ProseMask(allowed, closing)


@dataclass(slots=True)
class Prose:
    """A text in progress. `cut` says that the limit ended it, not the judge."""

    mask: ProseMask
    vocabulary: Sequence[bytes]
    max_tokens: int
    least_tokens: int = 0
    tokens: list[int] = field(default_factory=list)
    done: bool = False
    cut: bool = False

    def take(self, logits: Logits) -> int | None:
        """The next token, or None where the text has ended."""
        either = self.mask.allowed
        if len(self.tokens) >= self.least_tokens:
            either = either | self.mask.closing
        token = int(np.where(either, logits, -np.inf).argmax())
        if self.mask.closing[token]:
            self.done = True
            return None
        if len(self.tokens) == self.max_tokens:
            self.done = self.cut = True
            return None
        self.tokens.append(token)
        return token

    @property
    def text(self) -> str:
        """What was written, and a mark where the limit ended it."""
        whole = self.plain.strip()
        return f"{whole} …" if self.cut else whole

    @property
    def plain(self) -> str:
        """What was written; half a character at a cut end is left out."""
        return b"".join(self.vocabulary[t] for t in self.tokens).decode("utf-8", "ignore")
