"""What the loss costs in memory and time: all logits at once, in chunks, and by Liger's kernel.

    python -m bench.loss [--device cpu|cuda] [--sizes 16,600,1024,2048,4096] [--repeats 3] [--json FILE]

Forward and backward of the head's loss alone, with soft and hard targets, softcap 30 and the vocabulary of Gemma 4,
at several numbers of trained tokens. Every measurement is a process of its own, the kinds in turn, and medians are
given. Peak is memory above what holds head and hidden states: on a CPU what the system counts (the high-water mark
is reset before the call), on CUDA what the allocator gave out. Seconds are the processor's on a CPU (with one thread
those of a quiet machine's clock), the clock's on CUDA; ratios mean more than either.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click

from aipsy_judge.atomic import write_text
from aipsy_judge.cli.ending import told_errors
from aipsy_judge.errors import BackendError, InputError

GIB = 2**30
SOFTCAP, OPTIONS = 30.0, 7  # Gemma 4's cap; a scale of six steps and N/A
FARTHEST = 8192  # extrapolated: plain would take twice what 4,096 tokens take
# The aims at 4,096 tokens: a share of the plain loss's peak, and a multiple of its time.
AIM_TOKENS, AIM_PEAK, AIM_TIME = 4096, 1 / 8, 1.15
# Bytes a logit that the plain loss takes on a CPU: four matrices in float32 while it goes backward, and a little more.
PLAIN_BYTES = 17


@dataclass(frozen=True, slots=True)
class Setting:
    """One measurement: `kind` of loss over `tokens` targets."""

    kind: str
    tokens: int
    hidden: int
    vocabulary: int
    dtype: str
    device: str
    threads: int


@dataclass(frozen=True, slots=True)
class Figure:
    """Medians over the processes that measured it; `measured` False where extrapolated."""

    kind: str
    tokens: int
    peak_bytes: float
    seconds: float
    measured: bool


def measure(setting: Setting) -> dict[str, float]:
    """Peak bytes and seconds of one forward and backward, in this process."""
    import torch

    from training.loss import soft_cross_entropy

    torch.set_num_threads(setting.threads)
    device, dtype = torch.device(setting.device), {"bf16": torch.bfloat16, "fp32": torch.float32}[setting.dtype]
    torch.manual_seed(0)
    # made in place: a copy in float32 would be the peak
    head = torch.empty(setting.vocabulary, setting.hidden, dtype=dtype, device=device)
    head.normal_(std=20 / setting.hidden**0.5)

    def call(count: int) -> float:
        states = torch.randn(count, setting.hidden, device=device).to(dtype).requires_grad_()
        tokens = torch.randint(setting.vocabulary, (count, OPTIONS), device=device)
        shares = torch.zeros(count, OPTIONS, device=device)
        shares[: count // 2, 0] = 1.0
        shares[count // 2 :] = 1.0 / OPTIONS
        weights = torch.ones(count, device=device)
        weights[: count // 2] = 0.1
        reset_peak(setting.device)
        clock = time.process_time if setting.device == "cpu" else time.perf_counter
        start = clock()
        loss = soft_cross_entropy(states, head, tokens, shares, weights, softcap=SOFTCAP, kind=setting.kind)  # type: ignore[arg-type]
        loss.backward()
        if setting.device == "cuda":
            torch.cuda.synchronize()
        return clock() - start

    call(16)  # thread pools, kernels that are compiled on their first call
    seconds = call(setting.tokens)
    return {"peak_bytes": peak(setting.device), "seconds": seconds}


_before: list[int] = []


def reset_peak(device: str) -> None:
    """Forget the peak so far, and note what is held now."""
    _before[:] = [0]
    if device == "cuda":
        import torch

        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        _before[:] = [torch.cuda.memory_allocated()]
        return
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError as error:
        raise BackendError(
            "the peak of a process's memory can be measured on Linux alone", hint="Measure on Linux, or with CUDA."
        ) from error
    _before[:] = [_status("VmRSS")]


def peak(device: str) -> int:
    """Bytes above what was held at the reset."""
    if device == "cuda":
        import torch

        return int(torch.cuda.max_memory_allocated()) - _before[0]
    return _status("VmHWM") - _before[0]


def _status(name: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{name}:"))


def in_a_process(setting: Setting) -> dict[str, float]:
    """The same in a process of its own. BackendError where it fails."""
    done = subprocess.run(
        [sys.executable, "-m", "bench.loss", "--one", json.dumps(asdict(setting))],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        said = done.stderr.strip().splitlines()[-1:] or [f"signal {-done.returncode}"]
        raise BackendError(f"{setting.kind} at {setting.tokens} tokens failed: {said[0]}")
    found: dict[str, float] = json.loads(done.stdout)
    return found


def measured(settings: Sequence[Setting], repeats: int) -> list[Figure]:
    """The kinds of one size in turn, so that what else the machine does meets all of them alike."""
    found: dict[Setting, list[dict[str, float]]] = {s: [] for s in settings}
    for _ in range(repeats):
        for setting in settings:
            found[setting].append(in_a_process(setting))
    return [_figure(setting, runs) for setting, runs in found.items()]


def _figure(setting: Setting, runs: Sequence[Mapping[str, float]]) -> Figure:
    middle = {key: statistics.median(run[key] for run in runs) for key in ("peak_bytes", "seconds")}
    return Figure(setting.kind, setting.tokens, middle["peak_bytes"], middle["seconds"], True)


def extrapolated(figures: Sequence[Figure], tokens: int) -> Figure | None:
    """A line through the two largest sizes measured of a kind; None where there are not two."""
    known = sorted((f for f in figures if f.measured), key=lambda f: f.tokens)[-2:]
    if len(known) < 2:
        return None
    small, large = known

    def at(a: float, b: float) -> float:
        return b + (b - a) * (tokens - large.tokens) / (large.tokens - small.tokens)

    return Figure(
        large.kind, tokens, at(small.peak_bytes, large.peak_bytes), at(small.seconds, large.seconds), measured=False
    )


def too_large(setting: Setting, available: int) -> str | None:
    """Why the plain loss is not tried on a CPU: a machine that swaps measures nothing."""
    needed = PLAIN_BYTES * setting.tokens * setting.vocabulary + 4 * setting.hidden * setting.vocabulary
    if setting.kind != "plain" or setting.device != "cpu" or needed <= available:
        return None
    return f"not measured: would take up to {needed / GIB:.1f} GiB, {available / GIB:.1f} are free"


def available_bytes() -> int:
    lines = Path("/proc/meminfo").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))


def table(figures: Sequence[Figure]) -> list[str]:
    """A line a figure, with its ratios to the plain loss at the same size."""
    plain = {f.tokens: f for f in figures if f.kind == "plain"}
    lines = [f"{'tokens':>7} {'loss':8} {'peak GiB':>9} {'seconds':>9} {'of plain peak':>14} {'of plain time':>14}"]
    for figure in sorted(figures, key=lambda f: (f.tokens, f.kind != "plain", f.kind)):
        other = plain.get(figure.tokens)
        ratios = ("-", "-")
        if other is not None and figure.kind != "plain":
            ratios = (f"1/{other.peak_bytes / figure.peak_bytes:.1f}", f"{figure.seconds / other.seconds:.2f} x")
        lines.append(
            f"{figure.tokens:7} {figure.kind:8} {figure.peak_bytes / GIB:9.3f} {figure.seconds:9.3f}"
            f" {ratios[0]:>14} {ratios[1]:>14}{'' if figure.measured else '  extrapolated'}"
        )
    return lines


def verdict(figures: Sequence[Figure]) -> str:
    """Whether the aims are met where both are measured at their size."""
    at = {f.kind: f for f in figures if f.tokens == AIM_TOKENS and f.measured}
    aims = f"aims at {AIM_TOKENS} tokens: peak at most 1/{1 / AIM_PEAK:g} of plain, time at most {AIM_TIME} x"
    if "plain" not in at or "chunked" not in at:
        return f"{aims}: not measured"
    share = at["chunked"].peak_bytes / at["plain"].peak_bytes
    ratio = at["chunked"].seconds / at["plain"].seconds
    met = share <= AIM_PEAK and ratio <= AIM_TIME
    return f"{aims}: {'met' if met else 'MISSED'} (1/{1 / share:.1f}, {ratio:.2f} x)"


def kinds_on(device: str) -> tuple[str, ...]:
    return ("plain", "chunked", "liger") if device == "cuda" else ("plain", "chunked")


@click.command(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option("--device", type=click.Choice(["cpu", "cuda"]), default="cpu", show_default=True)
@click.option("--sizes", default="16,600,1024,2048,4096", show_default=True, help="Trained tokens.")
@click.option("--hidden", type=click.IntRange(1), default=2816, show_default=True, help="Width of the hidden states.")
@click.option("--vocabulary", type=click.IntRange(8), default=262_144, show_default=True)
@click.option("--dtype", type=click.Choice(["bf16", "fp32"]), default="bf16", show_default=True)
@click.option("--repeats", type=click.IntRange(1), default=3, show_default=True, help="Processes a figure.")
@click.option("--threads", type=click.IntRange(1), default=1, show_default=True)
@click.option("--json", "target", type=click.Path(path_type=Path, dir_okay=False), help="Write the figures there.")
@click.option("--one", hidden=True)
def main(**options: Any) -> None:
    """Measure what the loss costs: peak memory and time, plain, chunked and (on CUDA) by Liger's kernel."""
    one = options.pop("one")
    if one is not None:
        click.echo(json.dumps(measure(Setting(**json.loads(one)))))
        return
    with told_errors():
        _run(**options)


def _run(sizes: str, repeats: int, target: Path | None, **shape: Any) -> None:
    try:
        counts = sorted({int(size) for size in sizes.split(",")})
    except ValueError as error:
        raise InputError(f"--sizes {sizes}: whole numbers, with commas between") from error
    figures: list[Figure] = []
    notes: list[str] = []
    for count in counts:
        settings = []
        for kind in kinds_on(shape["device"]):
            setting = Setting(kind=kind, tokens=count, **shape)
            why = too_large(setting, available_bytes()) if setting.device == "cpu" else None
            if why is None:
                settings.append(setting)
            else:
                notes.append(f"{kind} at {count} tokens {why}")
        click.echo(f"measuring {count} tokens ...", err=True)
        figures += measured(settings, repeats)
    for kind in kinds_on(shape["device"]):
        far = extrapolated([f for f in figures if f.kind == kind], FARTHEST)
        figures += [far] if far is not None and FARTHEST not in counts else []
    for line in [*table(figures), *notes, verdict(figures)]:
        click.echo(line)
    if target is not None:
        told = {**shape, "repeats": repeats, "figures": [asdict(f) for f in figures], "notes": notes}
        write_text(target, json.dumps(told, indent=1) + "\n")


if __name__ == "__main__":
    main()
