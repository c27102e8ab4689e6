"""A judge over MLX: what the engine plans, ends and writes, and the command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from mlx_backends import TALK, same, verdicts
from mlx_folders import needs_mlx
from real_models import smollm2

from aipsy_judge.contract import COMPACT, FULL
from aipsy_judge.conversation import Conversation, Message
from aipsy_judge.local_judge import LocalJudge
from aipsy_judge.rubric import load_rubric
from aipsy_judge.weights import Weights

pytestmark = [pytest.mark.slow, needs_mlx]


def test_a_plan_one_branch_wide_reads_what_a_wide_one_reads(llama: Any) -> None:
    """Little memory: branches one after another, each on cells of the trunk that it shares."""
    wide = verdicts(llama, COMPACT)
    most = llama._places._uses.nonzero()[0].size
    llama._on_thread(llama._open, 0)
    judge = LocalJudge(llama, Weights("m", smollm2()), load_rubric(), COMPACT)
    cells = judge.forecast(TALK).cells  # type: ignore[union-attr]
    assert most <= cells
    narrow = cells * 2 // 3 * llama.cell_bytes / 2**30
    tight = LocalJudge(llama, Weights("m", smollm2()), load_rubric(), COMPACT, memory_gb=narrow)
    assert tight.forecast(TALK).width < judge.forecast(TALK).width  # type: ignore[union-attr]
    assert max(same(verdicts(llama, COMPACT, memory_gb=narrow), wide)[1]) < 1e-5


def test_two_conversations_at_once_read_what_each_reads_alone(llama: Any) -> None:
    other = Conversation("d", (Message("user", "Hello."), Message("assistant", "Please state your question.")))
    judge = LocalJudge(llama, Weights("m", smollm2()), load_rubric(), COMPACT)
    together = judge.score_together([TALK, other], rationale="never")
    for talk, found in zip((TALK, other), together, strict=True):
        assert max(same(found, judge.score(talk, rationale="never"))[1]) < 1e-5


def test_a_rationale_is_written_under_the_engines_own_mask(llama: Any) -> None:
    judge = LocalJudge(llama, Weights("m", smollm2()), load_rubric(), FULL)
    for verdict in judge.score(Conversation("c", TALK.messages[:2]), rationale="always"):
        assert verdict.rationale
        assert '"' not in verdict.rationale
        assert "\n" not in verdict.rationale


def test_an_evaluation_that_was_ended_leaves_the_judge_usable(llama: Any) -> None:
    judge = LocalJudge(llama, Weights("m", smollm2()), load_rubric(), COMPACT)
    before = judge.score(TALK, rationale="never")
    left = [3]

    def give_up() -> None:
        left[0] -= 1
        if not left[0]:
            raise KeyboardInterrupt

    judge.watch(give_up)
    with pytest.raises(KeyboardInterrupt):
        judge.score(TALK, rationale="never")
    judge.watch(lambda: None)
    assert max(same(judge.score(TALK, rationale="never"), before)[1]) == 0


def test_threads_that_ask_in_turn_get_what_one_thread_gets(llama: Any) -> None:
    judge = LocalJudge(llama, Weights("m", smollm2()), load_rubric(), COMPACT)
    before = judge.score(TALK, rationale="never")
    with ThreadPoolExecutor(1) as other:
        assert max(same(other.submit(judge.score, TALK, rationale="never").result(), before)[1]) == 0


PROGRAM = """
import json, sys
sys.modules["torch"] = None  # the judge path does without, installed or not
from aipsy_judge.cli.main import main
main()
"""


def test_a_folder_is_judged_from_the_command_line_without_torch(small: Path, tmp_path: Path) -> None:
    talk, out = tmp_path / "talk.json", tmp_path / "out.json"
    rows = [{"role": m.role, "content": m.content} for m in TALK.messages]
    talk.write_text(json.dumps({"id": "c", "messages": rows}))
    words = ["score", str(talk), "--judge", str(small), "--backend", "mlx", "--contract", "compact", "--json", str(out)]
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *words],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "TMPDIR": str(temporary), "AIPSY_JUDGE_CACHE": str(tmp_path / "cache")},
    )
    assert out.is_file(), done.stderr
    # where MLX would build kernels that other processes load half written
    assert not (temporary / "mlx").exists()
    found = json.dumps(json.loads(out.read_text()))
    assert '"backend": "mlx"' in found
    assert '"device": ' in found
    assert "small@" in found
