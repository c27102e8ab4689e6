"""A disk that is full in the middle of a line: one error that names the file, and nothing half-written is left."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from aipsy_judge.errors import InputError
from aipsy_judge.journal import Journal, read_journal


def test_full_disk_is_an_error_naming_the_file_and_leaves_no_half_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "verdicts.jsonl"
    write, full = os.write, [False]

    def writes_a_part(handle: int, data: bytes) -> int:
        if not full[0]:
            full[0] = True
            return write(handle, data[:5])
        raise OSError(errno.ENOSPC, "No space left on device")

    with Journal(path) as journal:
        journal.append({"n": 1})
        monkeypatch.setattr(os, "write", writes_a_part)
        with pytest.raises(InputError, match=r"verdicts\.jsonl: cannot be written: No space left"):
            journal.append({"n": 2})
        assert path.read_bytes() == b'{"n": 1}\n'
        monkeypatch.setattr(os, "write", write)
        assert journal.read(journal.append({"n": 3})) == {"n": 3}
    assert read_journal(path) == ([{"n": 1}, {"n": 3}], [])
