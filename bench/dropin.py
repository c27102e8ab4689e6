"""The benchmark's own client, unchanged, with our server in its judge's place.

    python -m bench.dropin [--battery quick|full] [--contracts full,aipsy-bench-v1] [--threads 1] [--json FILE]

Makes the client's environment (Python 3.12 or newer; said and skipped where there is none), starts an endpoint with
canned replies for it to test, and for every contract a server with a small real model: the first on port 11434, where
the client looks by itself, the others elsewhere. Then the battery, and of every turn: was it judged, is it what
`aipsy-judge score` says of what was asked; do verdicts vary over the turns. Then the other verbs. The client reaches
this machine alone. Shown besides: how many verdicts are also those of scoring whole talks in one go. That is another
plan, which moves last digits, and an untrained judge wavers between neighbours nearly everywhere.

Printed: seconds and tokens evaluated a call, beside what the call has to cost at least: the tokens that the call
before did not have, and the answer, each once. Exit code 1 where anything that should hold does not.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from aipsy_judge.cache_folder import cache_folder
from aipsy_judge.judge import JudgeOptions
from aipsy_judge.local_judge import LocalJudge
from aipsy_judge.opening import open_judge

from .dropin_cost import Ideal, ideal_of
from .dropin_environment import ClientHome, NoPythonError, client_home
from .dropin_judge import SMALLEST, stand_in
from .dropin_run import BATTERIES, Checks, Client, compare_runs, judge_words, other_verbs, run_battery
from .dropin_target import target_at_work
from .dropin_verdicts import Compared, asked_in_log, compared, said_by, said_in_log, scored
from .served import ServedHere, served_here

OLLAMA_PORT = 11434


@dataclass
class Part:
    """One battery under one contract. seconds and evaluated tokens are a call's mean at the server."""

    contract: str
    port: int
    as_asked: Compared
    as_whole: Compared
    seconds: float
    evaluated: float
    ideal: Ideal | None


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the options said."""

    battery: str
    judge: str | None
    threads: int
    port: int


def measured(contract: str, wanted: Wanted, client: Client, judge: Path | str, checks: Checks) -> Part:
    """Serve, run the client, and hold what it heard to what `score` says."""
    words = judge_words(judge, unblessed=wanted.judge is None, threads=wanted.threads)
    options = ["--port", str(wanted.port), "--answer-as-own"]
    with served_here([*words, *options]) as server:
        server.wait_ready()
        here = Client(client.home, client.folder, "-" if wanted.port == OLLAMA_PORT else server.url, client.target)
        before = server.metric("evaluated_tokens_total"), server.metric("judge_busy_seconds_total")
        run_battery(here, wanted.battery, checks)
        spent = [server.metric(n) for n in ("evaluated_tokens_total", "judge_busy_seconds_total")]
        other_verbs(here, checks)
        port = int(server.url.rpartition(":")[2])
        _check_server(server, wanted.battery, checks)
    checks.that(not here.attempts, f"the client tried to reach {', '.join(here.attempts[:5])}")
    part = _held_to_score(contract, here, judge, words, wanted, checks)
    part.port = port
    calls = max(1, part.as_asked.turns)
    part.evaluated, part.seconds = (spent[0] - before[0]) / calls, (spent[1] - before[1]) / calls
    return part


def _check_server(server: ServedHere, battery: str, checks: Checks) -> None:
    # warm-ups are not verdicts; every turn of the battery is one
    verdicts = int(server.metric("verdicts_total"))
    checks.that(verdicts == BATTERIES[battery], f"the server gave {verdicts} verdicts")
    failed = int(server.metric('jobs_total{end="failed"}'))
    checks.that(failed == 0, f"{failed} jobs failed at the server")


def _held_to_score(
    contract: str, client: Client, judge: Path | str, words: Any, wanted: Wanted, checks: Checks
) -> Part:
    log, turns = client.log(), BATTERIES[wanted.battery]
    heard, asked = said_in_log(log), asked_in_log(log)
    verdicts = {v["conversation_id"]: v for v in scored(words, client.folder / "asked", asked.values())}
    whole = scored(words, client.folder / "whole", log)
    as_asked = compared(heard, {item: said_by(v) for item, v in verdicts.items()})
    as_whole = compared(heard, {f"{v['conversation_id']}:t{v['turn']:02d}": said_by(v) for v in whole})
    checks.that(as_asked.turns == turns, f"{as_asked.turns} turns in the log, {turns} were expected")
    checks.that(as_asked.judged == turns, f"{turns - as_asked.judged} judge failures")
    checks.that(as_asked.equal == turns, f"{turns - as_asked.equal} verdicts are not those of score")
    checks.that(as_asked.distinct > 1, "all verdicts are alike")
    ideal = None
    with open_judge(judge, options=JudgeOptions(threads=wanted.threads, unblessed=wanted.judge is None)) as opened:
        if isinstance(opened, LocalJudge):
            ideal = ideal_of(opened, asked, [v["raw"] or "" for v in verdicts.values()])
    return Part(contract, 0, as_asked, as_whole, 0.0, 0.0, ideal)


def all_parts(contracts: list[str], wanted: Wanted, work: Path, home: ClientHome, checks: Checks) -> list[Part]:
    parts, clients = [], []
    with target_at_work() as target:
        for place, contract in enumerate(contracts):
            client = Client(home, work / contract, "-", target)
            judge = wanted.judge or stand_in(work / f"judge-{contract}", contract)
            port = wanted.port if place == 0 else 0
            wanted_here = Wanted(wanted.battery, wanted.judge, wanted.threads, port)
            parts.append(measured(contract, wanted_here, client, judge, checks))
            show(parts[-1])
            clients.append(client)
        for other in clients[1:]:
            compare_runs(clients[0], other, checks)
    return parts


def show(part: Part) -> None:
    asked, whole = part.as_asked, part.as_whole
    print(f"contract {part.contract}, port {part.port}")
    print(f"  judged {asked.judged} of {asked.turns}, failures {asked.turns - asked.judged}, distinct {asked.distinct}")
    print(f"  equal to score: {asked.equal} of {asked.turns} as asked, {whole.equal} of {whole.turns} of whole talks")
    print(f"  a call: {part.seconds:.2f} s, {part.evaluated:.0f} tokens evaluated")
    if part.ideal is not None:
        told = f"{part.ideal.new:.0f} of the prompt's {part.ideal.prompt:.0f} and {part.ideal.answer:.0f} of the answer"
        print(f"  at least {part.ideal.total:.0f}: {told}; ratio {part.evaluated / part.ideal.total:.2f}")
    sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--battery", choices=list(BATTERIES), default="quick", help="50 calls, or all 200")
    parser.add_argument("--contracts", default="full,aipsy-bench-v1", help="of the stand-in judge")
    parser.add_argument("--judge", help=f"a judge of your own, asked by its own contract (default: {SMALLEST})")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--port", type=int, default=OLLAMA_PORT, help="of the first server; 0: any that is free")
    parser.add_argument("--work", type=Path, help="where the client is installed (default: the cache folder)")
    parser.add_argument("--keep", type=Path, help="keep logs and results here")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    try:
        home = client_home(args.work or cache_folder() / "dropin")
    except NoPythonError as missing:
        print(f"skipped: {missing}")
        raise SystemExit(0) from None
    contracts = ["its own"] if args.judge else args.contracts.split(",")
    checks = Checks()
    wanted = Wanted(args.battery, args.judge, args.threads, args.port)
    with tempfile.TemporaryDirectory() as scratch:
        parts = all_parts(contracts, wanted, (args.keep or Path(scratch)).resolve(), home, checks)
    for fault in checks.faults:
        print(f"NOT SO: {fault}")
    print(f"{checks.passed} of {checks.passed + len(checks.faults)} checks hold")
    if args.json:
        told = {"battery": args.battery, "parts": [asdict(p) for p in parts], "faults": checks.faults}
        args.json.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
    raise SystemExit(1 if checks.faults else 0)


if __name__ == "__main__":
    main()
