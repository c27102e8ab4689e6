"""Puts this folder on the path, so that the tests in it can import the builders that lie beside this file; and the
checkpoint that most tests of merging begin with."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """A checkpoint folder of a few kilobytes, the test's own to change."""
    from small_checkpoints import write_base  # it imports torch, which not every test here needs

    return write_base(tmp_path / "base")
