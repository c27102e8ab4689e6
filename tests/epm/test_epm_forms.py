"""Files of forms: what is read, what is refused and with which words, what is missing."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from aipsy_judge.epm.cases import Case, UnscoredCase, evaluate_cases
from aipsy_judge.epm.forms_file import parse_forms, read_forms
from aipsy_judge.epm.imputation import Imputed
from aipsy_judge.epm.pack import load_pack
from aipsy_judge.epm.parameters import profile
from aipsy_judge.errors import InputError

SPACE = load_pack().space
GOOD = [1, 0, 2, 0, 1, 0]
IEDR = dict.fromkeys(SPACE.indicator_ids, 2)


def run(**changes: Any) -> dict[str, Any]:
    return {"model": "m", "case": "c", "iedr": IEDR, "levels": [GOOD] * 12} | changes


def result(data: dict[str, Any], **options: Any) -> Case | UnscoredCase:
    return evaluate_cases([parse_forms(data, SPACE, where="f:1")], SPACE, profile(), **options)[0]


def scored(data: dict[str, Any], **options: Any) -> Case:
    found = result(data, **options)
    assert isinstance(found, Case)
    return found


@pytest.mark.parametrize("compressed", [False, True])
def test_lines_are_read_plain_and_compressed(tmp_path: Path, compressed: bool) -> None:
    text = "".join(json.dumps(run(case=c)) + "\n\n" for c in "ab").encode()
    path = tmp_path / "runs"
    path.write_bytes(gzip.compress(text) if compressed else text)
    assert [(f.case, f.where) for f in read_forms(path, SPACE)] == [("a", f"{path}:1"), ("b", f"{path}:3")]


def test_one_object_may_span_lines(tmp_path: Path) -> None:
    path = tmp_path / "forms.json"
    path.write_text(json.dumps(run(), indent=2), encoding="utf-8")
    assert [f.where for f in read_forms(path, SPACE)] == [str(path)]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "the file is empty"),
        ("{", r"runs:1: not valid JSON"),
        ('{"levels": [], "levels": []}', "runs:1: not valid JSON: a key is written twice"),
        ("[1]", "runs:1: not valid forms"),
    ],
)
def test_a_file_that_holds_no_forms_is_one_clear_error(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "runs"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=words):
        read_forms(path, SPACE)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"levels": []}, "no turn was rated"),
        ({"levels": [GOOD, [1, 0]]}, r"turn 2: 2 levels, 6 are needed: C\.prog"),
        ({"levels": [GOOD, ["1", 0, 0, 0, 0, 0]]}, r"rating 2, C\.prog: Input should be a valid"),
        ({"levels": [GOOD, [True, 0, 0, 0, 0, 0]]}, r"rating 2, C\.prog: Input should be a valid"),
        ({"level": 1}, "level: Extra inputs are not permitted"),
        ({"iedr": {"C.9": 1}}, r"start: unknown indicators: C\.9"),
        ({"iedr": None}, "neither iedr nor P_0 says where the dialogue starts"),
        ({"P_0": [-1, -2]}, "P_0 has 2 numbers, the space 3 axes"),
        ({"turns": 13}, "12 ratings of 1 turns each do not make 13 turns"),
        ({"every": 0}, "every: Input should be greater than or equal to 1"),
    ],
)
def test_forms_that_are_not_valid_say_where(change: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        parse_forms(run(**change), SPACE, where="f:1")


@pytest.mark.parametrize("wrong", [float("nan"), 7, -1, 0.5])
def test_a_level_off_its_scale_names_the_turn(wrong: float) -> None:
    with pytest.raises(InputError, match=r"f:1, m / c, turn 3: level .* of A\.prog is none of 0, 1, 2"):
        result(run(levels=[GOOD, GOOD, [0, 0, wrong, 0, 0, 0]]))


def test_nan_in_a_file_names_the_turn(tmp_path: Path) -> None:
    path = tmp_path / "runs"
    path.write_text(json.dumps(run(levels=[GOOD, [0, float("nan"), 0, 0, 0, 0]])), encoding="utf-8")
    with pytest.raises(InputError, match=r"turn 2: level nan of C\.neg"):
        evaluate_cases(read_forms(path, SPACE), SPACE, profile())


def test_a_start_that_contradicts_its_levels_is_refused() -> None:
    with pytest.raises(InputError, match=r"P_0 is given as \[-1\.0, -2\.0, -3\.0\], but the levels make \[-14"):
        result(run(P_0=[-1, -2, -3]))


def test_a_start_without_levels_is_enough() -> None:
    assert scored(run(iedr=None, P_0=[-14, -18, -18])).scores == scored(run()).scores


def test_an_unread_level_makes_the_dialogue_unscored() -> None:
    found = result(run(levels=[GOOD, [1, 0, None, 0, 1, 0]] + [GOOD] * 10))
    assert isinstance(found, UnscoredCase)
    assert (found.unscored.reason, found.unscored.detail) == ("missing", "turn 2: A.prog could not be read")


def test_an_unread_form_makes_the_dialogue_unscored() -> None:
    found = result(run(levels=[GOOD, None], every=3))
    assert isinstance(found, UnscoredCase)
    assert found.unscored.detail == "turns 4 to 6: C.prog could not be read"


def test_an_unread_starting_level_makes_the_dialogue_unscored() -> None:
    found = result(run(iedr={k: v for k, v in IEDR.items() if k != "P.2"}))
    assert isinstance(found, UnscoredCase)
    assert found.unscored.detail == "start: P.2 could not be read"


def test_published_imputation_is_zero_for_turns_and_one_for_the_start_and_is_counted() -> None:
    gaps = run(iedr=IEDR | {"P.2": None}, levels=[GOOD, None, [1, None, 0, 0, 0, 0]] + [GOOD] * 9)
    filled = run(iedr=IEDR | {"P.2": 1}, levels=[GOOD, [0] * 6, [1, 0, 0, 0, 0, 0]] + [GOOD] * 9)
    found = scored(gaps, strict=False)
    assert found.imputed == Imputed(start_levels=1, turn_levels=7)
    assert found.scores == scored(filled).scores


def test_zero_deficit_is_undefined_and_only_imputed_on_request() -> None:
    nothing = run(iedr=dict.fromkeys(SPACE.indicator_ids, 0))
    strict = scored(nothing)
    assert (strict.scores["epm_q"], strict.scores["outcome"], strict.indices["RDI"]) == (None, None, None)
    assert strict.undefined == "no deficit at the start: there is nothing to close"
    assert strict.imputed == Imputed()
    lax = scored(nothing, strict=False)
    assert lax.imputed == Imputed(scale=1)
    # z0 = 1, no energy without a direction; twelve good turns of 4 levels each
    assert lax.indices["E_tot"] == 0
    assert lax.indices["S_net"] == pytest.approx(100 * 48 / 1.5)


def test_the_paper_profile_fills_nothing_in() -> None:
    with pytest.raises(InputError, match="has no rule for levels that could not be read"):
        evaluate_cases([], SPACE, profile("paper-v1", tau_align=0.5), strict=False)


def test_turns_after_the_end_are_told_apart() -> None:
    found = scored(run(levels=[GOOD] * 40))
    assert (found.stop, found.turns + found.later_turns) == ("success_positional", 40)
    assert found.later_turns > 0
    assert len(found.path.energy) == found.turns + 1


def test_the_last_rating_may_cover_fewer_turns() -> None:
    found = scored(run(levels=[GOOD] * 4, every=3, turns=11))
    assert found.turns == 11
