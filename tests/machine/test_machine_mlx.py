"""What `doctor` says of MLX, by machine and by what is installed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from aipsy_judge.cli.doctor_job import mlx_words
from aipsy_judge.machine import Machine

LINUX = Machine("Linux x86_64", "some processor", 16 << 30, None, 8, ())
MAC = replace(LINUX, system="Darwin arm64")


@pytest.mark.parametrize(
    ("machine", "versions", "said"),
    [
        (LINUX, None, None),
        (LINUX, "mlx 1", "the processor, slowly"),
        (MAC, "mlx 1", "mlx 1, computes on the Mac's GPU"),
        (MAC, None, "pip install 'aipsy-judge[mlx]'"),
    ],
)
def test_mlx_is_named_where_it_is_and_asked_for_where_it_would_help(
    machine: Machine, versions: str | None, said: str | None
) -> None:
    lines = list(mlx_words(machine, versions))
    assert (lines == []) if said is None else (said in lines[0])
