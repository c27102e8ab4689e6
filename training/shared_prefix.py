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
    rows = list(rows)
    opening = _opening([row.tokens[: row.prompt_tokens] for row in rows])
    trees: list[_Joint] = []
    alike: dict[tuple[int, ...], list[_Joint]] = {}  # by the token after the opening: others share nothing more
    for row in rows:
        near = alike.setdefault(row.tokens[: row.prompt_tokens][opening : opening + 1], [])
        shares = [(tree.shared(row), tree) for tree in near]
        fits = [(shared, tree) for shared, tree in shares if shared and tree.room(row, shared) <= max_tokens]
        if fits:
            max(fits, key=lambda pair: pair[0])[1].add(row)
        else:
            near.append(_Joint(row, opening))
            trees.append(near[-1])
    return [tree.row() for tree in trees]


class _Joint:
    """A tree in the making. Two rows belong together only where they share a good part of the shorter's prompt, and
    of what is left of it without the tokens that open every prompt (`opening`): a contract's words alone, be they a
    whole rubric, make no conversation."""

    _WORTH, _OWN = 0.5, 0.25

    def __init__(self, row: Row, opening: int) -> None:
        self._opening = opening
        self._tree = RowTree()
        self._targets: list[Target] = []
        self._names: list[str] = []
        self._prompts: list[tuple[int, ...]] = []
        self.add(row)

    def shared(self, row: Row) -> int:
        """Tokens of the row's prompt that the tree holds; 0 where they are too few to be worth it."""
        prompt = row.tokens[: row.prompt_tokens]
        common, other = max((_common(prompt, known), len(known)) for known in self._prompts)
        shorter, own = min(len(prompt), other), common - self._opening
        worth = own > 0 and common >= self._WORTH * shorter and own >= self._OWN * (shorter - self._opening)
        return common if worth else 0

    def room(self, row: Row, shared: int) -> int:
        """Tokens of the tree with the row in it, at most."""
        return len(self._tree.tokens) + len(row.tokens) - shared

    def add(self, row: Row) -> None:
        place: list[int] = []
        for token, parent in zip(row.tokens, row.parents, strict=True):
            place.append(self._tree.grow(place[parent] if parent >= 0 else -1, [token]))
        self._targets += [replace(t, at=place[t.at], weight=t.weight * row.repeats) for t in row.targets]
        self._prompts.append(row.tokens[: row.prompt_tokens])
        self._names.append(row.item_id)

    def row(self) -> Row:
        return self._tree.row(" ".join(self._names), self._targets)


def _opening(prompts: Sequence[tuple[int, ...]]) -> int:
    """Tokens that all prompts begin with: the first and the last in order share what all share."""
    return _common(min(prompts), max(prompts)) if prompts else 0


def _common(one: Sequence[int], other: Sequence[int]) -> int:
    length = 0
    for a, b in zip(one, other, strict=False):
        if a != b:
            break
        length += 1
    return length
