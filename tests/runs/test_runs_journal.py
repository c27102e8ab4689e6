"""The journal: what was appended is there, a torn last line is dropped, any other damage is an error."""

import json
import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aipsy_judge.errors import InputError
from aipsy_judge.journal import Journal, Shelf, read_journal, scan

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def filled(path, count=3):
    with Journal(path) as journal:
        for n in range(count):
            journal.append({"n": n, "text": "ä\n" * n})
    return path


def test_what_was_appended_comes_back(tmp_path):
    path = filled(tmp_path / "j.jsonl")
    records, warnings = read_journal(path)
    assert [r["n"] for r in records] == [0, 1, 2]
    assert records[2]["text"] == "ä\nä\n"
    assert warnings == []


def test_every_cut_of_the_last_line_loses_that_line_alone_and_says_so(tmp_path):
    path = filled(tmp_path / "j.jsonl")
    whole = path.read_bytes()
    start_of_last = whole[:-1].rindex(b"\n") + 1
    for cut in range(start_of_last + 1, len(whole) - 1):
        path.write_bytes(whole[:cut])
        records, warnings = read_journal(path)
        assert [r["n"] for r in records] == [0, 1]
        assert scan(path, lambda *_: None)[0] == start_of_last
        assert "j.jsonl:3" in warnings[0]


def test_a_last_line_that_lacks_only_its_newline_is_kept(tmp_path):
    path = filled(tmp_path / "j.jsonl")
    path.write_bytes(path.read_bytes()[:-1])
    found = []
    with Journal(path, lambda record, _: found.append(record["n"])) as journal:
        assert found == [0, 1, 2]
        journal.append({"n": 3})
    assert [r["n"] for r in read_journal(path)[0]] == [0, 1, 2, 3]


def test_a_torn_line_is_cut_away_before_the_next_is_appended(tmp_path):
    path = filled(tmp_path / "j.jsonl")
    path.write_bytes(path.read_bytes()[:-4])
    with Journal(path) as journal:
        assert len(journal.warnings) == 1
        journal.append({"n": "new"})
    records, warnings = read_journal(path)
    assert [r["n"] for r in records] == [0, 1, "new"]
    assert warnings == []


@pytest.mark.parametrize(
    "damage", [b'{"n": 1', b"[1]", b'{"n": NaN}', b'{"n": 1, "n": 2}', b'{"n": "\xff"}', b"\x00\x00"]
)
def test_a_damaged_line_in_the_middle_is_an_error_naming_it(tmp_path, damage):
    path = filled(tmp_path / "j.jsonl")
    lines = path.read_bytes().split(b"\n")
    path.write_bytes(b"\n".join([lines[0], damage, *lines[1:]]))
    with pytest.raises(InputError, match=r"j\.jsonl:2: a damaged line"):
        Journal(path)


def test_a_refused_journal_is_left_as_it_was_and_unlocked(tmp_path):
    path = tmp_path / "j.jsonl"
    path.write_bytes(b'broken\n{"n": 1}\n')
    for _ in range(2):
        with pytest.raises(InputError, match="damaged"):
            Journal(path)
    assert path.read_bytes() == b'broken\n{"n": 1}\n'


def test_two_writers_of_one_journal_are_refused(tmp_path):
    path = tmp_path / "j.jsonl"
    with Journal(path), pytest.raises(InputError, match="another process is writing"):
        Journal(path)
    Journal(path).close()


def test_a_journal_is_for_its_owner_alone_whatever_the_umask(tmp_path):
    before = os.umask(0)
    try:
        path = filled(tmp_path / "j.jsonl")
    finally:
        os.umask(before)
    assert path.stat().st_mode & 0o777 == 0o600


def test_each_record_is_on_the_disk_before_append_returns(tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr(os, "fsync", lambda handle: synced.append(os.fstat(handle).st_size))
    with Journal(tmp_path / "j.jsonl") as journal:
        synced.clear()
        journal.append({"n": 1})
        journal.append({"n": 2})
    assert synced == [len(b'{"n": 1}\n'), len(b'{"n": 1}\n{"n": 2}\n')]


@pytest.mark.parametrize("make", [lambda folder: Journal(folder / "j.jsonl"), lambda folder: Shelf()])
def test_any_record_can_be_read_back_by_where_it_was_put(tmp_path, make):
    journal = make(tmp_path)
    places = [journal.append({"n": n, "text": "ä" * n}) for n in range(5)]
    assert [journal.read(p)["n"] for p in reversed(places)] == [4, 3, 2, 1, 0]
    assert journal.append({"n": 5}) not in places
    journal.close()


def test_places_are_the_same_when_a_journal_is_opened_again(tmp_path):
    with Journal(tmp_path / "j.jsonl") as journal:
        places = [journal.append({"n": n}) for n in range(3)]
    found = []
    with Journal(tmp_path / "j.jsonl", lambda record, place: found.append(place)) as journal:
        assert found == places
        assert journal.read(places[1]) == {"n": 1}


@settings(max_examples=30, deadline=None)
@given(records=st.lists(st.dictionaries(st.text(), JSON, max_size=4), max_size=4))
def test_records_survive_writing_and_reading_and_are_one_line_each(tmp_path_factory, records):
    path = tmp_path_factory.mktemp("journal") / "j.jsonl"
    with Journal(path) as journal:
        for record in records:
            journal.append(record)
    assert read_journal(path)[0] == records
    # However lines are split, even by the wide definition of str.splitlines, each holds one record.
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line]
    assert [json.loads(line) for line in lines] == records
