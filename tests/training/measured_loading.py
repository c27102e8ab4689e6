"""Loads a checkpoint in 4 bits and says what memory that took, as a program: measured_loading.py FOLDER"""

from __future__ import annotations

import gc
import json
import re
import sys
from pathlib import Path


def main(folder: Path) -> None:
    import torch

    from training.allocated import allocation_peak, resident_bytes
    from training.streamed_load import load_four_bit

    torch.set_num_threads(1)
    cpu = torch.device("cpu")
    gc.collect()
    before = _status("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # Linux: proc(5)
    model = load_four_bit(folder, cpu)
    process = _status("VmHWM") - before
    resident = resident_bytes(model)
    del model
    gc.collect()
    peak = allocation_peak(lambda: load_four_bit(folder, cpu))
    print(json.dumps({"resident": resident, "process": process, "allocated": peak}))


def _status(key: str) -> int:
    found = re.search(rf"^{key}:\s+(\d+) kB$", Path("/proc/self/status").read_text(), re.M)
    assert found is not None
    return int(found.group(1)) * 1024


if __name__ == "__main__":
    sys.path[:0] = ["tests/models", "."]
    main(Path(sys.argv[1]))
