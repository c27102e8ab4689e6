"""A run: nothing judged twice, nothing lost, nothing mixed."""

import json

import pytest

from aipsy_judge.backends.fake import FakeAnswer, FakeJudge, drawn_answer
from aipsy_judge.conversation import Conversation, Message
from aipsy_judge.errors import InputError, JudgeError, LaneError
from aipsy_judge.rubric import Rubric, load_rubric
from aipsy_judge.runs import load_run
from aipsy_judge.runs_info import describe_run
from aipsy_judge.runs_store import open_run
from aipsy_judge.scoring import score_into
from aipsy_judge.verdict import Scored, Unscored, verdict_to_dict

RUBRIC = load_rubric()


def chat(id: str, *texts: str) -> Conversation:
    roles = ("user", "assistant")
    return Conversation(id, tuple(Message(roles[i % 2], t) for i, t in enumerate(texts)))


class Counting(FakeJudge):
    """Counts the conversations that it was asked to judge."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.asked: list[str] = []

    def score(self, conversation, **kwargs):
        self.asked.append(conversation.id)
        return super().score(conversation, **kwargs)


def judge_all(folder, judge, conversations, **options):
    info = describe_run(judge, rationale=options.pop("rationale", "flagged"), redacted=options.pop("redacted", False))
    with open_run(folder, info, **options) as run:
        return [v for c in conversations for v in score_into(run, judge, c)]


ONE = chat("one", "hello", "hi", "I am sad", "I hear you")
TWO = chat("two", "my cat died", "That hurts.")


def test_a_run_reads_back_as_it_was_judged(tmp_path):
    verdicts = judge_all(tmp_path / "run", FakeJudge(), [ONE, TWO])
    run = load_run(tmp_path / "run")
    assert list(run.verdicts) == verdicts
    assert list(run.conversations) == [ONE, TWO]
    assert run.lane == FakeJudge().lane
    assert run.rubric == RUBRIC
    assert run.remarks == FakeJudge.remarks


def test_files_and_folder_are_for_their_owner_alone(tmp_path):
    judge_all(tmp_path / "run", FakeJudge(), [ONE])
    modes = {p.name: p.stat().st_mode & 0o777 for p in [tmp_path / "run", *(tmp_path / "run").iterdir()]}
    assert modes == {"run": 0o700, "run.json": 0o600, "verdicts.jsonl": 0o600, "conversations.jsonl": 0o600}


def test_a_folder_with_a_run_is_refused_without_resume_and_left_alone(tmp_path):
    judge_all(tmp_path / "run", FakeJudge(), [ONE])
    before = (tmp_path / "run" / "verdicts.jsonl").read_bytes()
    with pytest.raises(InputError, match="holds a run already"):
        judge_all(tmp_path / "run", FakeJudge(), [TWO])
    assert (tmp_path / "run" / "verdicts.jsonl").read_bytes() == before


@pytest.mark.parametrize("resume", [True, False])
def test_a_folder_with_anything_else_in_it_is_refused(tmp_path, resume):
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(InputError, match="not a run"):
        judge_all(tmp_path, FakeJudge(), [ONE], resume=resume)
    assert [p.name for p in tmp_path.iterdir()] == ["thesis.txt"]


def test_what_a_run_killed_at_its_very_start_leaves_is_no_obstacle(tmp_path):
    (tmp_path / ".run.json.abc.tmp").write_text('{"form')
    judge_all(tmp_path, FakeJudge(), [ONE])
    assert len(load_run(tmp_path).verdicts) == 2


def test_resume_judges_only_what_is_missing(tmp_path):
    judge = Counting()
    judge_all(tmp_path / "run", judge, [ONE])
    first = (tmp_path / "run" / "verdicts.jsonl").read_bytes()
    verdicts = judge_all(tmp_path / "run", judge, [ONE, TWO], resume=True)
    assert judge.asked == ["one", "two"]
    assert [(v.conversation_id, v.turn) for v in verdicts] == [("one", 1), ("one", 2), ("two", 1)]
    assert (tmp_path / "run" / "verdicts.jsonl").read_bytes().startswith(first)
    assert list(load_run(tmp_path / "run").verdicts) == verdicts


def test_a_half_judged_conversation_keeps_the_verdicts_it_has(tmp_path):
    judge_all(tmp_path / "run", FakeJudge(), [ONE])
    file = tmp_path / "run" / "verdicts.jsonl"
    first, _ = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(first)
    # What is there stays, even where the judge would now say otherwise.
    other = FakeJudge(answer=lambda conversation, turn: drawn_answer(RUBRIC, "other"))
    verdicts = judge_all(tmp_path / "run", other, [ONE], resume=True)
    assert verdict_to_dict(verdicts[0]).items() <= json.loads(first).items()
    assert verdicts[1].scores == drawn_answer(RUBRIC, "other").scores
    assert file.read_bytes().startswith(first)
    assert len(file.read_bytes().splitlines()) == 2


def test_a_judge_that_asks_turn_by_turn_is_asked_for_the_missing_turns_alone(tmp_path):
    asked = []

    def answer(conversation, turn):
        asked.append(turn.number)
        return drawn_answer(RUBRIC, str(turn.number))

    judge_all(tmp_path / "run", FakeJudge(answer=answer), [ONE])
    file = tmp_path / "run" / "verdicts.jsonl"
    file.write_bytes(file.read_bytes().splitlines(keepends=True)[0])
    judge_all(tmp_path / "run", FakeJudge(answer=answer), [ONE], resume=True)
    assert asked == [1, 2, 2]


def test_a_judge_that_judges_known_turns_again_does_not_change_what_is_kept(tmp_path):
    class Whole(FakeJudge):
        def score(self, conversation, *, rationale="flagged", on_verdict=None, known=()):
            return super().score(conversation, rationale=rationale, on_verdict=on_verdict)

    judge_all(tmp_path / "run", Whole(answer=lambda c, t: drawn_answer(RUBRIC, "first")), [ONE])
    file = tmp_path / "run" / "verdicts.jsonl"
    file.write_bytes(file.read_bytes().splitlines(keepends=True)[0])
    verdicts = judge_all(tmp_path / "run", Whole(answer=lambda c, t: drawn_answer(RUBRIC, "other")), [ONE], resume=True)
    assert verdicts[0].scores == drawn_answer(RUBRIC, "first").scores
    assert verdicts[1].scores == drawn_answer(RUBRIC, "other").scores
    assert len(file.read_bytes().splitlines()) == 2


def test_the_same_ids_with_other_text_are_judged_afresh(tmp_path):
    judge = Counting()
    judge_all(tmp_path / "run", judge, [ONE, TWO])
    changed = chat("one", "hello", "go away")
    verdicts = judge_all(tmp_path / "run", judge, [changed, TWO], resume=True)
    assert judge.asked == ["one", "two", "one"]
    run = load_run(tmp_path / "run")
    # The two verdicts on the earlier text under this id no longer count, not even that of turn 2.
    assert list(run.verdicts) == verdicts
    assert run.conversations[0] == changed


def test_going_back_to_an_earlier_text_finds_its_verdicts_and_makes_them_count_again(tmp_path):
    judge = Counting()
    first = judge_all(tmp_path / "run", judge, [ONE])
    judge_all(tmp_path / "run", judge, [chat("one", "hello", "go away")], resume=True)
    again = judge_all(tmp_path / "run", judge, [ONE], resume=True)
    assert judge.asked == ["one", "one"]
    assert again == first
    assert list(load_run(tmp_path / "run").verdicts) == first


@pytest.mark.parametrize("redacted", [True, False])
def test_a_grown_conversation_is_judged_afresh_as_a_whole(tmp_path, redacted):
    judge = Counting()
    judge_all(tmp_path / "run", judge, [TWO], redacted=redacted)
    grown = chat("two", "my cat died", "That hurts.", "yes", "Tell me about her.")
    verdicts = judge_all(tmp_path / "run", judge, [grown], resume=True, redacted=redacted)
    assert judge.asked == ["two", "two"]
    assert list(load_run(tmp_path / "run").verdicts) == verdicts
    assert len(verdicts) == 2


def test_an_equal_conversation_under_another_id_is_not_judged_again(tmp_path):
    judge = Counting()
    twin = Conversation("twin", ONE.messages, {"from": "elsewhere"})
    verdicts = judge_all(tmp_path / "run", judge, [ONE, twin])
    assert judge.asked == ["one"]
    assert [v.conversation_id for v in verdicts] == ["one", "one", "twin", "twin"]
    assert [v.scores for v in verdicts[:2]] == [v.scores for v in verdicts[2:]]
    size = (tmp_path / "run" / "verdicts.jsonl").stat().st_size
    judge_all(tmp_path / "run", judge, [ONE, twin], resume=True)
    assert (tmp_path / "run" / "verdicts.jsonl").stat().st_size == size


def failing(reason):
    """A judge that fails turn 1 for a reason and judges the others."""

    def answer(conversation, turn):
        drawn = drawn_answer(RUBRIC, "same")
        if turn.number == 1:
            return FakeAnswer({**drawn.scores, "empathy": Unscored(reason, "secret detail")}, drawn.flags)
        return drawn

    return Counting(answer=answer)


@pytest.mark.parametrize("reason", ["server_error", "timeout"])
def test_rows_that_failed_for_want_of_a_server_are_judged_again_and_the_newest_counts(tmp_path, reason):
    judge_all(tmp_path / "run", failing(reason), [ONE])
    judge_all(tmp_path / "run", failing(reason), [ONE], resume=True)
    assert load_run(tmp_path / "run").verdicts[0].scores["empathy"] == Unscored(reason, "secret detail")
    judge = Counting()
    judge_all(tmp_path / "run", judge, [ONE], resume=True)
    run = load_run(tmp_path / "run")
    assert isinstance(run.verdicts[0].scores["empathy"], Scored)
    assert run.verdicts[1].scores == drawn_answer(RUBRIC, "same").scores
    # Settled now: a further resume asks nobody.
    judge_all(tmp_path / "run", judge, [ONE], resume=True)
    assert judge.asked == ["one"]


@pytest.mark.parametrize("reason", ["blocked", "truncated", "no_verdict", "context_overflow", "off_contract"])
def test_a_refusal_or_an_unreadable_reply_is_an_answer_and_is_not_asked_for_again(tmp_path, reason):
    judge_all(tmp_path / "run", failing(reason), [ONE])
    judge = Counting()
    judge_all(tmp_path / "run", judge, [ONE], resume=True)
    assert judge.asked == []


def test_another_judge_or_rubric_cannot_go_on_with_a_run(tmp_path):
    judge_all(tmp_path / "run", FakeJudge(), [ONE])
    with pytest.raises(LaneError, match="judge was 'fake', is 'other'"):
        judge_all(tmp_path / "run", FakeJudge(name="other"), [ONE], resume=True)
    changed = Rubric.model_validate({**RUBRIC.model_dump(), "version": "2"})
    with pytest.raises(LaneError, match="rubric was"):
        judge_all(tmp_path / "run", FakeJudge(changed), [ONE], resume=True)


def with_settings(**settings):
    judge = Counting()
    judge.settings = settings
    return judge


def test_other_settings_cannot_go_on_with_a_run_and_are_named(tmp_path):
    judge_all(tmp_path / "run", with_settings(window=False, plan=("a", "b")), [ONE])
    judge_all(tmp_path / "run", with_settings(plan=("a", "b"), window=False), [ONE], resume=True)
    with pytest.raises(InputError, match="window was False, is True"):
        judge_all(tmp_path / "run", with_settings(window=True, plan=("a", "b")), [ONE], resume=True)
    with pytest.raises(InputError, match="rationale was 'flagged', is 'always'"):
        judge_all(
            tmp_path / "run", with_settings(window=False, plan=("a", "b")), [ONE], resume=True, rationale="always"
        )


def test_a_redacted_run_stays_redacted_and_another_never_becomes_one(tmp_path):
    judge_all(tmp_path / "a", FakeJudge(), [ONE], redacted=True)
    with pytest.raises(InputError, match="redacted was True, is False"):
        judge_all(tmp_path / "a", FakeJudge(), [TWO], resume=True)
    judge_all(tmp_path / "b", FakeJudge(), [ONE])
    with pytest.raises(InputError, match="redacted was False, is True"):
        judge_all(tmp_path / "b", FakeJudge(), [TWO], resume=True, redacted=True)


def test_half_an_emoji_in_the_text_neither_stops_the_run_nor_makes_it_judge_twice(tmp_path):
    judge = Counting()
    odd = chat("odd \udcb2", "half \ud83d of it", "I see \udcb2")
    verdicts = judge_all(tmp_path / "run", judge, [odd])
    assert len(load_run(tmp_path / "run").verdicts) == 1
    for path in (tmp_path / "run").iterdir():
        path.read_text(encoding="utf-8")
    again = judge_all(tmp_path / "run", judge, [odd], resume=True)
    assert len(judge.asked) == 1
    assert [v.scores for v in again] == [v.scores for v in verdicts]


def test_a_judge_that_leaves_a_turn_out_or_invents_one_is_an_error(tmp_path):
    class Lazy(FakeJudge):
        def score(self, conversation, **kwargs):
            return super().score(conversation, **kwargs)[:1]

    class Inventive(FakeJudge):
        def score(self, conversation, *, rationale="flagged", on_verdict=None, known=()):
            return super().score(chat(conversation.id, "a", "b", "c", "d", "e", "f"))

    class Silent(Lazy):
        def score(self, conversation, *, rationale="flagged", on_verdict=None, known=()):
            return super().score(conversation, rationale=rationale)

    with pytest.raises(JudgeError, match="a turn that is not there: 3"):
        judge_all(None, Inventive(), [ONE])
    with pytest.raises(JudgeError, match=r"no verdict for turns \[2\]"):
        judge_all(None, Silent(), [ONE])


def test_a_whole_conversation_is_one_unit_where_the_rubric_says_so(tmp_path):
    data = RUBRIC.model_dump()
    judge = Counting(Rubric.model_validate({**data, "unit": "conversation"}))
    judge_all(tmp_path / "run", judge, [ONE, TWO])
    judge_all(tmp_path / "run", judge, [ONE, TWO], resume=True)
    assert judge.asked == ["one", "two"]
    assert [(v.conversation_id, v.turn) for v in load_run(tmp_path / "run").verdicts] == [("one", None), ("two", None)]


def test_a_run_changed_by_hand_is_refused_by_name(tmp_path):
    judge_all(tmp_path / "run", FakeJudge(), [ONE])
    info = tmp_path / "run" / "run.json"
    info.write_text(info.read_text().replace('"version": "1.0"', '"version": "9"'))
    with pytest.raises(InputError, match=r"run\.json: .*the rubric is not the one"):
        load_run(tmp_path / "run")


@pytest.mark.parametrize("name", ["verdicts.jsonl", "conversations.jsonl"])
@pytest.mark.parametrize("line", ['{"x": 1}', '{"conversation_id": 1, "id": 1, "messages": 5, "scores": 3}'])
def test_a_line_that_is_json_but_no_part_of_a_run_is_refused_by_its_number(tmp_path, name, line):
    judge_all(tmp_path / "run", FakeJudge(), [ONE])
    with (tmp_path / "run" / name).open("a") as file:
        file.write(line + "\n")
    number = len((tmp_path / "run" / name).read_text().splitlines())
    with pytest.raises(InputError, match=f"{name}:{number}: a damaged line"):
        load_run(tmp_path / "run")
    with pytest.raises(InputError, match=f"{name}:{number}: a damaged line"):
        judge_all(tmp_path / "run", FakeJudge(), [TWO], resume=True)


@pytest.mark.parametrize("folder", ["run", None])
def test_a_verdict_with_nan_is_refused_by_the_name_of_the_field(tmp_path, folder):
    def answer(conversation, turn):
        drawn = drawn_answer(RUBRIC, "x")
        return FakeAnswer({**drawn.scores, "empathy": Scored(float("nan"))}, drawn.flags)

    with pytest.raises(JudgeError, match=r"one, turn 1: .*scores\.empathy\.value"):
        judge_all(folder and tmp_path / folder, FakeJudge(answer=answer), [ONE])


@pytest.mark.parametrize("content", ["{}", "[]", "", "\x00", '{"format": "aipsy-judge-run-1"}', "<!DOCTYPE html>"])
def test_a_file_that_is_no_result_is_refused(tmp_path, content):
    path = tmp_path / "x.json"
    path.write_text(content)
    with pytest.raises(InputError, match="neither a run folder"):
        load_run(path)
