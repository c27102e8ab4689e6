"""What came of a panel, read from its run folders: a report per judge, who fell silent where, the ratings table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..errors import AipsyJudgeError
from ..ratings import Ratings, merge_ratings, ratings_of_runs, write_ratings
from ..runs import RunView, load_run
from ..runs_info import RUN
from ..units import Coverage, Key, coverage, units
from .member import Member
from .panel_file import RATINGS
from .silence import Mark, Silence, marks, silence


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens as the server counted them, over the `verdicts` for which it did. Of a question that was asked twice only
    the second is in it."""

    input_tokens: int
    output_tokens: int
    verdicts: int


@dataclass(frozen=True, slots=True)
class JudgeReport:
    """What one judge gave.

    judge     its id in the ratings table; None where it never began
    verdicts  items that have one
    coverage  of its scores: scored, N/A, unscored by reason
    notes     remark -> verdicts that bear it, such as "dropped:temperature": how it was asked after refusals
    error     why it was given up, or None
    """

    member: Member
    judge: str | None
    verdicts: int
    coverage: Coverage
    notes: Mapping[str, int]
    usage: Usage | None
    error: AipsyJudgeError | None

    @property
    def is_missing(self) -> bool:
        """It gave no score at all, to any item."""
        return self.coverage.scored == 0

    @property
    def blocked(self) -> int:
        """Scores that its provider's filter refused."""
        return self.coverage.reasons.get("blocked", 0)


@dataclass(frozen=True, slots=True)
class PanelResult:
    """`judges` in the panel's order; `silences` of those that gave scores or were refused them."""

    judges: tuple[JudgeReport, ...]
    silences: tuple[Silence, ...]

    @property
    def missing(self) -> tuple[JudgeReport, ...]:
        return tuple(j for j in self.judges if j.is_missing)

    @property
    def given_up(self) -> tuple[JudgeReport, ...]:
        """Judges that stopped before the end, or gave nothing."""
        return tuple(j for j in self.judges if j.error is not None or j.is_missing)


def panel_result(folder: Path, members: Sequence[Member], errors: Mapping[str, AipsyJudgeError]) -> PanelResult:
    """Read every run of the panel, one in memory at a time."""
    reports, marked = [], dict[str, Mapping[Key, Mark]]()
    for member in members:
        error = errors.get(member.name)
        if not (folder / member.folder / RUN).exists():
            reports.append(JudgeReport(member, None, 0, Coverage(), {}, None, error))
            continue
        run = load_run(folder / member.folder)
        reports.append(_report(member, run, error))
        marked[run.lane.judge] = marks(run)
    return PanelResult(tuple(reports), tuple(silence(marked)))


def write_panel_ratings(folder: Path, result: PanelResult) -> Ratings | None:
    """Write ratings.csv from the runs of all judges that gave scores; None where none did.

    A judge that gave none is left out: a column without a single score can be compared with nobody.
    """
    tables = [_ratings(folder, j) for j in result.judges if not j.is_missing]
    if not tables:
        return None
    ratings = tables[0] if len(tables) == 1 else merge_ratings(tables)
    write_ratings(ratings, folder / RATINGS)
    return ratings


def _ratings(folder: Path, report: JudgeReport) -> Ratings:
    run = load_run(folder / report.member.folder)
    return ratings_of_runs([(report.member.folder, run.lane.judge, run)])


def _report(member: Member, run: RunView, error: AipsyJudgeError | None) -> JudgeReport:
    judged = [u for u in units(run) if u.verdict is not None]
    notes = Counter(_kind(note) for u in judged if u.verdict is not None for note in u.verdict.notes)
    return JudgeReport(
        member=member,
        judge=run.lane.judge,
        verdicts=len(judged),
        coverage=coverage(s for u in judged for s in u.scores.values()),
        notes=dict(sorted(notes.items())),
        usage=_usage(run),
        error=error,
    )


def _kind(note: str) -> str:
    """Notes that only differ in a number are of one kind."""
    return "windowed" if note.startswith("windowed:") else note


def _usage(run: RunView) -> Usage | None:
    told = [u for v in run.verdicts if isinstance(u := v.provenance.get("reply", {}).get("usage"), Mapping)]
    counted = [(u.get("prompt_tokens"), u.get("completion_tokens")) for u in told]
    whole = [(i, o) for i, o in counted if isinstance(i, int) and isinstance(o, int)]
    return Usage(sum(i for i, _ in whole), sum(o for _, o in whole), len(whole)) if whole else None
