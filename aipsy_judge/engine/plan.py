"""What a conversation's evaluation will take, counted from tokens before it starts.

A plan is a function of the prompts, the answers' forms and the limits alone: the same conversation is evaluated in
the same batches whatever was judged before it, so that its figures repeat to the byte.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from ..errors import CapacityError
from .tree import Branch, Tree


@dataclass(frozen=True, slots=True)
class Limits:
    """context_tokens: longest position; cells: cache cells that memory allows; sequences: that the backend has."""

    context_tokens: int
    cells: int
    sequences: int


@dataclass(frozen=True, slots=True)
class Plan:
    """Boughs in groups that are in the cache together.

    cells   the most cache cells that are in use at any time, the head and all branches counted
    tokens  tokens of prompts and first slots that will be evaluated (the head counted, answers beyond not)
    """

    groups: tuple[tuple[Branch, ...], ...]
    cells: int
    tokens: int
    width: int


def make_plan(tree: Tree, head: int, leaf_cells: Sequence[int], limits: Limits) -> Plan:
    """The widest groups that fit. `leaf_cells[i]` is what answer i may add to the cache beyond its branch.

    Raises CapacityError if not even one bough at a time fits.
    """
    base = head + len(tree.trunk)
    cells = [b.token_count() + sum(leaf_cells[leaf] for leaf in b.leaves()) for b in tree.boughs]
    sequences = [_sequences(b) for b in tree.boughs]
    for width in range(len(tree.boughs), 0, -1):
        groups = _even(len(tree.boughs), width)
        most = base + max(sum(cells[i] for i in g) for g in groups)
        busiest = 1 + PROBE_SEQUENCES + max(sum(sequences[i] for i in g) for g in groups)
        if most <= limits.cells and busiest <= limits.sequences:
            tokens = base + sum(b.token_count() for b in tree.boughs)
            boughs = tuple(tuple(tree.boughs[i] for i in g) for g in groups)
            return Plan(boughs, most, tokens, max(map(len, groups)))
    raise CapacityError(
        f"needs {base + max(cells)} cache cells with one turn at a time; memory allows {limits.cells}",
        hint="Allow more with --memory-gb.",
    )


def _even(count: int, width: int) -> list[range]:
    """`count` things in the fewest runs of at most `width`, as even as can be."""
    groups = -(-count // width)
    cuts = [round(i * count / groups) for i in range(groups + 1)]
    return [range(a, b) for a, b in pairwise(cuts)]


# Sequences kept free for probes (places inside options where the distribution branches), shared by all answers.
PROBE_SEQUENCES = 16


def _sequences(branch: Branch) -> int:
    return 1 + sum(_sequences(c) for c in branch.children)
