"""The examples in docstrings run where an extra that not every machine can have is not installed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """
import sys
import pytest
sys.modules["mlx"] = None  # as if it were not installed
sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", "--doctest-modules", "aipsy_judge/backends"]))
"""


@pytest.mark.slow
def test_without_mlx_the_other_examples_of_the_backends_run() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stdout
    assert " passed" in done.stdout
