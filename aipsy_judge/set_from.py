"""A flag that is set from a probability on, instead of where the most probable answer says so.

A crisis that is spread over several levels ("indirect" .3, "direct" .3) loses to "none" (.4) at the greedy choice,
though it is the likelier by far; and who looks for crises wants to miss few rather than to be right most often. From
where on a flag is set is chosen on validation data and stands in the judge's manifest. What was read stays what it
was: the distribution, the legal mass. Only flags whose line is an answer of their own can be decided so (contract
compact): in one JSON object what follows was written behind the greedy choice.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from .answer import NO, AnswerForm
from .engine.choice import SlotReading
from .errors import ManifestError
from .rubric import FlagSpec, Rubric


def decided(
    rubric: Rubric, readings: Mapping[str, SlotReading], set_from: Mapping[str, float]
) -> Mapping[str, SlotReading]:
    """The readings with each flag in `set_from` at its unset level below its probability, else at its most probable
    other level."""
    flags = [f for f in rubric.flags if f.name in set_from and readings[f.name].distribution]
    if not flags:
        return readings
    return {**readings, **{f.name: _decided(f, readings[f.name], set_from[f.name]) for f in flags}}


def _decided(flag: FlagSpec, reading: SlotReading, least: float) -> SlotReading:
    unset = flag.severity.unset if flag.severity is not None else NO
    others = {level: p for level, p in reading.distribution.items() if level != unset}
    is_set = 1.0 - reading.distribution[unset] >= least
    return replace(reading, label=max(others, key=lambda level: others[level]) if is_set else unset)


def check_set_from(rubric: Rubric, forms: Mapping[str, AnswerForm], set_from: Mapping[str, float], judge: str) -> None:
    """Raise ManifestError for a name that is no flag, or a flag that has no line of its own."""
    strange = sorted(set_from.keys() - {f.name for f in rubric.flags})
    if strange:
        raise ManifestError(f"its manifest sets {', '.join(strange)}, which is no flag of the rubric", where=judge)
    shared = sorted(name for name in set_from if name not in forms or len(forms[name].slots) != 1)
    if shared:
        raise ManifestError(
            f"its manifest sets {', '.join(shared)} from a probability on, and its answer says more than that",
            where=judge,
            hint="`set_from` goes with contract compact, where each flag has a line of its own.",
        )
