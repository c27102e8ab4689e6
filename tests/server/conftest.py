"""Fixtures of the server's tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from server_at_work import AtWork, at_work
from server_at_work import bench_prompt as bench_prompt

from aipsy_judge.backends.fake import FakeJudge


@pytest.fixture(scope="module")
def server() -> Iterator[AtWork]:
    """The stand-in judge on every wire, the benchmark's seat included, for all tests of a file."""
    with at_work(FakeJudge(), answer_as_own=True) as work:
        yield work
