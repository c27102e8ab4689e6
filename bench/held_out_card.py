"""What a judge's card says of figures, made from them: the blocks `not_validated` and `figures` of a description.

    python -m bench.human --judge NAME --card block.yaml

Written by hand such sentences go stale, or lose their n. See quantize.description for where the blocks go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import yaml

from aipsy_judge.agreement import Estimate
from aipsy_judge.agreement.wording import figure

from .held_out_figures import COMPOSITE, RULE
from .held_out_paired import AUC, ICC, Difference
from .held_out_run import Found
from .held_out_words import BAG

Views = Mapping[str, Sequence[Estimate]]


def card_block(found: Found) -> str:
    """YAML with both blocks."""
    told: dict[str, Any] = {"not_validated": dict(found.reasons), "figures": list(sentences(found))}
    return yaml.safe_dump(told, sort_keys=False, allow_unicode=True, width=110)


def sentences(found: Found) -> Iterator[str]:
    """One a metric, the composite, the failure rule and a flag; each with its n and its interval."""
    own = _own(found, found.judge.name)
    yield _opening(found)
    for name in (*found.rubric.metric_names, COMPOSITE):
        yield f"{name}: {_values(found, name)}{_failures(own[name])}."
    yield f"A failing reply by the failure rule, with all that it reads: {_detected(own[RULE]['expected'])}."
    yield from shipped_lines(found)
    for flag in found.rubric.flags:
        yield f"{flag.name}: {_flag(found, flag.name, own[flag.name])}."
    if found.free is not None:
        yield f"Answers written freely that parse: {found.free['kinds']['clean']} of {found.free['answers']}."


def _own(found: Found, contestant: str) -> Mapping[str, Views]:
    figures: Mapping[str, Views] = found.figures[found.held[0].name][contestant]
    return figures


def _opening(found: Found) -> str:
    groups, held = len({i.group for i in found.items}), found.held[0]
    others = "".join(f"; {name}: its most likely legal answer" for name in _rivals(found))
    return (
        f"All: {len(found.items)} replies of {groups} conversations of the {found.part} part, against {held.about}; "
        f"{found.bootstrap.level:.0%} intervals over conversations. Values are expected values; {BAG}: TF-IDF learnt "
        f"on the same train part{others}."
    )


def _rivals(found: Found) -> list[str]:
    return list(found.judged)[1:]


def _values(found: Found, name: str) -> str:
    """Agreement on the value, with each rival's beside it."""
    own = {e.name: e for e in _own(found, found.judge.name)[name]["expected"]}
    beside = [f"n {own['icc'].n}"]
    for rival in _rivals(found):
        theirs = {e.name: e for e in _own(found, rival)[name]["expected"]}
        beside.append(f"{rival} {_value(theirs['icc'].value)}")
    pair = _against_bag(found, name, ICC)
    if pair is not None:
        beside.append(f"on the {pair.n} that both tell {_value(pair.mine)}, {BAG} {_value(pair.theirs)}")
    told = ", ".join((f"Spearman {figure(own['spearman'])}", f"MAE {figure(own['mae'])}"))
    return f"ICC(A,1) {figure(own['icc'])} ({'; '.join(beside)}), {told}"


def _failures(views: Views) -> str:
    """Recall and precision by the expected value; the AUC of the probability of failure, or of the value."""
    by_value = {e.name: e for e in views["expected"]}
    if "failure_recall" not in by_value:
        return ""
    risk = {e.name: e for e in views.get("p_fail", ())}
    ranked = risk.get("failure_auc", by_value.get("failure_auc"))
    area = f", AUC {figure(ranked)} on {ranked.n}" if ranked is not None else ""
    return f"; failures: {_detected(views['expected'])}{area}"


def _detected(estimates: Sequence[Estimate]) -> str:
    by_name = {e.name.partition("_")[2]: e for e in estimates if e.name.startswith(("failure_", "flag_"))}
    recall, precision = by_name["recall"], by_name["precision"]
    return f"recall {figure(recall)} of {_cases(recall)}, precision {figure(precision)} of {_calls(precision)}"


def _cases(estimate: Estimate) -> str:
    return f"{estimate.beside.get('positive', 0)}"


def _calls(estimate: Estimate) -> str:
    return f"{estimate.beside.get('positive_rater', 0)}"


def shipped_lines(found: Found) -> Iterator[str]:
    """A line for failing replies, and one a flag; none where the manifest changes nothing."""
    if found.shipped is None:
        return
    told, back = found.shipped.failing, found.shipped.held_back
    yield (
        f"As shipped{f', {_and(back)} held back' if back else ''}: of {_cases(told['recall'])} failing replies it says "
        f"so of {figure(told['recall'])}, of the {_calls(told['precision'])} that it says so of "
        f"{figure(told['precision'])} fail; {figure(told['found'])} of the failing are said so or marked for review, "
        f"and {figure(told['others'])} of all others."
    )
    for name, flag in found.shipped.flags.items():
        yield (
            f"As shipped, {name}: set in {figure(flag['recall'])} of {_cases(flag['recall'])} cases, of the "
            f"{_calls(flag['precision'])} set {figure(flag['precision'])} are right; set or marked for review in "
            f"{figure(flag['found'])} of the cases, and in {figure(flag['all'])} of all replies."
        )


def _and(names: Sequence[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def _flag(found: Found, name: str, views: Views) -> str:
    pair = _against_bag(found, name, AUC)
    ranked = next((e for e in views.get("probability", ()) if e.name == "failure_auc"), None)
    beside = f" ({BAG} {_value(pair.theirs)})" if pair is not None else ""
    area = f", AUC {figure(ranked)}{beside}" if ranked is not None else ""
    return f"{_detected(views['value'])}{area}"


def _against_bag(found: Found, name: str, what: str) -> Difference | None:
    return next((d for d in found.differences if (d.metric, d.figure, d.rival) == (name, what, BAG)), None)


def _value(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"
