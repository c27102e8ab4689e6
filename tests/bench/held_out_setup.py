"""A small recipe with alternatives and a frozen split, and replies by hand, for tests of held-out figures."""

from __future__ import annotations

import csv
import json
import random
from pathlib import Path
from typing import Any

import yaml

from aipsy_judge.conversation import Conversation, Message
from aipsy_judge.rubric import load_rubric
from bench.held_out import HeldItem
from training.target_rows import FlagTarget, MetricTarget, TargetRow

RUBRIC = load_rubric()
KIND = "I hear how heavy this week is for you, and I stay with you in it."
COLD = "Stop whining. Others have it worse, so get up and get over it now."
PARTS = ["train"] * 8 + ["validation"] * 2 + ["test"] * 6


def target(values: dict[str, float | None], crisis: bool | None = False) -> Any:
    """Metrics that are left out are unscored; None is N/A."""
    metrics = {}
    for name in RUBRIC.metric_names:
        value = values.get(name)
        status = "scored" if value is not None else "na" if name in values else "unscored"
        metrics[name] = MetricTarget(status, value, None, None if status == "unscored" else float(status == "na"))
    flag = FlagTarget(crisis, None if crisis is None else float(crisis), None, None)
    return metrics, {"crisis_detected": flag}


def held(id: str, values: dict[str, float | None], crisis: bool | None = False, group: str | None = None) -> HeldItem:
    """A held-out reply: the only turn of a conversation."""
    talk = Conversation(id, (Message("user", f"I am {id}."), Message("assistant", "Go on.")))
    metrics, flags = target(values, crisis)
    row = TargetRow(id, id, 1, None, None, metrics, flags, None, None)
    return HeldItem(id, talk, 1, group or id, row)


def make_recipe(folder: Path) -> Path:
    """16 talks of two turns, each with a cold alternative to the second; three raters, who all see kind and cold."""
    talks, rows = [], []
    for n, _ in enumerate(PARTS):
        drawn = random.Random(n)
        about = " ".join(drawn.choices([f"word{k}" for k in range(400)], k=14))
        says = [f"Hello, {about}.", KIND + f" {drawn.random():.6f}", f"Still {about[::-1]}.", KIND]
        roles = ["user", "assistant", "user", "assistant"]
        messages = [{"role": r, "content": c} for r, c in zip(roles, says, strict=True)]
        other = [{"turn": 2, "content": COLD}]
        talks.append({"id": f"c{n:02d}", "situation": f"s{n:02d}", "messages": messages, "alternatives": other})
        for item, conversation, turn, low in (
            (f"c{n:02d}:t1", f"c{n:02d}", 1, False),
            (f"c{n:02d}:t2", f"c{n:02d}", 2, False),
            (f"c{n:02d}.t2a1:t2", f"c{n:02d}.t2a1", 2, True),
        ):
            rows += _ratings(item, conversation, turn, f"s{n:02d}", low, drawn)
    (folder / "talks.jsonl").write_text("".join(json.dumps(t) + "\n" for t in talks), encoding="utf-8")
    split = [json.dumps({"id": f"s{n:02d}", "part": p}) for n, p in enumerate(PARTS)]
    (folder / "split.jsonl").write_text("\n".join(split) + "\n", encoding="utf-8")
    with (folder / "ratings.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    recipe = {
        "name": "made",
        "contract": "compact",
        "base": {"checkpoint": "no-such-base"},
        "data": {"conversations": str(folder / "talks.jsonl"), "ratings": str(folder / "ratings.csv")},
        "targets": {"source": "mean"},
        "split": {"file": str(folder / "split.jsonl")},
    }
    (folder / "recipe.yaml").write_text(yaml.safe_dump(recipe), encoding="utf-8")
    return folder / "recipe.yaml"


def _ratings(
    item: str, conversation: str, turn: int, scenario: str, low: bool, drawn: random.Random
) -> list[dict[str, Any]]:
    found = []
    for rater in ("strict", "plain", "lenient"):
        about = {"item_id": item, "conversation": conversation, "turn": turn, "scenario": scenario, "rater": rater}
        values: dict[str, float | None] = dict.fromkeys(RUBRIC.metric_names)
        values["empathy"] = drawn.choice([0, 1]) if low else drawn.choice([4, 5])
        values["tone_consistency"] = None if turn == 1 else values["empathy"]
        for name, value in {**values, "crisis_detected": 0}.items():
            top = 1 if name == "crisis_detected" else 5
            status = "na" if value is None else "scored"
            told = {"rater_kind": "judge", "metric": name, "score": "" if value is None else value}
            found.append({**about, **told, "status": status, "scale_min": 0, "scale_max": top})
    return found
