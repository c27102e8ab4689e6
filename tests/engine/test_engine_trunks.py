"""Beginnings of conversations that are kept between calls: less is evaluated, and not one figure moves."""

from __future__ import annotations

import pickle
from itertools import chain

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from toy_model import ToyModel

from aipsy_judge.answer import AnswerForm, Option, Slot
from aipsy_judge.engine.encode import answer_tokenizer
from aipsy_judge.engine.run import Engine, Question
from aipsy_judge.engine.slots import AnswerReader

HEAD = list(range(40, 60))


def form(name: str) -> AnswerForm:
    return AnswerForm((f"{name}:", Slot(name, tuple(Option(str(v), str(v)) for v in range(6))), "\n"))


class Wary(ToyModel):
    """Its logits also show whether each token before them was evaluated alone, as real kernels let it be seen."""

    cuts_change_nothing = True

    def __init__(self, micro: int) -> None:
        super().__init__()
        self.micro_batch_tokens = micro
        self.alone: dict[int, list[bool]] = {}

    def evaluate(self, feeds):
        rows = [feed.sequence for feed in feeds for _ in feed.tokens]
        parts = [rows[i : i + self.micro_batch_tokens] for i in range(0, len(rows), self.micro_batch_tokens)]
        for part in parts:
            for sequence in part:
                self.alone.setdefault(sequence, []).append(len(part) == 1)
        flags = iter([self.alone[f.sequence][: f.start + len(f.tokens)] for f in feeds if f.want_logits])
        return [row + 3 * self._noise(next(flags)) for row in super().evaluate(feeds)]

    def _noise(self, flags):
        seed = int.from_bytes(bytes(flags), "little") % 2**32
        return np.random.default_rng(seed).normal(0, 1, len(self.vocabulary)).astype(np.float32)

    def fork(self, source, target, length):
        super().fork(source, target, length)
        self.alone[target] = self.alone.get(source, [])[:length]

    def trim(self, sequence, length):
        super().trim(sequence, length)
        self.alone[sequence] = self.alone.get(sequence, [])[:length]

    def reserve(self, cells):
        made_anew = super().reserve(cells)
        if made_anew:
            self.alone = {}
        return made_anew

    def save_sequence(self, sequence):
        return pickle.dumps(([t for t, _ in self._sequences[sequence]], self.alone[sequence]))

    def load_sequence(self, sequence, state):
        tokens, self.alone[sequence] = pickle.loads(state)
        self._sequences[sequence] = [(t, self._next_cell + n) for n, t in enumerate(tokens)]
        self._next_cell += len(tokens)
        return True


def ask(engine: Engine, prompts, names):
    tokenize = answer_tokenizer(engine.backend)
    questions = [Question(p, AnswerReader(form(n), tokenize, engine.vocabulary)) for p in prompts for n in names]
    engine.answer(questions)
    return [q.reader.readings for q in questions]


def growing(seed: int, turns: int) -> list[list[int]]:
    """The prompts of one talk, each with one more turn; the end of each is not part of the next."""
    rng = np.random.default_rng(seed)
    said = [rng.integers(0, 30, rng.integers(3, 40)).tolist() for _ in range(turns)]
    return [[*HEAD, *chain(*said[: n + 1]), 30 + seed % 5, 36] for n in range(turns)]


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4)), min_size=1, max_size=10),
    st.sampled_from([1, 3]),
    st.sampled_from([4, 16]),
    st.sampled_from([0, 10**9]),
    st.booleans(),
)
def test_whatever_was_asked_before_and_between_the_figures_are_those_of_a_fresh_start(
    calls, forms, micro, park, foreign
):
    kept = Engine(Wary(micro), HEAD, 10_000)
    assert kept.trunks.keep(park)
    for talk, turn in calls:
        prompt = growing(talk, 5)[turn]
        if foreign and talk == 3:
            prompt = prompt[len(HEAD) - 3 :]  # a prompt of somebody else's, without this judge's head
        fresh = Engine(Wary(micro), HEAD, 10_000)
        names = ["a", "b", "c"][:forms]
        assert ask(kept, [prompt], names) == ask(fresh, [prompt], names)


def test_a_talk_that_grows_costs_its_new_tokens_only():
    engine = Engine(Wary(16), HEAD, 10_000)
    engine.trunks.keep(0)
    engine.warm_up(1000)
    prompts = growing(1, 5)
    for before, prompt in zip([HEAD, *prompts], prompts, strict=False):
        done = engine.backend.work.tokens
        ask(engine, [prompt], ["a"])
        new = len(prompt) - len(before) + 2
        # the new turn, the end of the prompt again, the answer; a token or two more where one would be alone
        assert engine.backend.work.tokens - done <= new + 2 + len("a:")


def test_talks_that_take_turns_are_parked_and_come_back():
    engine = Engine(Wary(16), HEAD, 10_000)
    engine.trunks.keep(10**9)
    engine.warm_up(1000)
    talks = [growing(seed, 5) for seed in (1, 2)]
    long = [[*p[:-2], *([7] * 200), *p[-2:]] for talk in talks for p in talk[-1:]]
    for prompt in long:
        ask(engine, [prompt], ["a"])
    assert engine.trunks.reuse.parked == 1
    done = engine.backend.work.tokens
    ask(engine, [long[0]], ["a"])
    assert engine.trunks.reuse.brought_back == 1
    assert engine.backend.work.tokens - done < 20


def test_what_is_parked_keeps_within_its_bytes_and_the_oldest_goes_first():
    engine = Engine(Wary(16), HEAD, 10_000)
    longest = len(pickle.dumps(([0] * 300, [False] * 300)))
    engine.trunks.keep(2 * longest)
    engine.warm_up(1000)
    for seed in range(6):
        ask(engine, [[*HEAD, *([seed] * 200), 36]], ["a"])
        assert engine.trunks.parked_bytes <= 2 * longest
    assert engine.trunks.reuse.parked == 5


def test_a_backend_whose_figures_depend_on_the_cuts_keeps_the_head_alone():
    class Moody(Wary):
        cuts_change_nothing = False

    engine = Engine(Moody(16), HEAD, 10_000)
    assert not engine.trunks.keep(10**9)
    ask(engine, [growing(1, 3)[-1]], ["a"])
    assert engine.trunks.resident == len(HEAD)
    assert not Engine(ToyModel(), HEAD, 10_000).trunks.keep(10**9)


@pytest.mark.parametrize("fails_at", [1, 2, 3, 4])
def test_an_evaluation_that_was_ended_leaves_figures_as_they_were(fails_at):
    engine = Engine(Wary(16), HEAD, 10_000)
    engine.trunks.keep(10**9)
    prompts = growing(1, 4)
    expected = [ask(Engine(Wary(16), HEAD, 10_000), [p], ["a", "b"]) for p in prompts]
    ask(engine, [prompts[0]], ["a", "b"])
    passes = [0]

    def give_up():
        passes[0] += 1
        if passes[0] == fails_at:
            raise InterruptedError

    engine.before_pass = give_up
    with pytest.raises(InterruptedError):
        [ask(engine, [prompts[2]], ["a", "b"]) for _ in range(4)]
    engine.before_pass = lambda: None
    assert [ask(engine, [p], ["a", "b"]) for p in prompts] == expected


class Shelf:
    """Keeps a head as bytes."""

    def __init__(self, state=None):
        self.state, self.loads = state, 0

    def load(self):
        self.loads += 1
        return self.state

    def save(self, state):
        self.state = state


def test_a_head_that_was_kept_from_an_earlier_process_is_not_evaluated_and_gives_the_same_figures():
    prompt, shelf = growing(1, 3)[-1], Shelf()
    first = Engine(Wary(16), HEAD, 10_000)
    first.trunks.head_store = shelf
    expected = ask(first, [prompt], ["a"])
    second = Engine(Wary(16), HEAD, 10_000)
    second.trunks.head_store = shelf
    second.warm_up(1000)
    assert second.backend.work.tokens == 0
    assert ask(second, [prompt], ["a"]) == expected
    assert shelf.loads == 2  # once by each


def test_a_head_that_cannot_be_taken_back_is_evaluated():
    class Refusing(Wary):
        def load_sequence(self, sequence, state):
            return False

    engine = Engine(Refusing(16), HEAD, 10_000)
    engine.trunks.head_store = Shelf(b"of another model")
    engine.warm_up(0)
    assert engine.backend.work.tokens == len(HEAD)
