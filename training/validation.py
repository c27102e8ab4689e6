"""Judges the validation part every N steps, keeps the best adapter, and stops when it gets no better."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aipsy_judge.atomic import write_text
from aipsy_judge.strict_json import dumps, loads

from .adapter_files import save_adapter
from .judging import Exam, judge
from .measures import measure
from .recipe import Validate
from .resuming import BEST

FILE = "validation.jsonl"


@dataclass(frozen=True, slots=True)
class Round:
    """One round of judging: after how many optimiser steps, and its figures (see measures.Measures)."""

    step: int
    measures: dict[str, Any]

    @property
    def agreement(self) -> float | None:
        value: float | None = self.measures["agreement"]
        return value

    @property
    def figures(self) -> frozenset[str]:
        """The metrics and flags that the agreement is a mean over."""
        each = {**self.measures.get("metrics", {}), **self.measures.get("flags", {})}
        return frozenset(name for name, one in each.items() if one.get("icc") is not None)

    @property
    def whole(self) -> bool:
        """All that the judge was asked could be read, and its agreement is defined."""
        unread = self.measures.get("unread", self.measures.get("unscored", 0))
        return self.agreement is not None and not unread


class Validation:
    """The rounds of one run, kept in `folder` so that a resumed run goes on with them."""

    def __init__(self, folder: Path, exam: Exam, settings: Validate, base: Path, say: Callable[[str], None]) -> None:
        self._folder, self._exam, self._settings, self._base, self._say = folder, exam, settings, base, say
        self.rounds = read_rounds(folder / FILE)

    def back_to(self, step: int) -> None:
        """Forget rounds after `step`: the run goes on from there and will come to them again."""
        self.rounds = [r for r in self.rounds if r.step <= step]
        self._write()

    @property
    def best(self) -> Round | None:
        """The first whole round with the greatest agreement; None where there is none.

        Where some metric of a round has no figure that another round has, its mean is over easier company: it is never
        the best, whatever its mean.
        """
        known = frozenset[str]().union(*(r.figures for r in self.rounds))
        rivals = [r for r in self.rounds if r.whole and r.figures == known]
        return max(rivals, key=lambda r: (r.agreement or 0.0, -r.step), default=None)

    @property
    def exhausted(self) -> bool:
        """As many rounds without a gain as the patience allows. A round that is undefined is none."""
        best, patience = self.best, self._settings.patience
        if best is None or patience is None:
            return False
        since = [r for r in self.rounds if r.step > best.step and r.agreement is not None]
        return len(since) >= patience

    def due(self, step: int) -> bool:
        every = self._settings.every
        return every is not None and step > 0 and step % every == 0 and not self.has(step)

    def has(self, step: int) -> bool:
        return any(r.step == step for r in self.rounds)

    def run(self, model: Any, step: int) -> Round:
        """Judge now; the adapter is kept if this is the best round so far."""
        found = measure(judge(model, self._exam), self._exam.rubric)
        made = Round(step, found.to_dict())
        self.rounds.append(made)
        if self.best is made:
            self._keep(model, step)
        self._write()
        self._say(f"step {step}, validation of {found.line}{' (best)' if self.best is made else ''}")
        return made

    def best_adapter(self) -> Path | None:
        """The folder of the best round's adapter."""
        best = self.best
        folder = self._folder / BEST / str(best.step) if best is not None else None
        return folder if folder is not None and folder.is_dir() else None

    def _keep(self, model: Any, step: int) -> None:
        # Earlier ones stay: a run that is resumed before this step may end with one of them.
        save_adapter(model, self._folder / BEST / str(step), self._base)

    def _write(self) -> None:
        lines = [dumps({"step": r.step, **r.measures}) for r in self.rounds]
        write_text(self._folder / FILE, "".join(f"{line}\n" for line in lines))


def read_rounds(path: Path) -> list[Round]:
    """The rounds that a file holds; none where there is no file."""
    if not path.is_file():
        return []
    data = [loads(line.encode()) for line in path.read_text(encoding="utf-8").splitlines()]
    return [Round(d["step"], {k: v for k, v in d.items() if k != "step"}) for d in data if isinstance(d, dict)]
