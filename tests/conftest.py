"""Puts this folder on the path, so that tests in any folder can import the builders that lie beside this file; gives
every process of a run that is shared out (`pytest -n`) processors of its own; and has what tests start heed Ctrl-C."""

from __future__ import annotations

import os
import signal


def _keep_to_own_processors() -> None:
    """llama.cpp's and PyTorch's threads wait for each other: two processes with two threads each on two processors
    take several times as long as one after the other. What a test starts inherits this."""
    worker, of = os.environ.get("PYTEST_XDIST_WORKER", ""), os.environ.get("PYTEST_XDIST_WORKER_COUNT", "")
    if not worker.startswith("gw") or not of.isdigit() or not hasattr(os, "sched_setaffinity"):
        return
    own = sorted(os.sched_getaffinity(0))[int(worker.removeprefix("gw")) :: int(of)]
    if own:
        os.sched_setaffinity(0, own)


def _heed_control_c() -> None:
    """A shell that starts a run in the background has it ignore SIGINT, and whatever the run starts inherits that."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


_keep_to_own_processors()
_heed_control_c()
