"""What loading a 4-bit base takes beyond what stays does not grow with the model: one tensor at a time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from gemma4_small import SHAPE, text_config
from random_tensors import drawn_checkpoint
from safetensors.torch import save_file

ROOT = Path(__file__).resolve().parents[2]
WIDE = {"hidden_size": 512, "intermediate_size": 512, "moe_intermediate_size": 512, "num_experts": 16}

# bitsandbytes quantises a matrix on a CPU by its distance to each of the 16 values, in float32, two arrays of it; on
# CUDA a kernel needs none.
ON_CPU = 2 * 16 * 4 * (2 * 512 * 512)


def _written(folder: Path, layers: int) -> tuple[int, int]:
    """A checkpoint, a file a layer, and the bytes of its largest tensor and largest file."""
    shape = WIDE | {"num_hidden_layers": layers}
    shards: dict[str, dict[str, Any]] = {}
    for name, drawn in drawn_checkpoint(text_config(**shape), torch.device("cpu")):
        if name != "lm_head.weight":
            shards.setdefault(name.split(".")[2], {})[name] = drawn[:]
    for shard, tensors in shards.items():
        save_file(tensors, folder / f"model-{shard}.safetensors")
    (folder / "config.json").write_text(json.dumps({"model_type": "gemma4_text"} | SHAPE | shape))
    largest = max(t.nbytes for tensors in shards.values() for t in tensors.values())
    return largest, max(path.stat().st_size for path in folder.glob("*.safetensors"))


def _measured(folder: Path) -> dict[str, int]:
    quiet = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536", "OMP_NUM_THREADS": "1"}
    program = [sys.executable, "-W", "ignore", "tests/training/measured_loading.py", str(folder)]
    done = subprocess.run(program, cwd=ROOT, env=os.environ | quiet, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    found: dict[str, int] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the high-water mark is read from /proc")
def test_loading_holds_one_tensor_beside_the_model(tmp_path: Path) -> None:
    beyond = {}
    for layers in (6, 18):
        folder = tmp_path / str(layers)
        folder.mkdir()
        tensor, file = _written(folder, layers)
        found = _measured(folder)
        beyond[layers] = {kind: found[kind] - found["resident"] for kind in ("allocated", "process")}
        print(f"\n{layers} layers: {found}, largest tensor {tensor}, largest file {file}")
        assert beyond[layers]["allocated"] < tensor + ON_CPU
        # pages of the file that is open, which the system can take back, and what PyTorch keeps for itself
        assert beyond[layers]["process"] < file + tensor + ON_CPU + 20e6
    assert beyond[18]["allocated"] < 1.1 * beyond[6]["allocated"]
