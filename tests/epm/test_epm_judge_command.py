"""`aipsy-judge epm` with a judge that fills the forms, and without one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from epm_dialogues import ENGLISH, ENGLISH_CARD

from aipsy_judge.cli.epm import command
from aipsy_judge.epm.pack import load_pack
from aipsy_judge.errors import InputError

PACK = load_pack()


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    def put(name: str, text: str) -> Path:
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    messages = [{"role": m.role, "content": m.content} for m in ENGLISH.messages]
    levels = {"iedr": dict.fromkeys(PACK.space.indicator_ids, 2), "levels": [[1, 0, 1, 0, 1, 0]] * 3}
    return {
        "dialogue": put("dialogue.json", json.dumps({"id": "maren", "messages": messages})),
        "card": put("card.md", ENGLISH_CARD),
        "levels": put("levels.json", json.dumps(levels)),
        "out": tmp_path / "out",
    }


def invoke(*args: str | Path) -> Any:
    return CliRunner().invoke(command, [str(a) for a in args])


def test_given_levels_need_no_judge(files: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aipsy_judge.cli.epm_dialogue.open_judge", None)
    shown = invoke(files["dialogue"], "--levels", files["levels"], "--out", files["out"])
    assert shown.exit_code == 0, shown.output
    assert "EPM-Q" in shown.output
    result = json.loads((files["out"] / "result.json").read_text("utf-8"))
    assert (result["case"], result["turns"], result["stop"]) == ("maren", 3, "unfinished")
    assert len(result["path"]["energy"]) == 4
    assert (files["out"] / "report.html").read_text("utf-8").count("<svg") == 3


def test_a_judge_fills_the_forms_and_they_serve_again_without_it(files: dict[str, Path]) -> None:
    one = files["out"] / "one.json"
    files["out"].mkdir()
    shown = invoke("dialogue", files["dialogue"], "--persona", files["card"], "--judge", "fake", "--out", files["out"])
    assert shown.exit_code == 0, shown.output
    assert "fake: every value was drawn from a hash" in shown.output
    again = invoke(files["dialogue"], "--levels", files["out"] / "forms.json", "--json", one)
    assert again.exit_code == 0, again.output
    assert "fake: every value was drawn from a hash" in again.output
    assert json.loads(one.read_text("utf-8")) == json.loads((files["out"] / "result.json").read_text("utf-8"))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "neither levels nor a persona card"),
        (("--levels", "{levels}", "--id", "other"), "0 conversations called 'other' in it"),
        (("--levels", "{card}"), "not valid JSON"),
        (("--levels", "{levels}", "--profile", "paper-v1"), "needs tau_align"),
        (("--levels", "{levels}", "--tolerance", "1.5"), "tolerance 1.5 is no share"),
        (("--persona", "missing.md"), "missing.md: cannot be read"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_sentence(
    files: dict[str, Path], arguments: tuple[str, ...], words: str
) -> None:
    shown = invoke(files["dialogue"], *(a.format(**files) for a in arguments))
    assert isinstance(shown.exception, InputError), shown.output
    assert words in str(shown.exception)


def test_levels_of_another_number_of_turns_are_refused(files: dict[str, Path]) -> None:
    files["levels"].write_text(json.dumps({"P_0": [-1, -2, -3], "levels": [[0] * 6] * 4}), encoding="utf-8")
    shown = invoke(files["dialogue"], "--levels", files["levels"])
    assert "4 ratings of 1 turns each do not make the 3 turns of maren" in str(shown.exception)


def test_an_unread_level_ends_with_an_exit_code_of_its_own(files: dict[str, Path]) -> None:
    rows = [[0] * 6, None, [0] * 6]
    files["levels"].write_text(json.dumps({"P_0": [-1, -2, -3], "levels": rows}), encoding="utf-8")
    shown = invoke(files["dialogue"], "--levels", files["levels"], "--out", files["out"])
    assert shown.exit_code == 4
    assert "turn 2: C.prog could not be read" in shown.output
    result = json.loads((files["out"] / "result.json").read_text("utf-8"))
    assert (result["status"], result["reason"], result["epm_q"]) == ("unscored", "missing", None)


def test_forms_of_unlike_judges_are_not_compared(tmp_path: Path) -> None:
    rows = []
    for n, judge in enumerate(("a", "b")):
        provenance = {k: {"judge": judge, "rubric": "r", "contract": "full"} for k in ("start", "turns")}
        row = {"model": "m", "case": str(n), "P_0": [-9, -9, -9], "levels": [[0] * 6], "provenance": provenance}
        rows.append(json.dumps(row))
    path = tmp_path / "runs.jsonl"
    path.write_text("\n".join(rows), encoding="utf-8")
    shown = invoke("compare", path)
    assert "filled by a / r / full + a / r / full, but" in str(shown.exception)
