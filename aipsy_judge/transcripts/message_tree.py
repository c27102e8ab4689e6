"""Threads in a tree of messages: chats whose replies were edited or generated again keep every branch."""

from __future__ import annotations

from collections.abc import Mapping


def thread_to(leaf: str, parents: Mapping[str, str | None]) -> list[str]:
    """The nodes from the root down to `leaf`. A node that comes again (a cycle) ends the walk, as does an unknown one.

    >>> thread_to("c", {"a": None, "b": "a", "c": "b", "other": "a"})
    ['a', 'b', 'c']
    """
    thread: dict[str, None] = {}
    node: str | None = leaf
    while node is not None and node in parents and node not in thread:
        thread[node] = None
        node = parents[node]
    return list(reversed(thread))


def leaves(parents: Mapping[str, str | None]) -> list[str]:
    """The nodes without children, in the order of the file; all nodes when every one has a child (a cycle)."""
    inner = set(parents.values())
    return [node for node in parents if node not in inner] or list(parents)


def depths(parents: Mapping[str, str | None]) -> dict[str, int]:
    """How many nodes stand above each node; in a cycle, as many as were met before it closed."""
    found: dict[str, int] = {}
    for start in parents:
        path: dict[str, None] = {}
        node: str | None = start
        while node is not None and node in parents and node not in found and node not in path:
            path[node] = None
            node = parents[node]
        above = found[node] + 1 if node is not None and node in found else 0
        for distance, met in enumerate(reversed(path)):
            found[met] = above + distance
    return found
