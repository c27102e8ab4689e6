"""What `rescore` does: each verdict of a run read again into a new run, and a list of what changed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ..contract import COMPACT
from ..errors import InputError
from ..reread import reread
from ..runs import load_run
from ..runs_info import RunInfo, read_info, versions
from ..runs_store import open_run
from ..verdict import Flag, NotApplicable, Score, Scored, Verdict


@dataclass(frozen=True, slots=True)
class Change:
    """A score or flag that is read otherwise now; `before` and `after` in words."""

    conversation_id: str
    turn: int | None
    name: str
    before: str
    after: str

    @property
    def words(self) -> str:
        from ..report.visible import visible

        place = self.conversation_id if self.turn is None else f"{self.conversation_id}, turn {self.turn}"
        return visible(f"{place}: {self.name} {self.before} -> {self.after}", keep_newlines=False)


@dataclass(frozen=True, slots=True)
class Rescored:
    """Counts of verdicts, and every change."""

    verdicts: int
    reread: int
    changes: tuple[Change, ...]

    @property
    def without_reply(self) -> int:
        return self.verdicts - self.reread

    def to_dict(self) -> dict[str, Any]:
        return {
            "verdicts": self.verdicts,
            "reread": self.reread,
            "without_reply": self.without_reply,
            "changes": [asdict(c) for c in self.changes],
        }


def rescore(source: Path, target: Path) -> Rescored:
    """Read the run in `source` again into a new run in `target`. Raises InputError."""
    info = read_info(source)
    if info.redacted:
        raise InputError("a redacted run keeps no replies to read again", where=str(source))
    if info.lane.contract == COMPACT.name:
        raise InputError(
            "answers by contract compact were chosen label by label as they were written: no reader reads them anew",
            where=str(source),
            hint="Score again with the judge, or take the run as it is.",
        )
    run = load_run(source)
    before = list(run.verdicts)
    if not any(v.raw is not None for v in before):
        raise InputError("no verdict of this run has a raw reply to read again", where=str(source))
    after = {(v.conversation_id, v.turn): reread(v, info.rubric) for v in before}
    with open_run(target, _described(info)) as new:
        for conversation in run.conversations:
            new.begin(conversation)
            for turn, key in new.keys(conversation).items():
                if (verdict := after.get((conversation.id, turn))) is not None:
                    new.add(verdict, key, conversation.content_hash)
    changes = tuple(c for v in before for c in _changes(v, after[v.conversation_id, v.turn]))
    return Rescored(len(before), sum(v.raw is not None for v in before), changes)


def _described(info: RunInfo) -> RunInfo:
    """The new run: same lane, and in its settings that it was read again, and by which version."""
    now = versions()
    return replace(
        info,
        settings={**info.settings, "reread_by": f"aipsy-judge {now['aipsy-judge']}"},
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        versions=now,
    )


def _changes(before: Verdict, after: Verdict) -> Iterator[Change]:
    for name in after.scores:
        old, new = _score_words(before.scores.get(name)), _score_words(after.scores[name])
        if old != new:
            yield Change(before.conversation_id, before.turn, name, old, new)
    for name in after.flags:
        old, new = _flag_words(before.flags.get(name)), _flag_words(after.flags[name])
        if old != new:
            yield Change(before.conversation_id, before.turn, name, old, new)


def _score_words(score: Score | None) -> str:
    match score:
        case None:
            return "absent"
        case Scored():
            return f"{score.value:g}"
        case NotApplicable():
            return "N/A"
    return f"unscored ({score.reason})"


def _flag_words(flag: Flag | None) -> str:
    if flag is None:
        return "absent"
    if flag.value is None:
        return f"unscored ({flag.unscored.reason})" if flag.unscored is not None else "unscored"
    return (flag.severity or "yes") if flag.value else "no"
