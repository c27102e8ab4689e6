"""Who made what: which generators are a judge's own work or of its family, as far as names tell."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from ..errors import RatingsError
from ..ratings import Ratings

# Beginnings of model names by maker. The one that stands first in a name decides (DeepSeek-LLaMA is DeepSeek's).
_MAKERS = {
    "human": r"human",
    "openai": r"gpt|chatgpt|o[134](?![a-z0-9])|davinci",
    "anthropic": r"claude",
    "google": r"gemini|gemma|palm|bard",
    "deepseek": r"deepseek",
    "meta": r"llama",
    "alibaba": r"qwen|qwq",
    "mistral": r"mistral|mixtral|ministral|magistral",
    "xai": r"grok",
    "microsoft": r"phi(?=-)",
    "cohere": r"command(?=-)",
    "zhipu": r"glm|chatglm",
    "moonshot": r"kimi",
}
# How a judge on a server is called: openai:MODEL@URL. The model's maker is told by the model alone.
_SERVER = re.compile(r"^(?:openai|ollama):|@https?://.*$", re.IGNORECASE)
_SNAPSHOT = re.compile(r"(-preview)?(-latest|-\d{4}-\d{2}-\d{2}|-\d{2}-\d{2}|-\d{8})?$")

How = Literal["told", "name", "family"]


@dataclass(frozen=True, slots=True)
class Own:
    """A judge's own generators; `siblings` are others of its family, which count neither as own nor as foreign."""

    generators: tuple[str, ...]
    siblings: tuple[str, ...]
    how: How


def family_of(name: str) -> str | None:
    """The maker that a model's name tells, "human" for people, or None.

    >>> family_of("anthropic/claude-sonnet-4-6"), family_of("DeepSeek-LLaMA-8B"), family_of("coach-app")
    ('anthropic', 'deepseek', None)
    >>> family_of("openai:gpt-5.4-mini@https://api.example.org/v1"), family_of("ollama:gemma3:4b")
    ('openai', 'google')
    """
    text = _model(name)
    found = {maker: re.search(rf"(?<![a-z])(?:{pattern})", text) for maker, pattern in _MAKERS.items()}
    places = {maker: match.start() for maker, match in found.items() if match is not None}
    return min(places, key=places.__getitem__) if places else None


def base_name(name: str) -> str:
    """A model's name without maker, case, and date of snapshot.

    >>> base_name("openai/GPT-5.4-mini-2026-03-17")
    'gpt-5.4-mini'
    """
    return _SNAPSHOT.sub("", _model(name))


def _model(name: str) -> str:
    """The model in a judge's or generator's name: no server, no maker, no case."""
    return _SERVER.sub("", name).casefold().rsplit("/", 1)[-1]


def item_families(ratings: Ratings) -> tuple[tuple[str, ...], list[str | None], str | None]:
    """The families that occur, each item's family, and how they were had if not from the table."""
    told = [ratings.generator_family[i] for i in range(len(ratings.items))]
    note = None
    if ratings.generator_family.is_empty() and not ratings.generator.is_empty():
        by_name = {g: family_of(g) or g for g in ratings.generator.names}
        told = [by_name[g] if (g := ratings.generator[i]) is not None else None for i in range(len(ratings.items))]
        note = "no generator_family given, taken from the generators' names: " + ", ".join(
            f"{g} is {f}" for g, f in by_name.items()
        )
    return tuple(dict.fromkeys(f for f in told if f is not None)), told, note


def own_generators(
    ratings: Ratings, judges: Sequence[str], told: Mapping[str, Sequence[str]] | None = None
) -> dict[str, Own]:
    """Judge -> its own generators: as `told`, else those of its name, else those of its family; judges without any
    are left out. Raises RatingsError on an unknown judge or generator in `told`."""
    generators = ratings.generator.names
    wrong = [j for j in told or {} if j not in judges] + [
        g for gs in (told or {}).values() for g in gs if g not in generators
    ]
    if wrong:
        raise RatingsError(f"no judge or generator is called {', '.join(wrong)}")
    found: dict[str, Own] = {}
    for judge in judges:
        family = family_of(judge)
        relatives = [g for g in generators if family is not None and family_of(g) == family]
        namesakes = [g for g in generators if base_name(g) == base_name(judge)]
        how: How = "told" if judge in (told or {}) else "name" if namesakes else "family"
        own = list((told or {}).get(judge, ())) or namesakes or relatives
        if own:
            found[judge] = Own(tuple(own), tuple(g for g in relatives if g not in own), how)
    return found
