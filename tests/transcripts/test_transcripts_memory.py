"""A hundred megabytes are read in memory that does not grow with the file."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path

import pytest

from aipsy_judge.transcripts import iter_conversations

TURNS = [{"role": role, "content": "word " * 400} for _ in range(5) for role in ("user", "assistant")]


def write_big(path: Path, megabytes: int, form: str) -> int:
    """Conversations of about 20 kB each; returns how many."""
    body = json.dumps(TURNS)
    count = megabytes * 1_000_000 // len(body)
    lines = (f'{{"id": "talk-{n}", "messages": {body}}}' for n in range(count))
    with path.open("w") as file:
        if form == "jsonl":
            file.writelines(f"{line}\n" for line in lines)
        else:
            file.write("[" + next(lines))
            file.writelines(f",\n{line}" for line in lines)
            file.write("]")
    return count


def peak_bytes(path: Path, count: int) -> int:
    tracemalloc.start()
    try:
        assert sum(len(c.turns) for c in iter_conversations(path)) == 5 * count
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.slow
@pytest.mark.parametrize("form", ["jsonl", "json"])
def test_a_hundred_megabytes_are_streamed(tmp_path: Path, form: str) -> None:
    small, big = tmp_path / "small", tmp_path / "big"
    few, many = write_big(small, 10, form), write_big(big, 100, form)
    assert big.stat().st_size >= 100_000_000
    peak_small, peak_big = peak_bytes(small, few), peak_bytes(big, many)
    # All that grows is the table of the ids: a hash and a number each.
    assert peak_big - peak_small < 250 * (many - few)
    assert peak_big < 24_000_000
