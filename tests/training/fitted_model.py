"""A backend that says exactly what rows of training say: a model that has learnt them without fault.

Its tokens are another backend's or tokenizer's. Asked about a sequence of tokens that is in no row it fails, so what
the engine sends must be, token by token, what training rendered; and what it then reads must be the soft labels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from aipsy_judge.backends.protocol import Feed, Logits, Tokens, Work
from training.rows import Row

SURE = 40.0
ROOT, STRANGE = 0, -1


class FittedModel:
    """See backends.protocol.TokenBackend. Where a row has no target it goes on as the row's tokens do."""

    name = "fitted"
    context_tokens = 100_000
    max_sequences = 128
    cell_bytes = 1024

    def __init__(self, tokens: Tokens, rows: Sequence[Row]) -> None:
        self._tokens = tokens
        self.vocabulary = tokens.vocabulary
        self.marker_texts, self.chat_template = tokens.marker_texts, tokens.chat_template
        self.special_tokens: Mapping[str, str] = tokens.special_tokens
        self.end_tokens, self.begin_token = tokens.end_tokens, tokens.begin_token
        self.work = Work()
        self._sequences: dict[int, list[int]] = {}  # sequence -> node of the rows' common tree after every token
        self._children: dict[tuple[int, int], int] = {}
        self._wanted: list[dict[int, float]] = [{}]  # by node
        for row in rows:
            self._learn(row)

    def _learn(self, row: Row) -> None:
        nodes: list[int] = []
        for token, parent in zip(row.tokens, row.parents, strict=True):
            before = nodes[parent] if parent >= 0 else ROOT
            if (before, token) not in self._children:
                self._children[before, token] = len(self._wanted)
                self._wanted.append({})
            self._wanted[before].setdefault(token, 0.0)
            nodes.append(self._children[before, token])
        for target in row.targets:
            if target.slot is not None or target.kind == "rationale":
                self._wanted[nodes[target.at]].update(zip(target.tokens, target.shares, strict=True))

    def tokenize(self, text: str, *, special: bool) -> list[int]:
        return self._tokens.tokenize(text, special=special)

    def reserve(self, cells: int) -> bool:
        return False

    def evaluate(self, feeds: Sequence[Feed]) -> list[Logits]:
        out = []
        for feed in feeds:
            held = self._sequences.setdefault(feed.sequence, [])
            assert len(held) == feed.start
            node = held[-1] if held else ROOT
            assert node != STRANGE, f"what was fed before {self._text(feed.tokens)} is in no row"
            for token in feed.tokens:
                node = self._children.get((node, int(token)), STRANGE)
                held.append(node)
            if feed.want_logits:
                out.append(self._logits(node))
        return out

    def _text(self, tokens: Sequence[int]) -> str:
        return b"".join(self.vocabulary[t] for t in tokens).decode(errors="replace")

    def _logits(self, node: int) -> Logits:
        """Of a node that is in no row: nothing is likely. Only a probe of a branch without any share may lead there,
        since nothing is ever fed after a probe."""
        logits = np.full(len(self.vocabulary), -SURE, dtype=np.float32)
        wanted = self._wanted[node] if node != STRANGE else {}
        total = sum(wanted.values())
        for token, share in wanted.items():
            logits[token] = np.log(share) if share > 0 else 0.0 if total == 0 else -SURE
        return logits

    def fork(self, source: int, target: int, length: int) -> None:
        self._sequences[target] = self._sequences.get(source, [])[:length]

    def trim(self, sequence: int, length: int) -> None:
        self._sequences[sequence] = self._sequences.get(sequence, [])[:length]

    def describe(self) -> dict[str, Any]:
        return {"backend": "fitted"}

    def close(self) -> None:
        self._sequences = {}
