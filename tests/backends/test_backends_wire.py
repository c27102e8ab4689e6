"""The wire: retries are bounded, waits are honoured, time and size have an end."""

import threading
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from loopback_server import completion, error, serving

from aipsy_judge.backends import wire as wire_module
from aipsy_judge.backends.refusals import is_too_long
from aipsy_judge.backends.wire import Patience, Problem, Wire
from aipsy_judge.errors import BackendError


class Client:
    """A wire and the waits it made."""

    def __init__(self, url, **patience):
        self.waits = []
        settings = {"timeout_seconds": 5.0, **patience}
        self.wire = Wire(url, loopback=True, patience=Patience(**settings), sleep=self.waits.append)

    def post(self):
        try:
            return self.wire.post("x", {})
        finally:
            self.wire.close()


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504, 529])
def test_a_passing_failure_is_tried_again_with_growing_waits(status):
    with serving(error(status), error(status), completion("hi")) as (server, url):
        client = Client(url)
        assert client.post().problem is None
    assert client.waits == [1, 2]
    assert len(server.asked) == 3


STATUSES = [(429, 1302, 429), (200, 1302, 400), (200, 503, 503), (400, 600, 400)]


@pytest.mark.parametrize(("status", "code", "told"), STATUSES)
def test_only_a_code_that_is_an_http_status_of_failure_stands_in_for_the_status(status, code, told):
    with serving((status, {"error": {"message": "no", "code": code}})) as (_, url):
        problem = Client(url, retries=0).post().problem
    assert problem.status == told
    assert problem.retryable is (told in (429, 503))


@pytest.mark.parametrize(
    ("status", "message", "too_long"),
    [
        (422, "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 4000 `inputs`", True),
        (400, "`inputs` tokens + `max_new_tokens` must be <= 8193. Given: 9000 `inputs` tokens", True),
        (422, "Input validation error: `inputs` must have less than 1024 tokens. Given: 2000", True),
        (400, "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).", True),
        (400, "max_tokens is too large: 9000. This model supports at most 4096 completion tokens", False),
        (422, "Input validation error: `temperature` must be strictly positive", False),
        (429, "You exceeded your quota: input token count per minute", False),
    ],
)
def test_a_prompt_that_does_not_fit_is_known_by_the_words_of_many_servers(status, message, too_long):
    assert is_too_long(Problem(status, message)) is too_long


def test_tries_are_bounded():
    with serving(error(503, "overloaded")) as (server, url):
        client = Client(url, retries=3)
        problem = client.post().problem
    assert (problem.status, problem.message, problem.retryable) == (503, "overloaded", True)
    assert client.waits == [1, 2, 4]
    assert len(server.asked) == 4


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 422, 501])
def test_other_failures_are_not_tried_again(status):
    with serving(error(status)) as (server, url):
        assert Client(url).post().problem.status == status
    assert len(server.asked) == 1


def test_a_quota_that_is_used_up_is_not_tried_again():
    with serving(error(429, "no credit", code="insufficient_quota")) as (server, url):
        Client(url).post()
    assert len(server.asked) == 1


@pytest.mark.parametrize("header", ["7", format_datetime(datetime.now(UTC) + timedelta(seconds=7))], ids=["7", "date"])
def test_the_wait_a_server_asks_for_is_honoured(header):
    if not header.isdigit():
        header = format_datetime(datetime.now(UTC) + timedelta(seconds=7.9))
    with serving((429, {}, {"Retry-After": header}), completion()) as (_, url):
        client = Client(url)
        assert client.post().problem is None
    (waited,) = client.waits
    assert 5 < waited <= 8


def test_a_wait_beyond_all_patience_ends_the_attempt():
    with serving((429, {}, {"Retry-After": "3600"})) as (server, url):
        client = Client(url)
        assert client.post().problem.status == 429
    assert (client.waits, len(server.asked)) == ([], 1)


@pytest.mark.parametrize("header", ["soon", "-5", "99999999999999999999", ""])
def test_a_strange_wait_does_no_harm(header):
    with serving((503, {}, {"Retry-After": header}), completion()) as (_, url):
        Client(url).post()


def test_a_server_that_is_not_there_is_a_retryable_error_after_bounded_tries():
    with serving(completion()) as (_, url):
        pass
    client = Client(url)
    with pytest.raises(BackendError) as caught:
        client.post()
    assert (caught.value.retryable, caught.value.reason) == (True, "server_error")
    assert client.waits == [1, 2, 4]


def test_a_connection_that_breaks_within_the_answer_is_tried_again():
    def breaks(handler):
        handler.send_response(200)
        handler.send_header("Content-Length", "100")
        handler.end_headers()
        handler.wfile.write(b'{"choices"')
        handler.close_connection = True

    with serving(lambda body: breaks, completion("hi")) as (server, url):
        assert Client(url).post().problem is None
    assert len(server.asked) == 2


def test_silence_is_a_timeout_and_not_tried_again():
    over = threading.Event()
    with serving(lambda body: lambda handler: over.wait(5)) as (server, url):
        with pytest.raises(BackendError) as caught:
            Client(url, timeout_seconds=0.1).post()
        over.set()
    assert (caught.value.reason, caught.value.retryable) == ("timeout", True)
    assert len(server.asked) == 1


def test_a_server_that_sends_blanks_without_end_runs_into_the_timeout():
    def drips(handler):
        handler.send_response(200)
        handler.end_headers()
        for _ in range(500):
            try:
                handler.wfile.write(b"\n")
                handler.wfile.flush()
            except OSError:
                return
            time.sleep(0.01)

    begun = time.monotonic()
    with serving(lambda body: drips) as (_, url), pytest.raises(BackendError) as caught:
        Client(url, timeout_seconds=0.2).post()
    assert caught.value.reason == "timeout"
    assert time.monotonic() - begun < 3


def test_a_server_that_falls_silent_after_its_first_piece_is_given_up_within_twice_the_timeout():
    over = threading.Event()

    def begins(handler):
        time.sleep(0.3)
        handler.send_response(200)
        handler.end_headers()
        handler.wfile.write(b" ")
        handler.wfile.flush()
        over.wait(20)

    begun = time.monotonic()
    with serving(lambda body: begins) as (_, url):
        with pytest.raises(BackendError) as caught:
            Client(url, timeout_seconds=2.0).post()
        taken = time.monotonic() - begun
        over.set()
    assert caught.value.reason == "timeout"
    assert taken < 4


def test_an_answer_too_large_to_be_one_is_refused(monkeypatch):
    monkeypatch.setattr(wire_module, "_LARGEST_BYTES", 1000)
    with serving(b" " * 2000) as (_, url), pytest.raises(BackendError, match="MiB"):
        Client(url).post()


@pytest.mark.parametrize("content", [b"<html>busy</html>", b"", b"[1]", b"\xff\xfe", b"[" * 100_000])
def test_a_success_that_is_no_json_object_is_a_failure_of_the_server(content):
    with serving(content) as (server, url):
        problem = Client(url, retries=1).post().problem
    assert (problem.status, problem.retryable, len(server.asked)) == (502, True, 2)


def test_a_redirect_is_not_followed():
    with serving((307, {}, {"Location": "http://203.0.113.1/elsewhere"})) as (server, url):
        problem = Client(url).post().problem
    assert (problem.status, len(server.asked)) == (307, 1)


def test_no_json_in_an_error_is_shown_as_text_and_cut():
    with serving((500, b"Traceback " + b"x" * 5000)) as (_, url):
        problem = Client(url, retries=0).post().problem
    assert problem.message.startswith("Traceback")
    assert len(problem.message) == 300
