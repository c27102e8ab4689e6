"""The published table of EMPA and the ends of its released runs, recomputed from the levels alone."""

from __future__ import annotations

from functools import cache

import pytest
from epm_runs import RUNS, needs_runs

from aipsy_judge.epm.cases import Case, UnscoredCase, evaluate_cases
from aipsy_judge.epm.compare import ModelSummary, compare
from aipsy_judge.epm.forms_file import read_forms
from aipsy_judge.epm.indices import NAMES
from aipsy_judge.epm.log_agreement import logged_kind
from aipsy_judge.epm.pack import load_pack
from aipsy_judge.epm.parameters import profile

pytestmark = needs_runs

# The released repository's table, to one decimal: the nine indices in the order of NAMES, then EPM-Q.
PUBLISHED = {
    "claude-4.6-opus": (99.5, 117.6, 122.0, 139.0, 128.4, 96.9, 91.5, 92.4, 98.9, 107.2),
    "gemini-2.5-pro": (92.6, 90.1, 124.2, 65.5, 62.2, 81.4, 88.2, 87.1, 93.8, 90.7),
    "qwen3-235b-a22b-2507": (92.0, 91.7, 121.3, 88.3, 82.5, 74.0, 80.1, 82.0, 82.3, 89.6),
    "kimi-k2-0905": (87.3, 86.6, 123.2, 72.6, 68.3, 70.2, 80.1, 81.6, 82.1, 86.2),
    "deepseek-chat-v3-0324": (84.3, 78.8, 119.7, 58.4, 55.3, 58.5, 71.5, 73.8, 74.0, 78.4),
    "llama-3.3-70b-instruct": (27.0, 10.0, 76.0, 5.2, 5.0, 30.1, 48.2, 55.5, 52.2, 38.6),
    "gpt-4o": (18.7, 14.3, 61.4, 5.7, 5.5, 58.4, 38.2, 47.0, 38.7, 33.7),
    "qwen3-8b": (1.2, 0.0, 0.9, 0.0, 0.0, 85.0, 16.1, 25.5, 5.0, 12.2),
}
# Success positional, geometric; collapse, oscillation, timeout; mean number of turns.
ENDS = {
    "claude-4.6-opus": (29, 1, 0, 0, 0, 12.4),
    "gemini-2.5-pro": (26, 2, 0, 0, 2, 22.2),
    "qwen3-235b-a22b-2507": (26, 3, 0, 0, 1, 17.3),
    "kimi-k2-0905": (23, 4, 1, 0, 2, 20.2),
    "deepseek-chat-v3-0324": (23, 2, 3, 1, 1, 21.5),
    "llama-3.3-70b-instruct": (1, 0, 24, 1, 4, 27.8),
    "gpt-4o": (4, 0, 24, 0, 2, 23.3),
    "qwen3-8b": (0, 0, 30, 0, 0, 13.6),
}


@cache
def results() -> list[Case | UnscoredCase]:
    pack = load_pack()
    return evaluate_cases(read_forms(RUNS, pack.space), pack.space, profile())


@cache
def models() -> dict[str, ModelSummary]:
    return {m.model: m for m in compare(results(), resamples=200).models}


def test_the_runs_are_all_there() -> None:
    assert len(results()) == 240
    assert set(models()) == set(PUBLISHED)
    assert all(m.cases == 30 for m in models().values())


@pytest.mark.parametrize("model", PUBLISHED)
def test_indices_and_epm_q_as_published(model: str) -> None:
    summary = models()[model]
    found = [*(summary.indices[n] for n in NAMES), summary.scores["epm_q"]]
    for name, value, printed in zip([*NAMES, "EPM-Q"], found, PUBLISHED[model], strict=True):
        assert value == pytest.approx(printed, abs=0.06), name


@pytest.mark.parametrize("model", ENDS)
def test_ends_as_published(model: str) -> None:
    kinds = ("success_positional", "success_geometric", "collapse", "oscillation", "timeout")
    *counts, turns = ENDS[model]
    assert models()[model].stops == {k: n for k, n in zip(kinds, counts, strict=True) if n}
    assert models()[model].mean_turns == pytest.approx(turns, abs=0.06)


@pytest.mark.parametrize("tolerance", [0.10, 0.05])
def test_every_run_stops_at_the_turn_of_its_log(tolerance: float) -> None:
    from dataclasses import replace

    pack = load_pack()
    found = evaluate_cases(read_forms(RUNS, pack.space), pack.space, replace(profile(), tolerance=tolerance))
    wrong = [r.forms.name for r in found if not isinstance(r, Case) or r.later_turns or r.stop == "unfinished"]
    assert wrong == []


def test_every_run_stops_for_the_reason_of_its_log() -> None:
    """Where a log names a collapse and a regression, the collapse is the reason: it is checked first and suffices."""
    pairs = [(r.stop, logged_kind(r.forms.logged_stop or "")) for r in results() if isinstance(r, Case)]
    assert all(kind is not None for _, kind in pairs)
    assert [p for p in pairs if p[0] != p[1]] == []


def test_regression_is_seen_exactly_where_a_log_names_it() -> None:
    collapsed = [r for r in results() if isinstance(r, Case) and r.stop == "collapse"]
    seen = [r.why.endswith("(and regressing)") for r in collapsed]
    assert seen == ["Persistent Regression" in (r.forms.logged_stop or "") for r in collapsed]
    assert 0 < sum(seen) < len(seen)


def test_an_oscillation_is_measured_as_its_log_has_it() -> None:
    for result in results():
        if isinstance(result, Case) and result.stop == "oscillation":
            change = (result.forms.logged_stop or "").split("total change ")[1].split(",")[0]
            assert result.why == f"{change} points of change over 12 ratings, a net 2"


def test_each_axis_dominates_ten_cases() -> None:
    assert all({k: p.cases for k, p in m.by_axis.items()} == {"A": 10, "C": 10, "P": 10} for m in models().values())
