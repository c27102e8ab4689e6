"""The bench of the evaluation draws legal levels of every kind and keeps its promise."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from aipsy_judge.epm.vectors import check_start_levels, check_turn_levels
from bench.epm import SPACE, draw_levels, main, measure


def test_the_levels_drawn_are_legal_and_all_of_them_occur() -> None:
    start, levels = draw_levels(SPACE, 200, 45, seed=1)
    check_start_levels(SPACE, start)
    check_turn_levels(SPACE, levels, np.full(200, 45))
    for channel, scores in enumerate(SPACE.channel_scores):
        assert set(np.unique(levels[..., channel]).tolist()) == set(scores)


def test_it_fails_where_it_takes_too_long(tmp_path: Path) -> None:
    out = tmp_path / "bench.json"
    arguments = ["--trajectories", "50", "--repeats", "1", "--json", str(out)]
    assert CliRunner().invoke(main, [*arguments, "--most-seconds", "60"]).exit_code == 0
    assert CliRunner().invoke(main, [*arguments, "--most-seconds", "0"]).exit_code == 1
    assert [r["profile"] for r in json.loads(out.read_text("utf-8"))["results"]] == ["empa-2026-02", "paper-v1"]


@pytest.mark.slow
def test_ten_thousand_trajectories_cost_no_more_each_than_a_thousand() -> None:
    """What they take in seconds is the bench's own promise (--most-seconds); it depends on the machine and its load."""
    thousand, all_ten = (measure(n, 45, "empa-2026-02", repeats=5)["cpu_seconds_median"] for n in (1_000, 10_000))
    assert all_ten < 20 * thousand
