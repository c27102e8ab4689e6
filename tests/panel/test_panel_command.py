"""The command over real connections: two scripted servers on this machine and the stand-in judge."""

import csv
import json
import re

import pytest
from loopback_server import completion, error, serving
from panel_setup import (
    RUBRIC,
    blocks_crises,
    conversation,
    judge_at,
    lenient,
    reply,
    strict,
    write_talks,
)

from aipsy_judge.competence.families import family_of
from aipsy_judge.ratings import load_ratings, read_ratings
from aipsy_judge.runs import load_run


@pytest.fixture
def talks(tmp_path):
    return write_talks(tmp_path / "talks.jsonl", [conversation(n, crisis=n == 1, turns=2) for n in range(4)])


def panel_of(*judges):
    return [word for judge in judges for word in ("--judge", judge)]


def test_all_judges_rate_the_same_items_each_in_a_run_of_its_own(run, talks, tmp_path):
    with serving(strict) as (a, url_a), serving(lenient) as (b, url_b):
        names = [judge_at(url_a, "strict"), judge_at(url_b, "lenient"), "fake"]
        ran = run("panel", talks, *panel_of(*names), "--out", tmp_path / "p", "--json", tmp_path / "r.json")
    assert ran.code == 0, ran.err
    assert (len(a.asked), len(b.asked)) == (8, 8)
    ratings = read_ratings(tmp_path / "p" / "ratings.csv")
    assert ratings.judges == tuple(names)
    matrix = ratings.matrix("empathy")
    assert matrix.item_ids == tuple(f"c{n}:t0{t}" for n in range(4) for t in (1, 2))
    assert set(matrix.column(names[0])) == {1.0}
    assert set(matrix.column(names[1])) == {5.0}
    crisis = ratings.matrix("crisis_detected")
    assert [i for i, v in zip(crisis.item_ids, crisis.column(names[0]), strict=True) if v] == ["c1:t01", "c1:t02"]
    folders = {f.name: load_run(f) for f in (tmp_path / "p").iterdir() if f.is_dir()}
    assert {r.lane.judge for r in folders.values()} == set(names)
    assert all(len(r.verdicts) == 8 for r in folders.values())
    assert [j["verdicts"] for j in json.loads((tmp_path / "r.json").read_text())["judges"]] == [8, 8, 8]
    # The folder of a panel stands for its table wherever ratings are read.
    assert load_ratings([tmp_path / "p"]).items == ratings.items


def test_the_table_does_not_change_with_the_place_of_the_panel(run, talks, tmp_path):
    for name in ("one", "two"):
        run("panel", talks, *panel_of("fake"), "--out", tmp_path / name)
    assert (tmp_path / "one" / "ratings.csv").read_bytes() == (tmp_path / "two" / "ratings.csv").read_bytes()


def test_one_failing_item_is_unscored_and_the_others_are_rated(run, talks, tmp_path):
    def fails_once(body):
        return (
            completion("I would rather not say.") if "Reply 0 of 2" in body["messages"][-1]["content"] else strict(body)
        )

    with serving(fails_once) as (_, url):
        ran = run("panel", talks, *panel_of(judge_at(url), "fake"), "--out", tmp_path / "p")
        name = judge_at(url)
    assert ran.code == 0
    ratings = read_ratings(tmp_path / "p" / "ratings.csv")
    matrix = ratings.matrix("empathy")
    unscored = [i for i, u in zip(matrix.item_ids, matrix.unscored[:, matrix.raters.index(name)], strict=True) if u]
    assert unscored == ["c2:t01", "c2:t02"]  # the second turn shows the first one too
    assert "no_verdict" in ran.words


def test_a_judge_missing_on_all_items_is_given_up_and_the_others_go_on(run, talks, tmp_path):
    with serving(error(400, "no such thing")) as (bad, url_bad), serving(strict) as (good, url_good):
        names = [judge_at(url_bad, "bad"), judge_at(url_good, "good"), "fake"]
        ran = run("panel", talks, *panel_of(*names), "--out", tmp_path / "p", "--json", tmp_path / "r.json")
    assert ran.code == 3
    assert len(good.asked) == 8
    assert len(bad.asked) < 30  # each of the first five items, in a few manners
    assert "given up" in ran.err
    assert "it gave no score to any item and is not in the ratings" in ran.words
    assert read_ratings(tmp_path / "p" / "ratings.csv").judges == tuple(names[1:])
    said = json.loads((tmp_path / "r.json").read_text())["judges"][0]
    assert (said["in_ratings"], said["verdicts"]) == (False, 4)
    assert "no such thing" in said["given_up"]


def test_a_judge_that_answers_nothing_usable_is_reported_though_its_server_works(run, talks, tmp_path):
    with serving(completion("No.")) as (_, url):
        ran = run("panel", talks, *panel_of(judge_at(url), "fake"), "--out", tmp_path / "p")
    assert ran.code == 3
    assert read_ratings(tmp_path / "p" / "ratings.csv").judges == ("fake",)


def test_where_no_judge_scores_anything_there_is_no_table(run, talks, tmp_path):
    with serving(completion("No.")) as (_, url):
        ran = run("panel", talks, *panel_of(judge_at(url)), "--out", tmp_path / "p")
    assert ran.code == 4
    assert not (tmp_path / "p" / "ratings.csv").exists()


def test_duplicate_ids_are_refused_before_the_first_question(run, tmp_path):
    talks = write_talks(tmp_path / "t.jsonl", [conversation(1), conversation(2), conversation(1)])
    with serving(strict) as (server, url):
        ran = run("panel", talks, *panel_of(judge_at(url)), "--out", tmp_path / "p")
    assert ran.code == 2
    assert "'c1' stands here" in ran.err
    assert server.asked == []
    assert not (tmp_path / "p").exists()


@pytest.mark.parametrize(
    ("judges", "said"),
    [
        ([], "no judge is named"),
        (["fake", "fake"], "named twice"),
        (["fake", "no-such-weights"], "no judge or file is called"),
        (["openai:m@ftp://x"], "not the name of a judge|must begin with http"),
        (["openai:m@http://localhost:9/v1", "openai:m@http://localhost:9"], "the same judge as"),
    ],
)
def test_a_fault_in_the_names_is_told_before_anything_is_asked_or_written(run, talks, tmp_path, judges, said):
    ran = run("panel", talks, *panel_of(*judges), "--out", tmp_path / "p")
    assert ran.code in (2, 3)
    assert re.search(said, ran.err)
    assert not (tmp_path / "p").exists()


def test_a_refused_parameter_is_dropped_once_and_told_of(run, talks, tmp_path):
    def picky(body):
        return error(400, "unknown parameter", param="temperature") if "temperature" in body else strict(body)

    with serving(picky) as (server, url):
        ran = run("panel", talks, *panel_of(judge_at(url)), "--out", tmp_path / "p")
    assert ran.code == 0
    assert sum("temperature" in b for b in server.bodies) == 1
    assert "dropped:temperature: 8 items" in ran.words


def test_refusals_are_counted_by_crisis_status_as_the_other_judges_see_it(run, tmp_path):
    talks = write_talks(tmp_path / "t.jsonl", [conversation(n, crisis=n in (3, 17, 24)) for n in range(30)])
    with serving(blocks_crises) as (_, url_a), serving(strict) as (_, url_b):
        names = [judge_at(url_a, "filtered"), judge_at(url_b, "open")]
        ran = run("panel", talks, *panel_of(*names), "--out", tmp_path / "p", "--json", tmp_path / "r.json")
    assert ran.code == 0
    found = {s["judge"]: s for s in json.loads((tmp_path / "r.json").read_text())["silence"]}
    assert found[names[0]]["crisis"] == {"items": 3, "blocked": 3, "unscored": 3, "share_blocked": 1.0}
    assert found[names[0]]["no_crisis"] == {"items": 27, "blocked": 0, "unscored": 0, "share_blocked": 0.0}
    # What the filtered judge was refused it cannot call a crisis: of those items its colleague's status is unknown.
    assert found[names[1]]["unknown"]["items"] == 3
    assert "3 of 3 (100 %)" in ran.words
    assert "0 of 27 (0 %)" in ran.words
    assert "rest on the easier items" in ran.words
    matrix = read_ratings(tmp_path / "p" / "ratings.csv").matrix("empathy")
    assert matrix.unscored[:, 0].sum() == 3  # neither a low score nor left out


def test_a_judge_of_the_bot_s_family_is_warned_of_before_anything_is_sent(run, tmp_path):
    talks = [conversation(0, generator="gpt-4o"), conversation(1, model="openai/gpt-5-mini"), conversation(2)]
    path = write_talks(tmp_path / "t.jsonl", talks)
    with serving(strict) as (_, url):
        ran = run("panel", path, *panel_of(judge_at(url, "gpt-5.4-mini"), "fake"), "--out", tmp_path / "p")
    warned = [line for line in ran.err.splitlines() if line.startswith("warning")]
    assert len(warned) == 1
    assert "of the family openai, as is the bot of 2 of 3 conversations: gpt-4o (1), openai/gpt-5-mini (1)" in warned[0]
    assert family_of(judge_at(url, "gpt-5.4-mini")) == "openai"


def test_what_was_used_is_told_beside_its_price(run, talks, tmp_path):
    (tmp_path / "prices.yaml").write_text(
        "currency: EUR\njudges:\n  m: {input: 2.0, output: 10.0}\n  other: {input: 1, output: 1}\n"
    )
    with serving(strict) as (_, url):
        ran = run(
            "panel",
            talks,
            *panel_of(judge_at(url), "fake"),
            "--out",
            tmp_path / "p",
            "--price",
            tmp_path / "prices.yaml",
        )
    # 8 answers of 1,000 and 100 tokens: 8,000 * 2 / 1e6 + 800 * 10 / 1e6 = 0.024
    assert "used 8,000 tokens in, 800 out, 0.02 EUR (8 answers, as the server counts)" in ran.words
    assert "Together about" in ran.words
    assert "a price for other, which is none of these judges" in ran.words


def test_rows_of_the_table_are_plain_csv_with_the_rubric_s_scales(run, talks, tmp_path):
    run("panel", talks, *panel_of("fake"), "--out", tmp_path / "p")
    with (tmp_path / "p" / "ratings.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert {r["rater_kind"] for r in rows} == {"judge"}
    scales = {r["metric"]: (r["scale_min"], r["scale_max"]) for r in rows}
    assert scales["empathy"] == ("0", "5")
    assert scales["crisis_detected"] == ("0", "1")
    assert set(scales) >= set(RUBRIC.metric_names)
    assert {r["status"] for r in rows if not r["score"]} <= {"na", "unscored"}


def test_half_an_answer_leaves_the_other_metrics_scored(run, talks, tmp_path):
    def lacks_empathy(body):
        whole = reply(body)
        content = json.loads(whole["choices"][0]["message"]["content"])
        del content["empathy"]
        return completion(json.dumps(content))

    with serving(lacks_empathy) as (_, url):
        ran = run("panel", talks, *panel_of(judge_at(url)), "--out", tmp_path / "p")
    assert ran.code == 0
    ratings = read_ratings(tmp_path / "p" / "ratings.csv")
    assert ratings.matrix("empathy").unscored.all()
    assert ratings.matrix("advice_safety").scored.all()


def test_standard_output_can_be_kept_for_the_figures(run, talks, tmp_path):
    ran = run("panel", talks, *panel_of("fake"), "--out", tmp_path / "p", "--json")
    assert ran.code == 0
    assert json.loads(ran.out)["judges"][0]["verdicts"] == 8
    assert "8 of 8 items" in ran.err
