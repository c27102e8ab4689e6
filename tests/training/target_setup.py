"""Six talks that judges rated, and the targets made of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from recipe_setup import FINE, Scores, lines, read_recipe, talk

from training import targets
from training.target_rows import FILE

TALKS = [talk(f"c{n}", n) for n in range(6)]


def made(path: Path, *overrides: str) -> dict[str, dict[str, Any]]:
    """item -> its line in targets.jsonl."""
    out = path.parent / "run"
    found = targets.make_targets(read_recipe(path, *overrides), out)
    return {row["item_id"]: row for row in lines(found.folder / FILE)}


def judged(n: int, judge: str) -> tuple[Scores, bool]:
    """Two judges, one a point above the other, on items whose quality goes through the scale."""
    true = 1.0 + n % 4
    return {**FINE, "empathy": min(5.0, true + (judge == "judge-b"))}, False
