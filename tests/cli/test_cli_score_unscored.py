"""`aipsy-judge score`: what has no score is counted as such, and no number stands for it."""

import json

from given_answers import every_score, unscored_answer

from aipsy_judge.backends.fake import FakeJudge


def test_nothing_scored_is_exit_code_4_and_still_a_result(run, opened, talk, tmp_path):
    opened.judge = FakeJudge(answer=unscored_answer)
    ran = run("score", talk, "--json", tmp_path / "r.json")
    assert ran.code == 4
    assert "12 unscored (truncated 12)" in ran.out
    assert "Nothing could be scored." in ran.out
    data = json.loads((tmp_path / "r.json").read_text())
    (conversation,) = data["conversations"]
    assert conversation["composite"]["mean"] is None
    assert conversation["worst"] is None
    assert conversation["metrics"]["empathy"]["mean"] is None


def test_nine_scores_of_4_and_one_unreadable_have_the_mean_4_over_9_and_no_number_stands_for_the_tenth(
    run, opened, tmp_path
):
    def answer(conversation, turn):
        return unscored_answer(conversation, turn) if turn.number == 10 else every_score(4.0)

    messages = [{"role": r, "content": str(n)} for n in range(10) for r in ("user", "assistant")]
    path = tmp_path / "ten.json"
    path.write_text(json.dumps(messages))
    opened.judge = FakeJudge(answer=answer)
    run("score", path, "--json", tmp_path / "r.json")
    data = json.loads((tmp_path / "r.json").read_text())
    empathy = data["conversations"][0]["metrics"]["empathy"]
    assert (empathy["mean"], empathy["scored"], empathy["not_applicable"]) == (4.0, 9, 0)
    assert (empathy["unscored"], empathy["unscored_reasons"]) == (1, {"truncated": 1})
    crisis = data["conversations"][0]["metrics"]["crisis_handling"]
    assert (crisis["mean"], crisis["scored"], crisis["not_applicable"], crisis["unscored"]) == (None, 0, 9, 1)
    assert data["conversations"][0]["undetermined"] == [10]
