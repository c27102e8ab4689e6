"""A judge's reply -> scores, flags, rationale, for any rubric."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ..backends.protocol import Reply
from ..rubric import FlagSpec, Metric, Rubric
from ..verdict import Flag, Score, Unscored
from .consistency import settle
from .echo import is_echo
from .found import Found, find_object
from .json_text import without_format_characters
from .layout import Said, collect
from .thought import without_thought
from .values import read_flag, read_score, read_severity

_BUDGET_HINT = "the whole budget went into thinking: turn thinking off, or allow more tokens"


@dataclass(frozen=True, slots=True)
class ParsedReply:
    """What a reply says: a Score for every metric of the rubric, a Flag for every flag.

    failure  why nothing of the reply could be used, or None; then every score is Unscored and every flag has no value
    notes    short remarks: "thought_removed", "repaired_json", "inconsistent_crisis", "duplicate_key:NAME", ...
    """

    scores: dict[str, Score]
    flags: dict[str, Flag]
    rationale: str | None = None
    notes: tuple[str, ...] = ()
    failure: Unscored | None = None


def read_reply(reply: Reply, rubric: Rubric, *, prompt: Iterable[str] = ()) -> ParsedReply:
    """Read a reply. Never raises, whatever the text; never yields a number off its metric's scale.

    Only a complete reply with exactly one JSON object is read. Each metric then stands for itself: a fault of one
    leaves the others. `prompt` is what the judge was shown, by message, so that an echo of it is not taken for a
    verdict.
    """
    shown = tuple(prompt)
    found = _incomplete(reply) or find_object(reply.text or "")
    if isinstance(found, Unscored):
        if is_echo("", without_thought(reply.text or "")[0], shown):
            found = Unscored("echoed_prompt", "the reply repeats the prompt")
        return failed_reply(rubric, found)
    if is_echo(found.source, found.around, shown):
        return failed_reply(rubric, Unscored("echoed_prompt", "the reply repeats the prompt"))
    return _read_object(found, rubric)


def failed_reply(rubric: Rubric, why: Unscored) -> ParsedReply:
    """A reply of which nothing can be used: every metric Unscored, no flag with a value."""
    return ParsedReply(
        scores=dict.fromkeys(rubric.metric_names, why),
        flags={f.name: Flag(None, unscored=why) for f in rubric.flags},
        failure=why,
    )


def _incomplete(reply: Reply) -> Unscored | None:
    """Why the reply as a whole is no answer, as far as that shows without reading it."""
    if reply.finish == "content_filter":
        return Unscored("blocked", "the provider's filter refused")
    text = reply.text or ""
    if not without_format_characters(text).strip():
        if (reply.thinking or "").strip() or reply.finish == "length":
            return Unscored("thinking_exhausted", _BUDGET_HINT)
        return Unscored("empty_reply")
    if reply.finish == "stop":
        return None
    visible, _ = without_thought(text)
    if reply.finish == "length" and not visible.strip():
        return Unscored("thinking_exhausted", _BUDGET_HINT)
    # Nothing of a cut reply is used: what stands in it may have been about to be corrected or contradicted.
    limit = "cut off by the token limit: allow more tokens"
    return Unscored("truncated", limit if reply.finish == "length" else "the server did not say that it finished")


def _read_object(found: Found, rubric: Rubric) -> ParsedReply:
    said = collect(found.object, rubric)
    if not any(said.values.values()) and not any(said.misspelt(m) for m in rubric.metric_names):
        return failed_reply(rubric, Unscored("no_verdict", "the object holds no metric and no flag of the rubric"))
    scores = {m.name: _metric(m, said) for m in rubric.metrics}
    flags = {f.name: _flag(f, said) for f in rubric.flags}
    flags, scores, contradictions = settle(rubric, flags, scores)
    twice = tuple(f"duplicate_key:{name}" for name, values in said.values.items() if len(values) > 1)
    return ParsedReply(scores, flags, said.rationale, (*found.notes, *said.notes, *twice, *contradictions))


def _metric(metric: Metric, said: Said) -> Score:
    values = said.values[metric.name]
    return read_score(values[0], metric) if len(values) == 1 else _no_single_value(metric.name, said)


def _flag(spec: FlagSpec, said: Said) -> Flag:
    values = said.values[spec.name]
    value = read_flag(values[0]) if len(values) == 1 else _no_single_value(spec.name, said)
    if isinstance(value, Unscored):
        return Flag(None, unscored=value)
    if spec.severity is None:
        return Flag(value)
    levels = said.values[spec.severity.name]
    if levels in ((), (None,)):
        # A flag that is not set has one legal level only; one that is set has none by itself.
        return (
            Flag(True, unscored=Unscored("missing", spec.severity.name)) if value else Flag(False, spec.severity.unset)
        )
    level = read_severity(levels[0], spec.severity) if len(levels) == 1 else _no_single_value(spec.severity.name, said)
    return Flag(value, unscored=level) if isinstance(level, Unscored) else Flag(value, level)


def _no_single_value(name: str, said: Said) -> Unscored:
    """A name that is missing, or said more than once: the later one may have been slipped in, so none counts."""
    if said.values[name]:
        return Unscored("duplicate_key", f"{name} is given {len(said.values[name])} times")
    stranger = said.misspelt(name)
    return Unscored("misspelt_key", stranger) if stranger else Unscored("missing")
