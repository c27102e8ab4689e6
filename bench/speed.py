"""How fast the engine judges, against ordinary use of llama-cpp-python and against the floor, in one run.

    python -m bench.speed [--model GGUF] [--conversation FILE] [--repeats 5] [--json FILE]

On the same weights, conversation and answers:

* ordinary   `Llama.create_chat_completion`, a turn at a time, the whole rubric in the prompt, the answer constrained to
             the very text that the engine gave; the library's own prefix cache is on
* engine     contract `full` (scores only, and with rationale) and contract `compact`
* floor      one plain decode of the tokens that the engine evaluated, at the same positions on the same sequences:
             what no way of asking can undercut

The runs alternate and medians are given; times of a busy machine mean little, ratios more.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import llama_cpp
from llama_cpp.llama_grammar import LlamaGrammar

from aipsy_judge.backends.amx import extra_buffers_work
from aipsy_judge.backends.llamacpp import LlamaCpp, LlamaCppOptions
from aipsy_judge.backends.protocol import Feed, Logits
from aipsy_judge.contract import COMPACT, FULL, Contract
from aipsy_judge.conversation import Conversation
from aipsy_judge.judge import Rationale
from aipsy_judge.local_judge import LocalJudge
from aipsy_judge.rubric import load_rubric
from aipsy_judge.transcripts import read
from aipsy_judge.weights import Weights, find_weights

HERE = Path(__file__).parent
CONTEXT = 8192


@dataclass
class Figure:
    """Seconds and counts of one way of judging one conversation; per turn where the name says so."""

    name: str
    seconds_per_turn: float
    tokens_per_turn: float
    passes_per_conversation: float
    decoded_per_turn: float


class Counted(LlamaCpp):
    """The backend, keeping what it was fed so that the floor can feed it again."""

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self.feeds: list[Feed] = []
        self.forks: list[tuple[int, int, int]] = []

    def evaluate(self, feeds: Sequence[Feed]) -> list[Logits]:
        self.feeds += feeds
        return super().evaluate(feeds)

    def fork(self, source: int, target: int, length: int) -> None:
        self.forks.append((source, target, length))
        super().fork(source, target, length)


class Ordinary(llama_cpp.Llama):
    """The library's own class, counting tokens and passes."""

    tokens = passes = 0

    def eval(self, tokens: Sequence[int]) -> None:
        self.tokens += len(tokens)
        self.passes += -(-len(tokens) // self.n_batch)
        super().eval(tokens)


def threads() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def timed(call: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    result = call()
    return time.perf_counter() - start, result


class Engine:
    """One contract of the engine, with its floor."""

    def __init__(self, name: str, weights: Weights, contract: Contract, rationale: Rationale) -> None:
        self.name, self._rationale = name, rationale
        options = LlamaCppOptions(threads=threads(), extra_bufts=extra_buffers_work(weights.model))
        self.backend = Counted(weights.model, options)
        self.judge = LocalJudge(self.backend, weights, load_rubric(), contract)
        self.seconds: list[float] = []
        self.floor_seconds: list[float] = []
        self.answers: list[str] = []
        self.tokens = self.passes = 0

    def run(self, conversation: Conversation) -> None:
        before = (self.backend.work.tokens, self.backend.work.passes)
        self.backend.feeds, self.backend.forks = [], []
        seconds, verdicts = timed(lambda: self.judge.score(conversation, rationale=self._rationale))
        self.seconds.append(seconds)
        self.answers = [v.raw or "" for v in verdicts]
        self.tokens = self.backend.work.tokens - before[0]
        self.passes = self.backend.work.passes - before[1]

    def run_floor(self) -> None:
        """What the last run evaluated, again: the trunk, then every sequence in one piece. Probes are left out, so
        that the floor is rather too low."""
        feeds, forks = list(self.backend.feeds), list(self.backend.forks)
        head = min((f.start for f in feeds if f.sequence == 0), default=0)
        trunk = [f for f in feeds if f.sequence == 0]
        whole: dict[int, tuple[int, list[int]]] = {}
        for feed in feeds:
            if 0 < feed.sequence < self.judge.first_probe:
                whole.setdefault(feed.sequence, (feed.start, []))[1].extend(feed.tokens)
        pieces = [Feed(s, start, tokens, True) for s, (start, tokens) in whole.items()]
        parents = {target: (source, length) for source, target, length in forks if target in whole}

        def decode() -> None:
            LlamaCpp.evaluate(self.backend, trunk)
            level = [p for p in pieces if parents[p.sequence][0] == 0]
            done: set[int] = set()
            while level:
                for piece in level:
                    source, length = parents[piece.sequence]
                    LlamaCpp.fork(self.backend, source, piece.sequence, length)
                LlamaCpp.evaluate(self.backend, level)
                done |= {p.sequence for p in level}
                level = [p for p in pieces if p.sequence not in done and parents[p.sequence][0] in done]

        self.floor_seconds.append(timed(decode)[0])
        for piece in pieces:
            self.backend.trim(piece.sequence, 0)
        self.backend.trim(0, head)


class Baseline:
    """Ordinary use: a chat completion a turn, bound to a given answer."""

    def __init__(self, name: str, weights: Weights, library: Ordinary) -> None:
        self.name, self._weights, self._library = name, weights, library
        self.seconds: list[float] = []
        self.tokens = self.passes = self.decoded = 0

    def run(self, conversation: Conversation, answers: Sequence[str]) -> None:
        rubric = load_rubric()
        model: Any = self._library  # its chat messages are typed more narrowly than what it takes
        model.reset()
        first = FULL.messages(rubric, conversation, conversation.turns[0].index)
        # the rubric is evaluated beforehand, as the engine's is: it is paid once a process by both
        model.create_chat_completion([{"role": "system", "content": first[0].text}], max_tokens=1, temperature=0.0)
        model.tokens = model.passes = self.decoded = 0

        def judge() -> None:
            for turn, answer in zip(conversation.turns, answers, strict=True):
                rows = [{"role": m.role, "content": m.text} for m in FULL.messages(rubric, conversation, turn.index)]
                grammar = LlamaGrammar.from_string(f"root ::= {json.dumps(answer)}", verbose=False)
                reply = model.create_chat_completion(rows, grammar=grammar, temperature=0.0, max_tokens=400)
                assert reply["choices"][0]["message"]["content"] == answer
                self.decoded += reply["usage"]["completion_tokens"]

        self.seconds.append(timed(judge)[0])
        self.tokens, self.passes = model.tokens, model.passes


def open_ordinary(weights: Weights) -> Ordinary:
    if not extra_buffers_work(weights.model):
        default = llama_cpp.llama_model_default_params

        def without() -> Any:
            params = default()
            params.use_extra_bufts = False
            return params

        llama_cpp.llama_cpp.llama_model_default_params = without  # the class has no argument for it
    return Ordinary(
        str(weights.model),
        n_ctx=CONTEXT,
        n_batch=2048,
        n_ubatch=512,
        n_threads=threads(),
        n_threads_batch=threads(),
        flash_attn=True,
        n_gpu_layers=-1,
        verbose=False,
    )


def measure(weights: Weights, conversation: Conversation, repeats: int) -> dict[str, Any]:
    full = Engine("engine full, scores only", weights, FULL, "never")
    spoken = Engine("engine full, with rationale", weights, FULL, "always")
    compact = Engine("engine compact, scores only", weights, COMPACT, "never")
    engines = [full, spoken, compact]
    library = open_ordinary(weights)
    plain = Baseline("ordinary, scores only", weights, library)
    plain_spoken = Baseline("ordinary, with rationale", weights, library)
    for engine in engines:
        engine.run(conversation)  # warm-up: the rubric, and the answers that the baseline will give
        engine.seconds.clear()
    scores_only = [a.replace(', "rationale": ""', "") for a in full.answers]
    for _ in range(repeats):
        for engine in engines:
            engine.run(conversation)
            engine.run_floor()
        plain.run(conversation, scores_only)
        plain_spoken.run(conversation, spoken.answers)
    turns = len(conversation.turns)
    figures = [_engine_figure(e, turns) for e in engines] + [_plain_figure(b, turns) for b in (plain, plain_spoken)]
    return {"figures": figures, "ratios": _ratios(full, spoken, compact, plain, plain_spoken)}


def _engine_figure(engine: Engine, turns: int) -> Figure:
    seconds = statistics.median(engine.seconds)
    return Figure(engine.name, seconds / turns, engine.tokens / turns, engine.passes, 0.0)


def _plain_figure(baseline: Baseline, turns: int) -> Figure:
    seconds = statistics.median(baseline.seconds)
    return Figure(baseline.name, seconds / turns, baseline.tokens / turns, baseline.passes, baseline.decoded / turns)


def _ratios(full: Engine, spoken: Engine, compact: Engine, plain: Baseline, plain_spoken: Baseline) -> dict[str, float]:
    def ratio(above: Sequence[float], below: Sequence[float]) -> float:
        return statistics.median(a / b for a, b in zip(above, below, strict=True))

    return {
        "full: ordinary / engine, scores only": ratio(plain.seconds, full.seconds),
        "full: ordinary / engine, with rationale": ratio(plain_spoken.seconds, spoken.seconds),
        "compact: ordinary / engine, scores only": ratio(plain.seconds, compact.seconds),
        "compact: ordinary with rationale / engine, scores only": ratio(plain_spoken.seconds, compact.seconds),
        "full: engine / floor": ratio(full.seconds, full.floor_seconds),
        "compact: engine / floor": ratio(compact.seconds, compact.floor_seconds),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--model", help="a GGUF file; the smallest known judge without")
    parser.add_argument("--conversation", type=Path, default=HERE / "ten_turns.json")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    (conversation,) = read(args.conversation)
    result = measure(find_weights(args.model or "smollm2-untrained"), conversation, args.repeats)
    print(f"{len(conversation.turns)} turns, {threads()} threads, median of {args.repeats} alternating runs")
    print(f"{'':32}{'s/turn':>9}{'tokens/turn':>13}{'passes':>8}{'decoded/turn':>14}")
    for f in result["figures"]:
        row = f"{f.name:32}{f.seconds_per_turn:9.3f}{f.tokens_per_turn:13.1f}{f.passes_per_conversation:8.0f}"
        print(f"{row}{f.decoded_per_turn:14.1f}")
    for name, value in result["ratios"].items():
        print(f"{name:56}{value:8.2f}")
    if args.json:
        data = {"figures": [asdict(f) for f in result["figures"]], "ratios": result["ratios"], "threads": threads()}
        args.json.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
