"""What the machine-readable words of a verdict mean, in plain words, for people who read a report."""

from __future__ import annotations

from collections.abc import Iterable

from ..reading_list import Finding
from ..rubric import Metric
from ..verdict import NotApplicable, Unscored

WHAT_SCORES_ARE = (
    "These scores are a model's readings: directional, made to help a person decide what to read first. They certify "
    "nothing, diagnose nobody and are no proof that a conversation was safe. A high score is no reason not to read."
)

REASONS: dict[str, str] = {
    "blocked": "the provider's filter refused to answer",
    "context_overflow": "the text does not fit the judge's context; nothing was cut, so nothing was judged",
    "duplicate_key": "the judge named this metric twice, so neither value counts",
    "empty_reply": "the judge returned nothing",
    "empty_turn": "the assistant said nothing here, so there is nothing to judge",
    "echoed_prompt": "the judge repeated its instructions instead of answering",
    "inconsistent_crisis": "the judge contradicted itself about the crisis",
    "missing": "the judge's answer leaves this metric out",
    "misspelt_key": "the judge's answer names a metric that the rubric does not have",
    "no_verdict": "there is no verdict",
    "not_a_number": "the value is not a number",
    "not_applicable_not_allowed": "the judge said N/A where the rubric always wants a score",
    "not_validated": "this judge has not been shown to work on this metric",
    "off_contract": "the judge gave too little probability to any legal answer",
    "out_of_range": "the value is not on the scale",
    "server_error": "the server that runs the judge failed",
    "thinking_exhausted": "the judge used up its budget before it answered",
    "timeout": "the judge did not answer in time",
    "truncated": "the judge's answer was cut off",
    "unparseable": "the judge's answer could not be read",
}

FINDING_TITLES: dict[Finding, str] = {
    "missed": "Missed crisis",
    "unanswered": "Crisis, reply unscored",
    "failure": "Failure",
    "open": "Not fully scored",
    "passed": "No failure seen",
}

_NOTES = {
    "windowed": "the oldest messages did not fit the judge and were left out",
    "newest_messages": "the judge is shown the newest messages only, as it was trained",
    "unblessed": "this judge did not pass its checks; it was opened all the same",
    "rationale_cut": "the judge's reason was cut off",
    "repaired_json": "the judge's reply was not valid JSON; what was wrong could be repaired",
    "thought_removed": "the judge thought aloud; that part was not read",
    "inconsistent_crisis": "the judge contradicted itself about the crisis; a person should look",
}


def unscored_words(score: Unscored) -> str:
    """Why there is no score, as part of a sentence, the detail in brackets.

    >>> unscored_words(Unscored("out_of_range", "85"))
    'the value is not on the scale (85)'
    """
    if score.reason == "no_verdict" and score.detail is not None:
        return score.detail
    words = REASONS[score.reason]
    return f"{words} ({score.detail})" if score.detail else words


def na_words(metric: Metric, score: NotApplicable, flag_titles: dict[str, str]) -> str:
    """Why the metric does not apply, as a sentence: forced by a flag, or what the rubric says."""
    if score.forced_by is not None:
        return f"Does not apply: {flag_titles.get(score.forced_by, score.forced_by)} is not set."
    if metric.applies_when is not None:
        return f"Does not apply here. It does when {metric.applies_when}."
    return "Does not apply here."


UNSURE = "unsure: for review"


def unsure_names(notes: Iterable[str]) -> tuple[str, ...]:
    """Metrics and flags whose reading lies beyond the judge's operating point, by name.

    >>> unsure_names(["windowed:2", "unsure:empathy"])
    ('empathy',)
    """
    return tuple(n.removeprefix("unsure:") for n in notes if n.startswith("unsure:"))


def note_words(note: str) -> str:
    """A verdict's remark with its meaning, if it has a known one; else as it stands."""
    known = _NOTES.get(note.split(":", 1)[0])
    return f"{known} ({note})" if known else note


def number(value: float | None) -> str:
    """A score or a threshold, with as many digits as it needs, at most two; a dash for None.

    >>> number(3.0), number(2.5), number(2.6667), number(None)
    ('3', '2.5', '2.67', '–')
    """
    return "–" if value is None else f"{round(value, 2):g}"


def mean(value: float | None) -> str:
    """A mean, always with two digits, so that columns of them line up; a dash for None."""
    return "–" if value is None else f"{value:.2f}"


def below(value: float, limit: float) -> str:
    """A value beside the limit that it misses; with more digits where two would make them look alike.

    >>> below(1.0, 2.5), below(2.4996, 2.5)
    ('1 (below 2.5)', '2.4996 (below 2.5)')
    """
    shown = number(value) if round(value, 2) < limit else f"{value:.4f}"
    return f"{shown} (below {number(limit)})"


def percent(share: float | None) -> str:
    """A share as a whole percentage; a dash for None. Never rounded to 0 % or 100 % when it is neither.

    >>> percent(0.5), percent(0.999), percent(0.001), percent(1.0)
    ('50 %', '>99 %', '<1 %', '100 %')
    """
    if share is None:
        return "–"
    if 0.0 < share < 0.01:
        return "<1 %"
    if 0.99 < share < 1.0:
        return ">99 %"
    return f"{share * 100:.0f} %"


def plural(n: int, word: str) -> str:
    """A count with its noun.

    >>> plural(1, "turn"), plural(2, "turn"), plural(1200, "crisis")
    ('1 turn', '2 turns', '1,200 crises')
    """
    if n == 1:
        return f"1 {word}"
    return f"{n:,} {word[:-2] + 'es' if word.endswith('is') else word + 's'}"
