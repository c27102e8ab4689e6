"""A stored verdict's raw reply read again, without the model: what `rescore` does after a reader was improved."""

from __future__ import annotations

from dataclasses import replace

from .backends.protocol import Reply
from .reply import read_reply
from .rubric import Rubric
from .verdict import NotApplicable, Score, Scored, Unscored, Verdict

# Reasons that the reply's text alone decides. All others (no room, no answer, too little legal mass, ...) stand.
_DECIDED_BY_TEXT = frozenset(
    {
        "duplicate_key",
        "empty_reply",
        "inconsistent_crisis",
        "missing",
        "misspelt_key",
        "no_verdict",
        "not_a_number",
        "not_applicable_not_allowed",
        "out_of_range",
        "truncated",
        "unparseable",
    }
)


def reread(verdict: Verdict, rubric: Rubric) -> Verdict:
    """The verdict with scores, flags and notes as its raw reply is read today; unchanged where it has no raw reply.

    Where the value stays the same the stored score stays, with its probabilities. A reply that was found to echo the
    prompt stays Unscored, for the prompt is not at hand here.
    """
    if verdict.raw is None:
        return verdict
    told = verdict.provenance.get("reply")
    # A judge that runs here writes complete answers only, and stores no finish.
    finish = told.get("finish") if isinstance(told, dict) else "stop"
    parsed = read_reply(Reply(verdict.raw, finish), rubric)
    scores = {name: _kept(verdict.scores.get(name), new) for name, new in parsed.scores.items()}
    flags = dict(parsed.flags)
    for name, new in parsed.flags.items():
        old = verdict.flags.get(name)
        stands = old is not None and old.unscored is not None and old.unscored.reason not in _DECIDED_BY_TEXT
        if old is not None and (stands or (old.value, old.severity) == (new.value, new.severity)):
            flags[name] = old
    notes = tuple(dict.fromkeys((*verdict.notes, *parsed.notes)))
    return replace(verdict, scores=scores, flags=flags, notes=notes)


def _kept(old: Score | None, new: Score) -> Score:
    match old, new:
        case Unscored(reason), _ if reason not in _DECIDED_BY_TEXT:
            return old
        case (Scored(), Scored()) if old.value == new.value:
            return old
        case NotApplicable(), NotApplicable():
            return old
    return new
