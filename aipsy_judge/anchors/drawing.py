"""The draw: systematic within strata, so that every item of a stratum has exactly the same chance."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..ratings import Ratings
from ..rubric import Rubric
from .allocation import allocate
from .draw_file import Draw, DrawnItem, Stratum, draw_id, item_code
from .strata import DEFAULT_SHARES, DISAGREEMENT, stratify


def draw_anchors(
    ratings: Ratings,
    rubric: Rubric,
    *,
    n: int,
    seed: int,
    shares: Mapping[str, float] = DEFAULT_SHARES,
    disagreement: float = DISAGREEMENT,
    hashes: Mapping[str, str] | None = None,
    sources: Sequence[str] = (),
) -> Draw:
    """`n` items (or all, where there are no more) for experts to rate, with the probability that each had.

    hashes   content hash of items, by id, where known: the sheet is then made from the very text that was judged
    sources  where the ratings came from, for people

    Raises InputError or RatingsError; see `stratify` and `allocate`.
    """
    if n < 1:
        raise InputError("at least one item must be drawn")
    places = stratify(ratings, rubric, disagreement=disagreement)
    taken = allocate({name: len(found) for name, found in places.items()}, shares, n)
    rng = random.Random(seed)
    items = []
    for name, frame in places.items():
        for place in systematic(by_conversation(ratings, frame, rng), taken[name], rng):
            items.append(_item(ratings, place, name, taken[name] / len(frame), hashes or {}))
    # The order, and with it the codes, must not tell the stratum.
    rng.shuffle(items)
    draw = Draw(
        id="",
        seed=seed,
        rubric=rubric,
        judges=ratings.judges,
        sources=tuple(sources),
        disagreement=disagreement,
        strata=tuple(Stratum(name, len(places[name]), taken[name]) for name in places),
        items=tuple(items),
    )
    identity = draw_id(draw)
    coded = tuple(replace(item, code=item_code(identity, n)) for n, item in enumerate(items, start=1))
    return replace(draw, id=identity, items=coded)


def by_conversation(ratings: Ratings, frame: NDArray[np.intp], rng: random.Random) -> list[int]:
    """The items of a stratum conversation by conversation, the conversations in random order: a systematic sample of
    such a list takes neighbours only where it must, and so reaches as many conversations as it can."""
    groups: dict[int, list[int]] = {}
    codes = ratings.groups("conversation")
    for place in frame:
        groups.setdefault(int(codes[place]), []).append(int(place))
    order = list(groups.values())
    rng.shuffle(order)
    return [place for group in order for place in group]


def systematic(frame: Sequence[int], n: int, rng: random.Random) -> list[int]:
    """`n` of the frame at equal steps from a random start, in whole numbers: place (u + k N) // n for k = 0 .. n - 1,
    u uniform on 0 .. N - 1.

    Each place j is taken where u + k N falls among the n numbers from j n on: with probability n / N exactly (Madow
    1949; Särndal, Swensson and Wretman 1992, section 3.4).
    """
    if n == 0:
        return []
    size = len(frame)
    start = rng.randrange(size)
    return [frame[(start + k * size) // n] for k in range(n)]


def _item(ratings: Ratings, place: int, stratum: str, inclusion: float, hashes: Mapping[str, str]) -> DrawnItem:
    turn = int(ratings.turn[place])
    return DrawnItem(
        code="",
        item_id=ratings.items[place],
        conversation=ratings.conversation[place],
        turn=turn if turn > 0 else None,
        scenario=ratings.scenario[place],
        generator=ratings.generator[place],
        generator_family=ratings.generator_family[place],
        stratum=stratum,
        inclusion=inclusion,
        content_hash=hashes.get(ratings.items[place]),
    )
