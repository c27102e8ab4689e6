"""What a server at `base_url` sends is a judge's whole answer, or an error: scripted, as a strange server would."""

from __future__ import annotations

import asyncio
import json

import pytest
from loopback_server import serving

from aipsy_judge.errors import AipsyJudgeError, BackendError, InputError
from aipsy_judge.for_inspect import over_http
from aipsy_judge.server.answering import Chat, Said

pytestmark = pytest.mark.slow
CHAT = Chat((Said("system", "judge"), Said("user", "this")), limit=4096)
WHOLE = {
    "message": {"role": "assistant", "content": "{}"},
    "done": True,
    "done_reason": "stop",
    "prompt_eval_count": 12,
    "eval_count": 3,
    "aipsy_judge": {"judge": "j"},
}


def asked(*script, seconds=10.0, chat=CHAT):
    with serving(*script) as (server, url):
        found = asyncio.run(over_http.asked_of(url, "aipsy-judge", chat, token=None, seconds=seconds))
    return found, server


def test_a_whole_answer_is_taken_with_its_tokens_and_its_judge():
    found, server = asked(WHOLE)
    assert (found.text, found.tokens.prompt, found.tokens.answer, found.about) == ("{}", 12, 3, {"judge": "j"})
    (body,) = server.bodies
    assert body["options"] == {"num_predict": 4096}
    assert [m["role"] for m in body["messages"]] == ["system", "user"]


def test_half_an_emoji_reaches_the_server_as_it_is():
    chat = Chat((Said("system", "judge"), Said("user", "this \ud83d")), limit=4096)
    _, server = asked(WHOLE, chat=chat)
    assert server.bodies[0]["messages"][1]["content"] == "this \ud83d"


def test_a_token_is_sent_without_its_line_end_and_one_that_no_header_holds_is_refused_and_not_asked_with_again():
    def ask_with(url, token):
        return asyncio.run(over_http.asked_of(url, "aipsy-judge", CHAT, token=token, seconds=10))

    with serving(WHOLE) as (server, url):
        ask_with(url, "a-token\n")
        assert server.asked[0][2]["Authorization"] == "Bearer a-token"
        for token in ("two\nlines", "tok\u00e9n"):
            with pytest.raises(InputError, match="api_key"):
                ask_with(url, token)
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ({k: v for k, v in WHOLE.items() if k != "aipsy_judge"}, "does not say which judge gave it"),
        ({**WHOLE, "aipsy_judge": {}}, "does not say which judge gave it"),
        ({**WHOLE, "aipsy_judge": {"judge": None}}, "does not say which judge gave it"),
        (WHOLE | {"done_reason": "length"}, "not whole"),
        (WHOLE | {"done_reason": "load", "message": {"content": ""}}, "not whole"),
        ({k: v for k, v in WHOLE.items() if k != "done_reason"}, "not whole"),
        (WHOLE | {"message": {"content": None}}, "not one of a chat"),
        (WHOLE | {"error": "no"}, "not one of a chat"),
        ([], "not one of a chat"),
        ((200, b"not JSON"), "not one of a chat"),
        ((200, b"[" * 100_000), "not one of a chat"),
        ((200, json.dumps(WHOLE).replace("12", "NaN").encode()), "not one of a chat"),
        ((200, b"\xff\xfe\xff"), "not one of a chat"),
    ],
)
def test_what_is_no_whole_answer_of_a_judge_is_an_error_never_an_answer(answer, words):
    with pytest.raises(BackendError, match=words) as error:
        asked(answer)
    assert not error.value.retryable


def test_an_answer_without_end_is_given_up(monkeypatch):
    monkeypatch.setattr(over_http, "LARGEST_BYTES", 2**20)
    with pytest.raises(BackendError, match="more than 1 MiB"):
        asked((200, b"x" * (2**20 + 1)))


@pytest.mark.parametrize(
    ("status", "headers", "kind", "retryable"),
    [
        (503, {"Retry-After": "5"}, BackendError, True),
        (503, {}, BackendError, False),  # what lasts, such as a judge that could not be loaded
        (429, {}, BackendError, True),
        (502, {}, BackendError, True),
        (500, {"Retry-After": "5"}, BackendError, False),
        (422, {}, InputError, False),
    ],
)
def test_a_status_is_told_as_the_error_that_it_is(status, headers, kind, retryable):
    with pytest.raises(kind, match=f"HTTP {status}: no") as error:
        asked((status, {"error": "no"}, headers))
    assert error.value.retryable is retryable


def test_a_server_that_is_slow_is_worth_a_retry_and_says_what_to_look_at():
    def late(body):
        import time

        time.sleep(1.0)
        return WHOLE

    with pytest.raises(AipsyJudgeError, match="ReadTimeout") as error:
        asked(late, seconds=0.2)
    assert error.value.retryable
    assert error.value.hint
