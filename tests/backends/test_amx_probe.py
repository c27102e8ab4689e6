"""The probe for a crash that cannot be made here: its child is crashed, hung up and missing on purpose."""

from __future__ import annotations

import json
import sys

import pytest

from aipsy_judge.backends import amx

WITH, WITHOUT = (
    "model name\t: Some CPU\nflags\t\t: fpu amx_tile amx_int8\n",
    "model name\t: Other\nflags\t\t: fpu avx2\n",
)


@pytest.fixture
def cpuinfo(tmp_path, monkeypatch):
    monkeypatch.setenv("AIPSY_JUDGE_CACHE", str(tmp_path / "cache"))
    file = tmp_path / "cpuinfo"
    file.write_text(WITH)
    return file


def child(code: str) -> tuple[str, ...]:
    return (sys.executable, "-c", code)


@pytest.mark.parametrize(
    ("code", "works"),
    [
        ("", True),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", False),
        ("import os; os.abort()", False),
        ("raise ValueError", None),
    ],
)
def test_a_child_that_crashes_says_no_and_the_parent_lives(tmp_path, code, works):
    assert amx.probe(tmp_path / "m.gguf", child(code)) is works


def test_a_child_that_hangs_says_no_and_one_that_cannot_start_says_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(amx, "PROBE_SECONDS", 0.2)
    assert amx.probe(tmp_path / "m.gguf", child("import time; time.sleep(60)")) is False
    assert amx.probe(tmp_path / "m.gguf", (str(tmp_path / "nothing"),)) is None


def test_without_amx_nothing_is_started(tmp_path, cpuinfo, monkeypatch):
    monkeypatch.setattr(amx, "probe", lambda model: pytest.fail("a child was started"))
    cpuinfo.write_text(WITHOUT)
    assert amx.extra_buffers_work(tmp_path / "m.gguf", cpuinfo)
    assert amx.extra_buffers_work(tmp_path / "m.gguf", tmp_path / "no-such-file")


def test_the_answer_is_remembered_per_processor_and_library(tmp_path, cpuinfo, monkeypatch):
    asked = []
    monkeypatch.setattr(amx, "probe", lambda model: asked.append(model) or False)
    for _ in range(3):
        assert not amx.extra_buffers_work(tmp_path / "m.gguf", cpuinfo)
    assert len(asked) == 1
    monkeypatch.setattr(amx.llama_cpp, "__version__", "99.0")
    amx.extra_buffers_work(tmp_path / "m.gguf", cpuinfo)
    assert len(asked) == 2


def test_an_error_of_the_child_is_not_remembered_as_a_crash(tmp_path, cpuinfo, monkeypatch):
    monkeypatch.setattr(amx, "probe", lambda model: None)
    assert not amx.extra_buffers_work(tmp_path / "damaged.gguf", cpuinfo)
    monkeypatch.setattr(amx, "probe", lambda model: True)
    assert amx.extra_buffers_work(tmp_path / "whole.gguf", cpuinfo)


@pytest.mark.parametrize("damage", ["", "[]", "{", json.dumps({"x": "no"})])
def test_a_damaged_memory_is_asked_again_not_believed(tmp_path, cpuinfo, monkeypatch, damage):
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "amx.json").write_text(damage)
    monkeypatch.setattr(amx, "probe", lambda model: True)
    assert amx.extra_buffers_work(tmp_path / "m.gguf", cpuinfo)


@pytest.mark.slow
def test_the_real_child_evaluates_a_real_model():
    from real_models import smollm2

    assert amx.probe(smollm2())
