"""How long the competence map takes, and how much memory.

    python -m bench.map [--items 100000] [--judges 4] [--metrics 7] [--turns 10] [--resamples 1000] [--json FILE]

Draws a table of the size asked for (an expert and the judges on every item, conversations of `--turns` turns, replies
by five generators), writes it as CSV, and reports: reading the file, the map with all intervals, peak memory of the
process. The aim is a map of 100,000 items x 4 judges x 7 metrics in under 60 s and 4 GiB on two cores.
"""

from __future__ import annotations

import json
import platform
import tempfile
import time
from pathlib import Path
from typing import Any

import click
import numpy as np

from aipsy_judge.agreement import Bootstrap
from aipsy_judge.atomic import check_writable, write_text
from aipsy_judge.competence import competence_map
from aipsy_judge.peak_memory import peak_bytes
from aipsy_judge.ratings import make_yardstick, read_ratings

GENERATORS = ("gpt-x", "claude-x", "gemini-x", "qwen-x", "human")
JUDGES = ("gpt-x", "claude-x", "gemini-x", "qwen-x")


def draw_table(path: Path, items: int, judges: int, metrics: int, turns: int, seed: int = 14) -> int:
    """Write a table of (judges + 1) x items x metrics ratings on 0..5; returns the number of rows."""
    random = np.random.default_rng(seed)
    conversation = np.arange(items) // turns
    quality = random.normal(3.4, 0.8, conversation[-1] + 1)[conversation] + random.normal(0, 0.6, items)
    raters = [("expert", "expert"), *((JUDGES[j] if j < len(JUDGES) else f"judge-{j}", "judge") for j in range(judges))]
    rows = 0
    with path.open("w", encoding="utf-8") as file:
        file.write("item_id,conversation,turn,generator,rater,rater_kind,metric,score,status,scale_min,scale_max\n")
        for m in range(metrics):
            truth = quality + random.normal(0, 0.5, items)
            for r, (rater, kind) in enumerate(raters):
                score = np.clip(np.rint(truth + 0.2 * r + random.normal(0, 0.7, items)), 0, 5).astype(int)
                na: np.ndarray[Any, np.dtype[np.bool_]] = random.random(items) < (0.3 if m % 3 == 2 else 0.0)
                file.writelines(
                    f"i{i},c{conversation[i]},{i % turns + 1},{GENERATORS[conversation[i] % 5]},{rater},{kind},m{m},"
                    + (",na,0,5\n" if na[i] else f"{score[i]},scored,0,5\n")
                    for i in range(items)
                )
                rows += items
    return rows


def measure(items: int, judges: int, metrics: int, turns: int, resamples: int) -> dict[str, Any]:
    """Seconds for reading and for the map, and the peak of resident memory in GiB."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ratings.csv"
        rows = draw_table(path, items, judges, metrics, turns)
        begun = _clocks()
        ratings = read_ratings(path)
    read = _clocks()
    drawn = competence_map(ratings, make_yardstick(ratings), bootstrap=Bootstrap(resamples=resamples))
    done = _clocks()
    figures = sum(len(p.estimates) for p in (*drawn.against, *drawn.between))
    return {
        "items": items,
        "judges": judges,
        "metrics": metrics,
        "rows": rows,
        "conversations": drawn.n_groups,
        "resamples": resamples,
        "read_seconds": round(read[0] - begun[0], 2),
        "read_cpu_seconds": round(read[1] - begun[1], 2),
        "map_seconds": round(done[0] - read[0], 2),
        "map_cpu_seconds": round(done[1] - read[1], 2),
        "peak_gib": round(peak_bytes() / (1 << 30), 3),
        "agreement_figures": figures,
        "python": platform.python_version(),
        "machine": platform.machine(),
    }


def _clocks() -> tuple[float, float]:
    """The wall clock, and the time this process has spent on all cores: what counts when others use the machine."""
    return time.perf_counter(), time.process_time()


@click.command()
@click.option("--items", default=100_000, show_default=True)
@click.option("--judges", default=4, show_default=True)
@click.option("--metrics", default=7, show_default=True)
@click.option("--turns", default=10, show_default=True, help="Items a conversation.")
@click.option("--resamples", default=1000, show_default=True)
@click.option("--json", "json_path", type=click.Path(path_type=Path), help="Write the figures here.")
def main(items: int, judges: int, metrics: int, turns: int, resamples: int, json_path: Path | None) -> None:
    """Time and memory of the competence map on a drawn table."""
    if json_path is not None:
        check_writable(json_path)
    figures = measure(items, judges, metrics, turns, resamples)
    text = json.dumps(figures, indent=2)
    click.echo(text)
    if json_path is not None:
        write_text(json_path, text + "\n")


if __name__ == "__main__":
    main()
