"""The most memory a process has held is its own, not that of whoever started it."""

import subprocess
import sys

import numpy as np
import pytest

from aipsy_judge.peak_memory import peak_bytes

ASK = "from aipsy_judge.peak_memory import peak_bytes; print(peak_bytes())"
HELD = 400 * 2**20


@pytest.mark.skipif(sys.platform == "win32", reason="Windows does not say")
def test_a_small_process_of_a_large_one_has_held_little():
    held = np.ones(HELD, dtype=np.uint8)
    done = subprocess.run([sys.executable, "-c", ASK], capture_output=True, text=True, check=True)
    assert 2**20 < int(done.stdout) < HELD / 2
    assert peak_bytes() > held.nbytes


def test_where_the_system_has_no_such_file_another_answer_is_given(tmp_path):
    assert (peak_bytes(tmp_path / "none") > 0) == (sys.platform != "win32")
    (tmp_path / "status").write_text("Name:\tpython\nVmHWM:\t    2048 kB\n")
    assert peak_bytes(tmp_path / "status") == 2048 * 1024
