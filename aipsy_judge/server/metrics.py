"""Counters in Prometheus' text format. They hold numbers and fixed words, never anything from a request."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from ..verdict import Unscored, Verdict

Labels = tuple[tuple[str, str], ...]

# name: (kind, help)
KNOWN: dict[str, tuple[str, str]] = {
    "requests_total": ("counter", "Requests by route and status."),
    "request_seconds_total": ("counter", "Seconds from request to answer, by route."),
    "verdicts_total": ("counter", "Verdicts given."),
    "unscored_total": ("counter", "Metrics that could not be scored, by reason."),
    "prompt_tokens_total": ("counter", "Tokens of prompts as clients count them."),
    "answer_tokens_total": ("counter", "Tokens of answers."),
    "evaluated_tokens_total": ("counter", "Tokens that the engine evaluated."),
    "engine_passes_total": ("counter", "Passes of the engine."),
    "trunk_tokens_kept_total": ("counter", "Tokens of conversations that were at hand and not evaluated again."),
    "parked_bytes": ("gauge", "Bytes of conversations that wait for their next turn."),
    "jobs_waiting": ("gauge", "Requests that wait for the judge."),
    "jobs_running": ("gauge", "Requests that the judge works on."),
    "jobs_total": ("counter", "Requests for the judge by how they ended."),
    "judge_busy_seconds_total": ("counter", "Seconds that the judge worked."),
    "resident_memory_bytes": ("gauge", "Memory of this process."),
    "up_seconds": ("gauge", "Seconds since the start."),
}


class Metrics:
    """Counts that only grow. Safe to use from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[tuple[str, Labels]] = Counter()

    def add(self, name: str, value: float = 1, **labels: str) -> None:
        assert name in KNOWN, name
        with self._lock:
            self._counts[name, tuple(sorted(labels.items()))] += value  # type: ignore[assignment]

    def count_verdicts(self, verdicts: Sequence[Verdict]) -> None:
        self.add("verdicts_total", len(verdicts))
        for score in (s for v in verdicts for s in v.scores.values() if isinstance(s, Unscored)):
            self.add("unscored_total", reason=score.reason)

    def text(self, now: Mapping[tuple[str, Labels], float]) -> str:
        """All counts, with the values that are read off at this moment."""
        with self._lock:
            values = {**self._counts, **now}
        return "".join(_lines(values))


def _lines(values: Mapping[tuple[str, Labels], float]) -> Iterator[str]:
    for name, (kind, about) in KNOWN.items():
        rows = sorted((labels, value) for (n, labels), value in values.items() if n == name)
        if not rows:
            continue
        yield f"# HELP aipsy_judge_{name} {about}\n# TYPE aipsy_judge_{name} {kind}\n"
        for labels, value in rows:
            inside = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels)
            shown = f"{int(value)}" if value == int(value) else f"{value:.6f}"
            yield f"aipsy_judge_{name}{{{inside}}} {shown}\n" if inside else f"aipsy_judge_{name} {shown}\n"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
