"""From weights to a judge's folder: verified, described, carded, opened; and what refuses on the way."""

from __future__ import annotations

import json

import pytest
import yaml
from click.testing import CliRunner
from small_gguf import write_small_gguf

from aipsy_judge.conversation import Conversation, Message
from aipsy_judge.errors import InputError, WeightsError
from aipsy_judge.judge import JudgeOptions
from aipsy_judge.manifest import read_manifest
from aipsy_judge.opening import open_judge
from quantize.assemble import assemble, main
from quantize.card import card_text
from quantize.card import main as card
from quantize.description import load_description
from quantize.verify import main as verify

TALK = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]
LENIENT = "kl_mean: {most: 0.02, why: for tests}\ntemplate_differs: {most: 0, why: for tests}\n"


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("AIPSY_JUDGE_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def parts(tmp_path):
    """A model's full weights and the same at 8 bits, a talk, and limits that such a model can meet."""
    write_small_gguf(tmp_path / "full.gguf")
    write_small_gguf(tmp_path / "small.gguf", quantised=True)
    (tmp_path / "talk.json").write_text(json.dumps({"id": "t", "messages": TALK}))
    (tmp_path / "limits.yaml").write_text(LENIENT)
    return tmp_path


def verify_it(parts, *more, out="verify.json", full="full.gguf", candidate="small.gguf", floor=0.0):
    words = [
        "--full",
        parts / full,
        "--candidate",
        parts / candidate,
        "--contract",
        "compact",
        "--threads",
        "1",
    ]
    words += ["--conversations", parts / "talk.json", "--out", parts / out, "--floor", floor, *more]
    return CliRunner().invoke(verify, [str(w) for w in words])


def described(parts, **changes):
    data = {
        "name": "small",
        "about": "a judge for tests",
        "model": str(parts / "small.gguf"),
        "base": {"name": "nobody/small", "licence": "Apache-2.0"},
        "licence": "Apache-2.0",
        "contract": "compact",
        "verify": str(parts / "verify.json"),
        "legal_mass_floor": 0.0,
    }
    path = parts / "judge.yaml"
    path.write_text(yaml.safe_dump({**data, **changes}))
    return load_description(path)


def test_the_same_weights_are_near_but_an_untrained_model_is_no_judge(parts):
    write_small_gguf(parts / "same.gguf", texts={"general.name": "the same weights in another file"})
    done = verify_it(parts, "--bare", parts / "full.gguf", candidate="same.gguf")
    assert done.exit_code == 1, done.output
    found = json.loads((parts / "verify.json").read_text())
    failed = {c["figure"] for c in found["verified"]["checks"] if not c["passed"]}
    assert {"clean_parse", "adapter_effect", "units", "answers"} <= failed
    figures = found["detail"]["figures"]
    assert (figures["kl_mean"], figures["top1_agreement"], figures["adapter_effect"]) == (0.0, 1.0, 0.0)
    assert (figures["metric_same"], figures["expected_drift"], figures["flags_lost"]) == (1.0, 0.0, 0.0)
    assert "FAIL clean_parse" in done.output
    assert figures["flags_lost_of_set"] is None
    assert "FAIL flags_lost_of_set could not be had, at most 0.1 (a flag is set nowhere" in done.output


def test_without_the_bare_base_nothing_shows_that_training_did_anything(parts):
    verify_it(parts)
    checks = {c["figure"]: c for c in json.loads((parts / "verify.json").read_text())["verified"]["checks"]}
    assert checks["adapter_effect"]["value"] is None
    assert not checks["adapter_effect"]["passed"]


def test_other_weights_are_told_apart_and_another_vocabulary_cannot_be_followed(parts):
    verify_it(parts)
    figures = json.loads((parts / "verify.json").read_text())["detail"]["figures"]
    assert figures["kl_mean"] > 0.0
    assert figures["vocabulary_differs"] == 0.0
    from small_gguf import spm_vocabulary

    write_small_gguf(parts / "spm.gguf", vocabulary=spm_vocabulary())
    verify_it(parts, candidate="spm.gguf")
    figures = json.loads((parts / "verify.json").read_text())["detail"]["figures"]
    assert figures["vocabulary_differs"] > 0
    assert figures["kl_mean"] is None


def test_a_judge_that_passed_is_blessed_and_opens_by_its_folder_with_its_golden_turns(parts):
    assert verify_it(parts, "--limits", parts / "limits.yaml").exit_code == 0
    told = described(parts, golden=[str(parts / "talk.json")], not_validated={"empathy": "too few turns"})
    made = assemble(told, parts / "models", limits=parts / "limits.yaml", threads=1)
    folder = parts / "models" / "small"
    assert made.blessed
    assert read_manifest(folder) == made
    assert made.quantisation == "Q8_0"
    assert made.context_tokens == 512
    with open_judge(folder, options=JudgeOptions(threads=1)) as judge:
        (verdict,) = judge.score(Conversation("t", tuple(Message(m["role"], m["content"]) for m in TALK)))
        assert judge.lane.judge.startswith("small@")
        assert judge.lane.contract == "compact"
    assert verdict.scores["empathy"].reason == "not_validated"
    (golden,) = made.golden_turns
    assert golden.readings["empathy"] == pytest.approx(dict(verdict.scores["empathy"].reading.distribution), abs=1e-5)
    text = (folder / "README.md").read_text()
    assert "empathy is not scored: too few turns" in text
    (near,) = (c.value for c in made.verify.checks if c.figure == "kl_mean")
    assert 0 < near < 0.02
    assert f"| kl_mean | {near:.4g} | ≤ 0.02 | ok |" in text
    assert "human review" in text
    assert "Not blessed" not in text


def test_a_judge_that_failed_is_kept_but_not_blessed_and_says_so_wherever_it_is_used(parts):
    verify_it(parts)
    made = assemble(described(parts), parts / "models", threads=1)
    folder = parts / "models" / "small"
    assert not made.blessed
    assert "**Not blessed: " in (folder / "README.md").read_text()
    with pytest.raises(WeightsError, match="not blessed"):
        open_judge(folder)
    with open_judge(folder, options=JudgeOptions(threads=1, unblessed=True)) as judge:
        assert "NOT BLESSED" in judge.remarks[0]
        (verdict,) = judge.score(Conversation("t", tuple(Message(m["role"], m["content"]) for m in TALK)))
    assert "unblessed" in verdict.notes


def test_score_refuses_what_is_not_blessed_by_that_word(parts):
    from aipsy_judge.cli.main import cli

    verify_it(parts)
    assemble(described(parts), parts / "models", threads=1)
    words = ["score", str(parts / "talk.json"), "--judge", str(parts / "models" / "small"), "--threads", "1"]
    refused = CliRunner().invoke(cli, words)
    assert isinstance(refused.exception, WeightsError)
    assert "--unblessed" in refused.exception.hint
    done = CliRunner().invoke(cli, [*words, "--unblessed"])
    assert done.exit_code == 0, done.output
    assert "NOT BLESSED" in done.output
    assert "did not pass its checks" in done.output


def test_what_was_never_verified_or_was_held_back_is_not_blessed(parts):
    assert not assemble(described(parts, verify=None), parts / "models", threads=1).blessed
    verify_it(parts, "--limits", parts / "limits.yaml")
    held = described(parts, held_back="its raters disagree")
    assert not assemble(held, parts / "models", limits=parts / "limits.yaml", threads=1).blessed


def test_a_verify_by_other_limits_or_of_other_files_blesses_nothing(parts):
    verify_it(parts, "--limits", parts / "limits.yaml")
    with pytest.raises(InputError, match="other limits"):
        assemble(described(parts), parts / "models", threads=1)
    other = described(parts, model=str(parts / "full.gguf"))
    with pytest.raises(InputError, match="other files"):
        assemble(other, parts / "models", limits=parts / "limits.yaml", threads=1)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"model": "no.gguf"}, "no such model"),
        ({"model": "no_package:x.gguf"}, "not installed"),
        ({"model": "__main__:x.gguf"}, "not installed"),
        ({"golden": 3}, "golden"),
        ({"not_validated": {"empthy": "too few"}}, "has no empthy"),
        ({"operating_points": {"foo": {"p_fail": 0.5}}}, "has no foo"),
        ({"set_from": {"empathy": 0.5}}, "has no empathy"),
        ({"context_tokens": 10**12}, "the model was made for"),
        ({"extra": 1}, "extra"),
    ],
)
def test_a_description_that_names_what_is_not_there_is_one_error(parts, change, said):
    with pytest.raises(InputError) as caught:
        assemble(described(parts, verify=None, **change), parts / "models", threads=1)
    assert said in str(caught.value)


def test_the_card_is_written_again_from_the_manifest_alone(parts):
    described(parts, verify=None)
    words = [str(parts / "judge.yaml"), "--models", str(parts / "models"), "--threads", "1"]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, done.output
    assert "NOT blessed" in done.output
    folder = parts / "models" / "small"
    before = (folder / "README.md").read_text()
    assert CliRunner().invoke(card, [str(folder)]).exit_code == 0
    assert (folder / "README.md").read_text() == before == card_text(read_manifest(folder))


def test_an_adapter_does_not_take_the_place_of_a_model_of_the_same_name(parts):
    (parts / "other").mkdir()
    (parts / "other" / "small.gguf").write_bytes(b"GGUF")
    told = described(parts, verify=None, adapter=str(parts / "other" / "small.gguf"))
    with pytest.raises(InputError, match=r"both called small\.gguf"):
        assemble(told, parts / "models", threads=1)
    assert not (parts / "models").exists()


def test_a_file_that_is_no_model_takes_no_name_in_the_folder(parts):
    assemble(described(parts, verify=None), parts / "models", threads=1)
    folder = parts / "models" / "small"
    before = {p.name: p.read_bytes() for p in folder.iterdir()}
    (parts / "cut").mkdir()
    (parts / "cut" / "small.gguf").write_bytes((parts / "small.gguf").read_bytes()[:-100])
    with pytest.raises(WeightsError):
        assemble(described(parts, verify=None, model=str(parts / "cut" / "small.gguf")), parts / "models", threads=1)
    assert {p.name: p.read_bytes() for p in folder.iterdir()} == before


def test_a_damaged_candidate_is_told_before_the_full_weights_are_watched(parts):
    (parts / "cut.gguf").write_bytes((parts / "small.gguf").read_bytes()[:-100])
    done = verify_it(parts, candidate="cut.gguf")
    assert done.exit_code == 3
    assert "cut.gguf: " in done.output
    assert "free answers" not in done.output
    assert not (parts / "verify.json").exists()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"contract": "full"}, "another contract than"),
        ({"window": 3}, "another window than"),
        ({"legal_mass_floor": 0.5}, "another legal mass floor than"),
        ({"contract": "full", "window": 3}, "another contract, window than"),
    ],
)
def test_a_verify_that_asked_otherwise_blesses_nothing(parts, change, said):
    assert verify_it(parts, "--limits", parts / "limits.yaml").exit_code == 0
    with pytest.raises(InputError, match=said) as caught:
        assemble(described(parts, **change), parts / "models", limits=parts / "limits.yaml", threads=1)
    assert "--floor" in caught.value.hint


def test_the_floor_that_is_proven_is_the_one_that_ships(parts):
    assert verify_it(parts, "--limits", parts / "limits.yaml", floor=0.4).exit_code == 0
    told = described(parts, legal_mass_floor=0.4)
    made = assemble(told, parts / "models", limits=parts / "limits.yaml", threads=1)
    assert (made.blessed, made.legal_mass_floor, made.verify.asked.legal_mass_floor) == (True, 0.4, 0.4)


def test_a_verify_that_took_a_metric_for_held_back_proves_a_judge_that_holds_it_back(parts):
    assert verify_it(parts, "--limits", parts / "limits.yaml", "--held-back", "empathy").exit_code == 0
    limits = parts / "limits.yaml"
    made = assemble(described(parts, not_validated={"empathy": "few"}), parts / "models", limits=limits, threads=1)
    assert (made.blessed, made.verify.asked.held_back) == (True, ("empathy",))
    with pytest.raises(InputError, match="took empathy for held back, and this judge tells its value"):
        assemble(described(parts), parts / "models", limits=limits, threads=1)
    assert "has no metric empthy" in verify_it(parts, "--held-back", "empthy").output


def test_a_record_from_before_floors_were_recorded_proves_the_default_of_that_time(parts):
    assert verify_it(parts, "--limits", parts / "limits.yaml", floor=0.05).exit_code == 0
    data = json.loads((parts / "verify.json").read_text())
    del data["verified"]["asked"]["legal_mass_floor"]
    (parts / "verify.json").write_text(json.dumps(data))
    limits = parts / "limits.yaml"
    assert assemble(described(parts, legal_mass_floor=0.05), parts / "models", limits=limits, threads=1).blessed
    with pytest.raises(InputError, match="legal mass floor"):
        assemble(described(parts, legal_mass_floor=0.06), parts / "models", limits=limits, threads=1)


@pytest.mark.parametrize("lie", [{"value": 5.0}, {"value": 5.0, "most": 50.0}, {"figure": "made_up"}])
def test_a_verify_whose_figures_were_edited_blesses_nothing(parts, lie):
    assert verify_it(parts, "--limits", parts / "limits.yaml").exit_code == 0
    data = json.loads((parts / "verify.json").read_text())
    data["verified"]["checks"][0] |= lie
    (parts / "verify.json").write_text(json.dumps(data))
    with pytest.raises(InputError, match="not what the limits come to"):
        assemble(described(parts), parts / "models", limits=parts / "limits.yaml", threads=1)


def test_a_prompt_beyond_the_models_context_is_an_error_not_a_figure(parts):
    (parts / "talk.json").write_text(
        json.dumps({"id": "t", "messages": [{**TALK[0], "content": "hi " * 5000}, TALK[1]]})
    )
    done = verify_it(parts)
    assert done.exit_code == 3
    assert "the model was made for" in done.output
    assert not (parts / "verify.json").exists()


@pytest.mark.parametrize(
    ("full", "candidate", "said"),
    [
        ("small.gguf", "small.gguf", "quantised: 'token_embd.weight' is stored as Q8_0"),
        ("small.gguf", "full.gguf", "quantised: 'token_embd.weight' is stored as Q8_0"),
        ("full.gguf", "full.gguf", "held against itself"),
    ],
)
def test_nothing_is_held_against_quantised_weights_or_against_itself(parts, full, candidate, said):
    done = verify_it(parts, "--limits", parts / "limits.yaml", full=full, candidate=candidate)
    assert done.exit_code in (2, 3)
    assert said in done.output
    assert "next: " in done.output
    assert "free answers" not in done.output
    assert not (parts / "verify.json").exists()


def test_a_record_of_weights_held_against_themselves_blesses_nothing(parts):
    assert verify_it(parts, "--limits", parts / "limits.yaml").exit_code == 0
    data = json.loads((parts / "verify.json").read_text())
    data["verified"]["full"] = data["verified"]["candidate"]
    (parts / "verify.json").write_text(json.dumps(data))
    with pytest.raises(InputError, match="held against itself"):
        assemble(described(parts), parts / "models", limits=parts / "limits.yaml", threads=1)


@pytest.mark.parametrize("golden", ["nowhere.json", "silent.json"])
def test_a_judge_whose_golden_turns_could_not_be_read_is_not_blessed(parts, golden):
    assert verify_it(parts, "--limits", parts / "limits.yaml").exit_code == 0
    (parts / "silent.json").write_text(json.dumps({"id": "t", "messages": TALK[:1]}))
    told = described(parts, golden=[str(parts / golden)])
    with pytest.raises(InputError):
        assemble(told, parts / "models", limits=parts / "limits.yaml", threads=1)
    assert not read_manifest(parts / "models" / "small").blessed


def test_a_model_in_the_place_of_an_adapter_is_refused(parts):
    write_small_gguf(parts / "other.gguf")
    with pytest.raises(WeightsError, match="not a LoRA adapter"):
        assemble(described(parts, verify=None, adapter=str(parts / "other.gguf")), parts / "models", threads=1)
