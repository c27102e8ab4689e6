"""What a backend offers. The planning (engine/) knows nothing else of the library that runs the model.

Two kinds exist: a `TokenBackend` gives logits and is driven slot by slot; a `ReplyBackend` only answers with text
(a server) and is driven by JSON schema, its reply validated whatever it promises.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

Logits = NDArray[np.float32]  # shape (vocabulary,)


@dataclass(frozen=True, slots=True)
class Feed:
    """Tokens to evaluate on one sequence, from position `start`; logits of the last one if `want_logits`."""

    sequence: int
    start: int
    tokens: Sequence[int]
    want_logits: bool = False

    def __post_init__(self) -> None:
        if not len(self.tokens):
            raise ValueError("a feed of no tokens: its logits would be those of the feed before it")


@dataclass(slots=True)
class Work:
    """What a backend has evaluated so far; a plan's own counts are checked against it."""

    tokens: int = 0
    passes: int = 0


class Tokens(Protocol):
    """How text becomes tokens: all that writing a prompt or an answer takes, without a model."""

    @property
    def name(self) -> str: ...
    @property
    def vocabulary(self) -> Sequence[bytes]:
        """The bytes each token id stands for (b"" for control tokens)."""

    @property
    def marker_texts(self) -> tuple[str, ...]:
        """Texts of control and user-defined marker tokens, which conversation text must never turn into."""

    @property
    def chat_template(self) -> str | None: ...
    @property
    def special_tokens(self) -> Mapping[str, str]:
        """Texts of bos_token and eos_token, for the chat template."""

    @property
    def end_tokens(self) -> frozenset[int]: ...
    def tokenize(self, text: str, *, special: bool) -> list[int]:
        """Token ids; no BOS is added. With `special` False, control tokens in the text stay plain text."""

    @property
    def begin_token(self) -> int | None:
        """The id that must open a text exactly once, or None where the tokenizer wants none."""


class TokenBackend(Tokens, Protocol):
    """A model in this process, as a few primitives on numbered sequences that share one cache.

    Sequence numbers run from 0 to `max_sequences - 1`; positions from 0. All calls are deterministic.
    """

    @property
    def context_tokens(self) -> int:
        """Longest position the model was trained for."""

    @property
    def max_sequences(self) -> int: ...
    @property
    def work(self) -> Work: ...
    @property
    def cell_bytes(self) -> int:
        """Bytes of cache that one token takes."""

    def reserve(self, cells: int) -> bool:
        """Make room for `cells` cache cells in all; True if the cache had to be made anew, so that nothing of
        what was evaluated is left. Raises CapacityError."""

    def evaluate(self, feeds: Sequence[Feed]) -> list[Logits]:
        """Evaluate all feeds in as few passes as fit; logits of those that want them, in order."""

    def fork(self, source: int, target: int, length: int) -> None:
        """Let `target` share the first `length` positions of `source`."""

    def trim(self, sequence: int, length: int) -> None:
        """Forget positions from `length` on."""

    def describe(self) -> dict[str, Any]:
        """Provenance: library, version, device, settings that can change a figure."""

    def close(self) -> None: ...


@runtime_checkable
class Interruptible(Protocol):
    """A backend that asks before every pass whether to go on: one evaluation of a long prompt is many passes.

    What `before_pass` raises comes out of `evaluate`; what was evaluated of it can be trimmed away.
    """

    before_pass: Callable[[], None]


@runtime_checkable
class KeepsState(Protocol):
    """A backend whose sequences can be copied out of the cache and back, to the bit."""

    @property
    def cuts_change_nothing(self) -> bool:
        """Logits are the same however tokens are cut into passes, as long as none is evaluated alone."""

    @property
    def micro_batch_tokens(self) -> int:
        """Most tokens that are evaluated side by side."""

    def save_sequence(self, sequence: int) -> bytes: ...
    def load_sequence(self, sequence: int, state: bytes) -> bool:
        """Put a saved state in place of what the sequence holds; False where it does not fit this model."""


@dataclass(frozen=True, slots=True)
class Reply:
    """A server's answer. finish: "stop", "length", "content_filter", or None where the server named none."""

    text: str | None
    finish: str | None
    thinking: str | None = None
    raw: Mapping[str, Any] | None = None
    notes: tuple[str, ...] = ()


class ReplyBackend(Protocol):
    """A server that answers with text."""

    @property
    def name(self) -> str: ...
    @property
    def is_remote(self) -> bool:
        """True where text leaves this machine."""

    def ask(
        self,
        messages: Sequence[Mapping[str, str]],
        *,
        schema: Mapping[str, Any] | None,
        max_tokens: int,
    ) -> Reply:
        """One answer. Raises BackendError (retryable or not)."""

    def describe(self) -> dict[str, Any]: ...
    def close(self) -> None: ...
