"""Rows of one conversation as one row: what their prompts have in common is evaluated once.

Turn by turn a conversation's history only grows, and alternative replies share all of it. Since a token sees its
ancestors alone, rows can be laid over one another as the branches of one tree without changing what any of them
trains; a conversation of ten rated replies takes a third of the tokens.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from .rows import Row, RowTree, Target


def joined(rows: Iterable[Row], max_tokens: int) -> list[Row]:
    """Rows that begin alike, joined in their order, as many as `max_tokens` hold; a row alone may be longer.

    Each token's path from the first is what it was, and so is each target but for its weight: how often a row is
    shown becomes a factor of it, since the rows of a tree are shown together.
    """
    trees: list[_Joint] = []
    for row in rows:
        fits = [(tree.shared(row), tree) for tree in trees if tree.shared(row) and tree.room(row) <= max_tokens]
        if fits:
            max(fits, key=lambda pair: pair[0])[1].add(row)
        else:
            trees.append(_Joint(row))
    return [tree.row() for tree in trees]


class _Joint:
    """A tree in the making. Two rows belong together only where they share a good part of the shorter's prompt:
    the words that open every prompt alone are not worth a joint mask."""

    _WORTH = 0.5

    def __init__(self, row: Row) -> None:
        self._tree = RowTree()
        self._targets: list[Target] = []
        self._names: list[str] = []
        self._prompts: list[tuple[int, ...]] = []
        self.add(row)

    def shared(self, row: Row) -> int:
        """Tokens of the row's prompt that the tree holds; 0 where they are too few to be worth it."""
        prompt = row.tokens[: row.prompt_tokens]
        common, other = max((_common(prompt, known), len(known)) for known in self._prompts)
        return common if common >= self._WORTH * min(len(prompt), other) else 0

    def room(self, row: Row) -> int:
        """Tokens of the tree with the row in it, at most."""
        return len(self._tree.tokens) + len(row.tokens) - self.shared(row)

    def add(self, row: Row) -> None:
        place: list[int] = []
        for token, parent in zip(row.tokens, row.parents, strict=True):
            place.append(self._tree.grow(place[parent] if parent >= 0 else -1, [token]))
        self._targets += [replace(t, at=place[t.at], weight=t.weight * row.repeats) for t in row.targets]
        self._prompts.append(row.tokens[: row.prompt_tokens])
        self._names.append(row.item_id)

    def row(self) -> Row:
        return self._tree.row(" ".join(self._names), self._targets)


def _common(one: Sequence[int], other: Sequence[int]) -> int:
    length = 0
    for a, b in zip(one, other, strict=False):
        if a != b:
            break
        length += 1
    return length
