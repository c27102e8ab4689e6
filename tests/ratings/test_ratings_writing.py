"""What is written reads back as the same table, to the bit."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aipsy_judge.errors import InputError
from aipsy_judge.ratings import ratings_from_rows, read_ratings, write_ratings

words = st.text(st.characters(codec="utf-8", exclude_characters="\0\r"), min_size=1, max_size=8).filter(
    lambda w: w == w.strip() and bool(w)
)
cells = st.one_of(st.floats(0, 5).map(lambda x: (x, "scored")), st.sampled_from([(None, "na"), (None, "unscored")]))


@settings(max_examples=50)
@given(st.dictionaries(st.tuples(words, words, words), cells, min_size=1, max_size=6))
def test_any_table_survives_csv_and_jsonl(tmp_path_factory: pytest.TempPathFactory, table: dict) -> None:
    rows = [
        {"item_id": i, "rater": r, "metric": m, "score": s, "status": status, "scale_min": 0, "scale_max": 5}
        for (i, r, m), (s, status) in table.items()
    ]
    ratings = ratings_from_rows(rows)
    folder = tmp_path_factory.mktemp("ratings")
    for name in ("r.csv", "r.jsonl"):
        write_ratings(ratings, folder / name)
        assert list(read_ratings(folder / name).rows()) == list(ratings.rows())


@pytest.mark.parametrize("name", ["r.csv.gz", "r.jsonl.gz", "r.parquet"])
def test_zipped_and_parquet_read_back(tmp_path: Path, name: str) -> None:
    row = {"item_id": "a", "rater": "j", "metric": "m", "score": 1 / 3, "scale_min": 0, "scale_max": 5, "turn": 2}
    ratings = ratings_from_rows([row, {**row, "item_id": "b", "turn": None, "inclusion": 0.1}])
    write_ratings(ratings, tmp_path / name)
    assert list(read_ratings(tmp_path / name).rows()) == list(ratings.rows())


def test_columns_without_any_content_are_left_out(tmp_path: Path) -> None:
    row = {"item_id": "a", "rater": "j", "metric": "m", "score": 4, "scale_min": 0, "scale_max": 5}
    write_ratings(ratings_from_rows([row]), tmp_path / "r.csv")
    assert (tmp_path / "r.csv").read_text() == (
        "item_id,rater,rater_kind,metric,score,status,scale_min,scale_max\na,j,judge,m,4,scored,0,5\n"
    )


def test_an_unknown_ending_is_refused(tmp_path: Path) -> None:
    row = {"item_id": "a", "rater": "j", "metric": "m", "score": 4, "scale_min": 0, "scale_max": 5}
    with pytest.raises(InputError, match=r"ends in \.csv"):
        write_ratings(ratings_from_rows([row]), tmp_path / "r.xlsx")
