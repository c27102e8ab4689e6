"""Models that are not served here, passed on to another server, which here is a scripted one on loopback."""

from __future__ import annotations

import json
import socket
import threading
import time
from contextlib import closing, contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import pytest
from server_at_work import at_work

from aipsy_judge.backends.fake import FakeJudge


@pytest.fixture
def other():
    """An Ollama with one model; `asked` holds what it was sent."""
    asked = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self._answer({"models": [{"name": "llama:latest"}, {"name": "aipsy-judge:latest"}]})

        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            asked.append((self.path, json.loads(body), dict(self.headers)))
            self._answer({"message": {"role": "assistant", "content": "from upstream"}}, 200)

        def _answer(self, data, status=200):
            content = json.dumps(data).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.send_header("Content-Type", "application/json")
            self.send_header("Access-Control-Allow-Origin", "*")
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *args):
            pass

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    http.daemon_threads = True
    thread = threading.Thread(target=http.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{http.server_port}", asked
    http.shutdown()
    http.server_close()
    thread.join()


def test_another_model_is_asked_of_the_other_server_and_the_judge_never_answers_for_it(other):
    url, asked = other
    with at_work(FakeJudge(), upstream=url, token="a-token-of-some-length") as work:
        right = {"Authorization": "Bearer a-token-of-some-length"}
        body = {"model": "llama:latest", "messages": [{"role": "user", "content": "Hello"}]}
        for path in ("/api/chat", "/v1/chat/completions", "/v1/responses", "/api/generate", "/api/show", "/api/embed"):
            sent = {**body, "input": "x"}
            answer = work.post(path, sent, headers=right)
            assert answer.json()["message"]["content"] == "from upstream"
            assert "access-control-allow-origin" not in answer.headers
            assert asked[-1][:2] == (path, sent)
            assert "authorization" not in {k.lower() for k in asked[-1][2]}
        count = len(asked)
        assert (
            work.post("/v1/score", {"messages": body["messages"], "model": "llama"}, headers=right).status_code == 404
        )
        assert work.post("/api/chat", {"model": "aipsy-judge", "messages": []}, headers=right).status_code == 200
        assert len(asked) == count


def test_a_model_that_is_listed_can_be_looked_up_and_nothing_but_models(other):
    url, _ = other
    with at_work(FakeJudge(), upstream=url) as work:
        assert work.client.get("/v1/models/llama:latest").json()["models"]  # the scripted server's answer to any GET
        assert work.client.get("/v1/models/aipsy-judge").json()["id"] == "aipsy-judge"
        with socket.create_connection((work.client.base_url.host, work.client.base_url.port), timeout=30) as asking:
            # httpx would shorten the path itself
            asking.sendall(b"GET /v1/models/../../api/ps HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            answer = b"".join(iter(lambda: asking.recv(4096), b""))
    assert answer.split()[1] == b"404"


def test_the_lists_hold_both_servers_models_and_this_ones_name_once(other):
    url, _ = other
    with at_work(FakeJudge(), upstream=url) as work:
        names = [m["name"] for m in work.client.get("/api/tags").json()["models"]]
        ids = [m["id"] for m in work.client.get("/v1/models").json()["data"]]
    assert names == ["aipsy-judge:latest", "llama:latest"]
    assert ids.count("aipsy-judge:latest") == 1
    assert "llama:latest" in ids


def test_another_server_that_is_down_is_a_502_and_its_models_are_not_listed():
    with at_work(FakeJudge(), upstream="http://127.0.0.1:9") as work:
        assert work.post("/api/chat", {"model": "llama", "messages": []}).status_code == 502
        assert [m["name"] for m in work.client.get("/api/tags").json()["models"]] == ["aipsy-judge:latest"]


def test_a_client_that_hangs_up_is_hung_up_for_at_the_other_server():
    seen = threading.Event()
    with closing(socket.create_server(("127.0.0.1", 0))) as other:

        def listen():
            with other.accept()[0] as connection:
                while connection.recv(4096):
                    pass
                seen.set()

        thread = threading.Thread(target=listen, daemon=True)
        thread.start()
        with at_work(FakeJudge(), upstream=f"http://127.0.0.1:{other.getsockname()[1]}") as work:
            with httpx.Client(trust_env=False, timeout=0.3) as client, pytest.raises(httpx.ReadTimeout):
                client.post(f"{work.url}/api/chat", json={"model": "llama", "messages": []})
            assert seen.wait(10)
        thread.join(10)


@contextmanager
def _answering(blocks, pause=0.0):
    """A server that answers every request with these bytes, one block after another."""

    def answer(connection):
        with connection, suppress(OSError):
            connection.recv(65536)
            for block in blocks:
                connection.sendall(block)
                time.sleep(pause)

    def listen():
        with suppress(OSError):
            while True:
                threading.Thread(target=answer, args=other.accept()[:1], daemon=True).start()

    with closing(socket.create_server(("127.0.0.1", 0))) as other:
        threading.Thread(target=listen, daemon=True).start()
        yield f"http://127.0.0.1:{other.getsockname()[1]}"


def _ok(body, length=None):
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body) if length is None else length, body)


@pytest.mark.parametrize(
    ("blocks", "pause"),
    [
        ([_ok(b"", 100), *[b" "] * 100], 0.05),
        ([_ok(b'{"models": ' + b"[" * 10**5 + b"]" * 10**5 + b"}")], 0),
        ([_ok(b'{"models": [{"name": ["x"]}, {"size": 1}, 5, {"name": "aipsy-judge"}]}')], 0),
        ([_ok(b'{"models": [', 100)], 0),
        ([_ok(b'{"models": [' + b" " * 10**7)], 0),
    ],
    ids=["drips", "nested", "nameless", "broken off", "endless"],
)
def test_a_list_that_does_not_come_or_makes_no_sense_leaves_this_servers_own_whole(monkeypatch, blocks, pause):
    monkeypatch.setattr("aipsy_judge.server.upstream.LIST_SECONDS", 0.5)
    with _answering(blocks, pause) as url, at_work(FakeJudge(), upstream=url) as work:
        begun = time.monotonic()
        answer = work.client.get("/api/tags")
        assert [m["name"] for m in answer.json()["models"]] == ["aipsy-judge:latest"]
        assert work.client.get("/v1/models").status_code == 200
        assert time.monotonic() - begun < 4


def test_a_number_that_json_does_not_have_is_passed_over_in_the_other_servers_list():
    with (
        _answering([_ok(b'{"models": [{"name": "llama", "size": NaN, "q": 1e999}]}')]) as url,
        at_work(FakeJudge(), upstream=url) as work,
    ):
        other = work.client.get("/api/tags").json()["models"][1]
    assert (other["name"], other["size"], other["q"]) == ("llama", None, None)


def test_a_server_that_is_its_own_upstream_says_so_and_does_not_go_in_circles():
    with closing(socket.create_server(("127.0.0.1", 0))) as free:
        port = free.getsockname()[1]
    with at_work(FakeJudge(), port=port, upstream=f"http://127.0.0.1:{port}") as work:
        assert work.post("/api/chat", {"model": "llama", "messages": []}).status_code == 508
        assert [m["name"] for m in work.client.get("/api/tags").json()["models"]] == ["aipsy-judge:latest"]
        assert work.metric('requests_total{route="/api/chat"') == 2
