"""Files of strangers are loaded first in a process with bounds: what breaks it there breaks nothing here."""

from __future__ import annotations

import pytest
from small_gguf import TEMPLATE, spm_vocabulary, write_small_adapter, write_small_gguf

from aipsy_judge.backends import trial
from aipsy_judge.backends.llamacpp_library import knows_architecture
from aipsy_judge.errors import WeightsError
from aipsy_judge.gguf_model import check_model
from aipsy_judge.known_judges import installed_at, known_judge


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("AIPSY_JUDGE_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def tried(monkeypatch):
    """No child is started; what it was asked for is kept, and what it says can be set."""

    class Tried(list):
        fault = None

    asked = Tried()

    def stand_in(model, adapter=None):
        asked.append((model, adapter))
        return asked.fault

    monkeypatch.setattr(trial, "try_files", stand_in)
    return asked


def test_a_file_is_tried_once_and_known_by_its_bytes_afterwards(tmp_path, tried):
    path = write_small_gguf(tmp_path / "a.gguf")
    trial.ensure_harmless(path)
    copy = tmp_path / "copy.gguf"
    copy.write_bytes(path.read_bytes())
    trial.ensure_harmless(copy)
    assert tried == [(path, None)]
    adapter = write_small_adapter(tmp_path / "lora.gguf")
    trial.ensure_harmless(path, adapter)
    assert tried == [(path, None), (path, adapter)]


def test_a_file_that_did_not_end_well_is_refused_each_time(tmp_path, tried):
    path = write_small_gguf(tmp_path / "a.gguf")
    tried.fault = "it was ended by SIGSEGV"
    for _ in range(2):
        with pytest.raises(WeightsError, match="ended by SIGSEGV") as caught:
            trial.ensure_harmless(path)
        assert caught.value.where == str(path)
    assert len(tried) == 2


@pytest.mark.parametrize(
    ("faults", "told"),
    [
        ([("SIGABRT", True), ("could not evaluate", False)], "could not evaluate"),
        ([("SIGABRT", True), ("SIGSEGV", True)], "SIGABRT"),
        ([("SIGABRT", True), None], "SIGABRT"),  # what ended a process once is refused
        ([("no template", False)], "no template"),
        ([None], None),
    ],
)
def test_a_process_that_died_without_a_word_is_asked_once_more(tmp_path, monkeypatch, faults, told):
    left = [trial._Fault(*fault) if fault is not None else None for fault in faults]
    monkeypatch.setattr(trial, "_tried", lambda model, adapter: left.pop(0))
    assert trial.try_files(tmp_path / "a.gguf") == told
    assert not left


def test_published_files_are_not_tried(tried):
    trial.ensure_harmless(installed_at(known_judge("smollm2-untrained")))
    assert tried == []


def test_an_adapter_of_the_package_on_a_published_base_is_not_tried_and_any_other_is(tmp_path, tried, monkeypatch):
    base = installed_at(known_judge("smollm2-untrained"))
    monkeypatch.setattr(trial, "check_adapter", lambda path, header: None)
    adapter = tmp_path / "data" / "mini.gguf"
    adapter.parent.mkdir()
    adapter.write_bytes(b"stands for an adapter")
    trial.ensure_harmless(base, adapter)
    assert tried == [(base, adapter)]
    monkeypatch.setattr(trial, "_SHIPPED", tmp_path / "data")
    adapter.write_bytes(b"stands for another")
    trial.ensure_harmless(base, adapter)
    assert tried == [(base, adapter)]


def test_what_the_checks_refuse_is_not_tried(tmp_path, tried):
    with pytest.raises(WeightsError, match="block_count"):
        trial.ensure_harmless(write_small_gguf(tmp_path / "a.gguf", numbers={"block_count": 0}))
    base = write_small_gguf(tmp_path / "b.gguf")
    with pytest.raises(WeightsError, match="changes nothing"):
        trial.ensure_harmless(base, write_small_adapter(tmp_path / "l.gguf", strength=0.0))
    assert tried == []


@pytest.mark.parametrize("name", ["llama", "gemma4", "qwen3moe"])
def test_architectures_of_this_build_are_known(name):
    assert knows_architecture(name)


@pytest.mark.parametrize("name", ["nobodys-architecture", "", "x" * 500])
def test_others_are_not(name):
    assert not knows_architecture(name)


@pytest.mark.slow
def test_a_whole_file_and_an_adapter_pass_a_real_trial(tmp_path):
    path = write_small_gguf(tmp_path / "a.gguf")
    assert trial.try_files(path) is None
    assert trial.try_files(path, write_small_adapter(tmp_path / "lora.gguf")) is None


@pytest.mark.slow
def test_a_file_that_ends_the_process_ends_only_that_one(tmp_path):
    """The library ends the process over a token that stands for a byte in this tokenizer; no check here knows that."""
    path = write_small_gguf(tmp_path / "a.gguf", vocabulary={**spm_vocabulary(), "model": "bert"})
    check_model(path)
    assert trial.try_files(path) == "it was ended by SIGABRT"


@pytest.mark.slow
@pytest.mark.parametrize(
    "hostile",
    [
        "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
        "{% set n = namespace(t='xxxxxxxx') %}{% for a in range(60) %}{% set n.t = n.t ~ n.t %}{% endfor %}",
        "{{ 'x' * 10000000000 }}",
        "{{ '%9999999999d' % 1 }}",
        "{{ 'x' * 200000 }}",
    ],
)
def test_a_template_that_runs_without_end_or_fills_the_memory_is_refused(tmp_path, monkeypatch, hostile):
    monkeypatch.setattr(trial, "LEAST_SECONDS", 8.0)
    monkeypatch.setattr(trial, "LEAST_BYTES", 2**29)
    path = write_small_gguf(tmp_path / "a.gguf", template=TEMPLATE + hostile)
    fault = trial.try_files(path)
    assert fault is not None
    assert any(
        word in fault
        for word in ("not done after 8", "more memory than a file of this size can need", "writes 200", "SIG")
    ), fault
