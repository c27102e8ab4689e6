"""Puts this folder on the path, so that tests in any folder can import the builders that lie beside this file; gives
every process of a run that is shared out (`pytest -n`) processors of its own; has what tests start heed Ctrl-C; and
puts the longest files first."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

# Two processes share the files out (`--dist loadfile`): begun with the longest, neither waits for the other at the end.
# Seconds of one processor are in docs/log.md and at the end of every `make test`.
LONGEST = (
    "test_quantize_verify_real.py",
    "test_slow_slots_equal_grammar.py",
    "test_training_memory_measured.py",
    "test_training_sft.py",
    "test_server_load.py",
    "test_bench_stability_run.py",
    "test_quantize_whole_way.py",
    "test_training_rule.py",
    "test_backends_mlx_and_llamacpp.py",
    "test_server_real_judge.py",
    "test_training_shared_out.py",
    "test_training_fsdp.py",
    "test_training_backend.py",
    "test_bench_convert.py",
    "test_epm_real_judge.py",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    place = {name: n for n, name in enumerate(LONGEST)}
    # a stable sort: what belongs to a file stays together and in order
    items.sort(key=lambda item: place.get(item.path.name, len(LONGEST)))


def pytest_configure() -> None:
    gone = set(LONGEST) - {path.name for path in Path(__file__).parent.glob("*/test_*.py")}
    if gone:
        raise pytest.UsageError(f"LONGEST in tests/conftest.py names no file of tests: {', '.join(sorted(gone))}")


def _keep_to_own_processors() -> None:
    """llama.cpp's and PyTorch's threads wait for each other: two processes with two threads each on two processors
    take several times as long as one after the other. What a test starts inherits this."""
    worker, of = os.environ.get("PYTEST_XDIST_WORKER", ""), os.environ.get("PYTEST_XDIST_WORKER_COUNT", "")
    if not worker.startswith("gw") or not of.isdigit() or not hasattr(os, "sched_setaffinity"):
        return
    own = sorted(os.sched_getaffinity(0))[int(worker.removeprefix("gw")) :: int(of)]
    if own:
        os.sched_setaffinity(0, own)


def _heed_control_c() -> None:
    """A shell that starts a run in the background has it ignore SIGINT, and whatever the run starts inherits that."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


_keep_to_own_processors()
_heed_control_c()
