"""Inspect without a network and without its files in the user's home; the server's builders beside."""

from __future__ import annotations

import importlib.util
import socket
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "server"))

from server_at_work import bench_prompt as bench_prompt


def pytest_ignore_collect(collection_path, config):
    """Of the slow tier as a whole: importing Inspect takes longer than the quick one may."""
    if config.option.markexpr == "not slow" or importlib.util.find_spec("inspect_ai") is None:
        return True
    return None


@pytest.fixture(autouse=True)
def offline(monkeypatch, tmp_path):
    """No socket leaves this machine; an attempt fails the test that made it, whoever swallows the error."""
    attempts: list[object] = []
    connect, lookup = socket.socket.connect, socket.getaddrinfo

    def refuse(self, address):
        host = address[0] if isinstance(address, tuple) else address
        if host in ("127.0.0.1", "::1"):
            return connect(self, address)
        attempts.append(address)
        raise OSError("no network in tests")

    def look_up(host, *arguments, **more):
        if host not in ("127.0.0.1", "::1", "localhost", None):
            attempts.append(host)
            raise OSError("no network in tests")
        return lookup(host, *arguments, **more)

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    for name in ("INSPECT_CACHE_DIR", "XDG_CACHE_HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))
    yield
    assert attempts == []


@pytest.fixture(autouse=True)
def judges_closed():
    """Each test opens its own judges."""
    from aipsy_judge.for_inspect.at_work import close_all

    yield
    close_all()
