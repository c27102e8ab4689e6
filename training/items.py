"""Items: what was rated, each with the turn it is and the group of texts it comes from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aipsy_judge.conversation import Conversation
from aipsy_judge.errors import InputError, RatingsError
from aipsy_judge.ratings import Ratings
from aipsy_judge.ratings.files import read_chunks
from aipsy_judge.ratings.from_runs import generator_of
from aipsy_judge.rubric import Rubric

SCENARIO_KEYS = ("scenario", "scenario_id", "situation", "sample")
COLUMNS = ("conversation", "turn", "scenario", "generator")
SHOWN = 20


@dataclass(frozen=True, slots=True)
class Item:
    """One rated unit. `turn` counts assistant messages from 1, None for a whole conversation."""

    id: str
    conversation: str
    turn: int | None
    scenario: str | None
    generator: str | None


def find_items(
    ratings: Ratings,
    conversations: Mapping[str, Conversation],
    rubric: Rubric,
    told: Path | None,
    *,
    last: bool = False,
) -> tuple[Item, ...]:
    """The items of the table, in its order.

    Conversation, turn, scenario and generator come from the table, else from the map `told`; the last two else from
    the conversation's metadata. An item without a conversation is the one whose id is its own; one without a turn is
    the only turn of its conversation, or (`last`) the last. Raises RatingsError with every item that has no text.
    """
    beside = _read_map(told) if told is not None else {}
    found: list[Item] = []
    faults: list[str] = []
    for place, name in enumerate(ratings.items):
        cells = _cells(ratings, place, beside.get(name, {}), name, faults)
        item = _item(name, cells, conversations, rubric, last)
        if isinstance(item, str):
            faults.append(f"{name}: {item}")
        else:
            found.append(item)
    faults += _same_unit(found)
    if faults:
        more = [f"... and {len(faults) - SHOWN} more"] if len(faults) > SHOWN else []
        raise RatingsError(
            "rated items that cannot be used:\n" + "\n".join(f"  {line}" for line in [*faults[:SHOWN], *more]),
            hint="Give the ratings the columns conversation and turn, or data.items, and the files with their texts; "
            "data.turns: last where each rating is of the last turn.",
        )
    return tuple(found)


def seen(item: Item, conversation: Conversation) -> Conversation:
    """What a judge of the item may see: the messages up to and including its turn."""
    if item.turn is None:
        return conversation
    turn = conversation.turns[item.turn - 1]
    return Conversation(conversation.id, conversation.messages[: turn.index + 1], conversation.metadata)


def _item(
    name: str, cells: Mapping[str, Any], conversations: Mapping[str, Conversation], rubric: Rubric, last: bool
) -> Item | str:
    """The item, or what is wrong with it."""
    id = cells["conversation"] or name
    conversation = conversations.get(id)
    if conversation is None:
        return f"no conversation {id!r} among the files" if cells["conversation"] else "no conversation is told"
    turns = len(conversation.turns)
    turn = None if rubric.unit == "conversation" else cells["turn"] or (turns if last or turns == 1 else None)
    if rubric.unit == "turn":
        if turn is None:
            return f"which of the {turns} turns of {id} is not told"
        if not 1 <= turn <= turns:
            return f"turn {turn} of {id}, which has {turns}"
    about = conversation.metadata
    return Item(
        name,
        id,
        turn,
        cells["scenario"] or next((str(about[k]) for k in SCENARIO_KEYS if isinstance(about.get(k), str | int)), None),
        cells["generator"] or generator_of(about),
    )


def _cells(ratings: Ratings, place: int, beside: Mapping[str, Any], name: str, faults: list[str]) -> dict[str, Any]:
    own: dict[str, Any] = {
        "conversation": ratings.conversation[place],
        "turn": int(ratings.turn[place]) if ratings.turn[place] > 0 else None,
        "scenario": ratings.scenario[place],
        "generator": ratings.generator[place] or ratings.generator_family[place],
    }
    for column, value in own.items():
        other = beside.get(column)
        if value is not None and other is not None and value != other:
            faults.append(f"{name}: {column} is {value} in the ratings and {other} in the map")
        own[column] = value if value is not None else other
    return own


def _same_unit(items: Sequence[Item]) -> list[str]:
    """Two items may not be one unit: its ratings would be told twice, and could differ."""
    first: dict[tuple[str, int | None], str] = {}
    faults = []
    for item in items:
        other = first.setdefault((item.conversation, item.turn), item.id)
        if other != item.id:
            faults.append(f"{item.id}: is the same turn as {other}")
    return faults


def _read_map(path: Path) -> dict[str, dict[str, Any]]:
    """item -> its cells. InputError where there is no column item_id, or an item stands twice."""
    found: dict[str, dict[str, Any]] = {}
    for chunk in read_chunks(path):
        if chunk.faults:
            raise InputError(chunk.faults[0][1], where=f"{path}, row {chunk.faults[0][0]}")
        names = chunk.columns.get("item_id")
        if names is None:
            raise InputError("no column item_id", where=str(path))
        for n, name in enumerate(names):
            if str(name) in found:
                raise InputError(f"{name} stands twice", where=f"{path}, row {chunk.rows[n]}")
            found[str(name)] = {
                c: _cell(c, chunk.columns[c][n], path, chunk.rows[n]) for c in COLUMNS if c in chunk.columns
            }
    return found


def _cell(column: str, value: Any, path: Path, row: int) -> Any:
    if value is None or str(value).strip() == "":
        return None
    if column != "turn":
        return str(value).strip()
    try:
        number = float(value)
    except ValueError:
        number = 0.0
    if number < 1 or number != int(number):
        raise InputError(f"turn is {value!r}, not a whole number from 1", where=f"{path}, row {row}")
    return int(number)
