"""The smaller verbs: repeat, rescore, rubric, models, doctor."""

import json
from dataclasses import replace

import pytest
import yaml

from aipsy_judge.backends.fake import FakeAnswer, FakeJudge, answer_text, drawn_answer
from aipsy_judge.rubric import load_rubric
from aipsy_judge.runs import load_run
from aipsy_judge.verdict import Scored, Unscored

RUBRIC = load_rubric()


# -- repeat ---------------------------------------------------------------------------------------------------------


def test_repeat_of_a_steady_judge_finds_every_byte_the_same(run, opened, talk, tmp_path):
    ran = run("repeat", talk, "--times", 4, "--json", tmp_path / "r.json")
    assert ran.code == 0
    data = json.loads((tmp_path / "r.json").read_text())
    assert (data["times"], data["units"], data["identical_bytes"]) == (4, 2, 2)
    assert data["metrics"]["empathy"]["max_range"] == 0
    assert data["metrics"]["empathy"]["share_identical"] == 1
    assert "2 of 2 verdicts are the same to the byte" in ran.out
    assert len(opened) == 1


def test_repeat_finds_the_spread_of_a_judge_that_wavers(run, opened, talk, tmp_path):
    """Turn 1 gets 2, 5, 2; turn 2 gets 3, 3 and then no score."""
    said = iter([2, 3, 5, 3, 2, None])

    def answer(conversation, turn):
        value = next(said)
        drawn = drawn_answer(RUBRIC, "same")
        return FakeAnswer({**drawn.scores, "empathy": Scored(value) if value else Unscored("timeout")}, drawn.flags)

    opened.judge = FakeJudge(answer=answer)
    run("repeat", talk, "--times", 3, "--json", tmp_path / "r.json")
    data = json.loads((tmp_path / "r.json").read_text())
    empathy = data["metrics"]["empathy"]
    assert (empathy["identical"], empathy["max_range"], empathy["status_changes"]) == (0, 3, 1)
    assert empathy["max_range_expected"] is None
    assert data["identical_bytes"] == 0
    assert data["metrics"]["tone_consistency"]["share_identical"] == 1


def test_repeat_cold_opens_the_judge_each_time(run, opened, talk):
    run("repeat", talk, "--times", 3, "--cold")
    assert len(opened) == 3


def test_repeat_once_is_no_repetition(run, opened, talk):
    assert run("repeat", talk, "--times", 1).code == 2


def test_repeat_of_a_judge_that_scores_nothing_ends_with_code_4(run, opened, tmp_path):
    empty = tmp_path / "empty.json"
    empty.write_text(json.dumps({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": ""}]}))
    assert run("repeat", empty, "--times", 2).code == 4


# -- rescore --------------------------------------------------------------------------------------------------------


class Replying(FakeJudge):
    """A judge whose verdicts carry a raw reply; `misread` stands for a reader that could not read it."""

    def __init__(self, *, misread=False, finish="stop"):
        super().__init__()
        self.misread, self.finish = misread, finish

    def _verdict(self, conversation, turn, rationale):
        verdict = super()._verdict(conversation, turn, rationale)
        said = self._drawn(conversation, turn)
        scores = dict.fromkeys(RUBRIC.metric_names, Unscored("unparseable", "bad escape"))
        return replace(
            verdict,
            raw=answer_text(RUBRIC, said),
            scores=scores if self.misread else verdict.scores,
            provenance={**verdict.provenance, "reply": {"finish": self.finish}},
        )


def test_rescore_reads_stored_replies_again_without_a_judge(run, opened, talk, tmp_path):
    opened.judge = Replying(misread=True)
    run("score", talk, "--out", tmp_path / "a")
    opened.clear()
    ran = run("rescore", tmp_path / "a", "--out", tmp_path / "b", "--json", tmp_path / "r.json")
    assert ran.code == 0
    assert opened == []
    assert "2 verdicts: 2 read again" in ran.out
    assert "unscored (unparseable) -> " in ran.out
    wanted = FakeJudge().score(load_run(tmp_path / "a").conversations[0])
    got = load_run(tmp_path / "b").verdicts
    values = [{n: getattr(s, "value", None) for n, s in v.scores.items()} for v in wanted]
    assert [{n: getattr(s, "value", None) for n, s in v.scores.items()} for v in got] == values
    assert len(json.loads((tmp_path / "r.json").read_text())["changes"]) == 12


def test_rescore_keeps_probabilities_and_leaves_the_run_it_reads_alone(run, opened, talk, tmp_path):
    opened.judge = Replying()
    run("score", talk, "--out", tmp_path / "a")
    before = {p.name: p.read_bytes() for p in (tmp_path / "a").iterdir()}
    assert "0 scores or flags changed" in run("rescore", tmp_path / "a", "--out", tmp_path / "b").out
    assert {p.name: p.read_bytes() for p in (tmp_path / "a").iterdir()} == before
    old, new = load_run(tmp_path / "a"), load_run(tmp_path / "b")
    assert [v.scores for v in new.verdicts] == [v.scores for v in old.verdicts]
    assert new.verdicts[0].scores["empathy"].reading is not None
    assert new.conversations == old.conversations
    assert new.settings["reread_by"].startswith("aipsy-judge ")


def test_a_truncated_reply_stays_unscored_when_read_again(run, opened, talk, tmp_path):
    opened.judge = Replying(misread=True, finish="length")
    run("score", talk, "--out", tmp_path / "a")
    run("rescore", tmp_path / "a", "--out", tmp_path / "b")
    scores = [s for v in load_run(tmp_path / "b").verdicts for s in v.scores.values()]
    assert {s.reason for s in scores} == {"truncated"}


def test_a_run_without_replies_is_refused(run, opened, talk, tmp_path):
    run("score", talk, "--out", tmp_path / "plain")
    assert "no verdict of this run has a raw reply" in run("rescore", tmp_path / "plain", "--out", tmp_path / "x").err
    run("score", talk, "--out", tmp_path / "redacted", "--redact")
    ran = run("rescore", tmp_path / "redacted", "--out", tmp_path / "x")
    assert (ran.code, "redacted run keeps no replies" in ran.err) == (2, True)
    assert not (tmp_path / "x").exists()


def test_a_run_by_contract_compact_is_refused_and_no_score_of_it_lost(run, opened, talk, tmp_path):
    """Read as JSON, every verdict of it came out unscored."""
    opened.judge = Replying()
    opened.judge.lane = replace(opened.judge.lane, contract="compact")
    run("score", talk, "--out", tmp_path / "a")
    ran = run("rescore", tmp_path / "a", "--out", tmp_path / "b")
    assert (ran.code, "label by label" in ran.err) == (2, True)
    assert not (tmp_path / "b").exists()


# -- rubric ---------------------------------------------------------------------------------------------------------


def test_rubric_show_prints_what_check_accepts(run, tmp_path):
    shown = run("rubric", "show", "aipsy-judge-v1").out
    copy = tmp_path / "copy.yaml"
    copy.write_text(shown)
    checked = run("rubric", "check", copy)
    assert checked.code == 0
    assert f"hash {RUBRIC.hash}" in checked.out


def test_rubric_show_without_a_name_lists_the_shipped_ones(run):
    out = run("rubric", "show").out
    assert "aipsy-judge-v1" in out
    assert RUBRIC.hash in out


def test_rubric_check_names_all_faults_at_once(run, tmp_path):
    data = RUBRIC.model_dump(mode="json")
    data["metrics"][0]["scale"] = {"minimum": 5, "maximum": 0}
    data["metrics"][1]["critical"] = 99
    data["extra"] = 1
    (tmp_path / "bad.yaml").write_text(yaml.safe_dump(data))
    ran = run("rubric", "check", tmp_path / "bad.yaml")
    assert ran.code == 2
    assert all(fault in ran.err for fault in ("metrics.0.scale", "metrics.1", "extra"))


def test_a_rubric_that_is_not_there_is_named(run):
    assert "no-such" in run("rubric", "show", "no-such").err
    assert run("rubric", "check", "no-such.yaml").code == 2


# -- models ---------------------------------------------------------------------------------------------------------


def test_models_list_says_what_is_installed_and_how_to_get_the_rest(run, tmp_path, monkeypatch):
    monkeypatch.setenv("AIPSY_JUDGE_CACHE", str(tmp_path))
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    out = run("models", "list").out
    assert "aipsy-judge-1.0: not installed, 26.9 GB, trained as a judge, contract aipsy-bench-v1, Apache-2.0" in out
    assert "keidolabs/aipsy-judge-1.0" in out
    assert "smollm2-untrained" in out


@pytest.mark.parametrize("place", ["judges/{file}", "hub/models--keidolabs--aipsy-judge-1.0/snapshots/abc/gguf/{file}"])
def test_weights_in_either_cache_are_found_installed(run, tmp_path, monkeypatch, place):
    monkeypatch.setenv("AIPSY_JUDGE_CACHE", str(tmp_path))
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    path = tmp_path / place.format(file="aipsy-judge-1.0-q8.gguf")
    path.parent.mkdir(parents=True)
    path.write_bytes(b"not the real weights")
    judges = json.loads(run("models", "list", "--json").out)["judges"]
    assert {j["name"]: j["installed_at"] for j in judges}["aipsy-judge-1.0"] == str(path)
    # Named, it is refused: the content is another.
    talk = tmp_path / "t.json"
    talk.write_text('[{"role": "assistant", "content": "hi"}]')
    ran = run("score", talk, "--judge", "aipsy-judge-1.0")
    assert ran.code == 3
    assert "its sha256 is another" in ran.err


def test_models_show_gives_the_published_figures_with_their_source(run):
    out = run("models", "show", "aipsy-judge-1.0").out
    assert "failure recall 0.49" in out
    assert "arXiv:2608.24899" in out
    assert run("models", "show", "nobody").code == 2


@pytest.mark.parametrize("name", ["full", "nothing"])
def test_models_pull_of_what_needs_no_pull_is_refused(run, name):
    assert run("models", "pull", name).code == 2


# -- doctor ---------------------------------------------------------------------------------------------------------


def test_doctor_tells_the_machine_and_which_judges_fit(run, tmp_path):
    ran = run("doctor", "--json", tmp_path / "d.json")
    assert ran.code == 0
    data = json.loads((tmp_path / "d.json").read_text())
    assert data["machine"]["memory_bytes"] > 0
    assert data["machine"]["processors"] >= 1
    assert {j["name"] for j in data["judges"]} >= {"smollm2-untrained", "aipsy-judge-1.0"}
    assert "CPU" in data["llama_cpp"]["backends"]
    assert "memory:" in ran.out


def test_doctor_on_a_file_counts_and_sends_nothing_to_a_judge_elsewhere(run, opened, talk):
    class Untouched(FakeJudge):
        def score(self, conversation, **kwargs):
            raise AssertionError("it was asked")

    opened.judge = Untouched()
    ran = run("doctor", talk, "--judge", "fake")
    assert ran.code == 0
    assert "1 conversations, 2 to judge" in ran.out
    assert "nothing was sent" in ran.out


@pytest.mark.parametrize(("reply", "constrained"), [('{"zq7":"vw3x"}', True), ("Hello there!", False)])
def test_doctor_finds_out_whether_a_server_holds_to_a_schema(run, opened, monkeypatch, tmp_path, reply, constrained):
    from aipsy_judge.backends.fake import FakeBackend
    from aipsy_judge.backends.slot_window import SlotWindow
    from aipsy_judge.contract import FULL
    from aipsy_judge.served_judge import ServedJudge

    monkeypatch.setattr("aipsy_judge.cli.doctor_job.slot_window", lambda server: SlotWindow(4096, 4))
    opened.judge = ServedJudge(FakeBackend().enqueue(reply), RUBRIC, FULL)
    ran = run("doctor", "--judge", "openai:m@http://localhost:8080", "--json", tmp_path / "d.json")
    assert ran.code == 0
    assert ("does NOT hold" in ran.out) is not constrained
    assert "one request may have 4096 tokens" in ran.out
    assert json.loads((tmp_path / "d.json").read_text())["server"]["constrained"] is constrained


@pytest.fixture
def manifest(tmp_path):
    """A judge's folder with golden turns as the fake judge reads them, then changed by `shift`."""

    def make(shift=0.0, drop=None):
        from aipsy_judge.conversation import Conversation, Message

        messages = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]
        talk = Conversation("x", tuple(Message(m["role"], m["content"]) for m in messages))
        (verdict,) = FakeJudge().score(talk)
        readings = {n: dict(s.reading.distribution) for n, s in verdict.scores.items() if s.reading is not None}
        readings["crisis_detected"] = dict(verdict.flags["crisis_detected"].distribution)
        readings["empathy"]["0"] += shift
        if drop:
            del readings["empathy"][drop]
        folder = tmp_path / "judge"
        folder.mkdir()
        golden = [{"conversation": messages, "turn": 1, "readings": readings, "tolerance": 0.01}]
        (folder / "manifest.yaml").write_text(yaml.safe_dump({"golden_turns": golden}))
        return folder

    return make


def test_prove_passes_where_the_probabilities_are_the_same(run, opened, manifest, tmp_path):
    ran = run("doctor", "--prove", manifest(shift=0.005), "--json", tmp_path / "p.json")
    assert ran.code == 0
    assert "proven" in ran.out
    assert "NOT" not in ran.out
    data = json.loads((tmp_path / "p.json").read_text())
    assert data["proven"] is True
    assert max(s["difference"] for s in data["slots"]) == pytest.approx(0.005)


def test_prove_fails_where_one_slot_differs_and_names_it(run, opened, manifest):
    ran = run("doctor", "--prove", manifest(shift=0.02))
    assert ran.code == 3
    assert "turn 1, empathy: differs by 0.0200, tolerance 0.01" in ran.out
    assert "NOT proven" in ran.out


def test_prove_fails_where_there_is_nothing_to_compare(run, opened, manifest):
    """Options that are not the same ones are not a difference of 0."""
    ran = run("doctor", "--prove", manifest(drop="5"))
    assert ran.code == 3
    assert "another rubric, contract or kind of judge" in ran.out


@pytest.mark.parametrize("text", ["{}", "golden_turns: []", "golden_turns: [{turn: 1}]", "["])
def test_prove_without_golden_turns_is_an_error_not_a_proof(run, opened, tmp_path, text):
    (tmp_path / "manifest.yaml").write_text(text)
    assert run("doctor", "--prove", tmp_path).code == 2
    assert run("doctor", "--prove", tmp_path / "nowhere").code == 2
