"""The blind sheet, whatever file it goes into: a row an item, in an order of the rater's own, with cells to fill.

It holds no judge, no score, no generator, no id of the conversation, and nothing that tells the stratum.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass

from ..rubric import Rubric
from .draw_file import Draw
from .fields import CODE, COMMENT, CONVERSATION, REPLY, SETTLED, TO_SETTLE, Field, fields
from .texts import ItemText

# Excel cuts a cell at 32,767 UTF-16 units, also when it opens a CSV. Half as many characters always fit.
CELL_CHARACTERS = 16_000


@dataclass(frozen=True, slots=True)
class Dispute:
    """What is to be settled of one item: the names of the fields, and what the raters said, in words."""

    fields: frozenset[str]
    words: str


@dataclass(frozen=True, slots=True)
class Row:
    """`texts` are the cells before those to fill: code, conversation (in as many cells as it takes), reply.
    `open` are the names of the fields that are to be filled."""

    code: str
    texts: tuple[str, ...]
    open: frozenset[str]
    to_settle: str | None = None


@dataclass(frozen=True, slots=True)
class Sheet:
    """`text_columns` and then `fields` and a comment; `rater` may be empty. `settles`: it is for adjudication."""

    draw_id: str
    rubric: Rubric
    rater: str
    text_columns: tuple[str, ...]
    fields: tuple[Field, ...]
    rows: tuple[Row, ...]
    settles: bool = False

    @property
    def header(self) -> tuple[str, ...]:
        settle = (TO_SETTLE,) if self.settles else ()
        return (*self.text_columns, *settle, *(f.name for f in self.fields), COMMENT)

    def cells(self, row: Row) -> list[str]:
        """The row as it goes out, unguarded; what is to be filled is empty."""
        settle = [row.to_settle or ""] if self.settles else []
        return [*row.texts, *settle, *("" if f.name in row.open else SETTLED for f in self.fields), ""]


def make_sheet(
    draw: Draw, texts: Mapping[str, ItemText], rater: str = "", disputes: Mapping[str, Dispute] | None = None
) -> Sheet:
    """All drawn items or, with `disputes` (item id -> what is to be settled), those in dispute.

    The order depends on the draw and the rater: two raters meet the items in unlike orders.
    """
    chosen = [i for i in draw.items if disputes is None or i.item_id in disputes]
    random.Random(f"{draw.id} {rater}").shuffle(chosen)
    asked = fields(draw.rubric)
    every = frozenset(f.name for f in asked)
    pieces = {i.code: pieces_of(texts[i.item_id].before) for i in chosen}
    width = max((len(p) for p in pieces.values()), default=1)
    rows = []
    for item in chosen:
        text = texts[item.item_id]
        before = pieces[item.code] + [""] * (width - len(pieces[item.code]))
        reply = pieces_of(text.reply) if text.reply is not None else []
        rows.append((item, before, reply))
    replies = max((len(reply) for _, _, reply in rows), default=0)
    return Sheet(
        draw_id=draw.id,
        rubric=draw.rubric,
        rater=rater,
        text_columns=(CODE, *_names(CONVERSATION, width), *_names(REPLY, replies)),
        fields=asked,
        rows=tuple(
            Row(
                code=item.code,
                texts=(item.code, *before, *reply, *[""] * (replies - len(reply))),
                open=every if disputes is None else disputes[item.item_id].fields,
                to_settle=None if disputes is None else disputes[item.item_id].words,
            )
            for item, before, reply in rows
        ),
        settles=disputes is not None,
    )


def pieces_of(text: str, size: int = CELL_CHARACTERS) -> list[str]:
    """A text in pieces that a cell holds, cut at the end of a line where there is one; together they are the text."""
    pieces = []
    while len(text) > size:
        cut = text.rfind("\n", 0, size) + 1 or size
        pieces.append(text[:cut])
        text = text[cut:]
    return [*pieces, text]


def _names(name: str, count: int) -> list[str]:
    return [name if n == 1 else f"{name}_{n}" for n in range(1, count + 1)]
