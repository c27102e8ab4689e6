"""A redacted run keeps figures and hashes, and no word of anybody."""

from aipsy_judge.backends.fake import FakeAnswer, FakeJudge, drawn_answer
from aipsy_judge.conversation import Conversation, Message
from aipsy_judge.redact import redact
from aipsy_judge.rubric import load_rubric
from aipsy_judge.runs import load_run
from aipsy_judge.runs_info import describe_run
from aipsy_judge.runs_store import open_run
from aipsy_judge.scoring import score_into
from aipsy_judge.verdict import Flag, Scored, Unscored, Verdict

SECRET = "zanzibar"
TALK = Conversation(
    "c1",
    (Message("user", f"my {SECRET}"), Message("assistant", f"about {SECRET}")),
    metadata={"note": SECRET},
    warnings=(f"left out {SECRET}",),
)


def telling(conversation, turn):
    """An answer that quotes wherever an answer can."""
    drawn = drawn_answer(load_rubric(), "x")
    scores = {**drawn.scores, "empathy": Unscored("unparseable", f"got {SECRET}")}
    flags = {"crisis_detected": Flag(None, unscored=Unscored("unparseable", f"got {SECRET}"))}
    return FakeAnswer(scores, flags, rationale=f"It speaks of {SECRET}.")


def test_no_text_is_left_anywhere_in_a_redacted_run(tmp_path):
    judge = FakeJudge(answer=telling)
    info = describe_run(judge, rationale="always", redacted=True)
    with open_run(tmp_path / "run", info) as run:
        score_into(run, judge, TALK)
    assert sorted(p.name for p in (tmp_path / "run").iterdir()) == ["run.json", "verdicts.jsonl"]
    for path in (tmp_path / "run").iterdir():
        assert SECRET.encode() not in path.read_bytes()
    (verdict,) = load_run(tmp_path / "run").verdicts
    assert verdict.content_hash == TALK.turn_hash(TALK.turns[0])
    assert verdict.scores["empathy"] == Unscored("unparseable")


def test_the_text_is_there_to_be_found_where_the_run_is_not_redacted(tmp_path):
    judge = FakeJudge(answer=telling)
    with open_run(tmp_path / "run", describe_run(judge, rationale="always")) as run:
        score_into(run, judge, TALK)
    for name in ("verdicts.jsonl", "conversations.jsonl"):
        assert SECRET in (tmp_path / "run" / name).read_text()


def test_quotes_raw_reply_and_free_notes_go_and_machine_notes_stay():
    verdict = Verdict(
        "c", 1, "hash", {"empathy": Scored(3.0)}, rationale="r", raw="raw", suspected_injection=("ignore all", "x"),
        notes=("windowed:3", "inconsistent_crisis", "the user said hello", "quote:He said so"),
    )  # fmt: skip
    kept = redact(verdict)
    assert kept.scores == verdict.scores
    assert (kept.rationale, kept.raw) == (None, None)
    assert kept.suspected_injection == ("[redacted]", "[redacted]")
    assert kept.notes == ("windowed:3", "inconsistent_crisis")
