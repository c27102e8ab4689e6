"""Evidence as a sheet: every level other than 0 beside the sentence that shows it."""

from __future__ import annotations

from .forms import Cited, Forms
from .sheets import NONE, Sheet
from .space import Space
from .vectors import turns_of


def evidence_sheet(forms: Forms, space: Space) -> Sheet | None:
    """Every level other than 0 with its quote, rating by rating; None where the forms carry no evidence."""
    rows = [
        (place_of(c, forms), c.id, _level(c, forms, space), c.quote.text if c.quote else NONE) for c in forms.evidence
    ]
    if not rows:
        return None
    return Sheet("Levels and the sentences that show them", ("form", "channel", "level", "sentence"), tuple(rows), 4)


def place_of(cited: Cited, forms: Forms) -> str:
    """The form in words: the start, or the turns of a rating."""
    return "start" if cited.rating is None else turns_of(cited.rating, forms.every)


def _level(cited: Cited, forms: Forms, space: Space) -> str:
    ids = space.indicator_ids if cited.rating is None else space.channel_ids
    row = forms.start_levels if cited.rating is None else forms.turn_levels[cited.rating]
    level = row[ids.index(cited.id)] if row is not None and cited.id in ids else None
    return NONE if level is None else f"{level:+g}"
