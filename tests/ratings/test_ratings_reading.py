"""A ratings table is read whole or not at all; every fault is named with its row."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from aipsy_judge.errors import RatingsError
from aipsy_judge.ratings import NA, SCORED, UNSCORED, Ratings, ratings_from_rows, read_ratings

HEADER = "item_id,rater,rater_kind,metric,score,status,scale_min,scale_max"


def write(folder: Path, *lines: str, header: str = HEADER, name: str = "ratings.csv") -> Path:
    path = folder / name
    path.write_text("\n".join([header, *lines]) + "\n", encoding="utf-8")
    return path


def row(**cells: object) -> dict[str, object]:
    plain = {"item_id": "a", "rater": "j", "metric": "empathy", "score": 3, "scale_min": 0, "scale_max": 5}
    return {**plain, **cells}


def test_scored_na_and_unscored_stay_three_things(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        "a,j,judge,empathy,4,scored,0,5",
        "b,j,judge,empathy,,na,0,5",
        "c,j,judge,empathy,,unscored,0,5",
    )
    ratings = read_ratings(path)
    assert ratings.counts() == {"scored": 1, "na": 1, "unscored": 1}
    assert list(ratings.status) == [SCORED, NA, UNSCORED]
    matrix = ratings.matrix("empathy")
    assert matrix.item_ids == ("a", "b", "c")
    assert matrix.scored[:, 0].tolist() == [True, False, False]
    assert matrix.na[:, 0].tolist() == [False, True, False]
    assert matrix.missing[:, 0].tolist() == [False, False, True]


def test_a_cell_nobody_asked_for_is_missing_but_not_unscored() -> None:
    ratings = ratings_from_rows([row(), row(item_id="b", rater="k")])
    matrix = ratings.matrix("empathy")
    assert matrix.missing.tolist() == [[False, True], [True, False]]
    assert not matrix.unscored.any()


def test_all_faults_are_told_at_once_with_their_rows(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        "a,j,judge,empathy,4,scored,0,5",
        "a,j,judge,empathy,3,scored,0,5",
        "b,j,judge,empathy,7,scored,0,5",
        "c,j,judge,empathy,four,scored,0,5",
        "d,j,judge,empathy,,scored,0,5",
        "e,j,judge,empathy,2,na,0,5",
        "f,j,robot,empathy,2,scored,0,5",
        "g,j,judge,empathy,2,done,0,5",
        ",j,judge,empathy,2,scored,0,5",
        "h,j,expert,empathy,2,scored,0,5",
        "i,j,judge,empathy,2,scored,5,0",
        "k,j,judge",
    )
    with pytest.raises(RatingsError) as caught:
        read_ratings(path)
    text = str(caught.value)
    assert "row 3: the same item, rater and metric as row 2" in text
    assert "row 4: score 7 is off its scale 0..5" in text
    assert "row 5: score is 'four', not a number" in text
    assert "row 6: status is 'scored' and there is no score" in text
    assert "row 7: status is 'na' and there is a score 2" in text
    assert "row 8: rater_kind is 'robot', not one of expert, adjudicated, crowd, judge" in text
    assert "row 9: status is 'done', not one of scored, na, unscored" in text
    assert "row 10: item_id is empty" in text
    assert "row 11: j is 'expert' here and 'judge' elsewhere" in text
    assert "row 12: scale_min 5 is not below scale_max 0" in text
    assert "row 13: 3 cells where the header has 8" in text


def test_only_the_first_fifty_faults_are_printed_and_the_rest_counted() -> None:
    with pytest.raises(RatingsError, match="and 150 more") as caught:
        ratings_from_rows([row(item_id=f"i{n}", score=9) for n in range(200)])
    assert str(caught.value).count("off its scale") == 50
    assert "200 faults" in str(caught.value)


@pytest.mark.parametrize("cell", ["", "NA", "N/A", "nan", "null"])
def test_an_empty_score_without_status_is_a_fault_until_it_is_said_what_it_means(tmp_path: Path, cell: str) -> None:
    path = write(tmp_path, f"a,j,empathy,{cell},0,5", header="item_id,rater,metric,score,scale_min,scale_max")
    with pytest.raises(RatingsError, match="N/A or missing"):
        read_ratings(path)
    assert read_ratings(path, empty="na").counts()["na"] == 1
    assert read_ratings(path, empty="missing").counts()["unscored"] == 1


@pytest.mark.parametrize("cell", ["1_0", "inf", "٤", "0x2", "4,5", "true"])
def test_what_is_not_a_plain_number_is_not_a_score(cell: str) -> None:
    with pytest.raises(RatingsError, match="not a number"):
        ratings_from_rows([row(score=cell, scale_max=100)])


@pytest.mark.parametrize("cell", [True, [4], {"value": 4}])
def test_a_json_value_that_is_no_number_is_not_a_score(cell: object) -> None:
    with pytest.raises(RatingsError, match="not a number"):
        ratings_from_rows([row(score=cell)])


def test_unlike_scales_of_a_metric_are_refused_and_converted_only_when_asked() -> None:
    rows = [row(score=5), row(rater="expert1", score=4, scale_min=1)]
    with pytest.raises(RatingsError, match=r"row 2: empathy is on 1\.\.5 here and on 0\.\.5 elsewhere"):
        ratings_from_rows(rows)
    ratings = ratings_from_rows(rows, scales={"empathy": (0, 5)})
    assert ratings.scales == {"empathy": (0, 5)}
    assert ratings.score.tolist() == [5, 3.75]  # 4 on 1..5 is three quarters of the way up


def test_a_score_legal_only_on_the_wanted_scale_is_off_its_own() -> None:
    with pytest.raises(RatingsError, match="score 0 is off its scale 1"):
        ratings_from_rows([row(score=0, scale_min=1)], scales={"*": (0, 5)})


def test_a_scale_may_be_declared_where_the_rows_state_none() -> None:
    rows = [row(scale_min=None, scale_max=None)]
    with pytest.raises(RatingsError, match="no scale"):
        ratings_from_rows(rows)
    assert ratings_from_rows(rows, declared_scales={"*": (1, 5)}).scales == {"empathy": (1, 5)}


def test_half_a_scale_is_not_completed_from_the_declared_one() -> None:
    with pytest.raises(RatingsError, match="no scale"):
        ratings_from_rows([row(scale_max=None)], declared_scales={"*": (0, 5)})


def test_kinds_come_from_the_option_then_the_rows_then_the_name_with_a_warning() -> None:
    rows = [row(rater="expert_1"), row(rater="crowd mean"), row(rater="k", rater_kind="expert"), row(rater="j")]
    ratings = ratings_from_rows(rows, kinds={"j": "crowd"})
    assert ratings.kinds == {"expert_1": "expert", "crowd mean": "crowd", "k": "expert", "j": "crowd"}
    assert ratings.warnings == ("no rater_kind given, taken from the names: expert_1 is expert, crowd mean is crowd",)


def test_an_item_with_two_conversations_is_a_fault() -> None:
    with pytest.raises(RatingsError, match="row 2: conversation of a is 'c2' here"):
        ratings_from_rows([row(conversation="c1"), row(rater="k", conversation="c2")])


def test_items_without_conversation_are_groups_of_their_own() -> None:
    ratings = ratings_from_rows(
        [row(item_id=i, conversation=c) for i, c in [("a", "x"), ("b", "x"), ("c", ""), ("d", "")]]
    )
    groups = ratings.groups()
    assert groups[0] == groups[1]
    assert len(set(groups.tolist())) == 3


def test_columns_of_other_names_are_named_as_unread(tmp_path: Path) -> None:
    path = write(tmp_path, "a,j,judge,empathy,4,scored,0,5,x,c1", header=HEADER + ",comment,conv_id")
    ratings = read_ratings(path)
    assert ratings.warnings == ("columns not used: comment",)
    assert ratings.conversation[0] == "c1"


def test_a_missing_column_is_one_clear_error(tmp_path: Path) -> None:
    path = write(tmp_path, "a,empathy,4", header="item_id,metric,score")
    with pytest.raises(RatingsError, match="no column rater; there are: item_id, metric, score"):
        read_ratings(path)


@pytest.mark.parametrize("delimiter", [";", "\t"])
def test_other_delimiters_are_understood(tmp_path: Path, delimiter: str) -> None:
    path = write(
        tmp_path, "a,j,judge,empathy,4,scored,0,5".replace(",", delimiter), header=HEADER.replace(",", delimiter)
    )
    assert read_ratings(path).score.tolist() == [4]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_files_made_on_windows_are_read(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "r.csv"
    path.write_bytes((HEADER + "\r\nä,j,judge,empathy,4,scored,0,5\r\n").encode(encoding))
    assert read_ratings(path).items == ("ä",)


def test_a_wrong_encoding_is_one_error_with_the_byte(tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    content = (HEADER + "\nä,j,judge,empathy,4,scored,0,5\n").encode("latin-1")
    path.write_bytes(content)
    with pytest.raises(RatingsError, match=f"offset {content.index(0xE4)}$"):
        read_ratings(path)


def test_the_byte_is_right_far_into_a_file(tmp_path: Path) -> None:
    lines = "".join(f"é{n},j,judge,empathy,4,scored,0,5\n" for n in range(9000)).encode()
    content = HEADER.encode() + b"\n" + lines
    path = tmp_path / "r.csv"
    path.write_bytes(content + b"\xff\n")
    with pytest.raises(RatingsError, match=f"offset {len(content)}$"):
        read_ratings(path)


def test_gzip_is_seen_by_content_not_by_name(tmp_path: Path) -> None:
    path = tmp_path / "ratings.csv"
    path.write_bytes(gzip.compress((HEADER + "\na,j,judge,empathy,4,scored,0,5\n").encode()))
    assert len(read_ratings(path)) == 1


def test_a_cut_gzip_file_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "ratings.csv.gz"
    path.write_bytes(gzip.compress((HEADER + "\na,j,judge,empathy,4,scored,0,5\n").encode())[:-12])
    with pytest.raises(RatingsError, match="cannot be read"):
        read_ratings(path)


def test_jsonl_faults_name_the_line(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    good = json.dumps(row())
    path.write_text(f'\n{good}\n{{"item_id": "b"\n{good[:-1]}, "score": 4}}\n[1]\n{good.replace("3", "NaN")}\n')
    with pytest.raises(RatingsError) as caught:
        read_ratings(path)
    text = str(caught.value)
    assert "row 3: " in text
    assert "row 4: a key is written twice" in text
    assert "row 5: not a JSON object" in text
    assert "row 6: NaN is no number" in text


def test_csv_jsonl_and_parquet_give_the_same_table(tmp_path: Path) -> None:
    rows = [row(score=n % 6, item_id=f"i{n}", turn=n + 1, generator="g", status="scored") for n in range(5)]
    rows.append(row(item_id="z", score=None, status="na"))
    (tmp_path / "r.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    names = list(dict.fromkeys(k for r in rows for k in r))
    lines = [",".join("" if r.get(k) is None else str(r[k]) for k in names) for r in rows]
    write(tmp_path, *lines, header=",".join(names), name="r.csv")
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pyarrow.Table.from_pylist([{k: r.get(k) for k in names} for r in rows]), tmp_path / "r.parquet")
    tables = [list(read_ratings(tmp_path / f"r.{kind}").rows()) for kind in ("csv", "jsonl", "parquet")]
    assert tables[0] == tables[1] == tables[2]


def test_several_files_make_one_table_and_a_fault_names_its_file(tmp_path: Path) -> None:
    first = write(tmp_path, "a,j,judge,empathy,4,scored,0,5", name="one.csv")
    second = write(tmp_path, "a,k,judge,empathy,9,scored,0,5", name="two.csv")
    with pytest.raises(RatingsError, match=r"two\.csv, row 2: score 9 is off"):
        read_ratings([first, second])


@pytest.mark.parametrize("content", ["", "\n \n", HEADER + "\n"])
def test_a_file_without_ratings_is_an_error(tmp_path: Path, content: str) -> None:
    path = tmp_path / "r.csv"
    path.write_text(content)
    with pytest.raises(RatingsError, match=r"empty|no ratings"):
        read_ratings(path)


def test_rows_read_back_to_the_same_table() -> None:
    rows = [
        row(conversation="c", turn=2, scenario="s", generator="g", generator_family="f", run="r1", rater_kind="expert"),
        row(item_id="b", status="unscored", score=None),
    ]
    ratings = ratings_from_rows(rows, kinds={"j": "expert"})
    again = ratings_from_rows(ratings.rows())
    assert list(again.rows()) == list(ratings.rows())


@pytest.mark.parametrize("chance", [0, 1.5, -0.1])
def test_an_inclusion_probability_lies_above_zero_and_up_to_one(chance: float) -> None:
    with pytest.raises(RatingsError, match="not a probability"):
        ratings_from_rows([row(inclusion=chance)])


def test_inclusion_belongs_to_the_item() -> None:
    ratings = ratings_from_rows([row(inclusion=0.25), row(rater="k"), row(item_id="b")])
    assert ratings.inclusion[0] == 0.25
    assert np.isnan(ratings.inclusion[1])
    with pytest.raises(RatingsError, match=r"inclusion of a is 0\.5 here"):
        ratings_from_rows([row(inclusion=0.25), row(rater="k", inclusion=0.5)])


def test_a_turn_is_a_whole_number_from_one() -> None:
    for turn in (0, 1.5, -1):
        with pytest.raises(RatingsError, match="not a whole number from 1"):
            ratings_from_rows([row(turn=turn)])


def sample() -> Ratings:
    return ratings_from_rows(
        [row(item_id=i, rater=r, metric=m) for m in ("empathy", "tone") for r in ("j", "k") for i in ("a", "b")]
    )


def test_a_subset_keeps_the_places_of_the_items() -> None:
    ratings = sample()
    part = ratings.subset(metrics=["tone"], raters=["k"], items=np.array([False, True]))
    assert len(part) == 1
    assert part.metrics == ("tone",)
    assert part.raters == ("k",)
    assert part.items == ratings.items
    assert part.matrix("tone").item_ids == ("b",)


def test_an_unknown_name_is_an_error_that_lists_the_known_ones() -> None:
    with pytest.raises(RatingsError, match="no metric 'warmth' in the table; there are: empathy, tone"):
        sample().matrix("warmth")
    with pytest.raises(RatingsError, match="no rater 'x'"):
        sample().matrix("tone", ["x"])
