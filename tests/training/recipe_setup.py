"""Made talks and ratings with known faults, and a recipe over them, for tests of the stages."""

from __future__ import annotations

import csv
import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from aipsy_judge.rubric import load_rubric
from training.recipe import Recipe
from training.recipe_reading import load_recipe

RUBRIC = load_rubric()
FINE = dict.fromkeys(RUBRIC.metric_names, 4.0) | {"crisis_handling": None}
WORDS = [f"{a}{b}" for a in ("river", "copper", "winter", "kettle") for b in ("stone", "lamp", "gate", "bird")]

Scores = Mapping[str, float | None]


def talk(id: str, number: int, turns: int = 2, **metadata: Any) -> dict[str, Any]:
    """A talk drawn by its number: no two numbers share five words in a row."""
    messages = []
    for turn in range(turns):
        for role in ("user", "assistant"):
            drawn = random.Random(f"{number} {role} {turn}")
            messages.append({"role": role, "content": " ".join(drawn.choices(WORDS, k=12))})
    return {"id": id, "messages": messages, "metadata": metadata}


def write_talks(path: Path, talks: Sequence[Mapping[str, Any]]) -> None:
    path.write_text("".join(json.dumps(t) + "\n" for t in talks), encoding="utf-8")


def rating_rows(
    item: Mapping[str, Any], rater: str, kind: str, scores: Scores, *, crisis: bool = False, level: int | None = None
) -> Iterator[dict[str, Any]]:
    """One rater's rows of one item: None is N/A, a metric that is left out is not asked."""
    about = {**item, "rater": rater, "rater_kind": kind}
    for metric, score in scores.items():
        status = "na" if score is None else "scored"
        yield {**about, "metric": metric, "score": score, "status": status, "scale_min": 0, "scale_max": 5}
    yield {
        **about,
        "metric": "crisis_detected",
        "score": int(crisis),
        "status": "scored",
        "scale_min": 0,
        "scale_max": 1,
    }
    severity = level if level is not None else int(crisis)
    yield {**about, "metric": "crisis_severity", "score": severity, "status": "scored", "scale_min": 0, "scale_max": 2}


def write_ratings(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    columns = list(dict.fromkeys(name for row in rows for name in row))
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        writer.writerows(rows)


def items_of(talks: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """An item a turn, as the cells that name it."""
    return [
        {"item_id": f"{t['id']}:t{n:02d}", "conversation": t["id"], "turn": n}
        for t in talks
        for n in range(1, sum(m["role"] == "assistant" for m in t["messages"]) + 1)
    ]


def make_project(
    folder: Path,
    talks: Sequence[Mapping[str, Any]],
    judged: Callable[[int, str], tuple[Scores, bool]],
    *,
    judges: Sequence[str] = ("judge-a", "judge-b"),
    anchors: Callable[[int], Scores | None] = lambda n: None,
    **sections: Any,
) -> Path:
    """conversations.jsonl, ratings.csv and recipe.yaml; `judged(n, judge)` gives scores and the flag of item n."""
    write_talks(folder / "conversations.jsonl", talks)
    rows: list[dict[str, Any]] = []
    for n, item in enumerate(items_of(talks)):
        for judge in judges:
            scores, crisis = judged(n, judge)
            rows += rating_rows(item, judge, "judge", scores, crisis=crisis)
        known = anchors(n)
        if known is not None:
            rows += rating_rows(item, "adjudicated", "adjudicated", known)
    write_ratings(folder / "ratings.csv", rows)
    data = {
        "name": "made",
        "base": {"checkpoint": "no-such-base"},
        "data": {"conversations": str(folder / "conversations.jsonl"), "ratings": str(folder / "ratings.csv")},
        "targets": {"source": "mean"},
        **sections,
    }
    path = folder / "recipe.yaml"
    path.write_text(yaml.safe_dump(data), encoding="utf-8")
    return path


def read_recipe(path: Path, *overrides: str) -> Recipe:
    return load_recipe(path, overrides)


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
