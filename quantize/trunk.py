"""One prompt in the cache at a time, and branches that leave it: what free decoding and following an answer share."""

from __future__ import annotations

from collections.abc import Sequence

from aipsy_judge.backends.protocol import Feed, Logits, TokenBackend
from aipsy_judge.engine.tree import common_prefix


class Trunk:
    """Sequence 0 holds a prompt up to its last token; branches take that token along, so that each has logits of its
    own, and may leave it earlier. Prompts of one conversation begin alike: what is there already is not evaluated
    again."""

    def __init__(self, backend: TokenBackend, cells: int) -> None:
        self._backend = backend
        self._there: list[int] = []
        backend.reserve(cells)
        self.clear()

    def stand_on(self, prompt: Sequence[int]) -> None:
        """Make sequence 0 hold all of `prompt` but its last token."""
        body = list(prompt[:-1])
        shared = common_prefix([self._there, body])
        self._backend.trim(0, shared)
        if body[shared:]:
            self._backend.evaluate([Feed(0, shared, body[shared:])])
        self._there = body

    def branch(self, sequence: int, path: Sequence[int]) -> Feed:
        """A feed of what `path` (a prompt and what follows it) has beyond what sequence 0 holds of it, on a branch of
        its own; logits of the last token."""
        shared = common_prefix([self._there, path])
        self._backend.fork(0, sequence, shared)
        return Feed(sequence, shared, path[shared:], want_logits=True)

    def drop(self, sequences: int) -> None:
        """Forget branches 1 to `sequences`."""
        for sequence in range(1, sequences + 1):
            self._backend.trim(sequence, 0)

    def clear(self) -> None:
        """Forget everything."""
        self.drop(self._backend.max_sequences - 1)
        self._backend.trim(0, 0)
        self._there = []

    def evaluate(self, feeds: Sequence[Feed]) -> list[Logits]:
        return self._backend.evaluate(feeds)
