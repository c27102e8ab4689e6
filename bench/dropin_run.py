"""The client's verbs against a server of ours, one after the other, and whether each did what it should."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .dropin_environment import ClientHome

BATTERIES = {"quick": 50, "full": 200}  # turns: 5 and 20 scenarios of 10
CLIENT_SECONDS = 6 * 3600
_PROGRAM = Path(__file__).with_name("dropin_client.py")


@dataclass(frozen=True, slots=True)
class Ran:
    """A verb's exit code, what it said, and how long it took."""

    code: int
    text: str
    seconds: float


@dataclass
class Checks:
    """What was to be shown, and what of it was not."""

    faults: list[str] = field(default_factory=list)
    passed: int = 0

    def that(self, true: bool, words: str) -> None:
        if true:
            self.passed += 1
        else:
            self.faults.append(words)


@dataclass(frozen=True, slots=True)
class Client:
    """The client, told where the judge is (`base_url` "-": where it looks by itself) and what to test."""

    home: ClientHome
    folder: Path
    base_url: str
    target: str

    def __call__(self, *words: str) -> Ran:
        self.folder.mkdir(parents=True, exist_ok=True)
        command = [str(self.home.python), str(_PROGRAM), str(self.attempts_file), self.base_url, *words]
        begun = time.monotonic()
        done = subprocess.run(
            command,
            cwd=self.folder,
            env=self.home.environment(self.folder),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=CLIENT_SECONDS,
            check=False,
        )
        return Ran(done.returncode, done.stdout, time.monotonic() - begun)

    @property
    def attempts_file(self) -> Path:
        return self.folder / "attempts.txt"

    @property
    def attempts(self) -> list[str]:
        """What it tried to reach beside this machine."""
        path = self.attempts_file
        return path.read_text(encoding="utf-8").split("\n")[:-1] if path.is_file() else []

    def log(self) -> Path:
        """The log of its run. FileNotFoundError."""
        found = sorted((self.folder / "run" / "logs").glob("*.eval"))
        if len(found) != 1:
            raise FileNotFoundError(f"{len(found)} logs under {self.folder}, one was expected")
        return found[0]

    def result(self) -> dict[str, Any]:
        data: dict[str, Any] = json.loads((self.folder / "run" / "result.json").read_text(encoding="utf-8"))
        return data


def run_battery(client: Client, battery: str, checks: Checks) -> Ran:
    """The battery itself. A judge that finds failures ends it with 1 (the gate), which is a finding, not a fault."""
    words = ["run", "--http-target", client.target, "--judges", "local", "--out", "run", "--display", "none"]
    ran = client(*words, *(["--quick"] if battery == "quick" else []))
    if ran.code not in (0, 1):
        checks.that(False, f"run ended with {ran.code}: {last_lines(ran.text)}")
        return ran
    checks.that(not client.result()["run_failures"], "the target failed in some scenario")
    card = client.folder / "run" / "card.svg"
    checks.that(card.is_file(), "no card was drawn")
    return ran


def other_verbs(client: Client, checks: Checks) -> None:
    """judge status and warm, doctor, explain: before and after a run."""
    for words in (("judge", "status"), ("judge", "warm")):
        ran = client(*words)
        checks.that(ran.code == 0, f"{' '.join(words)} ended with {ran.code}: {last_lines(ran.text)}")
    ran = client("doctor", "--http-target", client.target, "--judges", "local")
    checks.that(ran.code == 0, f"doctor ended with {ran.code}: {last_lines(ran.text)}")
    ran = client("explain", "s06", "5", "--log", str(client.log()))
    checks.that(ran.code == 0 and "[aipsy-judge " in ran.text, f"explain does not name the judge: {ran.text[-300:]}")
    ran = client("provenance", "--log", str(client.log()))
    checks.that(ran.code == 0, f"provenance ended with {ran.code}: {last_lines(ran.text)}")


def compare_runs(client: Client, other: Client, checks: Checks) -> None:
    """Two runs of the client side by side; 1 says that the second is worse, 2 that it refuses."""
    ran = client("compare", str(client.log()), str(other.log()), "--card", "--out", "compared")
    checks.that(ran.code in (0, 1), f"compare ended with {ran.code}: {last_lines(ran.text)}")
    checks.that("Regression gate" in ran.text, "compare shows no gate")


def last_lines(text: str, lines: int = 6) -> str:
    return " | ".join(line.strip() for line in text.strip().splitlines()[-lines:])


def judge_words(judge: Path | str, *, unblessed: bool, threads: int) -> Sequence[str]:
    """The options that name the judge, to the server and to `score` alike."""
    words = ["--judge", str(judge), "--threads", str(threads), "--rationale", "never"]
    return [*words, *(["--unblessed"] if unblessed else [])]
