"""What `models pull` says where it gets nothing, and what it does not take: each in its own words; no file is left."""

from __future__ import annotations

import hashlib
import pickle

import hub_server
import pytest

import aipsy_judge.cli.models_pull as verb

WEIGHTS = "gguf/small-q8.gguf"


@pytest.fixture(autouse=True)
def known(judge):
    """small-judge is a name here."""


def left_over(cache) -> list[str]:
    return sorted(str(p.relative_to(cache)) for p in cache.rglob("*") if p.is_file())


def test_without_a_network_one_clear_error_says_so(run, hub, cache):
    hub.broken = {"hub"}
    ran = run("models", "pull", "small-judge")
    assert ran.code == 3
    assert f"the model hub at {hub.url} cannot be reached" in ran.err
    assert "Traceback" not in ran.err
    assert left_over(cache) == []


def test_offline_mode_is_named_and_asks_nothing(run, hub, monkeypatch):
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    ran = run("models", "pull", "small-judge")
    assert ran.code == 3
    assert "set to work offline" in ran.err
    assert "HF_HUB_OFFLINE" in ran.err
    assert hub.asked == []


@pytest.mark.parametrize(
    ("status", "code", "said"),
    [
        (404, "EntryNotFound", "the hub has no file gguf/small-q8.gguf"),
        (404, "RevisionNotFound", "the revision asked for does not exist"),
        (404, "RepoNotFound", "does not exist, or not for you (HTTP 404)"),
        (401, "", "does not exist, or not for you (HTTP 401)"),
        (403, "", "does not exist, or not for you (HTTP 403)"),
        (403, "GatedRepo", "only to people who have agreed"),
        (500, "", "answered HTTP 500"),
    ],
)
def test_each_refusal_has_its_own_words(run, hub, cache, status, code, said):
    hub.status[WEIGHTS] = (status, code)
    ran = run("models", "pull", "small-judge")
    assert ran.code == 3
    assert said in ran.err
    assert "http://" not in ran.err
    assert left_over(cache) == []


def test_a_server_that_is_no_hub_is_told_apart(run, hub, monkeypatch):
    """A sign-in page answers 200 to everything."""

    def page(handler, hub, headers):
        hub_server.reply(handler, 200, {"Content-Type": "text/html"}, b"<html>sign in</html>")

    monkeypatch.setattr(hub_server, "_from_hub", page)
    ran = run("models", "pull", "small-judge")
    assert ran.code == 3
    assert "does not answer as the model hub does" in ran.err


def test_a_file_that_is_published_but_no_model_is_not_installed(run, hub, judge, cache, monkeypatch):
    """Neither a pickle nor anything else that is no GGUF, whatever its name and checksum."""
    data = pickle.dumps({"weights": [1.0]})
    hub.files[WEIGHTS] = data
    file = judge.file.model_copy(update={"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)})
    monkeypatch.setattr(verb, "known_judges", lambda: (judge.model_copy(update={"file": file}),))
    ran = run("models", "pull", "small-judge")
    assert ran.code == 3
    assert "not a GGUF file" in ran.err
    assert not (cache / "judges" / "small-judge").exists()


def test_a_name_that_is_no_gguf_is_not_fetched(run, hub, judge, monkeypatch):
    file = judge.file.model_copy(update={"name": "weights.bin"})
    monkeypatch.setattr(verb, "known_judges", lambda: (judge.model_copy(update={"file": file}),))
    ran = run("models", "pull", "small-judge")
    assert ran.code == 2
    assert "no other kind of weights is fetched" in ran.err
    assert hub.asked == []
