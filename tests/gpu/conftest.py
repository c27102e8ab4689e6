"""These tests need a CUDA device. Where there is none they are collected, and skipped with that reason."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).resolve().parents[1] / "training"))  # shared with tests of the same code on a CPU


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("gpu") is not None:
        import torch

        if not torch.cuda.is_available():
            pytest.skip("no CUDA device here; `make gpu` where there is one")
