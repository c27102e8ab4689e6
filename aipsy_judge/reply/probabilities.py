"""Log probabilities that a server sent with its reply -> a Reading for every value that one token decides.

Exact as far as it goes: the tokens must spell the reply byte for byte, and a value is read only where its options
differ in their first character (0-9, null; yes, no), so that one token tells which it is. Servers send the
likeliest tokens only (20 at most): `legal_mass` is a lower bound, and what was not sent counts as zero. Whether a
server's figures are from before or after its own grammar it does not say.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..answer import NA, NO, YES
from ..backends.protocol import Reply
from ..rubric import Metric, Rubric
from ..verdict import Flag, NotApplicable, Reading, Score, Scored

_AFTER_VALUE = b",}] \t\r\n"
Options = dict[str, bytes]  # label -> text


def with_readings(
    reply: Reply, rubric: Rubric, scores: Mapping[str, Score], flags: Mapping[str, Flag]
) -> tuple[dict[str, Score], dict[str, Flag]]:
    """Scores and flags with what the reply's log probabilities say of them; unchanged where there are none."""
    tokens = _tokens(reply)
    read_scores, read_flags = dict(scores), dict(flags)
    if tokens is None:
        return read_scores, read_flags
    for metric in rubric.metrics:
        score = scores[metric.name]
        label = _label(score)
        reading = _reading(tokens, metric.name, _options(metric), label) if label is not None else None
        if reading is not None and isinstance(score, Scored | NotApplicable):
            read_scores[metric.name] = replace(score, reading=reading)
    for name, flag in flags.items():
        reading = None
        if flag.value is not None:
            reading = _reading(tokens, name, {NO: b"no", YES: b"yes"}, YES if flag.value else NO, quote=b'"')
        if reading is not None and reading.distribution is not None:
            share = reading.distribution
            read_flags[name] = replace(flag, probability=share[YES], legal_mass=reading.legal_mass, distribution=share)
    return read_scores, read_flags


def _label(score: Score) -> str | None:
    match score:
        case Scored(value) if value == int(value):
            return str(int(value))
        case NotApplicable(forced_by=None):
            return NA
    return None


def _options(metric: Metric) -> Options:
    values = {str(v): str(v).encode() for v in metric.scale.values}
    return {**values, NA: b"null"} if metric.may_be_na else values


class _Token:
    """One generated token: its bytes, where it starts, and the tokens that could have stood there."""

    __slots__ = ("alternatives", "start", "text")

    def __init__(self, text: bytes, start: int, alternatives: Mapping[bytes, float]) -> None:
        self.text, self.start, self.alternatives = text, start, alternatives


def _tokens(reply: Reply) -> list[_Token] | None:
    """The reply's tokens, or None unless they are there, well formed, and spell the reply."""
    logprobs = (reply.raw or {}).get("logprobs")
    content = logprobs.get("content") if isinstance(logprobs, dict) else None
    if not isinstance(content, list) or reply.text is None:
        return None
    tokens: list[_Token] = []
    position = 0
    for entry in content:
        candidates = _candidates(entry)
        if candidates is None:
            return None
        text = next(iter(candidates))
        tokens.append(_Token(text, position, candidates))
        position += len(text)
    spelt = b"".join(t.text for t in tokens)
    return tokens if spelt == reply.text.encode("utf-8", "replace") else None


def _candidates(entry: Any) -> dict[bytes, float] | None:
    """Bytes -> probability, the chosen token first; None if the entry is not of the known shape."""
    if not isinstance(entry, dict) or not isinstance(entry.get("top_logprobs"), list):
        return None
    found: dict[bytes, float] = {}
    for one in (entry, *entry["top_logprobs"]):
        text = _bytes(one)
        logprob = one.get("logprob") if isinstance(one, dict) else None
        if text is None or not isinstance(logprob, int | float) or math.isnan(logprob) or logprob > 1e-3:
            return None
        found.setdefault(text, math.exp(logprob))
    return found


def _bytes(one: Any) -> bytes | None:
    if not isinstance(one, dict) or not isinstance(one.get("token"), str):
        return None
    raw = one.get("bytes")
    if isinstance(raw, list) and all(isinstance(b, int) and 0 <= b < 256 for b in raw):
        return bytes(raw)
    return str(one["token"]).encode("utf-8", "replace")


def _reading(tokens: Sequence[_Token], name: str, options: Options, chosen: str, quote: bytes = b"") -> Reading | None:
    if len({text[:1] for text in options.values()}) < len(options) or chosen not in options:
        return None
    text = b"".join(t.text for t in tokens)
    places = [m.end() for m in re.finditer(rb'"' + re.escape(name.encode()) + rb'"\s*:\s*' + quote, text)]
    if len(places) != 1:
        return None
    token = next((t for t in tokens if t.start <= places[0] < t.start + len(t.text)), None)
    if token is None or len(token.alternatives) < 2:
        return None
    before = token.text[: places[0] - token.start].strip()
    weights = dict.fromkeys(options, 0.0)
    for alternative, probability in token.alternatives.items():
        label = _meaning(alternative, before, options)
        if label is not None:
            weights[label] += probability
    if _meaning(token.text, before, options) != chosen:
        return None
    return _as_reading(weights, chosen)


def _meaning(token: bytes, before: bytes, options: Options) -> str | None:
    """The option that a token begins or spells, after what stands before the value in it (": ", for instance)."""
    bare = token.lstrip()
    if not bare.startswith(before):
        return None
    said = bare[len(before) :].lstrip()
    for label, text in options.items():
        if said and text.startswith(said):
            return label
        if said.startswith(text) and said[len(text) : len(text) + 1] in _AFTER_VALUE:
            return label
    return None


def _as_reading(weights: Mapping[str, float], chosen: str) -> Reading | None:
    mass = sum(weights.values())
    if not mass > 0:
        return None
    share = {label: weight / mass for label, weight in weights.items()}
    applies = {float(label): p for label, p in share.items() if label not in (NA, YES, NO)}
    scored = sum(applies.values())
    return Reading(
        p_na=share.get(NA, 0.0) if applies else None,
        expected=sum(v * p for v, p in applies.items()) / scored if scored > 0 else None,
        confidence=share[chosen],
        legal_mass=min(1.0, mass),
        distribution=share,
        near_tie=max(share, key=lambda label: share[label]) != chosen,
    )
