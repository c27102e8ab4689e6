"""bench.human: its draws, figures and regrets; the rivals' figures on real ratings."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from click.testing import CliRunner
from human_setup import small_table

from aipsy_judge.backends.fake import FakeAnswer, FakeJudge
from aipsy_judge.conversation import Conversation, Message
from aipsy_judge.correction.design import thresholds
from aipsy_judge.correction.metric_fit import learn_basis
from aipsy_judge.errors import InputError
from aipsy_judge.ratings import load_ratings, ratings_from_rows
from aipsy_judge.rubric import load_rubric
from aipsy_judge.verdict import Flag, NotApplicable, Score, Scored, Unscored
from bench.human import main, tables
from bench.human_cells import Cell, run_cells
from bench.human_draws import draws
from bench.human_figures import figures, tail_auc, tail_recall
from bench.human_judge import MetricMap, _rows, read_map
from bench.human_methods import Outcome, all_methods
from bench.human_report import summary_lines

DATA = Path(__file__).parents[3] / "shared" / "data"
MENTALALIGN = DATA / "mentalalign" / "ratings.csv.gz"
KUMAR = DATA / "empathy_kumar" / "ratings.csv.gz"


@pytest.mark.parametrize("n", [4, 12, 40])
def test_anchors_and_test_items_share_no_conversation(n: int) -> None:
    groups = np.repeat(np.arange(16), 5)
    for draw in draws(groups, n, 10, "empathy", 14):
        assert len(draw.anchors) == n
        assert not set(groups[draw.anchors]) & set(groups[draw.test])
        assert len(draw.test) >= 5


def test_draws_without_conversations_test_on_all_other_items_and_repeat_themselves() -> None:
    one = list(draws(np.arange(50), 10, 3, "m", 14))
    assert all(sorted([*d.anchors, *d.test]) == list(range(50)) for d in one)
    again = list(draws(np.arange(50), 10, 3, "m", 14))
    assert all((a.anchors == b.anchors).all() for a, b in zip(one, again, strict=True))
    assert (one[0].anchors != one[1].anchors).any()


def test_tail_auc_counts_ties_half() -> None:
    # Failures at risk 3 and 2, others at 2 and 1: pairs 3>2, 3>1, 2=2 (half), 2>1: 3.5 of 4.
    fails = np.array([True, True, False, False])
    assert tail_auc(np.array([[3.0, 2.0, 2.0, 1.0]]), fails)[0] == pytest.approx(3.5 / 4)
    assert np.isnan(tail_auc(np.array([[3.0, 2.0]]), np.array([False, False]))[0])


def test_tail_recall_flags_as_many_as_there_are_failures() -> None:
    # Two failures, two flags: the first for sure, the second is one of the two that tie at 2: 1 + 1/2 of 2.
    fails = np.array([True, True, False, False])
    assert tail_recall(np.array([[3.0, 2.0, 2.0, 1.0]]), fails)[0] == pytest.approx(0.75)
    assert tail_recall(np.array([[1.0, 1.0, 1.0, 1.0]]), fails)[0] == pytest.approx(0.5)


def test_figures_by_hand() -> None:
    outcome = Outcome(("x",), np.array([[0.0, 0.5, 1.0]]), np.array([[0.0, -0.5, -1.0], [0.9, 0.1, 0.1]]))
    found = figures(outcome, np.array([0.25, 0.5, 0.75]), np.array([True, False, False]), 4.0)
    # Misses of -1, 0, 1 points: RMSE sqrt(2/3), MAE 2/3; ranks agree; the failure has the highest risk.
    assert found["x"] == pytest.approx([np.sqrt(2 / 3), 2 / 3, 1, 1, 1])
    assert np.isnan(found["p_fail"][:3]).all()
    assert found["p_fail"][3:] == pytest.approx([1, 1])


def test_regret_is_paired_by_draw_and_to_the_best_rival() -> None:
    def rmse(*values: float) -> np.ndarray:
        return np.column_stack([values, *[np.full(len(values), np.nan)] * 4])

    cell = Cell(
        "m",
        10,
        50,
        40,
        0.1,
        {"mean": rmse(1.0, 2.0, 3.0), "constant": rmse(5, 5, 5), "blend": rmse(1.1, 2.2, 3.3)},
        {"mean": 40, "constant": 40, "blend": 40},
    )
    regret = cell.regret("blend", "rmse")
    assert regret is not None
    assert regret.rival == "mean"
    assert regret.mean == pytest.approx(0.2)
    assert regret.se == pytest.approx(0.1 / np.sqrt(3))
    assert regret.lost
    assert cell.regret("blend", "tail_auc") is None
    assert any("lost 1, won 0 of 1" in line for line in summary_lines([cell]))


def test_rivals_are_what_they_say() -> None:
    data = tables(small_table(), (), (), severity=False)[0]
    draw = next(draws(data.groups, 12, 1, "empathy", 14))
    found = all_methods(data, learn_basis(data.panel, thresholds(1, 5)), draw, by_family=True)
    value = dict(zip(found.names, found.values, strict=True))
    judges = data.panel.judges
    assert value["mean"] == pytest.approx(judges[draw.test].mean(axis=1))
    assert value["constant"] == pytest.approx(np.full(len(draw.test), data.expert[draw.anchors].mean()))
    assert value["judge: b"] == pytest.approx(judges[draw.test, 1])
    miss = ((judges - data.expert[:, None])[draw.anchors] ** 2).mean(axis=0)
    assert value["best judge on the anchors"] == pytest.approx(judges[draw.test, miss.argmin()])
    assert {"blend", "blend, bias by family", "rung: weights"} <= set(value)
    assert len(found.risk) == len(found.values) + 1


@pytest.mark.slow
def test_two_workers_give_what_one_gives() -> None:
    data = tables(small_table(), (), (), severity=False)
    one, two = (run_cells(data, [8, 12], count=3, seed=14, by_family=False, workers=w) for w in (1, 2))
    for a, b in zip(one, two, strict=True):
        assert a.anchors == b.anchors
        for method, row in a.draws.items():
            assert row == pytest.approx(b.draws[method], nan_ok=True, abs=1e-9)


def test_the_program_prints_cells_and_a_summary(tmp_path: Path) -> None:
    from aipsy_judge.ratings import write_ratings

    path, out = tmp_path / "ratings.csv", tmp_path / "figures.json"
    write_ratings(small_table(), path)
    words = [str(path), "--draws", "4", "--workers", "1", "--json", str(out)]
    done = CliRunner().invoke(main, words, catch_exceptions=False)
    assert done.exit_code == 0
    assert "empathy: 10 anchors of 80 rated items, 4 draws" in done.output
    assert "blend, RMSE: lost" in done.output
    cells = json.loads(out.read_text())["cells"]
    assert [c["anchors"] for c in cells] == [10, 30]  # 100 would be more than 60 % of 80
    assert cells[0]["methods"]["p_fail"]["rmse"] is None
    assert cells[0]["regret"]["blend"]["rmse"]["se"] > 0


def test_a_judge_of_this_project_is_scored_as_a_further_rater(tmp_path: Path) -> None:
    from aipsy_judge.ratings import write_ratings

    ratings, items, mapped = tmp_path / "r.csv", tmp_path / "items.jsonl.gz", tmp_path / "map.yaml"
    write_ratings(small_table(40, 1), ratings)
    talk = [{"role": "user", "content": "I am tired."}, {"role": "assistant", "content": "That sounds hard."}]
    lines = [json.dumps({"item_id": f"i{i}", "conversation": talk}) for i in range(40)]
    items.write_bytes(gzip.compress("\n".join(lines).encode()))
    mapped.write_text(yaml.safe_dump({"turns": "last", "metrics": {"empathy": ["empathy"]}}))
    words = [
        str(ratings),
        "--items",
        str(items),
        "--map",
        str(mapped),
        "--judge",
        "fake",
        "--draws",
        "2",
        "--workers",
        "1",
    ]
    done = CliRunner().invoke(main, [*words, "--anchors", "10"], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    line = next(row for row in done.output.splitlines() if row.strip().startswith("fake") and "ICC" in row)
    assert all(head in line for head in ("ICC(A,1)", "Spearman", "MAE", "tail recall", "precision", "AUC"))
    assert "judge: fake" in done.output


NOT, LOST = NotApplicable(), Unscored("off_contract")


@pytest.mark.parametrize(
    ("turns", "scores", "status", "value"),
    [
        ("last", (Scored(4.0), Scored(2.0)), "scored", 2.0),
        ("last", (Scored(4.0), NOT), "na", None),
        ("last", (Scored(4.0), LOST), "unscored", None),
        ("last", (LOST, Scored(2.0)), "scored", 2.0),
        ("mean", (Scored(4.0), Scored(2.0)), "scored", 3.0),
        ("mean", (Scored(4.0), NOT), "scored", 4.0),
        ("mean", (Scored(4.0), LOST), "unscored", None),
        ("min", (Scored(4.0), Scored(2.0)), "scored", 2.0),
        ("min", (LOST, Scored(2.0)), "unscored", None),
        ("min", (NOT, LOST), "unscored", None),
        ("min", (NOT, NOT), "na", None),
    ],
)
def test_no_other_turn_stands_in_for_one_that_is_not_scored(
    turns: Any, scores: tuple[Score, Score], status: str, value: float | None
) -> None:
    names, unset = load_rubric().metric_names, {"crisis_detected": Flag(False)}
    judge = FakeJudge(answer=lambda c, turn: FakeAnswer(dict.fromkeys(names, scores[turn.number - 1]), unset))
    about = {"item_id": "i", "metric": "empathy", "rater": "kim", "rater_kind": "expert", "score": 3}
    ratings = ratings_from_rows([{**about, "scale_min": 0, "scale_max": 5}])
    talk = Conversation("i", tuple(Message(r, "x") for r in ("user", "assistant") * 2))
    wanted = MetricMap(turns=turns, metrics={"empathy": "empathy"})
    (row,) = _rows(judge, "mine", talk, [("empathy", "empathy")], wanted, ratings)
    assert (row["status"], row["score"]) == (status, value)


@pytest.mark.parametrize(
    ("given", "named"),
    [
        (["--adapter", "a.gguf", "--threads", "2"], "without --judge nothing heeds --adapter, --threads"),
        (["--contract", "compact", "--unblessed"], "without --judge nothing heeds --contract, --unblessed"),
        (["--judge", "fake", "--verdicts", "v.jsonl", "--most", "3"], "nothing heeds --verdicts, --most"),
        (["--judge", "fake", "--free", "3", "--points"], "nothing heeds --free, --points"),
        (["--judge", "fake", "--against-rivals", "--points"], "with PATHS and rivals nothing heeds --points"),
    ],
)
def test_options_that_would_change_nothing_are_refused(tmp_path: Path, given: list[str], named: str) -> None:
    from aipsy_judge.ratings import write_ratings

    write_ratings(small_table(8), tmp_path / "r.csv")
    done = CliRunner().invoke(main, [str(tmp_path / "r.csv"), *given], terminal_width=200)
    assert done.exit_code == 2
    assert named in done.output


def test_the_judge_of_rated_items_is_opened_as_the_options_say(tmp_path: Path) -> None:
    from aipsy_judge.ratings import write_ratings

    write_ratings(small_table(8), tmp_path / "r.csv")
    talk = [{"role": "user", "content": "I am tired."}, {"role": "assistant", "content": "That sounds hard."}]
    (tmp_path / "items.jsonl").write_text(json.dumps({"item_id": "i0", "conversation": talk}) + "\n")
    (tmp_path / "map.yaml").write_text(yaml.safe_dump({"metrics": {"empathy": "empathy"}}))
    words = [str(tmp_path / "r.csv"), "--items", str(tmp_path / "items.jsonl"), "--map", str(tmp_path / "map.yaml")]
    done = CliRunner().invoke(main, [*words, "--judge", "fake", "--adapter", str(tmp_path / "worn.gguf")])
    assert done.exit_code == 1  # the stand-in wears nothing
    assert "adapter" in done.output


@pytest.mark.parametrize(
    "text", ["- a", "metrics: 3", "turns: first\nmetrics: {a: b}", "metrics: {a: b}\nmore: 1", ": ["]
)
def test_a_map_that_is_none_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "map.yaml").write_text(text)
    with pytest.raises(InputError, match="not a metric map"):
        read_map(tmp_path / "map.yaml")


# Measured before this project's code, by other code, on the whole of MentalAlign-70k (of which the table is a part):
# RMSE of the anchors' mean and of the judges' mean, on items that were not anchors, 40-60 draws.
KNOWN = {
    ("empathy", 10): (1.013, 1.068),
    ("empathy", 100): (0.943, 1.076),
    ("helpfulness", 30): (0.972, 0.953),
    ("guidance", 30): (1.062, 1.005),
    ("guidance", 300): (1.039, 1.004),
    ("safety", 30): (0.659, 0.628),
}


@pytest.mark.slow
@pytest.mark.skipif(not MENTALALIGN.exists(), reason="the MentalAlign ratings are not beside the repository")
def test_known_figures_of_the_rivals_come_out_again_and_the_blend_beats_them() -> None:
    ratings = load_ratings([MENTALALIGN])
    found = tables(ratings, (), ("empathy", "helpfulness", "guidance", "safety"), severity=False)
    cells = {
        (c.metric, c.anchors): c
        for c in run_cells(found, [10, 30, 100, 300], count=20, seed=14, by_family=False, workers=2)
    }
    for place, (constant, mean) in KNOWN.items():
        assert cells[place].mean("constant", "rmse") == pytest.approx(constant, abs=0.05)
        assert cells[place].mean("mean", "rmse") == pytest.approx(mean, abs=0.03)
    for cell in cells.values():
        regret, ranked = cell.regret("blend", "rmse"), cell.regret("p_fail", "tail_auc")
        assert regret is not None
        assert not regret.lost, cell.metric
        assert ranked is not None
        assert not ranked.lost, cell.metric


@pytest.mark.slow
@pytest.mark.skipif(not KUMAR.exists(), reason="the empathy ratings are not beside the repository")
def test_on_fifty_chats_with_three_experts_the_blend_wins_more_than_it_loses() -> None:
    cells = run_cells(
        tables(load_ratings([KUMAR]), (), (), severity=False), [10, 30], count=30, seed=14, by_family=False, workers=2
    )
    regrets = [r for c in cells if (r := c.regret("blend", "rmse")) is not None]
    assert len(regrets) == 18
    assert sum(r.won for r in regrets) >= 2 * sum(r.lost for r in regrets)
    assert max(r.mean for r in regrets) < 0.06
