"""What sequence 0 holds, and what it held before: the beginnings of conversations that come back a turn longer.

A server sees a conversation again and again, each time with one more turn, and others in between. Keeping what was
evaluated must change no figure. Where the backend's numbers do not depend on how tokens were cut into passes, a
kept beginning is, bit for bit, what evaluating it again would give, under two conditions that are kept here: no token
is evaluated alone that would have had company (one row takes another kernel than several), and a beginning lies in
the cache's first cells in order, as it would after a fresh start.

What another conversation displaces is copied out ("parked") and copied back when it returns; the oldest goes first.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from ..backends.protocol import KeepsState, TokenBackend

WORTH_KEEPING = 64  # tokens; copying a cache out and in takes about as long as evaluating a few dozen


class HeadStore(Protocol):
    """Where the evaluated head is kept between processes."""

    def load(self) -> bytes | None: ...
    def save(self, state: bytes) -> None: ...


@dataclass(slots=True)
class Reuse:
    """Tokens of trunks (the head not counted) that were at hand, and that had to be evaluated."""

    kept: int = 0
    evaluated: int = 0
    parked: int = 0
    brought_back: int = 0


class Trunks:
    """`keeping`: more than the head stays between conversations; `park_bytes`: for what was displaced."""

    def __init__(self, backend: TokenBackend) -> None:
        self._backend = backend
        self._resident: tuple[int, ...] = ()
        self._parked: OrderedDict[tuple[int, ...], bytes] = OrderedDict()
        self.keeping = False
        self.park_bytes = 0
        self.head_store: HeadStore | None = None
        self.reuse = Reuse()

    @property
    def resident(self) -> int:
        """Tokens that sequence 0 holds."""
        return len(self._resident)

    @property
    def parked_bytes(self) -> int:
        return sum(map(len, self._parked.values()))

    def keep(self, park_bytes: int) -> bool:
        """Keep conversations from now on; False where the backend's figures would change by it."""
        self.keeping = isinstance(self._backend, KeepsState) and self._backend.cuts_change_nothing
        self.park_bytes = park_bytes if self.keeping else 0
        return self.keeping

    def lost(self) -> None:
        """The cache was made anew."""
        self._resident = ()

    def holds(self, tokens: Sequence[int]) -> None:
        """Sequence 0 was evaluated up to the end of `tokens`."""
        self._resident = tuple(tokens)

    def settle(self, head: int) -> None:
        """A conversation is done: trim sequence 0 to what stays."""
        if not self.keeping:
            self._resident = self._resident[:head]
        self._backend.trim(0, len(self._resident))

    def bring(self, wanted: Sequence[int], head: int) -> int:
        """Make sequence 0 hold the longest beginning of `wanted` that is at hand; how many tokens that is.

        Never only a part of the head, which is evaluated by itself and whole.
        """
        wanted = tuple(wanted)
        usable = self._usable(self._resident, wanted, head)
        best = max(self._parked, key=lambda p: self._usable(p, wanted, head), default=())
        other = self._usable(best, wanted, head)
        if other >= usable + WORTH_KEEPING and self._swap_in(best, head):
            usable = other
        elif self._is_another(usable, head):
            self._park()
        self._resident = self._resident[:usable]
        self._backend.trim(0, usable)
        if self.keeping:
            self.reuse.kept += max(0, usable - head)
            self.reuse.evaluated += len(wanted) - max(usable, head)
        return usable

    def divided(self, tokens: Sequence[int], most: int) -> tuple[int, ...]:
        """The beginning of `tokens`, at most `most` long, that can be evaluated by itself so that neither it nor the
        rest has a token alone; empty where all of them in one go would have one."""
        if not isinstance(self._backend, KeepsState) or _ends_alone(len(tokens), self._backend.micro_batch_tokens):
            return ()
        micro = self._backend.micro_batch_tokens
        while most > 0 and (_ends_alone(most, micro) or _ends_alone(len(tokens) - most, micro)):
            most -= 1
        return tuple(tokens[: max(0, most)])

    def recall_head(self, head: Sequence[int]) -> bool:
        """Take the head from where it is kept between processes."""
        if self.head_store is None or not isinstance(self._backend, KeepsState):
            return False
        state = self.head_store.load()
        if state is None or not self._backend.load_sequence(0, state):
            self._backend.trim(0, 0)
            return False
        self._resident = tuple(head)
        return True

    def remember_head(self) -> None:
        """Sequence 0 holds the head and nothing else: keep it for the next process."""
        if self.head_store is not None and isinstance(self._backend, KeepsState):
            self.head_store.save(self._backend.save_sequence(0))

    def _usable(self, held: tuple[int, ...], wanted: tuple[int, ...], head: int) -> int:
        shared = _common(held, wanted)
        if shared < head or (not head and not self.keeping):
            return 0
        if not self.keeping:
            return head
        assert isinstance(self._backend, KeepsState)
        micro = self._backend.micro_batch_tokens
        if _ends_alone(len(wanted) - head, micro):
            return head  # its last token has no company when all is evaluated: so it is now
        while shared > head and _ends_alone(len(wanted) - shared, micro):
            shared -= 1
        return shared

    def _is_another(self, usable: int, head: int) -> bool:
        """What is held belongs to another conversation than the one that comes, and is worth a copy."""
        held = len(self._resident)
        return self.keeping and held - usable >= WORTH_KEEPING and 2 * max(0, usable - head) < held - head

    def _swap_in(self, parked: tuple[int, ...], head: int) -> bool:
        assert isinstance(self._backend, KeepsState)
        state = self._parked.pop(parked)
        if len(self._resident) - head >= WORTH_KEEPING:
            self._park()
        self._backend.trim(0, 0)
        self._resident = ()
        if not self._backend.load_sequence(0, state):
            self._backend.trim(0, 0)
            return False
        self._resident = parked
        self.reuse.brought_back += 1
        return True

    def _park(self) -> None:
        if not self.park_bytes or not isinstance(self._backend, KeepsState):
            return
        # A copy that this one goes on from is of no more use.
        for old in [p for p in self._parked if self._resident[: len(p)] == p]:
            del self._parked[old]
        self._parked[self._resident] = self._backend.save_sequence(0)
        self.reuse.parked += 1
        while self._parked and self.parked_bytes > self.park_bytes:
            self._parked.popitem(last=False)


def _ends_alone(tokens: int, micro: int) -> bool:
    """Whether the last of `tokens` evaluated in one go is alone in its micro-batch."""
    return tokens > 0 and tokens % micro == 1


def _common(a: Sequence[int], b: Sequence[int]) -> int:
    length = 0
    for x, y in zip(a, b, strict=False):
        if x != y:
            break
        length += 1
    return length
