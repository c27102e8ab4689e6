"""A pack is data: what is refused and with which words, and another one's way from levels to figures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from aipsy_judge.cli.epm import command
from aipsy_judge.epm.pack import load_pack, parse_pack
from aipsy_judge.errors import RubricError

OTHER: dict[str, Any] = {
    "name": "other",
    "version": "1",
    "start_rubric": "a",
    "turn_rubric": "b",
    "top_level": 4,
    "axes": [
        {"id": "Trust", "title": "trust", "indicators": {"T1": -2.5}, "progress": {0: 0, 1: 1}, "harm": {0: 0, -1: -1}},
        {"id": "Hope", "title": "hope", "indicators": {"H1": -1, "H2": -3}, "progress": {0: 0, 1: 2, 2: 5},
         "harm": {0: 0, -1: -4}},
    ],
}  # fmt: skip


def changed(**changes: Any) -> str:
    return yaml.safe_dump(OTHER | changes)


def axis(**changes: Any) -> list[dict[str, Any]]:
    return [OTHER["axes"][0] | changes, OTHER["axes"][1]]


def test_the_published_points_of_every_level() -> None:
    space = load_pack().space
    worth = {i.id: [i.per_level * level for level in range(4)] for i in space.indicators}
    for standard in ("C.1", "C.2", "A.1", "P.1"):
        assert worth[standard] == [0, -2, -4, -6]
    for priority in ("C.3", "A.3", "P.3"):
        assert worth[priority] == [0, -3, -6, -9]
    for core in ("A.2", "P.2"):
        assert worth[core] == [0, -4, -8, -12]
    assert space.deficit_matrix.sum(axis=0).tolist() == [-7, -9, -9]  # times 3: -21, -27, -27
    assert [dict(a.harm) for a in space.axes] == [{0: 0, -1: -2, -2: -4}, *[{0: 0, -1: -2, -2: -5}] * 2]
    assert {tuple(a.progress.values()) for a in space.axes} == {(0, 1, 3)}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (changed(axes=axis(indicators={"T1": 2})), "Input should be less than 0"),
        (changed(axes=axis(progress={0: 0, 2: 1})), "needs every level from 0 to 1"),
        (changed(axes=axis(harm={0: 0, -2: -1})), "needs every level from 0 to -1"),
        (changed(axes=axis(progress={0: 1, 1: 2})), "start at 0 and never change their sign"),
        (changed(axes=axis(harm={0: 0, -1: 1})), "start at 0 and never change their sign"),
        (changed(axes=axis(id="Hope")), "ids used twice: Hope"),
        (changed(axes=[]), "at least 1 item"),
        (changed(axis=1), "axis: Extra inputs are not permitted"),
        ("name: a\nname: b", "key written twice: name"),
        ("[", "not valid YAML"),
    ],
)
def test_a_pack_that_is_not_valid_says_what_is_wrong(text: str, words: str) -> None:
    with pytest.raises(RubricError, match=words):
        parse_pack(text, where="p.yaml")


def test_a_pack_that_is_not_there_names_the_shipped_one() -> None:
    with pytest.raises(RubricError) as error:
        load_pack("missing.yaml")
    assert error.value.hint == "The shipped pack is empa."


def test_the_hash_follows_the_content_not_the_layout() -> None:
    assert parse_pack(changed(), where="p").hash == parse_pack(json.dumps(_keys(OTHER)), where="q").hash
    assert parse_pack(changed(top_level=5), where="p").hash != parse_pack(changed(), where="p").hash


def _keys(data: Any) -> Any:
    """JSON has no whole numbers as keys; quoted ones are read as such."""
    return {str(k): _keys(v) for k, v in data.items()} if isinstance(data, dict) else (
        [_keys(v) for v in data] if isinstance(data, list) else data
    )  # fmt: skip


def test_a_pack_of_ones_own_is_compared_and_drawn(tmp_path: Path) -> None:
    pack, runs, out = tmp_path / "pack.yaml", tmp_path / "runs.jsonl", tmp_path / "out"
    pack.write_text(changed(), encoding="utf-8")
    rows = [
        {"model": "m", "case": "t", "iedr": {"T1": 4, "H1": 1, "H2": 0}, "levels": [[1, 0, 1, 0]] * 12},
        {"model": "m", "case": "h", "iedr": {"T1": 0, "H1": 1, "H2": 4}, "levels": [[0, -1, 0, -1]] * 12},
    ]
    runs.write_text("\n".join(json.dumps(r) for r in rows), encoding="utf-8")
    shown = CliRunner().invoke(command, ["compare", str(runs), "--pack", str(pack), "--out", str(out)])
    assert shown.exit_code == 0, shown.output
    data = json.loads((out / "comparison.json").read_text("utf-8"))
    assert data["pack"]["name"] == "other"
    assert {c["case"]: (c["dominant"], c["stop"]) for c in data["cases"]} == {
        "t": ("Trust", "success_positional"),
        "h": ("Hope", "collapse"),
    }
    assert "EPM-Q by dominant need (Trust trust, Hope hope)" in shown.output
