"""What a reader of results must know before the figures: how they were made, what is missing, what was made up."""

from __future__ import annotations

from collections.abc import Sequence

from ..report.wording import plural
from .cases import Case, UnscoredCase
from .forms import Forms
from .imputation import Imputed
from .log_agreement import log_agreement
from .parameters import Parameters
from .stop import UNFINISHED


def remarks(results: Sequence[Case | UnscoredCase], parameters: Parameters) -> list[str]:
    """Sentences, the judge and the profile first. Nothing that concerns no dialogue is mentioned."""
    cases = [r for r in results if isinstance(r, Case)]
    found = [
        *_judge([r.forms for r in results]),
        _profile(parameters),
        *_unscored(results),
        *_undefined(cases),
        *_imputed(sum((c.imputed for c in cases), Imputed()), cases),
        *_ends(cases),
        *_log(results, parameters),
    ]
    return [f for f in found if f]


def _profile(parameters: Parameters) -> str:
    extra = f", tau_align {parameters.tau_align:g}" if parameters.tau_align is not None else ""
    return (
        f"Profile {parameters.profile}{extra}, target within {parameters.tolerance:g} of the starting deficit. "
        "Directional figures for human review; open indices can exceed 100."
    )


def _judge(forms: Sequence[Forms]) -> list[str]:
    """Who filled the forms, and what is to be known of that."""
    origins = [f.origin for f in forms if f.origin is not None]
    if not origins:
        return []
    found = [f"Judged by {', '.join(dict.fromkeys(o.judge for o in origins))}."]
    found += dict.fromkeys(remark for o in origins for remark in o.remarks)
    unread = [u for o in origins for u in o.unread]
    if unread:
        found.append(f"Could not be read: {plural(len(unread), 'level')}; the first: {unread[0]}.")
    suspected = list(dict.fromkeys(s for o in origins for s in o.suspected_injection))
    if suspected:
        found.append(f"The text may try to steer the judge: {'; '.join(map(repr, suspected[:3]))}.")
    cited = [c for f in forms for c in f.evidence]
    bare = sum(c.quote is None for c in cited)
    if bare:
        found.append(f"Without a quote: {bare} of {plural(len(cited), 'level')} other than 0.")
    return found


def _unscored(results: Sequence[Case | UnscoredCase]) -> list[str]:
    missing = [r for r in results if isinstance(r, UnscoredCase)]
    if not missing:
        return []
    first = missing[0]
    return [
        f"Unscored, in no figure: {_of(len(missing), results)}; the first: {first.forms.name}: "
        f"{first.unscored.detail or first.unscored.reason}."
    ]


def _undefined(cases: Sequence[Case]) -> list[str]:
    undefined = [c for c in cases if c.undefined]
    if not undefined:
        return []
    return [f"Without EPM-Q, in no mean: {_of(len(undefined), cases)}; {undefined[0].undefined}."]


def _imputed(imputed: Imputed, cases: Sequence[Case]) -> list[str]:
    if not imputed:
        return []
    concerned = sum(bool(c.imputed) for c in cases)
    return [
        f"Filled in, not judged: {plural(imputed.start_levels, 'starting level')} as 1, "
        f"{plural(imputed.turn_levels, 'turn level')} as 0, {plural(imputed.scale, 'starting distance')} as 1, in "
        f"{_of(concerned, cases)}."
    ]


def _ends(cases: Sequence[Case]) -> list[str]:
    found = []
    unfinished = sum(c.stop == UNFINISHED for c in cases)
    if unfinished:
        found.append(
            f"Cut off before any rule ended them: {_of(unfinished, cases)}; they say little beside finished ones."
        )
    later = sum(bool(c.later_turns) for c in cases)
    if later:
        found.append(f"Going on after their end: {_of(later, cases)}; the later turns count for nothing.")
    return found


def _of(count: int, total: Sequence[object]) -> str:
    return f"{count:,} of {plural(len(total), 'dialogue')}"


def _log(results: Sequence[Case | UnscoredCase], parameters: Parameters) -> list[str]:
    agreement = log_agreement(results)
    if not agreement.logged:
        return []
    found = [
        f"End found from the levels as the runs' own logs have it: the turn in {agreement.same_turn}, the kind in "
        f"{agreement.same_kind} of {agreement.logged}."
    ]
    other = {r.forms.tolerance for r in results if r.forms.tolerance not in (None, parameters.tolerance)}
    if other:
        named = ", ".join(f"{t:g}" for t in sorted(t for t in other if t is not None))
        found.append(f"The logs were made with a tolerance of {named}, not {parameters.tolerance:g}.")
    return found
