"""draw.json: which items were drawn, with which probability, by which rubric they are to be rated."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from ..atomic import write_text
from ..errors import InputError
from ..rubric import Rubric
from ..strict_json import dumps, loads

FORMAT = "aipsy-judge-anchors-1"
# No vowels and no digits: neither a word nor a date nor a number, whatever a spreadsheet would like to see in it.
_LETTERS = "bcdfghjklmnpqrstvwxz"


@dataclass(frozen=True, slots=True)
class Stratum:
    """`drawn` of `items`: each had probability drawn / items."""

    name: str
    items: int
    drawn: int


@dataclass(frozen=True, slots=True)
class DrawnItem:
    """One drawn item. `code` is all that a rater sees of it beside the text; `inclusion` the probability of its draw,
    (0, 1]; `content_hash` of what was judged, where known."""

    code: str
    item_id: str
    conversation: str | None
    turn: int | None
    scenario: str | None
    generator: str | None
    generator_family: str | None
    stratum: str
    inclusion: float
    content_hash: str | None


@dataclass(frozen=True)
class Draw:
    """A draw. Not for raters: it names judges and generators. `id` is the sha256 (hex) of its content."""

    id: str
    seed: int
    rubric: Rubric
    judges: tuple[str, ...]
    sources: tuple[str, ...]
    disagreement: float
    strata: tuple[Stratum, ...]
    items: tuple[DrawnItem, ...]

    @property
    def population(self) -> int:
        """Items that the draw speaks for."""
        return sum(s.items for s in self.strata)

    @cached_property
    def by_code(self) -> dict[str, DrawnItem]:
        return {i.code: i for i in self.items}

    @cached_property
    def by_id(self) -> dict[str, DrawnItem]:
        return {i.item_id: i for i in self.items}


def draw_id(draw: Draw) -> str:
    """sha256 (hex) over everything but the codes, which are made from it, and the sources' paths."""
    data = {**_to_dict(draw), "id": None, "sources": None}
    data["items"] = [{**item, "code": None} for item in data["items"]]
    return hashlib.sha256(dumps(data, sort_keys=True).encode()).hexdigest()


def item_code(identity: str, number: int) -> str:
    """What a rater calls an item: four letters for the draw, and a number.

    >>> item_code("00" * 32, 17)
    'bbbb-017'
    """
    value, letters = int(identity, 16), ""
    for _ in range(4):
        value, place = divmod(value, len(_LETTERS))
        letters += _LETTERS[place]
    return f"{letters}-{number:03d}"


def write_draw(draw: Draw, path: str | Path) -> None:
    """Write draw.json. An existing file is never replaced: sheets may have been made from it. Raises InputError."""
    refuse_existing(path, "Sheets may have been made from it: name another file.")
    write_text(path, dumps({"made_by": "aipsy-judge", "format": FORMAT, **_to_dict(draw)}, indent=1) + "\n")


def refuse_existing(path: str | Path, hint: str) -> None:
    """Raise InputError where there is something at `path`."""
    if Path(path).exists():
        raise InputError("exists already and is not overwritten", where=str(path), hint=hint)


def read_draw(path: str | Path) -> Draw:
    """A draw from its file. Raises InputError where it is none or was changed: its probabilities would be wrong."""
    where = str(path)
    try:
        draw = _from_dict(loads(Path(path).read_bytes()))
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", where=where) from error
    except (KeyError, TypeError, ValueError, ValidationError) as error:
        raise InputError(
            f"not a draw: {error!r}", where=where, hint="`aipsy-judge anchors sample ... --out FILE` writes one."
        ) from error
    if draw_id(draw) != draw.id or any(i.code != item_code(draw.id, n) for n, i in enumerate(draw.items, start=1)):
        raise InputError("this draw was changed after it was made: its probabilities may no longer hold", where=where)
    return draw


def _to_dict(draw: Draw) -> dict[str, Any]:
    return {
        "id": draw.id,
        "seed": draw.seed,
        "rubric_hash": draw.rubric.hash,
        "rubric": draw.rubric.model_dump(mode="json"),
        "judges": list(draw.judges),
        "sources": list(draw.sources),
        "disagreement": draw.disagreement,
        "strata": [asdict(s) for s in draw.strata],
        "items": [asdict(i) for i in draw.items],
    }


def _from_dict(data: Mapping[str, Any]) -> Draw:
    if data["format"] != FORMAT:
        raise ValueError(f"format {data['format']!r} is not {FORMAT!r}")
    # Through JSON text: there, keys are strings that strict reading makes whole numbers of again (anchors).
    rubric = Rubric.model_validate_json(dumps(data["rubric"]))
    if rubric.hash != data["rubric_hash"]:
        raise ValueError("the rubric is not the one that its hash names")
    items = tuple(DrawnItem(**i) for i in data["items"])
    if not all(math.isfinite(i.inclusion) and 0 < i.inclusion <= 1 for i in items):
        raise ValueError("an inclusion probability is not above 0 and up to 1")
    return Draw(
        id=data["id"],
        seed=data["seed"],
        rubric=rubric,
        judges=tuple(data["judges"]),
        sources=tuple(data["sources"]),
        disagreement=data["disagreement"],
        strata=tuple(Stratum(**s) for s in data["strata"]),
        items=items,
    )
