"""`aipsy-judge score`: what it reads, and that a fault in it is told before a judge is opened."""

import hashlib
import io
import json
import os
import sys

import pytest

from aipsy_judge.runs import load_run


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
