"""A token backend small enough to check by eye: its logits are a hash of all tokens on the sequence.

So a token evaluated on the wrong sequence, at the wrong position or after the wrong prefix shows at once. Cells are
counted as llama.cpp's unified cache does: one a token evaluated, shared by forks, free when no sequence holds it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from aipsy_judge.backends.protocol import Feed, Logits, Work
from aipsy_judge.errors import CapacityError

MARKERS = ("<|start|>", "<|end|>")
_WORDS = [
    *(bytes([b]) for b in range(256)), b'":', b'":"', b'","', b',"', b'{"', b" 1", b" 2", b"null", b"nul", b"true",
    b"N/", b"N/A", b'"N', b"10", b"empathy", b"tone", b"crisis", b"indirect", b"in", b"user\n", b"ra", b"rationale",
    b"[USER] ", b"[ASSISTANT] ", b"the ", b"judge", b' "', b"none",
]  # fmt: skip
TEMPLATE = (
    "{% for m in messages %}<|start|>{{ m['role'] }}\n{{ m['content'] }}<|end|>\n{% endfor %}"
    "{{ '<|start|>assistant\n' }}"
)


class ToyModel:
    """See backends.protocol.TokenBackend."""

    name = "toy"
    max_sequences = 64
    begin_token = None
    cell_bytes = 1024
    chat_template = TEMPLATE

    def __init__(self, seed: int = 0, context_tokens: int = 100_000, spread: float = 3.0) -> None:
        self.vocabulary: Sequence[bytes] = [*_WORDS, b"", b""]
        self._ids = {word: i for i, word in enumerate(_WORDS)}
        self.marker_texts = MARKERS
        self.special_tokens = {"bos_token": "<|start|>", "eos_token": "<|end|>"}
        self.end_tokens = frozenset({len(_WORDS) + 1})
        self.context_tokens = context_tokens
        self.work = Work()
        self._seed, self._spread = seed, spread
        self._sequences: dict[int, list[tuple[int, int]]] = {}  # sequence -> (token, cell)
        self._next_cell = 0
        self.cells = 0
        self.most_cells = 0
        self.evaluated: list[Feed] = []

    def tokenize(self, text: str, *, special: bool) -> list[int]:
        """Longest match first."""
        return list(self._spell(text, special))

    @lru_cache(maxsize=4096)  # noqa: B019 - a test's models live as long as the test
    def _spell(self, text: str, special: bool) -> list[int]:
        data, out, at = text.encode(), [], 0
        ids = self._ids
        while at < len(data):
            marker = next((m for m in MARKERS if special and data.startswith(m.encode(), at)), None)
            if marker is not None:
                out.append(len(_WORDS) + MARKERS.index(marker))
                at += len(marker)
                continue
            length = next(n for n in range(11, 0, -1) if data[at : at + n] in ids and at + n <= len(data))
            out.append(ids[data[at : at + length]])
            at += length
        return out

    def reserve(self, cells: int) -> bool:
        if cells <= self.cells:
            return False
        self.cells, self._sequences = cells, {}
        return True

    def evaluate(self, feeds: Sequence[Feed]) -> list[Logits]:
        self.work.passes += 1
        out = []
        for feed in feeds:
            held = self._sequences.setdefault(feed.sequence, [])
            assert len(held) == feed.start, f"sequence {feed.sequence} holds {len(held)} tokens, fed at {feed.start}"
            assert feed.tokens
            for token in feed.tokens:
                held.append((int(token), self._next_cell))
                self._next_cell += 1
                self.work.tokens += 1
            self.evaluated.append(feed)
            if feed.want_logits:
                out.append(self.logits([t for t, _ in held]))
        used = len({cell for held in self._sequences.values() for _, cell in held})
        self.most_cells = max(self.most_cells, used)
        if used > self.cells:
            raise CapacityError(f"{used} cells used of {self.cells}")
        return out

    def logits(self, tokens: Sequence[int]) -> Logits:
        key = hashlib.sha256(np.array([self._seed, *tokens], dtype=np.int64).tobytes()).digest()
        rng = np.random.default_rng(int.from_bytes(key[:8], "little"))
        return rng.normal(0.0, self._spread, len(self.vocabulary)).astype(np.float32)

    def fork(self, source: int, target: int, length: int) -> None:
        assert length <= len(self._sequences.get(source, []))
        self._sequences[target] = list(self._sequences.get(source, [])[:length])

    def trim(self, sequence: int, length: int) -> None:
        held = self._sequences.get(sequence, [])
        self._sequences[sequence] = held[:length]

    def describe(self) -> dict[str, Any]:
        return {"backend": "toy"}

    def close(self) -> None:
        self._sequences = {}
