"""Rows are trees of tokens; what is wrong with one is found before anything is trained on it."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aipsy_judge.errors import InputError
from training.rows import Row, RowTree, Target, fault_of, read_rows, slot_kind, write_rows

# prompt 5 6, then the answers "7 8" and "7 9"
FORKED = Row(
    "one",
    tokens=(5, 6, 7, 8, 9),
    positions=(0, 1, 2, 3, 3),
    parents=(-1, 0, 1, 2, 2),
    targets=(
        Target(1, (7,), (1.0,), 0.1, "skeleton"),
        Target(2, (8, 9), (0.25, 0.75), 1.0, slot_kind("warmth")),
    ),
    repeats=4,
)


def test_growing_shares_the_tokens_that_answers_have_in_common() -> None:
    tree = RowTree()
    prompt = tree.grow(-1, [5, 6])
    tree.grow(prompt, [7, 8])
    last = tree.grow(prompt, [7, 9])
    row = tree.row("one", FORKED.targets, 4)
    assert row == FORKED
    assert row.path(last) == (0, 1, 2, 4)
    assert row.prompt_tokens == 2


@given(
    st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=5), min_size=1, max_size=6),
    st.lists(st.integers(4, 9), min_size=1, max_size=4),
)
def test_every_answer_can_be_read_back_along_its_path(answers: list[list[int]], prompt: list[int]) -> None:
    tree = RowTree()
    root = tree.grow(-1, prompt)
    ends = [tree.grow(root, answer) for answer in answers]
    row = tree.row("x", ())
    assert fault_of(row) is None
    for answer, end in zip(answers, ends, strict=True):
        path = row.path(end)
        assert [row.tokens[i] for i in path] == prompt + answer
        assert [row.positions[i] for i in path] == list(range(len(path)))


def test_rows_survive_the_file(tmp_path: Path) -> None:
    write_rows(tmp_path / "rows.jsonl", [FORKED, dataclasses.replace(FORKED, item_id="zwei ü")])
    first, second = read_rows(tmp_path / "rows.jsonl")
    assert first == FORKED
    assert second.item_id == "zwei ü"
    assert first.targets[1].slot == "warmth"
    assert first.targets[0].slot is None


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"positions": (0, 1, 2, 3, 4)}, "position 4"),
        ({"parents": (-1, 0, 1, 2, 4)}, "follows 4"),
        ({"parents": (-1, 0, -1, 2, 2)}, "follows -1"),
        ({"parents": (-1, 0, 1, 2)}, "4 parents"),
        ({"repeats": 0}, "repeats 0"),
        ({"targets": (Target(5, (1,), (1.0,), 1.0, "end"),)}, "index 5 of 5"),
        ({"targets": (Target(1, (1, 2), (0.5, 0.4), 1.0, "end"),)}, "do not sum to 1"),
        ({"targets": (Target(1, (1, 1), (0.5, 0.5), 1.0, "end"),)}, "tokens (1, 1)"),
        ({"targets": (Target(1, (1, 2), (1.5, -0.5), 1.0, "end"),)}, "do not sum to 1"),
        ({"targets": (Target(1, (1,), (1.0,), 0.0, "end"),)}, "weight 0.0"),
        ({"targets": (Target(1, (1,), (float("nan"),), 1.0, "end"),)}, "do not sum to 1"),
    ],
)
def test_a_row_that_would_train_something_else_is_refused(change: dict[str, object], said: str, tmp_path: Path) -> None:
    row = dataclasses.replace(FORKED, **change)  # type: ignore[arg-type]
    assert said in (fault_of(row) or "")
    with pytest.raises(ValueError, match="row one"):
        write_rows(tmp_path / "rows.jsonl", [row])
    assert not (tmp_path / "rows.jsonl").exists()


@pytest.mark.parametrize("spoilt", ["{", "[]", '{"item_id": "x"}', '{"tokens": 3}'])
def test_a_damaged_file_is_one_error_that_names_the_line(spoilt: str, tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    write_rows(path, [FORKED])
    path.write_text(path.read_text() + spoilt + "\n")
    with pytest.raises(InputError, match=r"line 2"):
        read_rows(path)


def test_a_file_whose_tree_was_changed_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    write_rows(path, [FORKED])
    data = json.loads(path.read_text())
    data["parents"][4] = 3
    path.write_text(json.dumps(data))
    with pytest.raises(InputError, match="position"):
        read_rows(path)


def test_a_missing_file_says_which_program_makes_it(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        read_rows(tmp_path / "none.jsonl")
    assert "training.render" in (caught.value.hint or "")
