"""Groups that may not be torn apart: items of one scenario or conversation, and of texts that are nearly one.

Two conversations are joined where they have the same scenario (if the split is by scenario), where one names the other
as its `origin` (an alternative of it), where they begin with the same exchange, where two of their units show a judge
the same text, and where what the person says, or the whole, is nearly the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from aipsy_judge.conversation import Conversation

from .items import Item
from .recipe import Split
from .similarity import near_pairs, shingles

# A greeting and its answer begin many talks that have nothing else in common.
OPENING_WORDS = 20
SCENARIO = "one scenario"


@dataclass(frozen=True, slots=True)
class Link:
    """Why two conversations are in one group."""

    first: str
    second: str
    why: str


@dataclass(frozen=True, slots=True)
class Grouping:
    """of     conversation -> its group's name, the least id in it
    links  what joined them
    """

    of: Mapping[str, str]
    links: tuple[Link, ...]

    @property
    def members(self) -> dict[str, list[str]]:
        """Group -> its conversations, sorted."""
        found: dict[str, list[str]] = {}
        for conversation, group in sorted(self.of.items()):
            found.setdefault(group, []).append(conversation)
        return found


def find_groups(items: Sequence[Item], conversations: Mapping[str, Conversation], split: Split) -> Grouping:
    """Over the conversations that have items."""
    used = {item.conversation: conversations[item.conversation] for item in items}
    union = _Union(used)
    links = [*_origins(used), *_openings(used), *_same_units(items, used), *_near(used, split.near_duplicate)]
    if split.by == "scenario":
        links += _linked(_same((i.scenario, i.conversation) for i in items), SCENARIO)
    for link in links:
        union.join([link.first, link.second])
    return Grouping({name: union.root(name) for name in used}, tuple(links))


class _Union:
    """Disjoint sets of names, each known by its least."""

    def __init__(self, names: Iterable[str]) -> None:
        self._parent = {name: name for name in names}

    def root(self, name: str) -> str:
        while self._parent[name] != name:
            self._parent[name] = self._parent[self._parent[name]]
            name = self._parent[name]
        return name

    def join(self, names: Iterable[str]) -> None:
        roots = sorted({self.root(name) for name in names})
        for root in roots[1:]:
            self._parent[root] = roots[0]


def _same(pairs: Iterable[tuple[str | None, str]]) -> list[list[str]]:
    """Names that share a key, None being none; two or more each."""
    found: dict[str, dict[str, None]] = {}
    for key, name in pairs:
        if key is not None:
            found.setdefault(key, {})[name] = None
    return [list(names) for names in found.values() if len(names) > 1]


def _linked(same: Iterable[Sequence[str]], why: str) -> Iterable[Link]:
    return (Link(names[0], other, why) for names in same for other in names[1:])


def _origins(used: Mapping[str, Conversation]) -> Iterable[Link]:
    """Alternatives of one conversation, even where that one itself has no items."""
    told = {name: c.metadata.get("origin") for name, c in used.items()}
    pairs = [(str(origin), name) for name, origin in told.items() if origin is not None]
    return _linked(_same([*pairs, *((origin, origin) for origin, _ in pairs if origin in used)]), "one origin")


def _openings(used: Mapping[str, Conversation]) -> Iterable[Link]:
    return _linked(_same((_opening(c), name) for name, c in used.items()), "the same first exchange")


def _opening(conversation: Conversation) -> str | None:
    """A hash of everything up to the first reply, where that is not too short to tell one talk from another."""
    if not conversation.turns:
        return None
    first = conversation.turns[0]
    said = " ".join(m.content for m in conversation.messages[: first.index + 1])
    return conversation.turn_hash(first) if len(said.split()) >= OPENING_WORDS else None


def _same_units(items: Sequence[Item], used: Mapping[str, Conversation]) -> Iterable[Link]:
    pairs = [(_unit_hash(i, used[i.conversation]), i.conversation) for i in items]
    return _linked(_same(pairs), "a unit of the same text")


def _unit_hash(item: Item, conversation: Conversation) -> str:
    if item.turn is None:
        return conversation.content_hash
    return conversation.turn_hash(conversation.turns[item.turn - 1])


def _near(used: Mapping[str, Conversation], least: float) -> Iterable[Link]:
    """Alternatives differ in the replies alone; rewritten prompts may keep the replies: both sides are looked at."""
    sides = {
        "what the person says": {n: shingles(_text(c, "user")) for n, c in used.items()},
        "the whole text": {n: shingles(_text(c, None)) for n, c in used.items()},
    }
    for side, texts in sides.items():
        for first, second, similarity in near_pairs(texts, least):
            yield Link(first, second, f"{side} is {similarity:.2f} alike")


def _text(conversation: Conversation, role: str | None) -> str:
    return "\n".join(m.content for m in conversation.messages if role is None or m.role == role)
