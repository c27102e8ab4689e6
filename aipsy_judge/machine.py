"""What this machine has: memory, processors, GPU, and what the installed llama.cpp was built for."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

GIB = 2**30
# Both versions of control groups say "no limit" in their own way; more than this is none.
NO_LIMIT_BYTES = 1 << 60
NVIDIA_QUERY = ("nvidia-smi", "--query-gpu=name,memory.total", "--format=csv,noheader,nounits")


@dataclass(frozen=True, slots=True)
class Gpu:
    """A graphics processor. `memory_bytes` is its own; None where it shares the machine's (Apple)."""

    name: str
    memory_bytes: int | None


@dataclass(frozen=True, slots=True)
class LlamaBuild:
    """The installed llama.cpp. `backends` are what it can compute on ("CPU", "CUDA", "MTL" for Metal, ...)."""

    version: str
    backends: tuple[str, ...]
    features: tuple[str, ...]
    gpu_offload: bool


@dataclass(frozen=True, slots=True)
class Machine:
    """memory_bytes  what this process may use in all (a container's limit counts)
    free_bytes    what of it is free now; None where the system does not say
    processors    what this process may use
    """

    system: str
    processor: str
    memory_bytes: int
    free_bytes: int | None
    processors: int
    gpus: tuple[Gpu, ...]

    @property
    def is_apple_silicon(self) -> bool:
        return self.system.startswith("Darwin arm64")


def this_machine() -> Machine:
    """Asks the system; starts nothing but `nvidia-smi`, where it is installed."""
    memory, free = memory_bytes()
    system = f"{platform.system()} {platform.machine()}"
    gpus = nvidia_gpus(_output_of)
    if system == "Darwin arm64":
        gpus = (Gpu("Apple GPU", None),)
    return Machine(system, _processor_name(), memory, free, _processors(), gpus)


def memory_bytes(root: Path = Path("/")) -> tuple[int, int | None]:
    """(all, free) in bytes, as far as this process may use it. `root` is where /proc and /sys are."""
    known = _meminfo(root / "proc" / "meminfo")
    if known is None:
        return _memory_elsewhere(), None
    total, free = known
    for limit, used in (
        ("sys/fs/cgroup/memory.max", "sys/fs/cgroup/memory.current"),
        ("sys/fs/cgroup/memory/memory.limit_in_bytes", "sys/fs/cgroup/memory/memory.usage_in_bytes"),
    ):
        allowed = _number_in(root / limit)
        if allowed is not None and allowed < min(total, NO_LIMIT_BYTES):
            return allowed, max(0, min(free, allowed - (_number_in(root / used) or 0)))
    return total, free


def nvidia_gpus(output_of: Callable[[tuple[str, ...]], str | None]) -> tuple[Gpu, ...]:
    """NVIDIA GPUs, as `nvidia-smi` lists them; none where it is not installed or finds no driver."""
    found = []
    for line in (output_of(NVIDIA_QUERY) or "").splitlines():
        name, _, mebibytes = line.rpartition(",")
        if name and mebibytes.strip().isdigit():
            found.append(Gpu(name.strip(), int(mebibytes) << 20))
    return tuple(found)


def llama_build() -> LlamaBuild | None:
    """What the installed llama.cpp can do; None where it is not installed or does not load."""
    try:
        import llama_cpp
    except (ImportError, OSError, RuntimeError):
        return None
    info = llama_cpp.llama_print_system_info().decode("utf-8", "replace")
    backends, features = parse_system_info(info)
    return LlamaBuild(llama_cpp.__version__, backends, features, bool(llama_cpp.llama_supports_gpu_offload()))


def parse_system_info(text: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Backends and CPU features in what llama.cpp says of its build.

    >>> parse_system_info("MTL : EMBED_LIBRARY = 1 | CPU : NEON = 1 | AVX = 0 | REPACK = 1 | ")
    (('MTL', 'CPU'), ('NEON', 'REPACK'))
    """
    backends: list[str] = []
    features: list[str] = []
    for part in text.split("|"):
        head, colon, rest = part.partition(" : ")
        if colon:
            backends.append(head.strip())
        name, _, value = (rest if colon else part).partition("=")
        if backends and backends[-1] == "CPU" and value.strip() == "1":
            features.append(name.strip())
    return tuple(backends), tuple(features)


def _meminfo(path: Path) -> tuple[int, int] | None:
    try:
        lines = dict(line.split(":", 1) for line in path.read_text().splitlines() if ":" in line)
        return tuple(int(lines[key].split()[0]) * 1024 for key in ("MemTotal", "MemAvailable"))  # type: ignore[return-value]
    except (OSError, KeyError, ValueError):
        return None


def _memory_elsewhere() -> int:
    if sys.platform == "win32":
        return _windows_memory()
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _windows_memory() -> int:
    import ctypes

    kilobytes = ctypes.c_ulonglong(0)
    ctypes.windll.kernel32.GetPhysicallyInstalledSystemMemory(ctypes.byref(kilobytes))  # type: ignore[attr-defined]
    return kilobytes.value * 1024


def _number_in(path: Path) -> int | None:
    try:
        return int(path.read_text())
    except (OSError, ValueError):  # "max" means no limit
        return None


def _processors() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _processor_name() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.lower().startswith(("model name", "hardware")):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    if platform.system() == "Darwin":
        return (_output_of(("sysctl", "-n", "machdep.cpu.brand_string")) or "").strip() or platform.processor()
    return platform.processor() or "unknown"


def _output_of(command: tuple[str, ...]) -> str | None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout
