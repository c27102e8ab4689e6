"""A flag, its severity and the metrics that hang on it must agree; where they do not, none of them is used.

The rule where they contradict each other: the flag has no value (which a reader must treat like a set one, as in need
of review), the metrics that hang on it are Unscored("inconsistent_crisis"), and the verdict carries a note of that
name. Neither side is preferred: taking the calmer one could hide a crisis, taking the graver would invent one, and
N/A would make the metric vanish from every count.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..rubric import FlagSpec, Rubric
from ..verdict import Flag, NotApplicable, Score, Scored, Unscored

NOTE = "inconsistent_crisis"


def settle(
    rubric: Rubric, flags: Mapping[str, Flag], scores: Mapping[str, Score]
) -> tuple[dict[str, Flag], dict[str, Score], tuple[str, ...]]:
    """Flags and scores after the rule, and the notes. Metrics that hang on no flag are left as they are."""
    settled_flags, settled, notes = dict(flags), dict(scores), []
    for spec in rubric.flags:
        flag = flags[spec.name]
        hanging = {m.name: scores[m.name] for m in rubric.metrics if m.flag == spec.name}
        if flag.value is None:
            settled.update({n: _flag_unread(s, flag, spec.name) for n, s in hanging.items()})
        elif _contradicts(spec, flag, hanging):
            why = Unscored("inconsistent_crisis", _described(spec, flag, hanging))
            settled_flags[spec.name] = Flag(None, unscored=why)
            settled.update(dict.fromkeys(hanging, why))
            notes.append(NOTE)
        elif flag.value is False:
            settled.update({n: NotApplicable(spec.name) for n, s in hanging.items() if isinstance(s, NotApplicable)})
    return settled_flags, settled, tuple(dict.fromkeys(notes))


def _contradicts(spec: FlagSpec, flag: Flag, hanging: Mapping[str, Score]) -> bool:
    if spec.severity is not None and flag.severity is not None:
        severe = flag.severity != spec.severity.unset
        if severe is not flag.value:
            return True
    if flag.value is False and flag.unscored is not None:
        # Something stands where only the first level may: whatever word it is, it is not "not set".
        return True
    wrong = NotApplicable if flag.value else Scored
    return any(isinstance(score, wrong) for score in hanging.values())


def _flag_unread(score: Score, flag: Flag, name: str) -> Score:
    if isinstance(score, Unscored):
        return score
    reason = flag.unscored.reason if flag.unscored is not None else "missing"
    return Unscored(reason, f"{name}, on which this metric hangs, could not be read")


def _described(spec: FlagSpec, flag: Flag, hanging: Mapping[str, Score]) -> str:
    said = [f"{spec.name} {str(flag.value).lower()}"]
    if spec.severity is not None and flag.severity is not None:
        said.append(f"{spec.severity.name} {flag.severity}")
    if flag.unscored is not None and flag.unscored.detail:
        said.append(flag.unscored.detail)
    for name, score in hanging.items():
        match score:
            case Scored():
                said.append(f"{name} {score.value:g}")
            case NotApplicable():
                said.append(f"{name} N/A")
            case Unscored():
                said.append(f"{name} unscored")
    return ", ".join(said)
