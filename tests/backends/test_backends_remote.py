"""An OpenAI-compatible server: what is asked, what is done when it refuses, what is read from its answer."""

import json
import threading

import pytest
from loopback_server import completion, error, serving

from aipsy_judge.backends.protocol import Reply
from aipsy_judge.backends.remote import OpenAIBackend, key_for
from aipsy_judge.backends.server_name import parse_server_name
from aipsy_judge.backends.trap import honours_schema
from aipsy_judge.backends.wire import LOOPBACK_TIMEOUT_SECONDS
from aipsy_judge.errors import AccessError, BackendError, CapacityError, InputError
from aipsy_judge.rubric import load_rubric
from aipsy_judge.schema import answer_schema, without_lengths

SCHEMA = answer_schema(load_rubric())
MESSAGES = [{"role": "system", "content": "Rate."}, {"role": "user", "content": "hello"}]


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("AIPSY_JUDGE_API_KEY", raising=False)


def ask(url, times=1, schema=SCHEMA, **settings):
    """The last of `times` replies."""
    backend = OpenAIBackend(parse_server_name(f"openai:m@{url}"), sleep=lambda seconds: None, **settings)
    try:
        return [backend.ask(MESSAGES, schema=schema, max_tokens=100) for _ in range(times)][-1]
    finally:
        backend.close()


def test_greedy_decoding_and_the_schema_are_asked_for():
    with serving(completion("hi")) as (server, url):
        assert ask(url).text == "hi"
    ((path, body, headers),) = server.asked
    assert path == "/v1/chat/completions"
    assert (body["model"], body["messages"], body["stream"]) == ("m", MESSAGES, False)
    assert (body["temperature"], body["max_tokens"]) == (0, 100)
    assert body["response_format"]["json_schema"]["schema"] == SCHEMA
    assert list(body["response_format"]["json_schema"]["schema"]["properties"]) == list(SCHEMA["properties"])
    assert "Authorization" not in headers


def test_without_a_schema_nothing_is_constrained():
    with serving(completion("hi")) as (server, url):
        assert ask(url, schema=None).notes == ()
    assert "response_format" not in server.bodies[0]
    assert server.bodies[0]["messages"] == MESSAGES


def test_half_an_emoji_in_the_text_does_not_break_the_request():
    with serving(completion("hi")) as (server, url):
        backend = OpenAIBackend(parse_server_name(f"openai:m@{url}"))
        backend.ask([{"role": "user", "content": "sad \udcb2 face"}], schema=None, max_tokens=5)
        backend.close()
    assert server.bodies[0]["messages"][0]["content"] == "sad \ufffd face"


# --- keys ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("server", "sent"),
    [
        ("https://api.openai.com/v1", "general"),
        ("http://localhost:8080/v1", "general"),
        ("http://api.openai.com/v1", None),
        ("https://other.example/v1", None),
        ("https://openai.com.evil.example/v1", None),
        ("https://notopenai.com/v1", None),
    ],
)
def test_the_general_key_is_sent_only_where_it_is_meant_for(monkeypatch, server, sent):
    monkeypatch.setenv("OPENAI_API_KEY", "general")
    name = parse_server_name(f"openai:m@{server}")
    assert key_for(name) == sent
    monkeypatch.setenv("AIPSY_JUDGE_API_KEY", "own")
    assert key_for(name) == "own"


def test_the_key_is_sent_and_never_shown(monkeypatch):
    monkeypatch.setenv("AIPSY_JUDGE_API_KEY", "sk-very-secret")
    refused = error(401, "Incorrect API key provided: sk-very-secret")
    with serving(refused) as (server, url), pytest.raises(AccessError) as caught:
        ask(url)
    assert server.asked[0][2]["Authorization"] == "Bearer sk-very-secret"
    assert "sk-very-secret" not in str(caught.value)
    backend = OpenAIBackend(parse_server_name(f"openai:m@{url}"))
    assert "sk-very-secret" not in json.dumps(backend.describe()) + backend.name
    backend.close()


def test_a_key_that_cannot_be_one_is_an_input_error(monkeypatch):
    monkeypatch.setenv("AIPSY_JUDGE_API_KEY", "two\nlines")
    with pytest.raises(InputError):
        OpenAIBackend(parse_server_name("openai:m@http://localhost:1/v1"))


def test_this_machine_is_not_remote_and_others_are():
    for url, remote in [("http://127.0.0.1:1/v1", False), ("https://example.com/v1", True)]:
        backend = OpenAIBackend(parse_server_name(f"openai:m@{url}"))
        assert backend.is_remote is remote
        backend.close()


def test_a_proxy_is_never_put_between_two_programs_of_this_machine(monkeypatch):
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    with serving(completion("hi")) as (_, url):
        assert ask(url).text == "hi"


# --- what a server does not support ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "refusal",
    [
        error(400, "Unsupported value: 'temperature' does not support 0 with this model.", param="temperature"),
        error(400, "temperature is deprecated for this model"),
        (422, {"detail": [{"loc": ["body", "temperature"], "msg": "extra fields not permitted"}]}),
    ],
)
def test_a_refused_parameter_is_left_out_once_recorded_and_remembered(refusal):
    with serving(refusal, completion("hi")) as (server, url):
        reply = ask(url, times=3)
    assert [("temperature" in b) for b in server.bodies] == [True, False, False, False]
    assert reply.notes == ("dropped:temperature",)


def test_max_tokens_becomes_max_completion_tokens():
    refusal = error(
        400,
        "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
        param="max_tokens",
    )
    with serving(refusal, completion("hi")) as (server, url):
        reply = ask(url)
    assert "max_tokens" not in server.bodies[1]
    assert server.bodies[1]["max_completion_tokens"] == 100
    assert reply.notes == ("max_completion_tokens",)


def test_log_probabilities_are_dropped_together():
    with serving(error(400, "This model does not support top_logprobs"), completion("hi")) as (server, url):
        reply = ask(url)
    assert {"logprobs", "top_logprobs"} <= set(server.bodies[0])
    assert not {"logprobs", "top_logprobs"} & set(server.bodies[1])
    assert reply.notes == ("dropped:logprobs", "dropped:top_logprobs")


def test_several_refusals_in_a_row_are_all_met():
    refusals = [error(400, f"'{name}' is not supported") for name in ("temperature", "seed", "max_tokens")]
    with serving(*refusals, completion("hi")) as (server, url):
        assert ask(url).notes == ("dropped:seed", "dropped:temperature", "max_completion_tokens")
    assert len(server.asked) == 4


def formats(server):
    return [(b.get("response_format") or {}).get("type") for b in server.bodies]


def test_a_refused_schema_steps_down_to_the_prompt_and_says_so():
    refusal = error(400, "Invalid schema for response_format")
    with serving(refusal, refusal, refusal, completion("hi")) as (server, url):
        reply = ask(url, times=2)
    assert formats(server) == ["json_schema", "json_schema", "json_object", None, None]
    assert server.bodies[1]["response_format"]["json_schema"]["schema"] == without_lengths(SCHEMA)
    for body in server.bodies[2:]:
        assert json.dumps(SCHEMA) in body["messages"][-1]["content"]
        assert body["messages"][0] == MESSAGES[0]
    assert reply.notes == ("format:prompt",)


def test_a_server_that_refuses_lengths_only_keeps_the_schema():
    with serving(error(400, "'maxLength' is not permitted"), completion("hi")) as (server, url):
        assert ask(url).notes == ("format:schema_without_lengths",)
    assert formats(server) == ["json_schema", "json_schema"]


def test_a_refusal_of_one_item_does_not_change_how_the_next_is_asked():
    bad = [error(400, "something is wrong")] * 4
    with serving(*bad, completion("hi")) as (server, url):
        backend = OpenAIBackend(parse_server_name(f"openai:m@{url}"))
        with pytest.raises(BackendError, match="something is wrong") as caught:
            backend.ask(MESSAGES, schema=SCHEMA, max_tokens=5)
        assert backend.ask(MESSAGES, schema=SCHEMA, max_tokens=5).notes == ()
        backend.close()
    assert not caught.value.retryable
    assert len(server.asked) == 5


# --- the answer ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "finish"),
    [
        ("stop", "stop"),
        ("eos_token", "stop"),
        ("length", "length"),
        ("max_tokens", "length"),
        ("content_filter", "content_filter"),
        ("SAFETY", "content_filter"),
        ("tool_calls", None),
        ("abort", None),
        (None, None),
        (7, None),
    ],
)
def test_finish_reasons_are_understood_or_count_as_none(said, finish):
    with serving(completion("hi", said)) as (_, url):
        assert ask(url).finish == finish


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"choices": []},
        {"choices": None},
        {"choices": [None]},
        {"choices": [{}]},
        {"choices": [{"message": None, "finish_reason": "stop"}]},
        completion(None),
        completion([]),
        completion([{"type": "image"}, None]),
        completion(7),
    ],
)
def test_an_answer_without_text_has_no_text_and_raises_nothing(data):
    with serving(data) as (_, url):
        assert ask(url).text is None


def test_parts_of_a_content_list_are_joined():
    parts = [{"type": "text", "text": '{"empathy"'}, {"type": "text", "text": ":4}"}]
    with serving(completion(parts)) as (_, url):
        assert ask(url).text == '{"empathy":4}'


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_thinking_in_a_field_of_its_own_is_kept_apart(field):
    with serving(completion("", "length", **{field: "let me think"})) as (_, url):
        reply = ask(url)
    assert (reply.text, reply.thinking, reply.finish) == ("", "let me think", "length")


@pytest.mark.parametrize(
    "answer",
    [
        completion("partial", "content_filter"),
        completion(None, "stop", refusal="I cannot help with that."),
        error(400, "The response was filtered", code="content_filter"),
        error(400, "violates our usage policies", code="invalid_prompt"),
        error(403, "Your input was flagged by moderation"),
        (200, {"error": {"message": "blocked by content policy", "code": 400}}),
    ],
)
def test_a_filter_of_the_provider_is_reported_as_a_block(answer):
    with serving(answer) as (server, url):
        assert ask(url).finish == "content_filter"
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    "answer",
    [
        error(400, "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens"),
        error(400, "too long", code="context_length_exceeded"),
        error(400, "'max_tokens' is too large: the maximum context length is 2048 and your request has 1500 tokens"),
        (
            400,
            {"error": {"code": 400, "type": "exceed_context_size_error", "message": "request (6000 tokens) exceeds"}},
        ),
        (200, {"error": {"code": 400, "message": "the request exceeds the available context size"}}),
        error(413, "Payload Too Large"),
    ],
)
def test_a_prompt_that_does_not_fit_is_a_capacity_error_at_once(answer):
    with serving(answer) as (server, url), pytest.raises(CapacityError):
        ask(url)
    assert len(server.asked) == 1


@pytest.mark.parametrize("answer", [error(401), error(404, "model not found")])
def test_no_access_is_told_apart(answer):
    with serving(answer) as (server, url), pytest.raises(AccessError):
        ask(url)
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    "data",
    [{"error": {"message": "boom"}}, {"error": "boom"}, {"object": "error", "message": "boom"}, {"error": {}}],
)
def test_an_error_key_is_an_error_whatever_the_status(data):
    with serving({**completion("{}"), **data}) as (_, url), pytest.raises(BackendError):
        ask(url)


# --- a schema that is promised and not kept --------------------------------------------------------------------------


def keeps(body):
    """A server that holds to the schema."""
    schema = body["response_format"]["json_schema"]["schema"]
    return completion(json.dumps({name: what["enum"][0] for name, what in schema["properties"].items()}))


@pytest.mark.parametrize(
    ("script", "honoured"),
    [
        ([keeps], True),
        ([completion("Hello there!")], False),
        ([completion('{"greeting": "hello"}')], False),
        ([error(400, "no response_format")] * 2 + [completion('{"zq7": "vw3x"}')], False),
    ],
)
def test_a_schema_that_is_silently_ignored_is_found_out(script, honoured):
    with serving(*script) as (_, url):
        backend = OpenAIBackend(parse_server_name(f"openai:m@{url}"))
        assert honours_schema(backend) is honoured
        backend.close()


def test_reply_is_a_plain_reply():
    with serving(completion("hi")) as (_, url):
        reply = ask(url, logprobs=False)
    assert isinstance(reply, Reply)
    assert reply.raw["model"] == "served"


def test_the_time_allowed_can_be_set_and_is_long_for_a_judge_on_this_machine():
    assert LOOPBACK_TIMEOUT_SECONDS >= 300  # a first call loads the model
    over = threading.Event()
    with serving(lambda body: lambda handler: over.wait(5)) as (_, url):
        with pytest.raises(BackendError) as caught:
            ask(url, timeout_seconds=0.1)
        over.set()
    assert caught.value.reason == "timeout"
