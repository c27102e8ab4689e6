"""Who may ask and how much, over real sockets, with the stand-in judge: nothing here depends on what a judge says."""

from __future__ import annotations

import json
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import httpx
import pytest
from click.testing import CliRunner
from server_at_work import at_work

from aipsy_judge.backends.fake import FakeJudge
from aipsy_judge.cli.serve import command
from aipsy_judge.errors import InputError
from aipsy_judge.server.guard import Guard, check_options
from aipsy_judge.server.running import listen, make_served, make_server
from aipsy_judge.server.serving import ServeOptions

TALK = {"messages": [{"role": "user", "content": "I failed."}, {"role": "assistant", "content": "That hurts."}]}
TOKEN = "a-token-of-some-length"
MIB = 2**20


@pytest.fixture(scope="module")
def server():
    with at_work(FakeJudge(), origins=("https://allowed.example",), body_seconds=0.5) as work:
        yield work


@pytest.fixture(scope="module")
def locked():
    with at_work(FakeJudge(), token=TOKEN) as work:
        yield work


# -- names and pages -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:80", "localhost.evil.example", "192.0.2.7", "", "a b", "[::1", "[::1]evil.example"],
)
def test_another_name_is_refused_so_that_none_can_be_rebound_to_this_address(server, host):
    for path in ("/api/version", "/health", "/v1/score"):
        assert server.client.get(path, headers={"Host": host}).status_code == 421


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:11434", "127.0.0.1:1", "[::1]:11434", "127.0.0.2"])
def test_every_name_of_this_machine_is_answered(server, host):
    assert server.client.get("/health", headers={"Host": host}).status_code == 200


def test_a_request_with_two_names_or_none_is_refused(server):
    for hosts in (b"Host: localhost\r\nHost: evil.example\r\n", b""):
        answer = _raw(server, b"GET /health HTTP/1.1\r\n" + hosts + b"Connection: close\r\n\r\n")
        assert answer.split()[1] in (b"400", b"421")


def test_further_names_are_answered_where_they_were_given():
    with at_work(FakeJudge(), hosts=("judge.internal",)) as work:
        assert work.client.get("/health", headers={"Host": "judge.internal:11434"}).status_code == 200
        assert work.client.get("/health", headers={"Host": "other.internal"}).status_code == 421


@pytest.mark.parametrize(
    "origin", ["https://evil.example", "http://localhost:3000", "null", "https://allowed.example.evil"]
)
def test_a_page_that_was_not_named_is_refused_and_its_origin_never_echoed(server, origin):
    answer = server.client.post("/v1/score", json=TALK, headers={"Origin": origin})
    preflight = server.client.options("/v1/score", headers={"Origin": origin, "Access-Control-Request-Method": "POST"})
    assert (answer.status_code, preflight.status_code) == (403, 403)
    assert not any(k.startswith("access-control") for a in (answer, preflight) for k in a.headers)


def test_a_page_that_was_named_is_answered(server):
    origin = {"Origin": "https://allowed.example"}
    preflight = server.client.options("/v1/score", headers=origin)
    answer = server.client.post("/v1/score", json=TALK, headers=origin)
    assert (preflight.status_code, answer.status_code) == (204, 200)
    for one in (preflight, answer):
        assert one.headers["access-control-allow-origin"] == "https://allowed.example"
        assert one.headers["vary"] == "Origin"


def test_a_request_that_a_browser_marks_as_another_sites_is_refused(server):
    assert server.client.get("/api/tags", headers={"Sec-Fetch-Site": "cross-site"}).status_code == 403
    assert server.client.get("/api/tags", headers={"Sec-Fetch-Site": "none"}).status_code == 200


def test_no_page_is_answered_unless_one_was_named():
    with at_work(FakeJudge()) as work:
        answer = work.client.get("/health", headers={"Origin": work.url})
        assert answer.status_code == 403


# -- tokens --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "given", [None, "Bearer", "Bearer wrong", f"Basic {TOKEN}", f"Bearer {TOKEN}x", TOKEN, "Bearer é"]
)
def test_without_the_token_nothing_is_answered(locked, given):
    headers = {} if given is None else {"Authorization": given.encode("latin-1")}
    for path in ("/api/version", "/api/tags", "/metrics", "/v1/models", "/nothing"):
        answer = locked.client.get(path, headers=headers)
        assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
    assert locked.client.post("/v1/score", json=TALK, headers=headers).status_code == 401


def test_with_the_token_everything_is_and_whether_it_is_up_is_told_to_all(locked):
    right = {"Authorization": f"Bearer {TOKEN}"}
    assert locked.client.post("/v1/score", json=TALK, headers=right).status_code == 200
    assert locked.client.get("/health").status_code == 200


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.7", "judge.example"])
def test_it_refuses_to_listen_for_other_machines_without_a_token(host):
    with pytest.raises(InputError, match="other machines"):
        check_options(ServeOptions(host=host))
    check_options(ServeOptions(host=host, token=TOKEN))


def test_listening_for_other_machines_an_address_is_a_name_and_a_foreign_name_is_not():
    guard = Guard(None, ServeOptions(host="0.0.0.0", token=TOKEN, hosts=("judge.example",)), None)
    assert [guard._known_host(h) for h in ("192.0.2.7:11434", "judge.example", "evil.example")] == [True, True, False]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--host", "0.0.0.0"], "--token-file"),
        (["--token-file", "missing"], "cannot be read"),
        (["--cors", "example.org"], "is no origin"),
        (["--cors", "*"], "is no origin"),
        (["--allow-host", "judge.example:80"], "no name of a machine"),
        (["--allow-host", "http://judge.example"], "no name of a machine"),
        (["--upstream", "localhost:11435"], "is no address"),
        (["--upstream", "http://user:word@localhost"], "is no address"),
    ],
)
def test_options_that_cannot_be_meant_are_one_clear_error_before_anything_is_opened(words, said):
    result = CliRunner().invoke(command, ["--judge", "fake", *words])
    assert isinstance(result.exception, InputError)
    assert said in f"{result.exception} {result.exception.hint}"


@pytest.mark.parametrize("token", ["", "short", "with blanks in it, and long", "ünicode-token-of-length"])
def test_a_token_that_is_none_is_refused(tmp_path, token):
    file = tmp_path / "token"
    file.write_text(token, encoding="utf-8")
    result = CliRunner().invoke(command, ["--judge", "fake", "--token-file", str(file)])
    assert isinstance(result.exception, InputError)


def test_a_port_that_is_taken_is_one_clear_error():
    with closing(socket.socket()) as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        result = CliRunner().invoke(command, ["--judge", "fake", "--port", str(taken.getsockname()[1])])
    assert isinstance(result.exception, InputError)
    assert "--port" in result.exception.hint


def test_a_port_is_taken_from_the_start_not_only_once_the_judge_is_loaded():
    listening = listen("127.0.0.1", 0)
    try:
        for opened in listening.sockets:
            host, port = opened.getsockname()[:2]
            with pytest.raises(InputError, match="cannot be opened"):
                listen(host, port)
    finally:
        for opened in listening.sockets:
            opened.close()
    again = listen("127.0.0.1", port)  # and given back
    for opened in again.sockets:
        opened.close()


def test_who_asks_while_the_judge_loads_waits_and_is_answered_when_it_is_open():
    listening = listen("127.0.0.1", 0)
    server = make_server(make_served(FakeJudge(), ServeOptions(port=0, keep_prefix=False)))
    with (
        closing(socket.create_connection(listening.sockets[0].getsockname(), timeout=30)) as asking,
        ThreadPoolExecutor(1) as running,
    ):
        asking.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        ended = running.submit(server.run, listening.sockets)
        answer = b"".join(iter(lambda: asking.recv(4096), b""))
        server.should_exit = True
        ended.result(30)
    assert answer.split()[1] == b"200"


# -- sizes and speeds ----------------------------------------------------------------------------------------


def test_a_long_transcript_is_judged(server):
    long = {"messages": [{"role": "user", "content": "a" * 300_000}, {"role": "assistant", "content": "b"}]}
    assert server.client.post("/v1/score", json=long).status_code == 200


def test_a_body_of_sixty_megabytes_is_refused_by_an_answer_that_can_be_read_and_is_not_kept():
    """A client that still sends reads no answer: the body is read to its end. The time for it is the ordinary one."""
    with at_work(FakeJudge()) as server:
        server.client.get("/health")
        before = server.metric("resident_memory_bytes")
        block = b" " * MIB
        answers = [
            server.client.post("/v1/score", content=(block for _ in range(60))),  # in chunks
            server.client.post(
                "/v1/score", content=(block for _ in range(60)), headers={"Content-Length": str(60 * MIB)}
            ),
        ]
        for answer in answers:
            assert answer.status_code == 413
            assert "larger" in answer.json()["error"]["message"]
        assert server.metric("resident_memory_bytes") - before < 30 * MIB
        assert server.client.post("/v1/score", json=TALK).status_code == 200


def test_a_client_that_asks_before_sending_too_much_need_not_send_it(server):
    head = b"POST /v1/score HTTP/1.1\r\nHost: localhost\r\nContent-Length: 62914560\r\nExpect: 100-continue\r\n\r\n"
    assert _raw(server, head).split()[1] == b"413"


def test_a_body_without_a_length_is_refused_and_one_in_chunks_is_not(server):
    assert _raw(server, b"POST /v1/score HTTP/1.1\r\nHost: localhost\r\n\r\n").split()[1] == b"411"
    body = json.dumps(TALK).encode()
    assert server.client.post("/v1/score", content=iter([body[:9], body[9:]])).status_code == 200


def test_a_slow_body_is_given_up_and_others_are_answered_meanwhile(server):
    begun = time.monotonic()
    with _socket(server) as slow:
        slow.sendall(b"POST /v1/score HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{")
        assert server.client.get("/health").status_code == 200
        slow.sendall(b" ")
        answer = slow.recv(4096)
    assert answer.split()[1] == b"408"
    assert 0.4 < time.monotonic() - begun < 10


def test_a_connection_that_never_sends_a_request_is_closed(server, monkeypatch):
    monkeypatch.setattr("aipsy_judge.server.patient_protocol.HEADER_SECONDS", 0.2)
    with _socket(server) as silent:
        silent.sendall(b"GET /health HT")
        assert silent.recv(1) == b""


def test_a_later_request_on_a_connection_has_no_longer_time_for_its_headers_than_the_first(server, monkeypatch):
    monkeypatch.setattr("aipsy_judge.server.patient_protocol.HEADER_SECONDS", 0.3)
    with _socket(server) as slow:
        for _ in range(2):
            slow.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
            answer = b""
            while b"}" not in answer:
                answer += slow.recv(4096)
        slow.sendall(b"GET /health HT")
        assert slow.recv(1) == b""


def test_a_body_that_breaks_off_costs_nothing(server):
    with _socket(server) as broken:
        broken.sendall(b"POST /v1/score HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{")
    assert server.client.post("/v1/score", json=TALK).status_code == 200


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"null", b"\xff\xfe", b'{"messages": NaN}', b"[" * 100_000, b'{"a":1,"a":2}']
)
def test_what_is_no_json_object_is_refused_by_all_routes(server, content):
    for path in ("/api/chat", "/api/generate", "/api/show", "/v1/chat/completions", "/v1/responses", "/v1/score"):
        answer = server.client.post(path, content=content)
        assert answer.status_code == 400, (path, content[:20])


def test_nothing_of_a_transcript_is_printed_or_written(server, capfd, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    talk = {
        "id": "secret-id",
        "messages": [{"role": "user", "content": "secret"}, {"role": "assistant", "content": "secret"}],
    }
    for body in (
        talk,
        {**talk, "messages": [{"role": "secret", "content": "secret"}]},
        {**talk, "rationale": "secret"},
    ):
        server.client.post("/v1/score", json=body)
    captured = capfd.readouterr()
    assert "secret" not in captured.out + captured.err + server.client.get("/metrics").text
    assert list(tmp_path.iterdir()) == []


def test_an_error_does_not_quote_the_body(server):
    answer = server.client.post("/v1/score", json={"messages": [{"role": "secret", "content": 5}], "id": ["secret"]})
    assert answer.status_code == 400
    assert "secret" not in answer.text


def _socket(server) -> socket.socket:
    url = httpx.URL(server.url)
    made = socket.create_connection((url.host, url.port))
    made.settimeout(20)
    return made


def _raw(server, request: bytes) -> bytes:
    with _socket(server) as made:
        made.sendall(request)
        return made.recv(4096)


def test_a_port_that_another_program_has_under_the_other_name_of_localhost_is_refused():
    with closing(socket.socket(socket.AF_INET6)) as taken:
        try:
            taken.bind(("::1", 0))
        except OSError:
            pytest.skip("no IPv6 on this machine")
        taken.listen()
        with pytest.raises(InputError, match="::1"):
            listen("127.0.0.1", taken.getsockname()[1])
