"""Whether llama.cpp's repacked weight buffers can be used here, found out in a child process.

On virtualised Intel processors with AMX the first evaluation of a quantised model through them crashes the process
(ggml-org/llama.cpp#20824). Elsewhere they are worth having. So the first time on a machine with AMX, a child process
evaluates one batch with them; what became of it is remembered per processor and library version.
"""

from __future__ import annotations

import json
import platform
import subprocess
import sys
from pathlib import Path

import llama_cpp

from ..bench_contract import cache_folder

PROBE_TOKENS = 47  # more than one token at a time is what crashes
PROBE_SECONDS = 300


def extra_buffers_work(model: Path, cpuinfo: Path = Path("/proc/cpuinfo")) -> bool:
    """True where they do. Without AMX nothing is started; with it the answer of the first probe is remembered."""
    if not _has_amx(cpuinfo):
        return True
    memory = cache_folder() / "amx.json"
    key = f"{_processor(cpuinfo)}|{platform.release()}|llama-cpp-python {llama_cpp.__version__}"
    known = _remembered(memory)
    if key not in known:
        known[key] = probe(model)
        _remember(memory, known)
    return known[key]


def probe(model: Path, program: tuple[str, ...] = (sys.executable, "-m", "aipsy_judge.backends.amx")) -> bool:
    """Whether a child that evaluates one batch with these buffers ends well. A crash, a hang, or a child that cannot
    be started count as "no": then the buffers are left out, which costs speed and nothing else."""
    try:
        done = subprocess.run([*program, str(model)], capture_output=True, timeout=PROBE_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def _has_amx(cpuinfo: Path) -> bool:
    try:
        return any("amx" in line for line in cpuinfo.read_text().splitlines() if line.startswith("flags"))
    except OSError:  # not Linux: the fault is not known there
        return False


def _processor(cpuinfo: Path) -> str:
    rows = [line.split(":", 1)[1].strip() for line in cpuinfo.read_text().splitlines() if line.startswith("model name")]
    return rows[0] if rows else platform.processor()


def _remembered(path: Path) -> dict[str, bool]:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return {k: v for k, v in data.items() if isinstance(v, bool)} if isinstance(data, dict) else {}


def _remember(path: Path, known: dict[str, bool]) -> None:
    """A memory that cannot be written costs another probe next time."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(".part")
        part.write_text(json.dumps(known), encoding="utf-8")
        part.replace(path)
    except OSError:
        return


def _evaluate_once(model: Path) -> None:
    """What the child does: the first batch of the model, with the buffers on."""
    from .llamacpp import LlamaCpp, LlamaCppOptions
    from .protocol import Feed

    backend = LlamaCpp(model, LlamaCppOptions(extra_bufts=True, gpu_layers=0))
    backend.reserve(PROBE_TOKENS)
    backend.evaluate([Feed(0, 0, list(range(100, 100 + PROBE_TOKENS)), want_logits=True)])
    backend.close()


if __name__ == "__main__":
    _evaluate_once(Path(sys.argv[1]))
