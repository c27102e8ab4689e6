"""The loss bench measures in processes of its own, extrapolates by a line and never swaps the machine to death."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from aipsy_judge.errors import BackendError
from bench.loss import (
    GIB,
    Figure,
    Setting,
    extrapolated,
    in_a_process,
    kinds_on,
    main,
    table,
    too_large,
    verdict,
)

linux = pytest.mark.skipif(sys.platform != "linux", reason="the peak is read from /proc")


def figure(kind: str, tokens: int, peak: float, seconds: float) -> Figure:
    return Figure(kind, tokens, peak * GIB, seconds, measured=True)


def test_farther_sizes_lie_on_the_line_through_the_two_largest() -> None:
    found = extrapolated([figure("plain", 10, 9, 9), figure("plain", 100, 1, 2), figure("plain", 200, 3, 5)], 400)
    assert found == Figure("plain", 400, 7 * GIB, 11, measured=False)
    assert extrapolated([figure("plain", 100, 1, 2)], 400) is None
    assert extrapolated([found, figure("plain", 100, 1, 2)], 800) is None


def test_ratios_are_to_the_plain_loss_of_the_same_size() -> None:
    lines = table([figure("chunked", 4096, 0.5, 11), figure("plain", 4096, 16, 10), figure("chunked", 16, 1, 1)])
    assert len(lines) == 4
    assert lines[3].split()[-3:] == ["1/32.0", "1.10", "x"]
    assert lines[1].split()[-2:] == ["-", "-"]
    assert "extrapolated" in table([Figure("plain", 8192, 1, 1, measured=False)])[1]


@pytest.mark.parametrize(
    ("peak", "seconds", "said"), [(2.0, 11.5, "met (1/8.0, 1.15 x)"), (2.1, 9, "MISSED"), (1.0, 11.6, "MISSED")]
)
def test_the_aims_are_an_eighth_of_the_peak_and_115_percent_of_the_time(peak: float, seconds: float, said: str) -> None:
    assert said in verdict([figure("plain", 4096, 16, 10), figure("chunked", 4096, peak, seconds)])


def test_an_extrapolated_figure_meets_no_aim() -> None:
    assert "not measured" in verdict([Figure("plain", 4096, 16, 10, False), figure("chunked", 4096, 1, 1)])


def test_the_plain_loss_is_not_tried_where_it_would_not_fit() -> None:
    setting = Setting("plain", 4096, 2816, 262_144, "bf16", "cpu", 1)
    assert too_large(setting, 40 * GIB) is None
    assert "12.0 are free" in (too_large(setting, 12 * GIB) or "")
    assert too_large(Setting("chunked", 4096, 2816, 262_144, "bf16", "cpu", 1), GIB) is None


def test_liger_is_measured_on_cuda_alone() -> None:
    assert "liger" in kinds_on("cuda")
    assert "liger" not in kinds_on("cpu")


@pytest.mark.slow
def test_a_measurement_that_fails_says_which() -> None:
    with pytest.raises(BackendError, match="nonsense at 16 tokens failed"):
        in_a_process(Setting("nonsense", 16, 16, 50, "no such type", "cpu", 1))


@linux
@pytest.mark.slow
def test_chunks_take_an_eighth_of_the_memory_at_most_and_the_figures_are_kept(tmp_path: Path) -> None:
    """At a size that is small and still far above a process's noise: 60,000 x 1,500 logits, 360 MB a matrix."""
    target = tmp_path / "figures.json"
    options = ["--sizes", "750,1500", "--repeats", "1", "--hidden", "16", "--vocabulary", "60000", "--dtype", "fp32"]
    done = CliRunner().invoke(main, [*options, "--json", str(target)])
    assert done.exit_code == 0, done.output
    told = json.loads(target.read_text())
    by = {(f["kind"], f["tokens"]): f for f in told["figures"]}
    plain, chunked = by["plain", 1500], by["chunked", 1500]
    # four float32 matrices while it goes backward
    assert plain["peak_bytes"] == pytest.approx(16 * 60_000 * 1500, rel=0.1)
    # 128 MiB of logits at a time, and as much again for the exponentials
    assert chunked["peak_bytes"] < 2.2 * 128 * 2**20
    assert by["plain", 8192]["measured"] is False
    assert "extrapolated" in done.output


def test_sizes_that_are_no_numbers_are_one_error() -> None:
    done = CliRunner().invoke(main, ["--sizes", "many"])
    assert done.exit_code == 2
    assert "--sizes many" in done.output
