"""Prompts -> trunk and boughs, so that no token that prompts have in common is evaluated twice.

Prompts of one conversation share a long beginning: turn by turn the history only grows. As a tree of tokens that is
a trunk, which the longest shared path follows, and boughs that leave it: one a turn, itself branching where several
answers are asked of the same turn.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Branch:
    """Tokens that continue their parent from position `start`; `leaf` is the prompt (by index) that ends here."""

    start: int
    tokens: tuple[int, ...]
    leaf: int | None
    children: tuple[Branch, ...]

    @property
    def end(self) -> int:
        return self.start + len(self.tokens)

    def leaves(self) -> list[int]:
        """Prompts that end in this branch or its children."""
        own = [self.leaf] if self.leaf is not None else []
        return own + [leaf for child in self.children for leaf in child.leaves()]

    def token_count(self) -> int:
        return len(self.tokens) + sum(c.token_count() for c in self.children)


@dataclass(frozen=True, slots=True)
class Tree:
    """`trunk` holds the tokens from position 0; each bough leaves it at its `start`."""

    trunk: tuple[int, ...]
    boughs: tuple[Branch, ...]


@dataclass(slots=True)
class _Node:
    """`weight` is the number of tokens in the node and below it."""

    tokens: list[int]
    leaf: int | None = None
    children: list[_Node] = field(default_factory=list)
    weight: int = 0


def build_tree(prompts: Iterable[Sequence[int]]) -> Tree:
    """The tree of `prompts`. Two equal prompts are an error of the caller (ValueError).

    >>> tree = build_tree([[1, 2, 7], [1, 2, 3, 4, 8], [1, 2, 3, 4, 9]])
    >>> tree.trunk
    (1, 2, 3, 4)
    >>> [(b.start, b.tokens, b.leaf) for b in tree.boughs]
    [(2, (7,), 0), (4, (8,), 1), (4, (9,), 2)]
    """
    root = _Node([])
    for index, prompt in enumerate(prompts):
        _insert(root, list(prompt), index)
    trunk: list[int] = []
    boughs: list[Branch] = []
    node = root
    # The trunk follows the child with most tokens below it as long as that child branches itself, so that what is
    # common is never part of a bough; a prompt that is the beginning of another ends in a bough too.
    while True:
        heavy = max(node.children, key=lambda c: c.weight, default=None)
        if heavy is None or not heavy.children or heavy.leaf is not None:
            break
        boughs += [_branch(c, len(trunk)) for c in node.children if c is not heavy]
        trunk += heavy.tokens
        node = heavy
    boughs += [_branch(c, len(trunk)) for c in node.children]
    return Tree(tuple(trunk), tuple(sorted(boughs, key=lambda b: min(b.leaves()))))


def _insert(root: _Node, prompt: list[int], index: int) -> None:
    node, at, path = root, 0, [root]
    while at < len(prompt):
        child = next((c for c in node.children if c.tokens[0] == prompt[at]), None)
        if child is None:
            node.children.append(_Node(prompt[at:], index, weight=len(prompt) - at))
            for above in path:
                above.weight += len(prompt) - at
            return
        common = _common(child.tokens, prompt, at)
        if common < len(child.tokens):
            _split(child, common)
        node, at = child, at + common
        path.append(node)
    if node.leaf is not None:
        raise ValueError(f"prompts {node.leaf} and {index} are the same")
    node.leaf = index


def _split(node: _Node, length: int) -> None:
    """Cut a node in two after `length` tokens."""
    rest = _Node(node.tokens[length:], node.leaf, node.children, node.weight - length)
    node.tokens, node.leaf, node.children = node.tokens[:length], None, [rest]


def _common(tokens: list[int], prompt: list[int], at: int) -> int:
    """How many of `tokens` the prompt has from `at` on. By halves, since whole stretches are compared a hundred times
    faster than their tokens one by one, and most stretches are common."""
    length = min(len(tokens), len(prompt) - at)
    if tokens[:length] == prompt[at : at + length]:
        return length
    same, other = 0, length  # so many are the same; so many are not
    while other - same > 1:
        middle = (same + other) // 2
        if tokens[same:middle] == prompt[at + same : at + middle]:
            same = middle
        else:
            other = middle
    return same


def _branch(node: _Node, start: int) -> Branch:
    end = start + len(node.tokens)
    return Branch(start, tuple(node.tokens), node.leaf, tuple(_branch(c, end) for c in node.children))


def common_prefix(sequences: Sequence[Sequence[int]]) -> int:
    """Length of what all sequences begin with.

    >>> common_prefix([[1, 2, 3], [1, 2], [1, 2, 4]])
    2
    """
    first, *others = sequences
    length = min(map(len, sequences))
    for other in others:
        at = 0
        while at < length and other[at] == first[at]:
            at += 1
        length = at
    return length
