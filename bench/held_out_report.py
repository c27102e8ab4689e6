"""What is printed of held-out figures: a table a metric for each view, differences, one plain line a metric."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from typing import Any

from aipsy_judge.agreement import Estimate
from aipsy_judge.agreement.wording import figure
from aipsy_judge.rubric import Rubric

from .held_out_figures import COMPOSITE, RULE, counts
from .held_out_paired import Difference
from .held_out_said import Said

Figures = Mapping[str, Mapping[str, Sequence[Estimate]]]
"""metric, flag, COMPOSITE or RULE -> view -> estimates."""
HEADS = {
    "icc": "ICC(A,1)",
    "spearman": "Spearman",
    "mae": "MAE",
    "failure_recall": "recall",
    "failure_precision": "precision",
    "failure_auc": "AUC",
    "flag_recall": "recall",
    "flag_precision": "precision",
    "kappa": "kappa",
}
VIEW_HEADS = {
    "expected": "by the expected value",
    "likely": "by the most likely value",
    "given": "by the expected value given that it applies, whatever was said of N/A",
    "p_fail": "by the probability of failure (recall and precision from .5)",
    "na": "agreement on N/A",
    "value": "as it is set",
    "probability": "by its probability",
}


def tables(figures: Mapping[str, Figures], rubric: Rubric, held: str) -> Iterator[str]:
    """contestant -> its figures against one reference."""
    names = [*rubric.metric_names, COMPOSITE, RULE, *(f.name for f in rubric.flags)]
    for name in names:
        yield f"{name}, against {held}"
        views = dict.fromkeys(view for of in figures.values() for view in of[name])
        for view in views:
            yield f"  {VIEW_HEADS[view]}"
            for contestant, of in figures.items():
                if view in of[name]:
                    yield f"    {contestant[:30]:31}{_row(of[name][view])}"
        yield ""


def _row(estimates: Sequence[Estimate]) -> str:
    """n: items that both scored; behind recall and precision, of how many cases or flags they are shares; behind an
    AUC, on how many items it ranks."""
    shown = [e for e in estimates if e.name in HEADS]
    cells = [f"{HEADS[e.name]} {figure(e)}{_of(e)}" for e in shown]
    return f"n {shown[0].n if shown else 0:<4} " + "  ".join(cells)


def _of(estimate: Estimate) -> str:
    if estimate.name == "failure_auc":
        return f" on {estimate.n}"
    key = {"recall": "positive", "precision": "positive_rater"}.get(estimate.name.rpartition("_")[2])
    return f" of {estimate.beside[key]}" if key is not None and key in estimate.beside else ""


def count_lines(contestants: Sequence[Said], rubric: Rubric) -> Iterator[str]:
    """How much each could score at all."""
    yield "scored / N/A / unscored"
    for said in contestants:
        cells = []
        for metric in rubric.metric_names:
            c = counts(said.metrics[metric])
            cells.append(f"{metric} {c.scored}/{c.na}/{c.unscored}")
        yield f"  {said.name[:30]:31}" + "  ".join(cells)
        if said.withheld:
            yield f"    {said.withheld} readings that its manifest holds back are measured all the same"
    yield ""


def mass_lines(said: Said) -> Iterator[str]:
    """The median of the probability on legal answers."""
    if said.legal_mass:
        cells = [f"{name} {median(mass):.3f}" for name, mass in said.legal_mass.items()]
        yield f"{said.name}: median probability on legal answers: {', '.join(cells)}"


def plain_lines(figures: Figures, rubric: Rubric, view: str) -> Iterator[str]:
    """One line a metric, for who is to use the judge."""
    for name in [*rubric.metric_names, RULE, *(f.name for f in rubric.flags)]:
        is_flag = name in {f.name for f in rubric.flags}
        estimates = figures[name]["value" if is_flag else view]
        recall = next((e for e in estimates if e.name in ("failure_recall", "flag_recall")), None)
        precision = next((e for e in estimates if e.name in ("failure_precision", "flag_precision")), None)
        if recall is None or precision is None:
            continue
        what = "set flags" if is_flag else "failures"
        finds = f"of 100 {what} it finds {_hundred(recall)}"
        yield f"{name}: {finds}, of 100 flags {_hundred(precision)} are right"


def _hundred(estimate: Estimate) -> str:
    if estimate.value is None:
        return f"an unknown number ({estimate.reason})"
    spread = f" [{100 * estimate.low:.0f}, {100 * estimate.high:.0f}]" if _has_ends(estimate) else ""  # type: ignore[operator]
    return f"{100 * estimate.value:.0f}{spread}"


def _has_ends(estimate: Estimate) -> bool:
    return estimate.low is not None and estimate.high is not None


def difference_lines(found: Sequence[Difference], judge: str) -> Iterator[str]:
    """The judge's figure minus a rival's on the same items."""
    for rival in dict.fromkeys(d.rival for d in found):
        yield f"{judge} - {rival}, the same items [95 %]"
        for d in (d for d in found if d.rival == rival):
            yield f"  {d.metric:22}{d.figure.upper():5}{difference(d)}"
        yield ""


def difference(d: Difference) -> str:
    """In words: the two figures, their difference and its interval."""
    mine, theirs = (f"{v:.2f}" if v is not None else "–" for v in (d.mine, d.theirs))
    let_off = f", of {d.let_off} more the rival tells nothing" if d.let_off else ""
    if d.difference is None:
        return f"{mine} and {theirs} on {d.n}{let_off}: undefined, {d.reason}"
    spread = f"[{d.low:+.2f}, {d.high:+.2f}]" if d.low is not None and d.high is not None else f"[?] ({d.reason})"
    return f"{mine} - {theirs} = {d.difference:+.2f} {spread} on {d.n}{let_off}{'' if d.won else '  not shown'}"


def figures_to_dict(figures: Figures) -> dict[str, Any]:
    """As strict JSON data."""
    return {
        name: {view: {e.name: e.to_dict() for e in estimates} for view, estimates in of.items()}
        for name, of in figures.items()
    }
