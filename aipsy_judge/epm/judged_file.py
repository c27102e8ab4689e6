"""What a judge filled in, as a file of forms: it is read again like any other, and needs no judge then."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..conversation import Conversation
from ..errors import InputError
from .evidence_sheet import place_of
from .forms import Forms, Quote
from .judging import Filled, Judged
from .pack import Pack


def judged_to_dict(judged: Judged, pack: Pack, *, model: str, case: str, turns: int) -> dict[str, Any]:
    """Forms as strict JSON data: levels (null: could not be read), evidence, and where they come from."""
    space = pack.space
    filled = (judged.start, *judged.turns)
    return {
        "model": model,
        "case": case,
        "pack": f"{pack.name}@{pack.hash[:12]}",
        "every": judged.every,
        "turns": turns,
        "iedr": {i: judged.start.levels[i] for i in space.indicator_ids},
        "levels": [[f.levels[c] for c in space.channel_ids] for f in judged.turns],
        "evidence": {"start": _quotes(judged.start), "ratings": [_quotes(f) for f in judged.turns]},
        "provenance": {
            "start": dict(judged.start.provenance),
            "turns": dict(judged.turns[0].provenance),
            "remarks": list(judged.remarks),
            "unread": [u for f in filled for u in f.unread],
            "suspected_injection": list(dict.fromkeys(s for f in filled for s in f.suspected_injection)),
        },
    }


def check_quotes(forms: Forms, conversation: Conversation, card: str | None) -> None:
    """InputError where a quote does not stand, letter by letter, where it says it does. Quotes from the card are only
    checked where the card is known."""
    for cited in forms.evidence:
        quote = cited.quote
        if quote is None:
            continue
        source = card if quote.message is None else _content(conversation, quote.message)
        if source is None and quote.message is None:
            continue
        if source is None or quote.text not in source:
            where = "the persona card" if quote.message is None else f"message {quote.message} of {conversation.id}"
            raise InputError(
                f"the evidence for {cited.id} is not in {where}: {quote.text[:60]!r}",
                where=f"{forms.where}, {place_of(cited, forms)}",
                hint="Forms belong to one dialogue; judge this one anew.",
            )


def _content(conversation: Conversation, index: int) -> str | None:
    return conversation.messages[index].content if index < len(conversation.messages) else None


def _quotes(filled: Filled) -> Mapping[str, Any]:
    return {i: None if q is None else _quote(q) for i, q in filled.quotes.items()}


def _quote(quote: Quote) -> dict[str, Any]:
    return {"text": quote.text, "message": quote.message, "confidence": quote.confidence}
