"""Files that are there whole or not at all."""

import os

import pytest

from aipsy_judge.atomic import check_writable, write_text
from aipsy_judge.errors import InputError


def test_a_written_file_is_whole_private_and_alone(tmp_path):
    path = tmp_path / "out.json"
    write_text(path, "ä\n")
    assert path.read_bytes() == "ä\n".encode()
    assert path.stat().st_mode & 0o777 == 0o600
    assert os.listdir(tmp_path) == ["out.json"]


def test_a_failed_write_leaves_the_old_file_and_nothing_beside_it(tmp_path, monkeypatch):
    path = tmp_path / "out.json"
    path.write_text("old")

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(InputError, match="No space left"):
        write_text(path, "new")
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["out.json"]


def test_a_link_is_followed_and_stays_a_link(tmp_path):
    real, link = tmp_path / "real.json", tmp_path / "link.json"
    real.write_text("old")
    link.symlink_to(real)
    write_text(link, "new")
    assert link.is_symlink()
    assert real.read_text() == "new"


def test_a_device_is_written_to_and_not_replaced():
    write_text("/dev/null", "gone")
    assert not os.path.isfile("/dev/null")


@pytest.mark.parametrize(("name", "fault"), [("", "is a folder"), ("no/such/x.json", "its folder does not exist")])
def test_an_output_that_cannot_be_written_is_found_before_work_begins(tmp_path, name, fault):
    with pytest.raises(InputError, match=fault):
        check_writable(tmp_path / name)
