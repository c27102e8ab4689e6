"""The server has only so many connections open: one more is told so and closed, and room that comes free is used."""

from __future__ import annotations

import contextlib
import json
import socket

import httpx
import pytest
from server_at_work import at_work, wait_until

from aipsy_judge.backends.fake import FakeJudge
from aipsy_judge.server import running
from aipsy_judge.server.serving import ServeOptions

HEALTH = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setattr(running, "OTHER_CONNECTIONS", 2)
    with at_work(FakeJudge(), queue=1, parallel=1) as work:  # 4 connections in all
        work.client.close()  # it would keep one
        yield work


def connected(work) -> socket.socket:
    url = httpx.URL(work.url)
    made = socket.create_connection((url.host, url.port))
    made.settimeout(20)
    return made


def answer(made: socket.socket) -> bytes:
    received = b""
    while b"}" not in received and (more := made.recv(4096)):
        received += more
    return received


def test_a_connection_beyond_the_last_is_told_so_and_closed_and_the_others_are_answered(server):
    with contextlib.ExitStack() as open_ones:
        held = [open_ones.enter_context(connected(server)) for _ in range(4)]
        held[-1].sendall(HEALTH)
        assert answer(held[-1]).split()[1] == b"200"  # and all before it were accepted
        with connected(server) as beyond:
            told = answer(beyond)
            assert beyond.recv(1) == b""
        assert told.split()[1] == b"503"
        head, _, body = told.partition(b"\r\n\r\n")
        assert b"Retry-After: 5" in head
        assert int(head.partition(b"Content-Length: ")[2].split()[0]) == len(body)
        assert "too many connections" in json.loads(body)["error"]
        for made in held:
            made.sendall(HEALTH)
            assert answer(made).split()[1] == b"200"


def test_room_that_comes_free_is_used(server):
    with contextlib.ExitStack() as open_ones:
        held = [open_ones.enter_context(connected(server)) for _ in range(4)]
        held[-1].sendall(HEALTH)
        answer(held[-1])
        held[0].close()

        def served() -> bool:
            with connected(server) as another:
                another.sendall(HEALTH)
                with contextlib.suppress(ConnectionResetError):  # turned away before it had asked
                    return answer(another).split()[1:2] == [b"200"]
            return False

        wait_until(served, "the room was not used")


def test_by_default_as_many_are_open_as_may_wait_and_some_more():
    limit = running.make_server(running.make_served(FakeJudge(), ServeOptions(queue=64))).config.http
    assert limit.most_connections == 64 + 1 + running.OTHER_CONNECTIONS
