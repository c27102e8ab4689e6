"""Where in the object the rubric's names stand: our flat layout, or metrics under `scores` as aipsy-bench has them."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ..rubric import Rubric
from ..strict_json import whole_characters
from .json_text import Json, JsonObject, without_format_characters

SCORES = "scores"
RATIONALE = ("rationale", "reasoning")
ASIDE = ("context_analysis",)
_DEEPEST = 3  # wrappers such as {"result": {"evaluation": {...}}} that are looked through


@dataclass(frozen=True, slots=True)
class Said:
    """What a reply says. A name that is said twice has two values; `strangers` are keys that mean nothing here."""

    values: Mapping[str, tuple[Json, ...]]
    strangers: tuple[str, ...]
    rationale: str | None
    notes: tuple[str, ...]

    def misspelt(self, name: str) -> str | None:
        """A key that looks like `name` written wrongly, or None."""
        close = difflib.get_close_matches(name, self.strangers, n=1, cutoff=0.8)
        return close[0] if close else None


def collect(found: JsonObject, rubric: Rubric) -> Said:
    """Everything said under a name of the rubric, wherever the two layouts allow it to stand.

    Keys count in any case, with blanks or hyphens for underscores. Values are never taken from elsewhere, least of
    all from the rationale.
    """
    names = rubric_names(rubric)
    places = list(_places(found, frozenset(names)))
    pairs = [(normal(key), value) for place in places for key, value in place.pairs]
    values = {name: tuple(v for k, v in pairs if k == name) for name in names}
    known = {*names, SCORES, *RATIONALE, *ASIDE}
    strangers = tuple(dict.fromkeys(k for k, _ in pairs if k not in known))
    rationale, notes = _rationale([*found.pairs, *places[0].pairs] if places[0] is not found else list(found.pairs))
    lists = [v for k, v in pairs if k == SCORES and not isinstance(v, JsonObject)]
    return Said(values, strangers, rationale, (*notes, *(["scores_not_an_object"] if lists else [])))


def rubric_names(rubric: Rubric) -> tuple[str, ...]:
    """Every key that carries part of the verdict: flags, their severities, metrics."""
    flags = [n for f in rubric.flags for n in (f.name, f.severity.name if f.severity else None) if n]
    return (*flags, *rubric.metric_names)


def normal(key: str) -> str:
    """A key as it is compared.

    >>> normal(" Tone-Consistency")
    'tone_consistency'
    """
    return re.sub(r"[\s-]+", "_", without_format_characters(key).strip().casefold())


def _places(found: JsonObject, names: frozenset[str]) -> Iterator[JsonObject]:
    body = _unwrapped(found, names | {SCORES})
    yield body
    for key, value in body.pairs:
        if normal(key) == SCORES and isinstance(value, JsonObject):
            yield _unwrapped(value, names)


def _unwrapped(found: JsonObject, known: frozenset[str]) -> JsonObject:
    for _ in range(_DEEPEST):
        if any(normal(k) in known for k, _ in found.pairs):
            break
        inner = [v for k, v in found.pairs if isinstance(v, JsonObject) and normal(k) not in ASIDE]
        if len(inner) != 1:
            break
        found = inner[0]
    return found


def _rationale(pairs: list[tuple[str, Json]]) -> tuple[str | None, tuple[str, ...]]:
    texts = [v for k, v in pairs if normal(k) in RATIONALE and isinstance(v, str)]
    if len(texts) > 1:
        return None, ("duplicate_key:rationale",)
    text = whole_characters(texts[0]).strip() if texts else ""
    return text or None, ()
