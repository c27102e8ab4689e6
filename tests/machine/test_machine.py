"""What this machine has, and which judges fit it. Files and outputs of other systems are made up here."""

import hashlib
from pathlib import Path

import pytest
from judge_manifests import manifest_data, write_judge

from aipsy_judge.errors import InputError, ManifestError, WeightsError
from aipsy_judge.judge_folder import judge_folder
from aipsy_judge.known_judges import fit, installed_at, known_judge, known_judges
from aipsy_judge.machine import GIB, Gpu, Machine, memory_bytes, nvidia_gpus, parse_system_info, this_machine
from aipsy_judge.manifest import read_manifest
from aipsy_judge.open_local import settle
from aipsy_judge.rubric import load_rubric
from aipsy_judge.weights import find_weights

MEMINFO = "MemTotal:       16384000 kB\nMemFree: 1 kB\nMemAvailable:    8192000 kB\n"


def fake_root(tmp_path, **files):
    for name, text in files.items():
        path = tmp_path / {"meminfo": "proc/meminfo", "max": "sys/fs/cgroup/memory.max", "current": "sys/fs/cgroup/memory.current", "v1": "sys/fs/cgroup/memory/memory.limit_in_bytes"}[name]  # fmt: skip # noqa: E501
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


@pytest.mark.parametrize(
    ("files", "total", "free"),
    [
        ({}, 16384000 * 1024, 8192000 * 1024),
        ({"max": "max\n"}, 16384000 * 1024, 8192000 * 1024),
        ({"max": f"{4 * GIB}\n", "current": f"{GIB}\n"}, 4 * GIB, 3 * GIB),  # a container's limit
        ({"v1": "9223372036854771712"}, 16384000 * 1024, 8192000 * 1024),  # "none", as the older version says it
        ({"v1": f"{2 * GIB}"}, 2 * GIB, 2 * GIB),
    ],
)
def test_memory_is_what_this_process_may_use(tmp_path, files, total, free):
    assert memory_bytes(fake_root(tmp_path, meminfo=MEMINFO, **files)) == (total, free)


def test_this_machine_is_described_without_an_error():
    machine = this_machine()
    assert machine.memory_bytes > GIB // 4
    assert machine.processors >= 1
    assert machine.processor


@pytest.mark.parametrize(
    ("output", "gpus"),
    [
        (None, ()),
        ("", ()),
        ("NVIDIA-SMI has failed because it couldn't communicate with the driver\n", ()),
        ("RTX 4060 Ti, 16380\nNVIDIA H200, 143771\n", (("RTX 4060 Ti", 16380), ("NVIDIA H200", 143771))),
        ("Odd, name, 8192\n", (("Odd, name", 8192),)),
    ],
)  # fmt: skip
def test_gpus_are_read_from_what_the_driver_says(output, gpus):
    assert nvidia_gpus(lambda command: output) == tuple(Gpu(name, mib << 20) for name, mib in gpus)


def test_backends_of_a_build_are_told_apart_from_features_of_the_processor():
    text = "CUDA : ARCHS = 890 | USE_GRAPHS = 1 | CPU : SSE3 = 1 | AVX2 = 0 | REPACK = 1 | "
    assert parse_system_info(text) == (("CUDA", "CPU"), ("SSE3", "REPACK"))


def machine(gib, *, system="Linux x86_64", video=None):
    gpus = () if video is None else (Gpu("a GPU", int(video * GIB)),)
    return Machine(system, "a processor", int(gib * GIB), None, 8, gpus)


@pytest.mark.parametrize(
    ("where", "word"),
    [
        (machine(64, system="Darwin arm64"), "ready"),
        (machine(48, system="Darwin arm64"), "ready"),
        (machine(36, system="Darwin arm64"), "slow"),
        (machine(24, system="Darwin arm64"), "insufficient"),
        (machine(64, system="Darwin x86_64"), "slow"),  # no shared memory for a GPU there
        (machine(64, video=16), "ready"),
        (machine(64, video=15.6), "ready"),  # what a card sold as 16 GB shows
        (machine(32, video=24), "tight"),
        (machine(64, video=12), "slow"),
        (machine(32), "slow"),
        (machine(24), "insufficient"),
        (machine(24, video=8), "insufficient"),
    ],
)
def test_the_published_bands_of_the_large_judge(where, word):
    assert fit(known_judge("aipsy-judge-1.0"), where).word == word


@pytest.mark.parametrize(("gib", "word"), [(0.5, "insufficient"), (2, "ready")])
def test_the_small_judge_needs_memory_alone(gib, word):
    assert fit(known_judge("smollm2-untrained"), machine(gib)).word == word


def test_the_published_sha256_and_contract_of_the_large_judge():
    judge = known_judge("aipsy-judge-1.0")
    assert judge.file.sha256 == "9c38ef16028a8782d69e605300e40d51224e5b881fc14746f12b5afe84f4cf7d"
    assert (judge.contract, judge.licence, judge.trained) == ("aipsy-bench-v1", "Apache-2.0", True)


def test_an_unknown_judge_is_refused_with_the_names_there_are():
    with pytest.raises(InputError, match="no-such") as error:
        known_judge("no-such")
    assert all(j.name in error.value.hint for j in known_judges())


@pytest.fixture
def large_judge_here(tmp_path, monkeypatch):
    """A file that stands for the large judge's weights: its sha256 is taken for the published one."""
    import aipsy_judge.weights as weights

    monkeypatch.setenv("AIPSY_JUDGE_CACHE", str(tmp_path))
    path = tmp_path / "judges" / "aipsy-judge-1.0-q8.gguf"
    path.parent.mkdir()
    path.write_bytes(b"stands for the weights")
    real = known_judge("aipsy-judge-1.0")
    sha = hashlib.sha256(path.read_bytes()).hexdigest()
    judge = real.model_copy(update={"file": real.file.model_copy(update={"sha256": sha})})
    monkeypatch.setattr(weights, "known_judges", lambda: (known_judge("smollm2-untrained"), judge))
    return path


def test_the_best_judge_that_is_installed_and_fits_is_the_default(large_judge_here, monkeypatch):
    monkeypatch.setattr("aipsy_judge.weights.this_machine", lambda: machine(64, system="Darwin arm64"))
    found = find_weights(None)
    assert (found.name, found.contract, found.model) == ("aipsy-judge-1.0", "aipsy-bench-v1", large_judge_here)


def test_a_better_judge_that_does_not_fit_is_not_the_default(large_judge_here, monkeypatch):
    monkeypatch.setattr("aipsy_judge.weights.this_machine", lambda: machine(16))
    assert find_weights(None).name == "smollm2-untrained"


def test_a_judge_that_is_not_blessed_is_not_the_default_by_its_bare_file_either(large_judge_here, monkeypatch):
    monkeypatch.setattr("aipsy_judge.weights.this_machine", lambda: machine(64, system="Darwin arm64"))
    data = manifest_data(name="aipsy-judge-1.0", blessed=False, verify=None)
    write_judge(large_judge_here.parent / "aipsy-judge-1.0", data)
    assert find_weights(None).name == "smollm2-untrained"


def test_a_judge_whose_base_is_in_no_package_here_is_not_the_default(large_judge_here, monkeypatch):
    monkeypatch.setattr("aipsy_judge.weights.this_machine", lambda: machine(64, system="Darwin arm64"))
    data = manifest_data(name="aipsy-judge-1.0")
    data["files"][0]["package"] = "no-such-package"
    write_judge(large_judge_here.parent / "aipsy-judge-1.0", data)
    assert find_weights(None).name == "smollm2-untrained"
    with pytest.raises(ManifestError, match="not in the package no-such-package"):
        find_weights("aipsy-judge-1.0")


def test_a_known_judges_file_given_by_path_is_asked_by_its_own_contract(large_judge_here, tmp_path):
    other = tmp_path / "downloaded.gguf"
    other.write_bytes(large_judge_here.read_bytes())
    assert find_weights(other).contract == "aipsy-bench-v1"


def test_a_damaged_file_of_a_known_judge_is_refused_by_name(large_judge_here):
    large_judge_here.write_bytes(b"cut")
    with pytest.raises(WeightsError, match="its sha256 is another"):
        find_weights("aipsy-judge-1.0")


def test_what_a_shipped_judge_stands_on_never_speaks_in_its_name(monkeypatch):
    """As after an installation that lost the judge's folder."""
    monkeypatch.setattr("aipsy_judge.weights.judge_folder", lambda name: None)
    assert known_judge("mini").shipped
    assert find_weights(None).name == "smollm2-untrained"
    with pytest.raises(WeightsError, match="the folder of the judge mini is not in this installation"):
        find_weights("mini")
    base = installed_at(known_judge("mini"))
    assert base is not None
    assert find_weights(base).name == "smollm2-untrained"


@pytest.mark.parametrize(
    ("rubric", "contract", "adapter", "name"),
    [
        ("aipsy-judge-v1", None, None, "mini"),
        ("aipsy-judge-v1", "compact", None, "mini"),
        ("aipsy-judge-v1", "full", None, "smollm2-untrained"),
        ("empa-start", None, None, "smollm2-untrained"),  # mini was trained on another rubric
        ("aipsy-judge-v1", None, Path("some.gguf"), "smollm2-untrained"),  # and wears its own adapter
    ],
)
def test_the_default_is_the_best_that_can_be_asked_so(rubric, contract, adapter, name):
    weights, _ = settle(None, load_rubric(rubric), contract, adapter, unblessed=False)
    assert weights.name == name


def test_what_is_published_of_the_shipped_judge_is_what_its_manifest_says():
    known, manifest = known_judge("mini"), read_manifest(judge_folder("mini"))
    assert (known.about, known.contract, known.licence) == (manifest.about, manifest.contract, manifest.licence)
    assert (known.file.sha256, known.file.bytes) == (manifest.model.sha256, manifest.model.bytes)
    assert (known.package.name, known.context_tokens) == (manifest.model.package, manifest.context_tokens)
