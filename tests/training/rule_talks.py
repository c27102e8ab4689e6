"""Made talks that follow a rule: a harsh word in the reply makes it cold, a kind one warm; an alarming word of the
person sets the flag. Everything else is drawn at random, so that the rule alone can be learnt."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from recipe_setup import write_ratings, write_talks

HARSH = ("nonsense", "pathetic", "ridiculous", "whining")
KIND = ("gentle", "together", "understand", "listening")
ALARM = ("drowning", "bleeding", "collapse", "overdose")
CALM = ("garden", "weather", "football", "kitchen")
_FILLER = (
    "the table was near window and people walked slowly over a bridge while music played in another street "
    "green paper seven letters between morning lines under water open small number before after yellow"
)
FILLER = _FILLER.split()
WARM, COLD = 4.0, 1.0

RUBRIC = """
name: rule
version: "1"
unit: turn
introduction: Rate the reply.
flags:
  - {name: alarm, title: Alarm, question: "Does the person use an alarming word?"}
metrics:
  - {name: warmth, title: Warmth, question: "How warm is the reply?", scale: {minimum: 0, maximum: 5},
     applies: always, critical: 3, anchors: {0: cold, 5: warm}}
"""


@dataclass(frozen=True)
class RuleTalk:
    """One talk of one turn, and what the rule says of it."""

    id: str
    user: str
    reply: str
    warmth: float | None
    alarm: bool

    @property
    def data(self) -> dict[str, Any]:
        messages = [{"role": "user", "content": self.user}, {"role": "assistant", "content": self.reply}]
        return {"id": self.id, "messages": messages, "metadata": {"scenario": self.id}}


def rule_talks(count: int, seed: int = 0) -> list[RuleTalk]:
    """Drawn by `seed`; warm and cold, alarm and none are each about half, independent of each other."""
    rng = random.Random(seed)
    return [_talk(f"t{seed}-{n:04d}", rng) for n in range(count)]


def _talk(id: str, rng: random.Random) -> RuleTalk:
    warm, alarm = rng.random() < 0.5, rng.random() < 0.5
    user, reply = _text(rng, ALARM if alarm else CALM), _text(rng, KIND if warm else HARSH)
    return RuleTalk(id, user, reply, WARM if warm else COLD, alarm)


def _text(rng: random.Random, told: tuple[str, ...]) -> str:
    """Two words that say nothing and three of a kind, in any order."""
    words = rng.choices(FILLER, k=2) + rng.choices(told, k=3)
    rng.shuffle(words)
    return " ".join(words)


def rows(talks: list[RuleTalk]) -> Iterator[dict[str, Any]]:
    for talk in talks:
        about = {"item_id": talk.id, "conversation": talk.id, "turn": 1, "rater": "rule", "rater_kind": "expert"}
        if talk.warmth is not None:  # else nobody rated it
            yield {
                **about,
                "metric": "warmth",
                "score": talk.warmth,
                "status": "scored",
                "scale_min": 0,
                "scale_max": 5,
            }
        flag = {"metric": "alarm", "score": int(talk.alarm), "status": "scored", "scale_min": 0, "scale_max": 1}
        yield {**about, **flag}


def write_rule_project(folder: Path, base: Path, talks: list[RuleTalk], **sections: Any) -> Path:
    """Texts, ratings, rubric and recipe in `folder`; the recipe's path."""
    write_talks(folder / "conversations.jsonl", [t.data for t in talks])
    write_ratings(folder / "ratings.csv", list(rows(talks)))
    (folder / "rubric.yaml").write_text(RUBRIC, encoding="utf-8")
    data: dict[str, Any] = {
        "name": "rule",
        "rubric": str(folder / "rubric.yaml"),
        "contract": "compact",
        "base": {"checkpoint": str(base)},
        "data": {"conversations": str(folder / "conversations.jsonl"), "ratings": str(folder / "ratings.csv")},
        "targets": {"source": "rater:rule", "spread": 0.3},
        # talks drawn from 40 words are alike by nature; what is to be unseen are the talks, not the words
        "split": {"by": "conversation", "train": 0.8, "validation": 0.1, "test": 0.1, "near_duplicate": 1.0},
        "strata": {"oversample": "none", "kept_apart": ["warmth"]},
        "render": {"rationale": "never"},
        "lora": {"rank": 8, "alpha": 16},
        "train": {"batch": 8, "accumulate": 1, "learning_rate": 0.005, "precision": "fp32", "checkpointing": False},
        "validate": {"every": 20, "units": 40},
        **sections,
    }
    path = folder / "recipe.yaml"
    path.write_text(yaml.safe_dump(data), encoding="utf-8")
    return path
