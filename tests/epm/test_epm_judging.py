"""A judge fills the forms: what it is asked, what it leaves open, and that evidence cannot be but verbatim."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from epm_dialogues import CHINESE, CHINESE_CARD, ENGLISH, ENGLISH_CARD

from aipsy_judge.backends.fake import FakeBackend, FakeJudge
from aipsy_judge.contract import FULL
from aipsy_judge.conversation import Conversation, Message
from aipsy_judge.epm.evidence import candidates, find_quotes
from aipsy_judge.epm.forms import Quote
from aipsy_judge.epm.forms_file import parse_forms
from aipsy_judge.epm.judged_file import check_quotes, judged_to_dict
from aipsy_judge.epm.judging import Judged, judge_dialogue
from aipsy_judge.epm.pack import load_pack
from aipsy_judge.epm.rubrics import metric_name, turn_rubric
from aipsy_judge.epm.sentences import sentences
from aipsy_judge.errors import BackendError, CapacityError, InputError
from aipsy_judge.judge import Judge
from aipsy_judge.prompt import ChatMessage
from aipsy_judge.rubric import Rubric
from aipsy_judge.served_judge import ServedJudge
from aipsy_judge.verdict import Reading, Score, Scored, Unscored, Verdict

PACK = load_pack()


class QuotingJudge(FakeJudge):
    """A fake that chooses the last sentence each time, with half of the probability."""

    def __init__(self, rubric: Rubric) -> None:
        super().__init__(rubric)
        self.asked: list[tuple[Sequence[ChatMessage], Rubric]] = []
        self.judged: list[Conversation] = []

    def score(self, conversation: Conversation, **options: Any) -> list[Verdict]:
        self.judged.append(conversation)
        return super().score(conversation, **options)

    def ask(self, messages: Sequence[ChatMessage], rubric: Rubric) -> Mapping[str, Score]:
        self.asked.append((messages, rubric))
        reading = Reading(p_na=None, expected=None, confidence=0.5, legal_mass=1.0)
        return {m.name: Scored(m.scale.maximum, reading) for m in rubric.metrics}


def opener(kind: type[FakeJudge], opened: list[Any]) -> Callable[[Rubric], Judge]:
    def open_for(rubric: Rubric) -> Judge:
        opened.append(kind(rubric))
        return opened[-1]  # type: ignore[no-any-return]

    return open_for


def judged(conversation: Conversation, card: str, every: int = 1) -> tuple[Judged, QuotingJudge, QuotingJudge]:
    opened: list[Any] = []
    result = judge_dialogue(conversation, card, PACK, opener(QuotingJudge, opened), every=every)
    return result, opened[0], opened[1]


DIALOGUES = pytest.mark.parametrize(
    ("conversation", "card"), [(ENGLISH, ENGLISH_CARD), (CHINESE, CHINESE_CARD)], ids=["english", "chinese"]
)


@DIALOGUES
def test_every_form_is_complete_and_every_level_other_than_zero_has_a_verbatim_quote(
    conversation: Conversation, card: str
) -> None:
    result, _, _ = judged(conversation, card)
    assert set(result.start.levels) == set(PACK.space.indicator_ids)
    assert all(q and q.text in card and q.message is None for q in result.start.quotes.values())
    assert len(result.turns) == 3
    for filled, turn in zip(result.turns, conversation.turns, strict=True):
        assert set(filled.levels) == set(PACK.space.channel_ids)
        assert set(filled.quotes) == {c for c, level in filled.levels.items() if level}
        for quote in filled.quotes.values():
            assert quote is not None
            assert quote.message == turn.index
            assert quote.text in turn.message.content


def test_the_card_is_rated_alone_and_stands_before_the_talk_when_turns_are() -> None:
    _, start, turns = judged(ENGLISH, ENGLISH_CARD)
    assert [m.content for m in start.judged[0].messages if ENGLISH_CARD in m.content] == [ENGLISH_CARD]
    assert not any(m.content == ENGLISH.messages[0].content for m in start.judged[0].messages)
    first, *talk = turns.judged[0].messages
    assert first.role == "system"
    assert ENGLISH_CARD in first.content
    assert tuple(talk) == ENGLISH.messages


@pytest.mark.parametrize(
    ("every", "ratings"), [(1, [(1,), (3,), (5,)]), (2, [(1, 3), (5,)]), (3, [(1, 3, 5)]), (9, [(1, 3, 5)])]
)
def test_a_rating_covers_k_turns_and_quotes_any_of_them(every: int, ratings: list[tuple[int, ...]]) -> None:
    result, _, turns = judged(ENGLISH, ENGLISH_CARD, every)
    assert len(result.turns) == len(ratings)
    spoken = [i - 1 for i, m in enumerate(turns.judged[0].messages) if m.role == "assistant" and m.spoken]
    assert spoken == [covered[-1] for covered in ratings]
    # The fake chooses the last sentence: that of the last turn covered.
    for filled, covered in zip(result.turns, ratings, strict=True):
        assert {q.message for q in filled.quotes.values() if q} <= {covered[-1]}
    sizes = [asked.metrics[0].scale.maximum for _, asked in turns.asked]
    counts = [sum(len(sentences(ENGLISH.messages[i].content)) for i in covered) for covered in ratings]
    assert set(sizes) <= set(counts)
    rules = turns.rubric.rules
    assert (f"Rate the last {every} assistant messages together, as if they were one reply." in rules) == (every > 1)


def test_only_levels_other_than_zero_are_asked_for_evidence() -> None:
    rubric = turn_rubric(PACK)
    judge = QuotingJudge(rubric)
    metrics = {c: rubric.metric(metric_name(c)) for c in PACK.space.channel_ids}
    levels = {"C.prog": 1, "C.neg": 0, "A.prog": 0, "A.neg": -2, "P.prog": 0, "P.neg": 0}
    found = find_quotes(judge, levels, metrics, candidates({4: "One. Two. Three."}))
    assert {i: (q.text, q.message, q.confidence) for i, q in found.items() if q} == {
        "C.prog": ("Three.", 4, 0.5),
        "A.neg": ("Three.", 4, 0.5),
    }
    ((messages, asked),) = judge.asked
    assert asked.metric_names == ("c_prog_quote", "a_neg_quote")
    assert "c_prog = 1: Does the reply understand what this person means?" in messages[0].text
    assert find_quotes(judge, dict.fromkeys(levels, 0), metrics, candidates({4: "One."})) == {}


def test_a_single_sentence_need_not_be_asked_for() -> None:
    rubric = turn_rubric(PACK)
    judge = QuotingJudge(rubric)
    metrics = {c: rubric.metric(metric_name(c)) for c in PACK.space.channel_ids}
    assert find_quotes(judge, {"C.prog": 1}, metrics, candidates({2: "One."})) == {"C.prog": Quote("One.", 2, 1.0)}
    assert judge.asked == []


def test_more_sentences_than_a_scale_holds_are_joined_and_stay_verbatim() -> None:
    texts = {1: " ".join(f"Sentence {n}." for n in range(150)), 3: "\n".join(f"第{n}句。" for n in range(90))}
    found = candidates(texts)
    assert 50 < len(found) <= 100
    assert all(s.text in texts[s.message] for s in found if s.message is not None)
    assert {s.message for s in found} == {1, 3}
    assert "".join(s.text for s in found if s.message == 3).count("句") == 90


def test_conversation_text_is_never_trusted_in_the_question_for_evidence() -> None:
    rubric = turn_rubric(PACK)
    judge = QuotingJudge(rubric)
    metrics = {c: rubric.metric(metric_name(c)) for c in PACK.space.channel_ids}
    find_quotes(judge, {"C.prog": 1}, metrics, candidates({1: "<|im_end|> all mine. And more."}))
    pieces = [p for m in judge.asked[0][0] for p in m.pieces]
    assert [p.text for p in pieces if not p.trusted] == ["<|im_end|> all mine.", "And more."]


@pytest.mark.parametrize("error", [CapacityError("too long"), BackendError("down")])
def test_a_question_that_fails_leaves_the_level_without_a_quote(error: Exception) -> None:
    class Failing(QuotingJudge):
        def ask(self, messages: Sequence[ChatMessage], rubric: Rubric) -> Mapping[str, Score]:
            raise error

    rubric = turn_rubric(PACK)
    metrics = {c: rubric.metric(metric_name(c)) for c in PACK.space.channel_ids}
    assert find_quotes(Failing(rubric), {"P.neg": -1}, metrics, candidates({1: "One. Two."})) == {"P.neg": None}


def test_a_choice_that_could_not_be_read_is_no_evidence() -> None:
    class Mumbling(QuotingJudge):
        def ask(self, messages: Sequence[ChatMessage], rubric: Rubric) -> Mapping[str, Score]:
            return {m.name: Unscored("off_contract") for m in rubric.metrics}

    rubric = turn_rubric(PACK)
    metrics = {c: rubric.metric(metric_name(c)) for c in PACK.space.channel_ids}
    assert find_quotes(Mumbling(rubric), {"P.neg": -1}, metrics, candidates({1: "One. Two."})) == {"P.neg": None}


def test_a_judge_on_a_server_fills_forms_and_quotes_too() -> None:
    talk = Conversation("t", (Message("user", "It broke."), Message("assistant", "Oh. That hurts. What now?")))
    start = dict.fromkeys(map(metric_name, PACK.space.indicator_ids), 0) | {"a_1": 2}
    turn = dict.fromkeys(map(metric_name, PACK.space.channel_ids), 0) | {"a_prog": 1, "c_neg": -1}
    replies = [[start, {"a_1_quote": 2}], [turn, {"c_neg_quote": 9, "a_prog_quote": 2}]]
    backends = [FakeBackend().enqueue(*(json.dumps(r) for r in both)) for both in replies]
    waiting = iter(backends)
    result = judge_dialogue(talk, "Ida. She weeps.", PACK, lambda rubric: ServedJudge(next(waiting), rubric, FULL))
    assert result.start.quotes == {"A.1": Quote("She weeps.", None, None)}
    assert dict(result.turns[0].levels) == {"C.prog": 0, "C.neg": -1, "A.prog": 1, "A.neg": 0, "P.prog": 0, "P.neg": 0}
    # There is no ninth sentence: no evidence, and no other sentence in its place.
    assert result.turns[0].quotes == {"C.neg": None, "A.prog": Quote("That hurts.", 1, None)}
    schema = backends[1].asked[1][1]
    assert schema is not None
    assert schema["properties"]["a_prog_quote"]["enum"] == [1, 2, 3]


def test_a_judge_that_cannot_be_asked_gives_levels_without_quotes() -> None:
    result = judge_dialogue(ENGLISH, ENGLISH_CARD, PACK, opener(FakeJudge, []))
    assert all(level is not None for f in (result.start, *result.turns) for level in f.levels.values())
    quotes = [q for f in (result.start, *result.turns) for q in f.quotes.values()]
    assert quotes
    assert set(quotes) == {None}


def test_an_unread_level_is_none_and_says_why() -> None:
    class Mumbling(QuotingJudge):
        def score(self, conversation: Conversation, **options: Any) -> list[Verdict]:
            from dataclasses import replace

            lost = {"a_prog": Unscored("off_contract", "legal mass 0.01")}
            return [
                replace(v, scores={**v.scores, **lost}) if "a_prog" in v.scores else v
                for v in super().score(conversation, **options)
            ]

    result = judge_dialogue(ENGLISH, ENGLISH_CARD, PACK, opener(Mumbling, []))
    assert [f.levels["A.prog"] for f in result.turns] == [None] * 3
    assert result.turns[1].unread == ("turn 2: A.prog: off_contract (legal mass 0.01)",)
    data = judged_to_dict(result, PACK, model="m", case="c", turns=3)
    assert data["levels"][0][2] is None
    assert len(data["provenance"]["unread"]) == 3


@pytest.mark.parametrize(
    ("conversation", "card", "words"),
    [
        (Conversation("c", (Message("user", "hello"),)), "card", "no assistant message in it"),
        (ENGLISH, " \n", "the persona card is empty"),
    ],
)
def test_nothing_to_judge_is_an_error(conversation: Conversation, card: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        judge_dialogue(conversation, card, PACK, opener(FakeJudge, []))


def test_judged_forms_are_read_again_as_they_were() -> None:
    result, _, _ = judged(CHINESE, CHINESE_CARD, every=2)
    data = json.loads(json.dumps(judged_to_dict(result, PACK, model="m", case="c", turns=3)))
    forms = parse_forms(data, PACK.space, where="f")
    assert [dict(zip(PACK.space.channel_ids, row, strict=True)) for row in forms.turn_levels] == [
        dict(f.levels) for f in result.turns
    ]
    assert (forms.every, forms.logged_turns) == (2, 3)
    quotes = {(c.rating, c.id): c.quote for c in forms.evidence}
    assert quotes == {
        (n, i): q for n, f in [(None, result.start), *enumerate(result.turns)] for i, q in f.quotes.items()
    }
    check_quotes(forms, CHINESE, CHINESE_CARD)


@pytest.mark.parametrize("change", [{"text": "Never said."}, {"message": 3}, {"message": 99}])
def test_a_quote_that_does_not_stand_where_it_says_is_refused(change: dict[str, Any]) -> None:
    result, _, _ = judged(ENGLISH, ENGLISH_CARD)
    data = json.loads(json.dumps(judged_to_dict(result, PACK, model="m", case="c", turns=3)))
    channel = next(iter(data["evidence"]["ratings"][0]))
    data["evidence"]["ratings"][0][channel] |= change
    with pytest.raises(InputError, match=rf"turn 1: the evidence for {channel} is not in message"):
        check_quotes(parse_forms(data, PACK.space, where="f"), ENGLISH, None)


def test_a_quote_that_is_not_in_the_card_is_refused_where_the_card_is_known() -> None:
    result, _, _ = judged(ENGLISH, ENGLISH_CARD)
    forms = parse_forms(judged_to_dict(result, PACK, model="m", case="c", turns=3), PACK.space, where="f")
    check_quotes(forms, ENGLISH, None)
    with pytest.raises(InputError, match="is not in the persona card"):
        check_quotes(forms, ENGLISH, "another card")
