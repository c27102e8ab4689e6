"""The measurement of the map's cost runs, on a table that is what it says."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner

from aipsy_judge.ratings import read_ratings
from bench.map import draw_table, main


def test_the_drawn_table_has_the_size_asked_for(tmp_path: Path) -> None:
    rows = draw_table(tmp_path / "r.csv", items=40, judges=2, metrics=3, turns=10)
    ratings = read_ratings(tmp_path / "r.csv")
    assert rows == len(ratings) == 40 * 3 * 3
    assert len(ratings.judges) == 2
    assert int(ratings.groups().max()) + 1 == 4


def test_the_measurement_reports_seconds_and_memory(tmp_path: Path) -> None:
    arguments = ["--items", "60", "--judges", "2", "--metrics", "2", "--resamples", "20", "--json"]
    result = CliRunner().invoke(main, [*arguments, str(tmp_path / "f.json")], catch_exceptions=False)
    figures = json.loads((tmp_path / "f.json").read_text())
    assert result.exit_code == 0
    assert figures["map_seconds"] > 0
    assert figures["peak_gib"] > 0.01
