"""The released runs that the tests recompute, where this machine has them."""

from __future__ import annotations

from pathlib import Path

import pytest

RUNS = Path(__file__).parents[3] / "shared" / "data" / "empa" / "runs.jsonl.gz"

needs_runs = pytest.mark.skipif(
    not RUNS.is_file(), reason=f"the 240 released EMPA runs are not at {RUNS}: nothing to recompute"
)
