"""Whether llama.cpp's repacked weight buffers can be used here, found out in a child process.

On virtualised Intel processors with AMX the first evaluation of a quantised model through them crashes the process
(ggml-org/llama.cpp#20824). Elsewhere they are worth having. So the first time on a machine with AMX, a child process
evaluates one batch with them; what became of it is remembered per processor and library version.
"""

from __future__ import annotations

import platform
import subprocess
import sys
from pathlib import Path

import llama_cpp

from ..cache_folder import recall, remember

PROBE_TOKENS = 47  # more than one token at a time is what crashes
PROBE_SECONDS = 300


def extra_buffers_work(model: Path, cpuinfo: Path = Path("/proc/cpuinfo")) -> bool:
    """True where they do. Without AMX nothing is started; with it the answer of the first probe is remembered."""
    if not _has_amx(cpuinfo):
        return True
    key = f"{_processor(cpuinfo)}|{platform.release()}|llama-cpp-python {llama_cpp.__version__}"
    known = recall("amx", bool)
    if key not in known:
        worked = probe(model)
        if worked is None:
            return False
        known[key] = worked
        remember("amx", known)
    return known[key]


def probe(model: Path, program: tuple[str, ...] = (sys.executable, "-m", "aipsy_judge.backends.amx")) -> bool | None:
    """Whether a child that evaluates one batch with these buffers ends well; a crash or a hang is "no".

    None where that was not found out: the child could not be started, or it ended with an error of its own (a
    damaged file), which says nothing about the buffers. They are then left out, but only for this once.
    """
    try:
        done = subprocess.run([*program, str(model)], capture_output=True, timeout=PROBE_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return False
    except OSError:
        return None
    return None if done.returncode == 1 else done.returncode == 0  # 1 is how Python ends on an exception


def _has_amx(cpuinfo: Path) -> bool:
    try:
        return any("amx" in line for line in cpuinfo.read_text().splitlines() if line.startswith("flags"))
    except OSError:  # not Linux: the fault is not known there
        return False


def _processor(cpuinfo: Path) -> str:
    rows = [line.split(":", 1)[1].strip() for line in cpuinfo.read_text().splitlines() if line.startswith("model name")]
    return rows[0] if rows else platform.processor()


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
