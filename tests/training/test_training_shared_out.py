"""Two processes share a run out: its epochs are epochs, one of them writes, and both stop where one has to."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from training.progress import FILE as LOG
from training.progress import read_log
from training.resuming import last_whole_checkpoint

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.slow


def trained(out: Path, *more: str) -> list[dict[str, Any]]:
    """What each of two processes told; both end by themselves."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    told = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": "2", "OMP_NUM_THREADS": "1"}
    program = [sys.executable, "-W", "ignore", "tests/training/shared_out_training.py", str(out), *more]
    running = [
        subprocess.Popen(
            program,
            cwd=ROOT,
            env=os.environ | told | {"RANK": str(rank), "LOCAL_RANK": str(rank), "CUDA_VISIBLE_DEVICES": ""},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    try:
        for process in running:
            _, said = process.communicate(timeout=200)
            assert process.returncode == 0, said[-3000:]
    finally:
        for process in running:
            process.kill()
            process.wait()
    return [json.loads((out / f"{rank}.json").read_text()) for rank in range(2)]


def test_two_epochs_show_every_row_twice_and_the_first_process_alone_writes(tmp_path: Path) -> None:
    found = trained(tmp_path)
    # 20 rows, 2 a batch, 2 processes: 5 steps an epoch; half of them to warm up
    assert [(one["steps"], one["warmup"]) for one in found] == [(10, 5)] * 2
    assert Counter(found[0]["shown"] + found[1]["shown"]) == Counter(dict.fromkeys(range(20), 2))
    assert [row["step"] for row in read_log(tmp_path / LOG)] == list(range(1, 11))
    assert found[0]["said"]
    assert not found[1]["said"]


def test_a_loss_that_is_no_number_in_one_process_stops_both_after_the_same_step(tmp_path: Path) -> None:
    for one in trained(tmp_path, "1"):
        assert "the loss is not finite after 2 steps; the adapter after 1 steps is kept" in one["said"][-1]


def test_a_half_written_checkpoint_is_removed_by_the_first_process_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("checkpoint-2", "checkpoint-4"):
        (tmp_path / name).mkdir()
    (tmp_path / "checkpoint-2" / "trainer_state.json").write_text("{}")
    for rank, there in (("1", True), ("0", False)):
        monkeypatch.setenv("RANK", rank)
        assert last_whole_checkpoint(tmp_path) == tmp_path / "checkpoint-2"
        assert (tmp_path / "checkpoint-4").exists() is there
