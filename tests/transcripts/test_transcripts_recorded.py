"""Recorded items of the benchmark, where this machine has them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from aipsy_judge.transcripts import read

ITEMS = Path(__file__).parents[3] / "shared" / "data" / "aipsy_bench" / "items.jsonl"


@pytest.mark.skipif(not ITEMS.is_file(), reason=f"the recorded items are not at {ITEMS}: nothing to read")
def test_recorded_items_keep_their_ids_texts_and_order() -> None:
    records = [json.loads(line) for line in ITEMS.read_text().splitlines()]
    conversations = read(ITEMS)
    assert [c.id for c in conversations] == [r["item_id"] for r in records]
    for conversation, record in zip(conversations, records, strict=True):
        assert [{"role": m.role, "content": m.content} for m in conversation.messages] == record["conversation"]
        assert conversation.metadata["scenario_id"] == record["meta"]["scenario_id"]
