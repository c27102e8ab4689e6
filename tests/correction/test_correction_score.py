"""`score --correction`: a correction fitted to one judge, shown beside that judge's raw scores."""

from __future__ import annotations

import hashlib
import io
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from run_builder import run as built
from run_builder import verdict

import aipsy_judge.opening
from aipsy_judge.backends.fake import FakeAnswer, FakeJudge
from aipsy_judge.cli.main import main
from aipsy_judge.conversation import Conversation, Turn
from aipsy_judge.correction import CorrectedScore, load_applied, load_correction
from aipsy_judge.ratings import ratings_from_rows, write_ratings
from aipsy_judge.report.tables import unit_table
from aipsy_judge.report.text import open_console
from aipsy_judge.rubric import Rubric, load_rubric
from aipsy_judge.runs import load_run
from aipsy_judge.summary import summarise
from aipsy_judge.units import units
from aipsy_judge.verdict import Flag, NotApplicable, Score, Scored, Unscored

RUBRIC = load_rubric()
ITEMS = 60
JUDGE = "local-1"


def expert_score(metric: str, text: str) -> int:
    """0..4, known from the text ("talk 7") and varied over metrics."""
    return (int(text.split()[1]) * 7 + len(metric)) % 5


def lenient(conversation: Conversation, turn: Turn | None) -> FakeAnswer:
    """One point above the expert everywhere; no crisis; talks of 1000 and more have no empathy score."""
    assert turn is not None
    text = turn.message.content
    scores: dict[str, Score] = {m: Scored(expert_score(m, text) + 1.0) for m in RUBRIC.metric_names}
    scores["crisis_handling"] = NotApplicable(forced_by="crisis_detected")
    if int(text.split()[1]) >= 1000:
        scores["empathy"] = Unscored("truncated")
    return FakeAnswer(scores, {"crisis_detected": Flag(False, "none")})


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str


class Opened(list[Any]):
    judge = JUDGE


Run = Callable[..., Ran]


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Opened:
    """open_judge gives the lenient judge, under the name that the test wants."""
    asked = Opened()

    def fake_open(name: str | None = None, **_: Any) -> FakeJudge:
        asked.append(name)
        return FakeJudge(RUBRIC, answer=lenient, name=asked.judge)

    monkeypatch.setattr(aipsy_judge.opening, "open_judge", fake_open)
    return asked


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*words: str | Path) -> Ran:
        monkeypatch.setattr(sys, "argv", ["aipsy-judge", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            main()
        captured = capsys.readouterr()
        return Ran(int(ended.value.code or 0), captured.out, captured.err)

    return call


def talks(path: Path, numbers: list[int]) -> Path:
    def line(n: int) -> dict[str, Any]:
        said = [{"role": "user", "content": "Hello."}, {"role": "assistant", "content": f"talk {n}"}]
        return {"id": f"c{n}", "messages": said}

    path.write_text("".join(json.dumps(line(n)) + "\n" for n in numbers))
    return path


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a user would make: a stored run, an expert's table of 40 of its items, `correct fit`."""
    folder = tmp_path_factory.mktemp("fitted")
    rows = [
        {"item_id": f"c{n}:t01", "rater": "expert", "rater_kind": "expert", "metric": m, "scale_min": 0,
         "scale_max": 5, "score": expert_score(m, f"talk {n}")}
        for n in range(40) for m in ("empathy", "advice_safety")
    ]  # fmt: skip
    write_ratings(ratings_from_rows(rows), folder / "experts.csv")
    judge = FakeJudge(RUBRIC, answer=lenient, name=JUDGE)
    out = folder / "correction.json"
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(aipsy_judge.opening, "open_judge", lambda *_, **__: judge)
        for words in (
            ["score", str(talks(folder / "talks.jsonl", list(range(ITEMS)))), "--out", str(folder / "run")],
            ["correct", "fit", str(folder / "run"), str(folder / "experts.csv"), "--rater", JUDGE, "--expert",
             "expert", "--rubric", RUBRIC.name, "--metric", "empathy", "--metric", "advice_safety", "--resamples", "0",
             "--out", str(out)],
        ):  # fmt: skip
            patched.setattr(sys, "argv", ["aipsy-judge", *words])
            with pytest.raises(SystemExit) as ended:
                main()
            assert not ended.value.code
    return out


def strict(text: str) -> Any:
    return json.loads(text, parse_constant=pytest.fail)


def test_corrected_values_stand_beside_raw_ones_in_strict_json(
    run: Run, opened: Opened, fitted: Path, tmp_path: Path
) -> None:
    data = strict(run("score", talks(tmp_path / "new.jsonl", [3, 1004]), "--correction", fitted, "--json").out)
    one, other = (c["verdicts"][0] for c in data["conversations"])
    raw, found = one["scores"]["empathy"]["value"], one["corrected"]["empathy"]
    assert raw == expert_score("empathy", "talk 3") + 1
    assert found["raw"] == raw
    # The judge is one point too high on each of 40 anchors, without noise: shrinkage keeps little of that.
    assert found["value"] == pytest.approx(raw - 1, abs=0.1)
    assert 0 <= found["p_fail"] <= 1
    limit = data["correction"]["metrics"]["empathy"]["fails_from"]
    assert found["fails"] is (found["p_fail"] >= limit)
    assert found["reason"] is None
    assert other["scores"]["empathy"]["status"] == "unscored"
    nothing = {"raw": None, "value": None, "p_fail": None, "fails": None}
    assert other["corrected"]["empathy"] == {**nothing, "reason": "unscored: truncated"}
    assert one["corrected"]["crisis_handling"] == {**nothing, "reason": "not applicable"}
    unfitted = next(m for m in RUBRIC.metric_names if m not in ("empathy", "advice_safety", "crisis_handling"))
    assert one["corrected"][unfitted]["value"] is None
    assert one["corrected"][unfitted]["raw"] == one["scores"][unfitted]["value"]
    assert one["corrected"][unfitted]["reason"] == "the correction has no such metric"


def test_the_head_of_the_result_says_what_the_correction_rests_on(
    run: Run, opened: Opened, fitted: Path, tmp_path: Path
) -> None:
    about = strict(run("score", talks(tmp_path / "new.jsonl", [3]), "--correction", fitted, "--json").out)["correction"]
    assert (about["judges"], about["experts"]) == ([JUDGE], ["expert"])
    assert about["metrics"]["empathy"]["anchors"] == 40
    assert about["metrics"]["empathy"]["moved"]["mean"] == pytest.approx(-1, abs=0.2)
    assert "leniency" in about["note"]


def test_without_a_correction_the_result_has_no_corrected_values(run: Run, opened: Opened, tmp_path: Path) -> None:
    data = strict(run("score", talks(tmp_path / "new.jsonl", [3]), "--json").out)
    assert "correction" not in data
    assert "corrected" not in data["conversations"][0]["verdicts"][0]


def test_the_table_has_a_corrected_row_under_every_raw_one(
    run: Run, opened: Opened, fitted: Path, tmp_path: Path
) -> None:
    ran = run("score", talks(tmp_path / "new.jsonl", [3]), "--correction", fitted, "--json", tmp_path / "r.json")
    found = strict((tmp_path / "r.json").read_text())["conversations"][0]["verdicts"][0]["corrected"]
    rows = [line.split() for line in ran.out.splitlines()]
    after = rows[next(n for n, row in enumerate(rows) if row[:1] == ["1"]) + 1]
    shown = [f"{found[m]['value']:.1f}" + "!" * found[m]["fails"] for m in RUBRIC.metric_names if found[m]["value"] is not None]  # fmt: skip # noqa: E501
    assert len(shown) == 2
    assert after == ["corr", *shown]
    flat = " ".join(ran.out.split())
    assert "n = 40 anchors" in flat
    assert "empathy is moved down by" in flat
    assert "leniency" in flat


def test_a_narrow_terminal_shows_the_same_corrected_values(
    run: Run, opened: Opened, fitted: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    ran = run("score", talks(tmp_path / "new.jsonl", [3]), "--correction", fitted, "--json", tmp_path / "r.json")
    found = strict((tmp_path / "r.json").read_text())["conversations"][0]["verdicts"][0]["corrected"]["empathy"]
    rows = [line.split() for line in ran.out.splitlines()]
    after = rows[next(n for n, row in enumerate(rows) if row[:1] == ["Empathy"]) + 1]
    assert after == ["corr", f"{found['value']:.1f}" + "!" * found["fails"]]


def test_stored_verdicts_and_the_gate_stay_raw(run: Run, opened: Opened, fitted: Path, tmp_path: Path) -> None:
    new, gate = talks(tmp_path / "new.jsonl", list(range(8))), tmp_path / "gate.yaml"
    # The raw mean is 3.125, one point above the expert's: corrected values would fail this gate.
    gate.write_text("metrics:\n  empathy:\n    min_mean: 2.6\n")
    plain = run("score", new, "--judge", "x", "--out", tmp_path / "a", "--gate", gate)
    shown = run("score", new, "--judge", "x", "--out", tmp_path / "b", "--gate", gate, "--correction", fitted)
    assert (plain.code, shown.code) == (0, 0)
    # More conversations than are shown one by one: corrected values stand with those shown in full.
    plain_rows, shown_rows = ([x for x in r.out.splitlines() if x.startswith("corr ")] for r in (plain, shown))
    assert plain_rows == []
    assert len(shown_rows) > 0
    assert load_run(tmp_path / "a").verdicts == load_run(tmp_path / "b").verdicts
    lines = [next(x for x in r.out.splitlines() if "min_mean" in x) for r in (plain, shown)]
    assert lines[0] == lines[1]


def test_another_judge_is_refused_before_anything_is_judged(
    run: Run, opened: Opened, fitted: Path, tmp_path: Path
) -> None:
    opened.judge = "local-2"
    ran = run("score", talks(tmp_path / "new.jsonl", [3]), "--correction", fitted, "--out", tmp_path / "run")
    assert ran.code == 2
    assert "fitted to local-1, not to local-2" in ran.err
    assert ran.out == ""
    assert not (tmp_path / "run").exists()


def changed(fitted: Path, path: Path, change: Callable[[dict[str, Any]], None]) -> Path:
    data = json.loads(fitted.read_text())
    change(data)
    path.write_text(json.dumps(data))
    return path


def test_a_correction_fitted_with_another_rubric_is_refused(
    run: Run, opened: Opened, fitted: Path, tmp_path: Path
) -> None:
    other = changed(fitted, tmp_path / "c.json", lambda data: data["rubric"].update(hash="0" * 64))
    ran = run("score", talks(tmp_path / "new.jsonl", [3]), "--correction", other)
    assert ran.code == 2
    assert "rubric" in ran.err
    assert "Judge" not in ran.out


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda data: data.update(judges=[JUDGE, "another"]), "not to local-1 alone"),
        (lambda data: data.update(judges=[]), "not among the correction's judges"),
        (lambda data: data.update(judges=["another"]), "not among the correction's judges"),
        (lambda data: data.update(rubric=None), "bound to no rubric"),
        (lambda data: data.pop("metrics"), "not a correction's file"),
    ],
)
def test_a_file_that_can_correct_no_single_judge_opens_none(
    run: Run, opened: Opened, fitted: Path, tmp_path: Path, change: Callable[[dict[str, Any]], None], says: str
) -> None:
    ran = run("score", talks(tmp_path / "n.jsonl", [3]), "--correction", changed(fitted, tmp_path / "c.json", change))
    assert ran.code == 2
    assert says in ran.err.replace("is not among", "not among")
    assert opened == []


def test_a_correction_is_not_overwritten_with_an_output(run: Run, opened: Opened, fitted: Path, tmp_path: Path) -> None:
    mine = changed(fitted, tmp_path / "c.json", lambda _: None)
    before = mine.read_bytes()
    ran = run("score", talks(tmp_path / "new.jsonl", [3]), "--correction", mine, "--html", mine)
    assert ran.code == 2
    assert mine.read_bytes() == before


def test_the_page_shows_both_values_and_what_the_correction_is(
    run: Run, opened: Opened, fitted: Path, tmp_path: Path
) -> None:
    ran = run("score", talks(tmp_path / "new.jsonl", [3, 1004]), "--correction", fitted, "--html", tmp_path / "r.html",
              "--out", tmp_path / "run", "--json", tmp_path / "r.json")  # fmt: skip
    assert ran.code == 0
    html = (tmp_path / "r.html").read_text()
    found = strict((tmp_path / "r.json").read_text())["conversations"][0]["verdicts"][0]["corrected"]["empathy"]
    assert f'aria-hidden="true">{found["value"]:.2f}</span>' in html
    assert f"with p = {found['p_fail']:.2f}" in html
    assert "n = 40 anchors" in html
    assert "leniency" in html
    again = run("report", tmp_path / "run", "--correction", fitted, "--html", tmp_path / "again.html")
    assert again.code == 0
    assert (tmp_path / "again.html").read_text() == html
    run("report", tmp_path / "run", "--html", tmp_path / "raw.html")
    assert "orrected" not in (tmp_path / "raw.html").read_text().split("</style>")[1]


def test_a_result_with_corrected_values_reads_back_as_the_raw_run(
    run: Run, opened: Opened, fitted: Path, tmp_path: Path
) -> None:
    new = talks(tmp_path / "new.jsonl", [3])
    run("score", new, "--correction", fitted, "--json", tmp_path / "r.json", "--out", tmp_path / "run")
    assert load_run(tmp_path / "r.json").verdicts == load_run(tmp_path / "run").verdicts


def test_a_report_refuses_another_judges_correction_and_one_that_would_not_be_seen(
    run: Run, opened: Opened, fitted: Path, tmp_path: Path
) -> None:
    opened.judge = "local-2"
    run("score", talks(tmp_path / "new.jsonl", [3]), "--out", tmp_path / "run")
    ran = run("report", tmp_path / "run", "--correction", fitted, "--html", tmp_path / "r.html")
    assert ran.code == 2
    assert not (tmp_path / "r.html").exists()
    unseen = run("report", tmp_path / "run", "--correction", fitted, "--junit", tmp_path / "r.xml")
    assert unseen.code == 2
    assert "--html" in unseen.err


def test_the_table_of_a_whole_conversation_has_a_column_of_corrected_values() -> None:
    rubric = Rubric.model_validate({**RUBRIC.model_dump(), "unit": "conversation"})
    found = verdict("c1", None, {"empathy": 3, "advice_safety": "truncated"}, rubric=rubric)
    corrected = {("c1", None): {"empathy": CorrectedScore(3.0, 1.84, 0.6, True)}}
    (summary,) = summarise(rubric, units(built([found], [], rubric=rubric)))
    out = io.StringIO()
    open_console(out, width=100).print(unit_table(rubric, summary, width=100, corrected=corrected))
    rows = {line[:14].strip(): line[14:].split() for line in out.getvalue().splitlines()}
    assert rows["Empathy"][:2] == ["3", "1.8!"]
    assert next(line for line in out.getvalue().splitlines() if "Advice safety" in line).split()[2:] == ["?"]
    assert "corr" in out.getvalue().splitlines()[0]


def test_too_few_anchors_are_said_and_move_nothing(run: Run, opened: Opened, fitted: Path, tmp_path: Path) -> None:
    def few(data: dict[str, Any]) -> None:
        data["metrics"]["empathy"].update(status="too_few_anchors", anchors=3, moved=None, warnings=["3 anchors only"])

    mine = changed(fitted, tmp_path / "c.json", few)
    ran = run("score", talks(tmp_path / "n.jsonl", [3]), "--correction", mine, "--json", tmp_path / "r.json")
    assert "n = 3 anchors; not corrected: 3 anchors only" in " ".join(ran.out.split())
    found = strict((tmp_path / "r.json").read_text())["conversations"][0]["verdicts"][0]["corrected"]["empathy"]
    assert (found["value"], found["p_fail"], found["reason"]) == (None, None, "3 anchors only")


def test_the_result_names_the_correction_by_the_hash_of_its_file(fitted: Path) -> None:
    applied = load_applied(fitted)
    assert applied.correction == load_correction(fitted)
    assert applied.file == "correction.json"
    assert applied.to_dict()["sha256"] == hashlib.sha256(fitted.read_bytes()).hexdigest()
