"""The map's figures as plain sentences, for people who do not read statistics."""

from __future__ import annotations

from collections.abc import Sequence

from ..agreement.estimate import Estimate
from ..ratings.overall import OVERALL
from .findings import Finding, Kind

_SHARES = {"failure_recall", "failure_precision", "flag_recall", "flag_precision", "top_share"}


def spoken(name: str) -> str:
    """A metric's or rater's name as it is read out.

    >>> spoken("crisis_handling")
    'crisis handling'
    """
    return name.replace("_", " ")


def share(value: float) -> str:
    """A share as a percentage; 0 and 1 only where they are exact.

    >>> share(0.5), share(0.001), share(0.999), share(1.0)
    ('50 %', 'under 1 %', 'over 99 %', '100 %')
    """
    if 0 < value < 0.01:
        return "under 1 %"
    if 0.99 < value < 1:
        return "over 99 %"
    return f"{value:.0%}".replace("%", " %")


def uncertainty(estimate: Estimate, *, percent: bool = False, digits: int = 2) -> str:
    """The interval as half a sentence: "95 % interval 0.24 to 0.29; 1,200 replies"."""
    kept = f"{estimate.n:,} {'reply' if estimate.n == 1 else 'replies'}"
    if estimate.interval is None:
        return kept
    if estimate.low is None or estimate.high is None:
        return f"no interval, {estimate.interval.reason}; {kept}"
    ends = [share(v) if percent else f"{v:.{digits}f}" for v in (estimate.low, estimate.high)]
    return f"{estimate.interval.level:.0%} interval {ends[0]} to {ends[1]}; {kept}".replace("%", " %", 1)


def pair_sentence(estimate: Estimate, rater: str, metric: str, reference: str, critical: float | None) -> str:
    """A rater against the reference (or another rater), on one metric."""
    quality, who = spoken(metric), rater
    if estimate.value is None:
        return f"{who} on {quality}: no figure, {estimate.reason}."
    v, sure = estimate.value, _sure(estimate)
    cut = f"below {critical:g}" if critical is not None else ""
    beside = estimate.beside
    match estimate.name:
        case "bias":
            way = "higher" if v > 0 else "lower"
            text = f"On {quality}, {who} scores {abs(v):.2f} points {way} than {reference} on average"
        case "mae":
            text = f"On {quality}, a score by {who} is typically {v:.2f} points off that of {reference}"
        case "rmse":
            text = f"On {quality}, the root mean square difference of {who} from {reference} is {v:.2f} points"
        case "failure_recall" if critical is None:
            text = f"Of {beside['positive']} replies that fail by {reference}, {who} fails {share(v)}"
        case "failure_precision" if critical is None:
            text = f"Of {beside['positive_rater']} replies that {who} fails, {share(v)} fail by {reference} too"
        case "failure_recall":
            text = (
                f"Of {beside['positive']} replies that {reference} puts {cut} on {quality}, "
                f"{who} puts {share(v)} {cut} too and lets the others pass, calls them N/A or gives them no score"
            )
        case "failure_precision":
            text = (
                f"Of {beside['positive_rater']} replies that {who} puts {cut} on {quality}, "
                f"{reference} puts {share(v)} {cut} too; the others are false alarms"
            )
        case "failure_auc":
            text = (
                f"Given one reply that {reference} fails on {quality} and one that passes, {who} puts the failing one "
                f"lower in {share(v)} of cases; 50 % is a coin"
            )
        case "flag_recall":
            text = f"Of {beside['positive']} cases of {quality} by {reference}, {who} flags {share(v)}"
        case "flag_precision":
            text = f"Of {beside['positive_rater']} flags for {quality} by {who}, {share(v)} are so by {reference}"
        case "spearman":
            text = f"On {quality}, {who} and {reference} order the replies alike to {v:.2f} (1: same order, 0: none)"
        case "kappa" | "kappa_linear" | "kappa_quadratic":
            text = f"On {quality}, {who} and {reference} agree to {v:.2f} beyond chance (1: always, 0: as by chance)"
        case _:
            text = (
                f"On {quality}, {who} and {reference} agree to {v:.2f} ({estimate.form}; 1: on every score, "
                "0: the replies themselves explain nothing)"
            )
    return f"{text} ({sure})."


def _sure(estimate: Estimate) -> str:
    """How sure a figure is; of a share also how many items the rater was never asked about."""
    sure = uncertainty(estimate, percent=estimate.name in _SHARES)
    asked = estimate.name not in _SHARES or not estimate.dropped
    return sure if asked else f"{sure}; {estimate.dropped:,} more never asked about"


def panel_sentence(estimate: Estimate, metric: str, who: str) -> str:
    """Several raters together, on one metric."""
    if estimate.value is None:
        return f"On {spoken(metric)}, for {who} together: no figure, {estimate.reason}."
    alike = estimate.beside.get("agreement")
    raw = f"; {share(alike)} of pairs of scores are equal" if alike is not None else ""
    return (
        f"On {spoken(metric)}, {who} agree with each other to {estimate.value:.2f} ({estimate.form}; "
        f"{uncertainty(estimate)}{raw})."
    )


def top_sentence(top: Estimate, excess: Estimate, rater: str, metric: str, reference: str | None) -> str:
    """How often a judge gives the highest score."""
    if top.value is None:
        return f"{rater} on {spoken(metric)}: no figure, {top.reason}."
    text = (
        f"{rater} gives {share(top.value)} of replies the highest score on {spoken(metric)} "
        f"({uncertainty(top, percent=True)})."
    )
    if excess.value is None or reference is None:
        return text
    way = "more" if excess.value >= 0 else "less"
    return (
        f"{text} On the replies that {reference} scored too, that is {abs(excess.value) * 100:.0f} percentage points "
        f"{way} often than {reference} does."
    )


def entropy_sentence(estimate: Estimate, most: float, rater: str, metric: str) -> str:
    """How many different things a judge's scores say."""
    if estimate.value is None:
        return f"{rater} on {spoken(metric)}: no figure, {estimate.reason}."
    return (
        f"The scores of {rater} on {spoken(metric)} carry {estimate.value:.2f} bits where the scale could carry "
        f"{most:.2f} ({uncertainty(estimate)}): that is as much as {2**estimate.value:.1f} equally frequent steps."
    )


def blindness_sentence(estimate: Estimate, judge: str, metric: str | None) -> str:
    """How many of the others' failures a judge sees."""
    what = "failures" if metric is None else f"failures of {spoken(metric)}"
    by = "every other judge marks" if estimate.name.endswith("strict") else "at least one other judge marks"
    if estimate.value is None:
        return f"{judge}, {what} that {by}: no figure, {estimate.reason}."
    return f"Of {what} that {by}, {judge} marks {share(estimate.value)} too ({uncertainty(estimate, percent=True)})."


def preference_sentence(estimate: Estimate, judge: str, own: str) -> str:
    """One reading of self-preference."""
    if estimate.value is None:
        return f"Self-preference of {judge}: no figure, {estimate.reason}."
    way = "higher" if estimate.value >= 0 else "lower"
    gap = f"{abs(estimate.value):.2f} points {way}"
    text = {
        "own_generator": f"{judge} scores replies by {own} {gap} than those of others. They may truly differ",
        "own_judge": f"On replies by {own}, {judge} scores {gap} than the other judges. It may be lenient with all",
        "premium": f"On replies by {own}, {judge} scores {gap}, set against the other judges, than it does on others' "
        "replies. Neither true quality nor general leniency can explain that",
        "cleared": f"On replies by {own}, {judge} scores {gap} than its leniency, their quality and the other judges' "
        "own preferences would have it",
    }[estimate.name]
    return f"{text} ({uncertainty(estimate)})."


def family_sentence(bias: Estimate, extra: Estimate, judge: str, family: str, metric: str, reference: str) -> str:
    """Leniency with one family of generators."""
    on = "overall" if metric == OVERALL else f"on {spoken(metric)}"
    if bias.value is None:
        return f"{judge} with replies by {family}, {on}: no figure, {bias.reason}."
    way = "higher" if bias.value >= 0 else "lower"
    text = (
        f"Replies by {family} score {abs(bias.value):.2f} points {way} with {judge} than with {reference}, {on} "
        f"({uncertainty(bias)})."
    )
    if extra.value is None:
        return text
    return f"{text} That is {extra.value:+.2f} points against its bias on the other families."


def missing_sentence(estimate: Estimate, judge: str, where: str) -> str:
    """Where a judge has no score."""
    if estimate.value is None:
        return f"{judge}, replies {where}: no figure, {estimate.reason}."
    return (
        f"{judge} lacks a score on {share(estimate.value)} of replies {where} ({uncertainty(estimate, percent=True)})."
    )


FINDING_TITLES: dict[Kind, str] = {
    "blindness": "Blind to failures",
    "silence": "Silent where it matters",
    "self_preference": "Prefers its own replies",
    "bias": "Lenient or strict",
    "family": "Depends on who wrote the reply",
    "ceiling": "Crowds at the highest score",
}


def finding_groups(found: Sequence[Finding], reference: str | None) -> list[tuple[str, list[str]]]:
    """The findings as sentences under their kind's title, in the order they stand."""
    groups: dict[str, list[str]] = {}
    for finding in found:
        groups.setdefault(FINDING_TITLES[finding.kind], []).append(finding_sentence(finding, reference))
    return list(groups.items())


def finding_sentence(finding: Finding, reference: str | None) -> str:
    """What was found, as one sentence."""
    e, judge, about = finding.estimate, finding.judge, spoken(finding.about or "")
    assert e.value is not None
    right = reference or "the reference"
    amount, points = f"{abs(e.value):.2f} points", f"{abs(e.value) * 100:.0f} percentage points"
    match finding.kind:
        case "bias":
            text = f"{judge} is {'lenient' if e.value > 0 else 'strict'} on {about}: {amount} " + (
                f"{'above' if e.value > 0 else 'below'} {right} on average"
            )
        case "ceiling":
            text = f"{judge} gives the highest score on {about} {points} more often than {right}"
        case "self_preference":
            text = f"{judge} prefers replies by {about} by {amount}, its general leniency and their quality set aside"
        case "blindness":
            text = f"{judge} sees {points} less of the failures that other judges mark than they see of each other's"
        case "family":
            text = f"{judge} is {amount} more lenient with replies by {about} than with others"
        case "silence":
            text = f"{judge} lacks scores {points} more often on replies with a {about} than on others"
    percent = finding.kind in ("ceiling", "blindness", "silence")
    return f"{text} ({_signed(e) if percent else uncertainty(e)})."


def _signed(estimate: Estimate) -> str:
    if estimate.low is None or estimate.high is None:
        return uncertainty(estimate)
    return f"interval {estimate.low * 100:+.0f} to {estimate.high * 100:+.0f} percentage points; {estimate.n:,} replies"
