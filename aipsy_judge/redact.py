"""Redaction: a verdict without a word of the conversation, or of the judge about it."""

from __future__ import annotations

import re
from dataclasses import replace

from .verdict import Flag, Score, Unscored, Verdict

# A note that is a machine's word, such as "windowed:3". Anything else might quote.
MACHINE_NOTE = re.compile(r"[a-z][a-z0-9_]*(:[a-z0-9_.\-]{1,40})?")


def redact(verdict: Verdict) -> Verdict:
    """Figures, flags and hashes stay; rationale, raw reply, quotes, and details that may quote go."""
    return replace(
        verdict,
        scores={name: _score(s) for name, s in verdict.scores.items()},
        flags={name: _flag(f) for name, f in verdict.flags.items()},
        rationale=None,
        raw=None,
        # That something was suspected is a finding; what it said is text.
        suspected_injection=("[redacted]",) * len(verdict.suspected_injection),
        notes=tuple(n for n in verdict.notes if MACHINE_NOTE.fullmatch(n)),
    )


def _score(score: Score) -> Score:
    return replace(score, detail=None) if isinstance(score, Unscored) else score


def _flag(flag: Flag) -> Flag:
    return replace(flag, unscored=replace(flag.unscored, detail=None)) if flag.unscored is not None else flag
