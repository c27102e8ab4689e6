"""What a judge writes by itself, when nothing holds it to the form: the share that parses (see quantize.verify)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from aipsy_judge.contracts import load_contract
from aipsy_judge.errors import InputError
from aipsy_judge.judge import Judge
from aipsy_judge.local_judge import LocalJudge
from aipsy_judge.runs_key import verdict_key
from quantize.asked import Task, cells
from quantize.free_answers import asked_for, kind_of, write_answers
from quantize.trunk import Trunk
from quantize.watch import LINE_TOKENS

from .held_out import Reply
from .held_out_judging import RESERVATIONS, plans
from .held_out_kept import Kept

BUDGET = 512  # tokens of an answer that is one JSON object, as quantize.verify has it
KINDS = ("clean", "early_end", "runaway", "unreadable")


def free_answers(judge: Judge, items: Sequence[Reply], count: int, seed: int, kept: Path | None) -> dict[str, Any]:
    """How many of the answers to `count` replies, drawn by `seed`, are of which kind, and the share that is clean.

    The judge is asked nothing more afterwards. InputError for one at a server, which writes as it is made to.
    """
    if not isinstance(judge, LocalJudge):
        raise InputError("only of weights on this machine can be seen what they write by themselves", where="--free")
    order = np.random.default_rng(seed).permutation(len(items))[:count]
    chosen = [items[n] for n in sorted(order.tolist())]
    settings = {k: v for k, v in judge.settings.items() if k not in RESERVATIONS}
    found: Counter[str] = Counter()
    with Kept(kept) as shelf:
        judge.engine.trunks.lost()
        for item in chosen:
            asked = plans([item])[0].asked
            key = verdict_key(asked.content_hash, "free", judge.lane, settings)
            if key not in shelf.records:
                shelf.put(key, {"judge": judge.lane.judge, "items": [item.id], "free": _kinds(judge, asked)})
            found.update(shelf.records[key]["free"])
    answers = sum(found.values())
    clean = found["clean"] / answers if answers else None
    return {"items": len(chosen), "answers": answers, "clean": clean, "kinds": {k: found[k] for k in KINDS}}


def _kinds(judge: LocalJudge, asked: Any) -> dict[str, int]:
    contract = load_contract(judge.lane.contract)
    task = Task(judge.rubric, contract, (asked,), judge.weights.window)
    backend, cues = judge.backend, task.cues(judge.backend)
    budget = LINE_TOKENS if contract.lines else BUDGET
    kinds: Counter[str] = Counter()
    for prompts in task.prompts(backend):
        trunk = Trunk(backend, cells(prompts, cues, budget))
        written = write_answers(backend, trunk, 0, prompts, cues, budget)
        kinds.update(kind_of(a, contract, judge.rubric) for a in asked_for(written, contract, judge.rubric))
    return dict(kinds)
