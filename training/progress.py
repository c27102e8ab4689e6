"""What a run says of itself: a line now and then, every step in log.jsonl."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from transformers import TrainerCallback

from aipsy_judge.peak_memory import peak_bytes
from aipsy_judge.strict_json import dumps, loads

FILE = "log.jsonl"
LINES = 40  # about how many lines a run prints


class Progress(TrainerCallback):
    """`tokens_seen()` counts trained rows' tokens since the program began, of this process. Of several the first alone
    tells and writes."""

    def __init__(self, folder: Path, tokens_seen: Callable[[], int], say: Callable[[str], None]) -> None:
        self._path, self._tokens_seen, self._say = folder / FILE, tokens_seen, say
        self._started, self._first_step, self._idle = time.monotonic(), 0, 0.0

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._started, self._first_step, self._idle = time.monotonic(), state.global_step, 0.0
        if state.is_world_process_zero:
            _cut(self._path, state.global_step)

    def waited(self, seconds: float) -> None:
        """Time that went into something else than steps (judging)."""
        self._idle += seconds

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **_: Any) -> None:
        if not state.is_world_process_zero or not logs or "loss" not in logs:
            return
        seconds = time.monotonic() - self._started - self._idle
        rate = self._tokens_seen() / seconds
        row = {
            "step": state.global_step,
            "loss": float(logs["loss"]),
            "learning_rate": float(logs["learning_rate"]),
            "grad_norm": float(logs["grad_norm"]),
            "tokens_per_second": round(rate, 1),
            "memory_gb": round(memory_bytes() / 1e9, 2),
        }
        with self._path.open("a", encoding="utf-8") as file:
            file.write(dumps(row) + "\n")
        each = max(1, state.max_steps // LINES)
        if state.global_step % each == 0 or state.global_step in (self._first_step + 1, state.max_steps):
            left = (state.max_steps - state.global_step) * seconds / (state.global_step - self._first_step)
            self._say(_line(row, state.max_steps, left))


def _line(row: dict[str, Any], steps: int, left: float) -> str:
    told = f"step {row['step']}/{steps}: loss {row['loss']:.4f}, rate {row['learning_rate']:.2e}"
    memory = f"{row['memory_gb']:.1f} GB {'on the device' if torch.cuda.is_available() else 'of memory'}"
    return f"{told}, {row['tokens_per_second']:.0f} tokens/s, {memory}, {_duration(left)} left"


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"


def memory_bytes() -> int:
    """Peak so far: what was reserved on the CUDA device, elsewhere the process's resident set."""
    if torch.cuda.is_available():
        return int(torch.cuda.max_memory_reserved())
    return peak_bytes()


def read_log(path: Path) -> list[dict[str, Any]]:
    """Its rows; a last line that a killed program left half is left out."""
    if not path.is_file():
        return []
    lines = path.read_text(encoding="utf-8").split("\n")[:-1]
    rows = [loads(line.encode()) for line in lines]
    return [row for row in rows if isinstance(row, dict)]


def _cut(path: Path, step: int) -> None:
    """Drop rows after `step`: the run goes on from there."""
    kept = [row for row in read_log(path) if row["step"] <= step]
    path.write_text("".join(dumps(row) + "\n" for row in kept), encoding="utf-8")
