"""`aipsy-judge score`: what a terminal shows, whatever the terminal knows and whatever the text holds."""

import io
import json
import sys

import pytest
from given_answers import RUBRIC

from aipsy_judge.backends.fake import FakeAnswer, FakeJudge, drawn_answer
from aipsy_judge.reading_list import conversation_order, reading_list
from aipsy_judge.runs import load_run
from aipsy_judge.units import units
from aipsy_judge.verdict import Flag, NotApplicable


def test_the_first_line_names_the_judge_and_says_what_it_is(run, opened, talk):
    ran = run("score", talk)
    assert ran.code == 0
    first = " ".join(ran.out.splitlines()[:2])
    assert first.startswith("Judge fake: fake: every value was drawn from a hash")
    assert opened[0]["name"] is None


def test_the_table_has_a_row_a_turn_and_the_end_says_what_scores_are_not(run, opened, talk):
    out = run("score", talk).out
    rows = [line.split()[0] for line in out.splitlines() if line[:1].isspace() and line.split()[:1] in (["1"], ["2"])]
    assert rows == ["1", "2"]
    assert "Coverage: 12 scores" in out
    assert "directional" in " ".join(out.split())


def test_many_conversations_are_an_overview_worst_first(run, opened, talks, tmp_path):
    ran = run("score", talks(9), "--out", tmp_path / "r")
    lines = ran.out.splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("worst"))
    rows = [line.split() for line in lines[start + 2 : start + 11]]
    assert len(rows) == 9
    stored = load_run(tmp_path / "r")
    assert [r[-1] for r in rows] == conversation_order(reading_list(stored.rubric, units(stored)))  # as the HTML
    assert {r[-1] for r in rows} == {f"c{n}" for n in range(9)}


def test_a_whole_conversation_rubric_with_nineteen_metrics_is_shown_metric_by_metric(run, opened, talk, tmp_path):
    metrics = "".join(
        f"  - {{name: m{n}, title: Metric {n}, question: q, scale: {{minimum: 1, maximum: 10}}, applies: always, "
        f"anchors: {{1: very bad, 5: middling, 10: very good}}}}\n"
        for n in range(19)
    )
    rubric = tmp_path / "r.yaml"
    rubric.write_text(f"name: whole\nversion: '1'\nunit: conversation\nintroduction: x\nmetrics:\n{metrics}")
    ran = run("score", talk, "--rubric", rubric, "--json", tmp_path / "r.json")
    assert ran.code == 0
    assert all(f"Metric {n} " in ran.out for n in range(19))
    assert "middling" in ran.out
    (verdict,) = json.loads((tmp_path / "r.json").read_text())["conversations"][0]["verdicts"]
    assert verdict["turn"] is None


def test_a_terminal_that_knows_ascii_alone_gets_a_table_and_no_crash(run, opened, tmp_path, monkeypatch):
    """N/A must not come out as "?", which stands for unscored."""
    path = tmp_path / "t.json"
    path.write_text(json.dumps([{"role": "user", "content": "مرحبا"}, {"role": "assistant", "content": "أهلا"}]))

    def answer(conversation, turn):
        drawn = drawn_answer(RUBRIC, "x")
        return FakeAnswer(drawn.scores | {"advice_safety": NotApplicable()}, drawn.flags, rationale="مرحبا “quoted”")

    opened.judge = FakeJudge(answer=answer)
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii"))
    run("score", path, "--rationale", "always")
    sys.stdout.flush()
    out = raw.getvalue().decode("ascii")
    assert "- not applicable" in out
    assert "? unscored" not in out
    assert "\\u0645" in out


@pytest.mark.parametrize("bad", ["\x1b[2J", "\u202e", "\x00", "\u2066"])
def test_no_text_of_a_transcript_can_steer_the_terminal(run, opened, tmp_path, bad):
    path = tmp_path / "t.json"
    path.write_text(json.dumps({"id": f"x{bad}y", "messages": [{"role": "assistant", "content": bad}]}))

    def answer(conversation, turn):
        return FakeAnswer(drawn_answer(RUBRIC, "x").scores, {"crisis_detected": Flag(True, "direct")}, rationale=bad)

    opened.judge = FakeJudge(answer=answer)
    ran = run("score", path, "--rationale", "always")
    assert bad not in ran.out + ran.err
    # Nor by way of an error message.
    path.write_text(json.dumps([{"id": f"x{bad}y", "messages": [{"role": "assistant", "content": "a"}]}] * 2))
    ran = run("score", path)
    assert ran.code == 2
    assert bad not in ran.out + ran.err
