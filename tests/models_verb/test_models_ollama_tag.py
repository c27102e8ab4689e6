"""An Ollama tag named to `show` and `verify`: its server is asked; the blob behind it is checked where it is here."""

from __future__ import annotations

import hashlib

import pytest
from loopback_server import serving


@pytest.fixture
def blob(tmp_path, weights):
    sha = hashlib.sha256(weights).hexdigest()
    path = tmp_path / "blobs" / f"sha256-{sha}"
    path.parent.mkdir()
    path.write_bytes(weights)
    return path


def said(*lines):
    return {
        "modelfile": "\n".join(["# Modelfile", *lines, "TEMPLATE {{ .Prompt }}"]),
        "details": {"family": "llama", "parameter_size": "30K", "quantization_level": "F32"},
        "model_info": {"llama.context_length": 512},
    }


def test_the_blob_behind_a_tag_is_hashed_and_looked_at(run, judge, blob):
    with serving(said(f"FROM {blob}")) as (server, url):
        shown = run("models", "show", f"ollama:small@{url}").out
        ran = run("models", "verify", f"ollama:small@{url}")
    assert server.asked[0][:2] == ("/api/show", {"model": "small"})
    assert "quantisation: F32" in shown
    assert "context: 512" in shown
    assert str(blob) in shown
    assert ran.code == 0, ran.out
    assert "as published" in ran.out
    assert "ok: structure of the model: 20 tensors" in ran.out


def test_a_damaged_blob_is_wrong_by_its_own_name(run, blob, weights):
    blob.write_bytes(weights[:-1] + b"\x01")
    with serving(said(f"FROM {blob}")) as (_, url):
        ran = run("models", "verify", f"ollama:small@{url}")
    assert ran.code == 3
    assert "damaged, or another file" in ran.out


def test_weights_that_are_not_within_reach_are_not_called_verified(run, blob):
    for lines, words in (
        ([f"FROM {blob.parent / ('sha256-' + '0' * 64)}"], "not known: model"),
        (["FROM llama3"], "not known: weights: the server does not say where they are"),
    ):
        with serving(said(*lines)) as (_, url):
            ran = run("models", "verify", f"ollama:small@{url}")
        assert ran.code == 3
        assert words in ran.out
        assert "NOT verified" in ran.out


def test_a_tag_that_the_server_does_not_have_is_one_clear_error(run):
    with serving((404, {"error": "model 'none' not found"})) as (_, url):
        ran = run("models", "show", f"ollama:none@{url}")
    assert ran.code == 3
    assert "does not have the model 'none'" in ran.err


def test_a_server_that_is_not_there_is_one_clear_error(run):
    ran = run("models", "show", "ollama:none@http://127.0.0.1:9")
    assert ran.code == 3
    assert "cannot be reached" in ran.err
