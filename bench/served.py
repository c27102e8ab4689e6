"""`aipsy-judge serve` in a process of its own, for as long as a measurement takes."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import httpx

START_SECONDS = 1800.0  # a long rubric on a busy machine
STOP_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class ServedHere:
    """A server that answers at `url`."""

    url: str
    http: httpx.Client

    def metric(self, name: str) -> float:
        """The sum of a metric over its labels, `name` without the prefix and with labels where one of them is meant;
        0 where it was never counted."""
        lines = (line.removeprefix("aipsy_judge_") for line in self.http.get("/metrics").text.splitlines())
        return sum(float(x.split()[-1]) for x in lines if x.startswith((f"{name} ", f"{name}{{")))

    def wait_ready(self, seconds: float = START_SECONDS) -> None:
        """Until the judge has evaluated what all its prompts begin with, and nothing runs. TimeoutError."""
        end = time.monotonic() + seconds
        while not self.metric("jobs_total") or self.metric("jobs_running") or self.metric("jobs_waiting"):
            if time.monotonic() > end:
                raise TimeoutError("the judge was not ready in time")
            time.sleep(0.2)


@contextmanager
def served_here(words: Sequence[str]) -> Iterator[ServedHere]:
    """Start `aipsy-judge serve WORDS`; RuntimeError with what it said where it does not start."""
    with tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen([sys.executable, "-m", "aipsy_judge", "serve", *words], stderr=log, text=True)

        def said() -> str:
            log.seek(0)
            return log.read()

        try:
            end, url = time.monotonic() + START_SECONDS, ""
            while not url:
                if process.poll() is not None or time.monotonic() > end:
                    raise RuntimeError(f"the server did not start: {said()}")
                time.sleep(0.1)
                # the address ends its line; a line may still be coming
                whole = said().rpartition("\n")[0]
                url = next((w for line in whole.splitlines() for w in line.split()[-1:] if w.startswith("http:")), "")
            with httpx.Client(base_url=url, timeout=60, trust_env=False) as http:
                yield ServedHere(url, http)
        finally:
            process.terminate()
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
