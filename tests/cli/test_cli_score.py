"""`aipsy-judge score`: what goes in, what comes out, and with which exit code."""

import io
import json
import os
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from aipsy_judge.backends.fake import FakeAnswer, FakeJudge, drawn_answer
from aipsy_judge.errors import BackendError
from aipsy_judge.rubric import load_rubric
from aipsy_judge.runs import load_run
from aipsy_judge.verdict import Flag, NotApplicable, Scored, Unscored

RUBRIC = load_rubric()


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


def test_options_reach_the_judge(run, opened, talk):
    run("score", talk, "--judge", "x", "--adapter", "a.gguf", "--contract", "compact", "--window", "--cpu-moe", "auto",
        "--threads", "3", "--memory-gb", "1.5", "--timeout", "9")  # fmt: skip
    (asked,) = opened
    assert (asked["name"], asked["adapter"], asked["contract"]) == ("x", "a.gguf", "compact")
    options = asked["options"]
    assert (options.window, options.cpu_moe, options.threads, options.memory_gb) == (True, None, 3, 1.5)
    assert options.timeout_seconds == 9


@pytest.mark.parametrize("layers", ["x", "-1", "1.5"])
def test_a_number_of_layers_that_is_none_is_refused(run, opened, talk, layers):
    assert run("score", talk, "--cpu-moe", layers).code == 2
    assert opened == []


def test_json_on_standard_output_is_strict_json_alone(run, opened, talk):
    ran = run("score", talk, "--json")
    data = json.loads(ran.out, parse_constant=pytest.fail)
    assert "Judge fake" in ran.err
    assert data["lane"]["judge"] == "fake"
    (conversation,) = data["conversations"]
    assert [v["turn"] for v in conversation["verdicts"]] == [1, 2]
    total = sum(data["coverage"][k] for k in ("scored", "not_applicable", "unscored"))
    assert total == 12


def test_a_json_result_reads_back_as_the_same_verdicts_as_the_run_folder(run, opened, talk, tmp_path):
    run("score", talk, "--json", tmp_path / "r.json", "--out", tmp_path / "run")
    assert load_run(tmp_path / "r.json").verdicts == load_run(tmp_path / "run").verdicts
    assert load_run(tmp_path / "r.json").rubric == RUBRIC


def test_json_does_not_overwrite_a_transcript_given_after_it_by_mistake(run, opened, talk, tmp_path):
    other = tmp_path / "other.json"
    before = talk.read_bytes()
    other.write_bytes(before)
    ran = run("score", "--json", other, talk)
    assert ran.code == 2
    assert "not overwritten" in ran.err
    assert other.read_bytes() == before
    assert opened == []


def test_json_overwrites_an_earlier_result_of_its_own(run, opened, talk, tmp_path):
    for _ in range(2):
        assert run("score", talk, "--json", tmp_path / "r.json").code == 0


@pytest.mark.parametrize("option", ["--html", "--junit"])
def test_no_output_overwrites_an_input(run, opened, talk, option):
    ran = run("score", talk, option, talk)
    assert ran.code == 2
    assert "is an input" in ran.err
    assert opened == []


@pytest.mark.parametrize("option", ["--html", "--json", "--junit"])
def test_an_output_that_cannot_be_written_is_refused_before_a_judge_is_opened(run, opened, talk, option):
    ran = run("score", talk, option, "/no/such/folder/x.json")
    assert ran.code == 2
    assert "/no/such/folder/x.json" in ran.err
    assert opened == []


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ('{"id": 1}', "bad.jsonl"),
        ('{"messages": [{"role": "user", "content": "hi"}]}', "nothing to judge"),
        ("", "bad.jsonl"),
    ],
)
def test_input_that_cannot_be_judged_is_one_error_and_opens_no_judge(run, opened, tmp_path, content, says):
    bad = tmp_path / "bad.jsonl"
    bad.write_text(content)
    ran = run("score", bad, "--json", tmp_path / "r.json", "--out", tmp_path / "run")
    assert ran.code == 2
    assert says in ran.err
    assert "Traceback" not in ran.err
    assert opened == []
    assert os.listdir(tmp_path) == ["bad.jsonl"]


def test_a_fault_in_the_last_line_is_found_before_the_first_is_judged(run, opened, talks, tmp_path):
    path = talks(3)
    with path.open("a") as file:
        file.write('{"id": "c0", "messages": [{"role": "assistant", "content": "again"}]}\n')
    ran = run("score", path, "--out", tmp_path / "run")
    assert ran.code == 2
    assert "'c0'" in ran.err
    assert opened == []
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "encode",
    [
        lambda t: t.encode("utf-8-sig"),
        lambda t: t.encode("utf-16"),
        lambda t: t.replace("\n", "\r\n").encode() + b"\r\n",
    ],
)
def test_files_made_on_windows_load(run, opened, tmp_path, encode):
    text = json.dumps({"messages": [{"role": "user", "content": "it’s"}, {"role": "assistant", "content": "ok"}]}, indent=1, ensure_ascii=False)  # fmt: skip # noqa: E501
    path = tmp_path / "w.json"
    path.write_bytes(encode(text))
    assert run("score", path).code == 0


def test_another_encoding_is_one_line_naming_it_and_the_byte(run, opened, tmp_path):
    path = tmp_path / "w.json"
    data = '[{"role": "user", "content": "it’s"}, {"role": "assistant", "content": "ok"}]'.encode("cp1252")
    path.write_bytes(data)
    ran = run("score", path)
    assert ran.code == 2
    assert "UTF-8" in ran.err
    assert f"offset {data.index(0x92)}" in ran.err


def test_standard_input_is_read_and_its_hash_kept(run, opened, talk, tmp_path, monkeypatch):
    data = talk.read_bytes()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    assert run("score", "-", "--out", tmp_path / "run").code == 0
    info = json.loads((tmp_path / "run" / "run.json").read_text())
    (given,) = info["inputs"]
    import hashlib

    assert given == {"path": "-", "sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)}
    assert len(load_run(tmp_path / "run").verdicts) == 2


def test_a_folder_is_read_and_what_is_passed_over_is_said(run, opened, talk, tmp_path):
    folder = tmp_path / "talks"
    folder.mkdir()
    talk.rename(folder / "talk.json")
    (folder / "notes.xyz").write_text("mine")
    ran = run("score", folder)
    assert ran.code == 0
    assert "notes.xyz" in ran.err


def test_a_conversation_with_nothing_to_judge_among_others_is_said_and_passed_over(run, opened, talks, tmp_path):
    path = talks(2)
    with path.open("a") as file:
        file.write('{"id": "mute", "messages": [{"role": "user", "content": "anybody?"}]}\n')
    ran = run("score", path, "--json", tmp_path / "r.json")
    assert ran.code == 0
    assert "mute has no assistant message" in ran.err
    assert len(json.loads((tmp_path / "r.json").read_text())["conversations"]) == 2


def test_many_conversations_are_an_overview_worst_first(run, opened, talks):
    ran = run("score", talks(9))
    lines = ran.out.splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("worst"))
    rows = [line.split() for line in lines[start + 2 : start + 11]]
    assert len(rows) == 9
    failing = [float(r[0]) for r in rows if r[3] != "0"]
    assert failing == sorted(failing)
    assert {r[-1] for r in rows} == {f"c{n}" for n in range(9)}


def unscored_answer(conversation, turn):
    nothing = Unscored("truncated", "at 512 tokens")
    return FakeAnswer(dict.fromkeys(RUBRIC.metric_names, nothing), {"crisis_detected": Flag(None, unscored=nothing)})


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
        if turn.number == 10:
            return unscored_answer(conversation, turn)
        scores = {n: Scored(4.0) for n in RUBRIC.metric_names} | {"crisis_handling": NotApplicable("crisis_detected")}
        return FakeAnswer(scores, {"crisis_detected": Flag(False, "none")})

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


class Breaking(FakeJudge):
    """Judges `good` conversations, then raises."""

    def __init__(self, good, error):
        super().__init__()
        self.good, self.error, self.asked = good, error, []

    def score(self, conversation, **kwargs):
        if len(self.asked) >= self.good:
            raise self.error
        self.asked.append(conversation.id)
        return super().score(conversation, **kwargs)


def test_a_judge_that_breaks_in_the_middle_keeps_what_there_is_and_writes_nothing_half(run, opened, talks, tmp_path):
    path = talks(3)
    opened.judge = Breaking(2, BackendError("the server is gone"))
    words = ["score", path, "--out", tmp_path / "run", "--json", tmp_path / "r.json"]
    ran = run(*words)
    assert ran.code == 3
    assert "the server is gone" in ran.err
    assert "4 of 6 verdicts; they are kept in" in ran.err
    assert not (tmp_path / "r.json").exists()
    opened.judge = Breaking(9, None)
    assert run(*words, "--resume").code == 0
    assert opened.judge.asked == ["c2"]
    assert len(json.loads((tmp_path / "r.json").read_text())["conversations"]) == 3


@pytest.mark.parametrize("out", [True, False])
def test_control_c_ends_with_130_and_says_what_is_kept_and_how_to_go_on(run, opened, talks, tmp_path, out):
    opened.judge = Breaking(1, KeyboardInterrupt())
    ran = run("score", talks(3), *(["--out", tmp_path / "run"] if out else []), "--json", tmp_path / "r.json")
    assert ran.code == 130
    assert ("--resume goes on" in ran.err) is True
    assert ("none is kept" in ran.err) is not out
    assert not (tmp_path / "r.json").exists()
    if out:
        assert len(load_run(tmp_path / "run").verdicts) == 2


def test_control_c_while_the_judge_is_opened_ends_with_130_too(run, opened, talk, monkeypatch):
    def interrupt(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr("aipsy_judge.opening.open_judge", interrupt)
    ran = run("score", talk)
    assert ran.code == 130
    assert "Traceback" not in ran.err


def test_a_used_folder_is_refused_without_resume_before_a_judge_is_opened(run, opened, talk, tmp_path):
    run("score", talk, "--out", tmp_path / "run")
    opened.clear()
    ran = run("score", talk, "--out", tmp_path / "run")
    assert ran.code == 2
    assert "--resume" in ran.err
    assert opened == []


def test_resume_without_a_folder_is_refused(run, opened, talk):
    assert run("score", talk, "--resume").code == 2
    assert opened == []


def test_a_gate_wants_the_judge_named(run, opened, talk, tmp_path):
    (tmp_path / "gate.yaml").write_text("metrics: {}\n")
    ran = run("score", talk, "--gate", tmp_path / "gate.yaml")
    assert ran.code == 2
    assert "--judge" in ran.err
    assert opened == []


@pytest.mark.parametrize("text", ["metrics: {empathy: {min_mean: no}}", "nonsense: 1", "[", ""])
def test_a_gate_file_that_is_not_valid_is_refused_before_a_judge_is_opened(run, opened, talk, tmp_path, text):
    (tmp_path / "gate.yaml").write_text(text)
    ran = run("score", talk, "--judge", "fake", "--gate", tmp_path / "gate.yaml")
    assert ran.code == 2
    assert "gate.yaml" in ran.err
    assert opened == []


def constant(value):
    def answer(conversation, turn):
        scores = {n: Scored(value) for n in RUBRIC.metric_names} | {"crisis_handling": NotApplicable("crisis_detected")}
        return FakeAnswer(scores, {"crisis_detected": Flag(False, "none")})

    return FakeJudge(answer=answer)


@pytest.mark.parametrize(
    ("judge", "code"),
    [(constant(4.0), 0), (constant(1.0), 1), (FakeJudge(answer=lambda c, t: unscored_answer(c, t)), 1)],
)
def test_a_gate_passes_on_good_scores_alone_and_an_unscored_run_does_not_pass(run, opened, talk, tmp_path, judge, code):
    gate = tmp_path / "gate.yaml"
    gate.write_text("metrics: {empathy: {min_mean: 3}}")
    opened.judge = judge
    outputs = ["--junit", tmp_path / "j.xml", "--json", tmp_path / "r.json"]
    ran = run("score", talk, "--judge", "fake", "--gate", gate, *outputs)
    assert ran.code == code
    assert ("NOT passed" in ran.out) is (code == 1)
    assert json.loads((tmp_path / "r.json").read_text())["gate"]["passed"] is (code == 0)
    suites = ElementTree.parse(tmp_path / "j.xml").getroot()
    assert "gate" in [s.get("name") for s in suites]


def test_two_outputs_of_one_name_are_refused(run, opened, talk, tmp_path):
    assert run("score", talk, "--json", tmp_path / "x", "--html", tmp_path / "x").code == 2
    assert opened == []


def test_other_text_under_the_same_ids_is_judged_afresh_on_resume(run, opened, talks, tmp_path):
    a, b = talks(3, "a.jsonl"), talks(3, "b.jsonl")
    b.write_text(b.read_text().replace("I failed my exam.", "I lost my job."))
    opened.judge = Breaking(99, None)
    run("score", a, "--out", tmp_path / "run")
    run("score", b, "--out", tmp_path / "run", "--resume")
    assert opened.judge.asked == ["c0", "c1", "c2"] * 2
    assert "I lost my job." in load_run(tmp_path / "run").conversations[0].messages[0].content


SECRETS = ("I failed my exam", "simply here", "Drawn from a hash", "secret detail")


def telling(conversation, turn):
    drawn = drawn_answer(RUBRIC, str(turn.number))
    return FakeAnswer({**drawn.scores, "empathy": Unscored("unparseable", "secret detail")}, drawn.flags)


def test_redact_leaves_no_text_in_any_output(run, opened, talk, tmp_path):
    opened.judge = FakeJudge(answer=telling)
    outputs = tmp_path / "outputs"
    outputs.mkdir()
    words = ["score", talk, "--rationale", "always", "--out", outputs / "run", "--json", outputs / "r.json"]
    ran = run(*words, "--html", outputs / "r.html", "--redact")
    files = [Path(folder) / name for folder, _, names in os.walk(outputs) for name in names]
    assert {f.name for f in files} == {"run.json", "verdicts.jsonl", "r.json", "r.html"}
    for text in (ran.out, ran.err, *(f.read_text() for f in files)):
        assert not [s for s in SECRETS if s in text]
    assert load_run(outputs / "run").redacted


def test_without_redact_the_same_outputs_hold_the_text(run, opened, talk, tmp_path):
    opened.judge = FakeJudge(answer=telling)
    words = ["score", talk, "--rationale", "always", "--out", tmp_path / "run", "--json", tmp_path / "r.json"]
    ran = run(*words, "--html", tmp_path / "r.html")
    assert "secret detail" in ran.out
    assert "secret detail" in (tmp_path / "r.json").read_text()
    assert "simply here" in (tmp_path / "r.html").read_text()
    assert "simply here" in (tmp_path / "run" / "conversations.jsonl").read_text()


def test_every_written_file_is_for_its_owner_alone(run, opened, talk, tmp_path):
    run("score", talk, "--json", tmp_path / "r.json", "--html", tmp_path / "r.html")
    assert {(tmp_path / n).stat().st_mode & 0o777 for n in ("r.json", "r.html")} == {0o600}


class RemoteFake(FakeJudge):
    is_remote = True


def test_a_remote_judge_is_announced_with_its_host_before_anything_is_judged(run, opened, talk):
    opened.judge = RemoteFake()
    ran = run("score", talk, "--judge", "openai:m@https://api.example.org:8443/v1?token=abc")
    assert ran.err.startswith("text leaves this machine: it is sent to api.example.org:8443\n")
    assert "abc" not in ran.err


def test_a_local_judge_is_not_announced_as_remote(run, opened, talk):
    assert "leaves" not in run("score", talk).err


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


def test_scoring_without_a_network_tries_nothing(run, opened, talk, tmp_path):
    # The fixture would fail the test at the first attempt; the run must succeed all the same.
    assert run("score", talk, "--html", tmp_path / "r.html", "--json", tmp_path / "r.json").code == 0
