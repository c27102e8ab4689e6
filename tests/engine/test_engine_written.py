"""An answer that is known is written in the tokens in which it would be read."""

from __future__ import annotations

import numpy as np
import pytest
from test_engine_reading import FORM, legal_answers, parse
from toy_model import ToyModel

from aipsy_judge.answer import AnswerForm, Option, Slot
from aipsy_judge.engine.choice import Vocabulary
from aipsy_judge.engine.slots import AnswerReader


def reader(model: ToyModel, form: AnswerForm) -> AnswerReader:
    return AnswerReader(form, lambda t: model.tokenize(t, special=False), Vocabulary(model.vocabulary))


def read(model: ToyModel, form: AnswerForm, wanted: dict[str, str]) -> tuple[int, ...]:
    """All tokens fed while a model is read that always wants the usual token of `wanted`'s option next."""
    reading, fed = reader(model, form), list[int]()
    while not reading.done:
        choice = reading.open_slot
        assert choice is not None
        way = [token for token, _ in choice.way(wanted[choice.slot.name])]
        start = len(reading.request().feed) + len(fed)
        while reading.open_slot is choice:
            request = reading.request()
            fed += request.feed
            ahead = way[len(fed) - start :]

            def logits(token: int) -> np.ndarray:
                row = np.zeros(len(model.vocabulary), dtype=np.float32)
                row[token] = 9.0
                return row

            probed = [logits(way[len(p)] if tuple(way[: len(p)]) == p else 0) for p in request.probes]
            reading.take(logits(ahead[0]), probed)
    assert reading.labels == wanted
    return (*fed, *reading.tail())


def test_every_legal_answer_is_written_as_it_is_read() -> None:
    model = ToyModel()
    answers = [parse(FORM, a) for a in legal_answers(FORM)]
    assert len(answers) > 50
    for labels in answers:
        writing = reader(model, FORM)
        while not writing.done:
            assert writing.open_slot is not None
            before = writing.tokens
            writing.choose(labels[writing.open_slot.slot.name])
            assert writing.tokens[: len(before)] == before
        assert writing.labels == labels
        assert writing.answer() == FORM.render(labels)
        assert writing.tokens == read(model, FORM, labels)


def test_a_way_tells_tokens_that_are_chosen_from_those_taken_unread() -> None:
    # spelled  "in" + ","   |  "indirect" + ","  |  i n g ,  : the toy model's words are in, indirect, single bytes
    model = ToyModel()
    form = AnswerForm(("x", Slot("s", tuple(Option(t, t) for t in ("1", "100", "101"))), ","))
    choice = reader(model, form).open_slot
    assert choice is not None
    # "1" could go on to all three; "10" leaves two, whose usual spelling shares nothing more
    assert [(model.vocabulary[t], chosen) for t, chosen in choice.way("1")] == [(b"1", True), (b",", True)]
    assert [(model.vocabulary[t], chosen) for t, chosen in choice.way("101")] == [(b"10", True), (b"1", True)]
    form = AnswerForm(("x", Slot("s", tuple(Option(t, t) for t in ("zzza", "zzzb", "q"))), ","))
    choice = reader(model, form).open_slot
    assert choice is not None
    assert [c for _, c in choice.way("zzzb")] == [True, False, False, True]
    assert [c for _, c in choice.way("q")] == [True]


def test_what_is_not_legal_cannot_be_chosen() -> None:
    writing = reader(ToyModel(), FORM)
    with pytest.raises(ValueError, match="maybe"):
        writing.choose("maybe")
    writing.choose("false")
    assert writing.labels == {"crisis": "false", "severity": "none"}
