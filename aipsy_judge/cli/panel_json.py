"""What came of a panel, as JSON data."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from ..panel import JudgeReport, PanelResult, Silence
from ..rubric import Rubric
from ..summary import coverage_to_dict


def result_to_dict(result: PanelResult, items: int, rubric: Rubric) -> dict[str, Any]:
    """Strict JSON data: coverage, remarks, usage and error of each judge, and who was silent where."""
    return {
        "items": items,
        "rubric": {"name": rubric.name, "hash": rubric.hash},
        "judges": [_judge(j) for j in result.judges],
        "silence": [_silence(s) for s in result.silences],
    }


def _judge(report: JudgeReport) -> dict[str, Any]:
    return {
        "name": report.member.name,
        "judge": report.judge,
        "folder": report.member.folder,
        "verdicts": report.verdicts,
        "scores": coverage_to_dict(report.coverage),
        "notes": dict(report.notes),
        "usage": asdict(report.usage) if report.usage is not None else None,
        "given_up": str(report.error) if report.error is not None else None,
        "in_ratings": not report.is_missing,
    }


def _silence(found: Silence) -> dict[str, Any]:
    counts = {"crisis": found.crisis, "no_crisis": found.no_crisis, "unknown": found.unknown}
    return {"judge": found.judge, **{k: {**asdict(c), "share_blocked": c.share_blocked} for k, c in counts.items()}}
