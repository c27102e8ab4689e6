"""How fast many trajectories are evaluated: `python -m bench.epm [--json FILE]`. One process, one core.

Random but legal levels, so that every kind of end occurs; the time covers checking the levels, vectors, paths, stops,
indices and EPM-Q. Reading files is not in it.
"""

from __future__ import annotations

import json
import platform
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import click
import numpy as np

from aipsy_judge.epm.evaluate import Evaluation, evaluate
from aipsy_judge.epm.pack import load_pack
from aipsy_judge.epm.parameters import DEFAULT_PROFILE, PAPER_PROFILE, profile
from aipsy_judge.epm.space import Space
from aipsy_judge.epm.vectors import Levels, check_start_levels, deficits

SPACE = load_pack().space


def draw_levels(space: Space, trajectories: int, turns: int, seed: int) -> tuple[Levels, Levels]:
    """Starting levels (N, I) and turn levels (N, T, 2D). Every trajectory has its own chance of helping and harming."""
    random = np.random.default_rng(seed)
    start = random.integers(1, space.top_level + 1, (trajectories, len(space.indicator_ids)))
    skill = random.random((trajectories, 1, 1))
    channels = []
    for scores in space.channel_scores:
        chance = skill if max(scores) > 0 else 1 - skill
        size = random.integers(1, len(scores), (trajectories, turns, 1))
        channels.append(
            np.where(random.random((trajectories, turns, 1)) < chance, size, 0) * (1 if max(scores) else -1)
        )
    return start, np.concatenate(channels, axis=-1)


def measure(trajectories: int, turns: int, name: str, repeats: int) -> dict[str, Any]:
    """The fastest and the median of `repeats` runs, in seconds of this process's CPU time and of the clock."""
    start, levels = draw_levels(SPACE, trajectories, turns, seed=1)
    lengths = np.full(trajectories, turns)
    parameters = profile(name, tau_align=0.5 if name == PAPER_PROFILE else None)

    def run() -> Evaluation:
        origin = deficits(SPACE, check_start_levels(SPACE, start))
        return evaluate(SPACE, origin, levels, lengths, parameters)

    clock, cpu = [], []
    for _ in range(repeats):
        before = time.perf_counter(), time.process_time()
        result = run()
        clock.append(time.perf_counter() - before[0])
        cpu.append(time.process_time() - before[1])
    return {
        "profile": name,
        "trajectories": trajectories,
        "turns": turns,
        "seconds_fastest": min(clock),
        "seconds_median": float(np.median(clock)),
        "cpu_seconds_median": float(np.median(cpu)),
        "ends": dict(Counter(result.stops.kind)),
        "mean_epm_q": float(np.mean(result.scores[:, -1])),
    }


@click.command()
@click.option("--trajectories", type=click.IntRange(1), default=10_000, show_default=True)
@click.option("--turns", type=click.IntRange(1), default=45, show_default=True)
@click.option("--repeats", type=click.IntRange(1), default=5, show_default=True)
@click.option("--most-seconds", type=float, default=2.0, show_default=True, help="Fail if the median takes longer.")
@click.option("--json", "json_path", type=click.Path(path_type=Path))
def main(trajectories: int, turns: int, repeats: int, most_seconds: float, json_path: Path | None) -> None:
    """Time the evaluation of many trajectories in both profiles."""
    results = [measure(trajectories, turns, name, repeats) for name in (DEFAULT_PROFILE, PAPER_PROFILE)]
    for r in results:
        ends = ", ".join(f"{kind} {n}" for kind, n in sorted(r["ends"].items()))
        click.echo(
            f"{r['profile']}: {trajectories} trajectories of {turns} turns in {r['seconds_median']:.2f} s "
            f"(fastest {r['seconds_fastest']:.2f}, CPU {r['cpu_seconds_median']:.2f}); {ends}"
        )
    if json_path is not None:
        machine = {"python": platform.python_version(), "numpy": np.__version__, "machine": platform.machine()}
        json_path.write_text(json.dumps({**machine, "results": results}, indent=2) + "\n", encoding="utf-8")
    if any(r["seconds_median"] > most_seconds for r in results):
        sys.exit(1)


if __name__ == "__main__":
    main()
