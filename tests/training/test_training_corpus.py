"""The corpus as it is committed: its texts are frozen, and every reply has its three ratings."""

from __future__ import annotations

import csv
import hashlib
import json
from collections import Counter
from pathlib import Path

CORPUS = Path(__file__).resolve().parents[2] / "training" / "corpus"
RATINGS = CORPUS.parent / "ratings"


def lines(name: str) -> list[dict]:
    return [json.loads(line) for path in sorted(CORPUS.glob(name)) for line in path.read_text().splitlines()]


def test_the_texts_are_those_that_were_rated() -> None:
    told = dict(reversed(line.split()) for line in (CORPUS / "frozen.sha256").read_text().splitlines())
    assert {path.name for path in CORPUS.glob("*.jsonl")} == set(told)
    for name, wanted in told.items():
        assert hashlib.sha256((CORPUS / name).read_bytes()).hexdigest() == wanted, name


def test_every_situation_has_one_conversation_and_roles_alternate() -> None:
    conversations = lines("conversations-*.jsonl")
    assert Counter(c["situation"] for c in conversations) == Counter(s["id"] for s in lines("situations.jsonl"))
    for conversation in conversations:
        roles = [m["role"] for m in conversation["messages"]]
        assert roles == ["user", "assistant"] * (len(roles) // 2)
        assert len(conversation.get("qualities", roles[::2])) == len(roles) // 2  # told of the first six files alone
        assert 4 <= len(roles) // 2 <= 10


def test_every_reply_was_rated_by_each_pass() -> None:
    conversations = lines("conversations-*.jsonl")
    replies = sum(len(c["messages"]) // 2 + len(c["alternatives"]) for c in conversations)
    for rater in ("strict", "plain", "lenient"):
        items = Counter()
        for path in RATINGS.glob(f"{rater}-*.csv"):
            with path.open(newline="") as file:
                items.update(row["item_id"] for row in csv.DictReader(file) if row["metric"] == "empathy")
        assert len(items) == replies
        assert set(items.values()) == {1}


def test_nobody_is_called_an_expert() -> None:
    for path in RATINGS.glob("*.csv"):
        with path.open(newline="") as file:
            assert {row["rater_kind"] for row in csv.DictReader(file)} <= {"judge", "adjudicated"}
