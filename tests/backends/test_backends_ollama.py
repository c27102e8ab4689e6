"""Ollama's own call: the context is set, nothing is cut silently, thinking is off."""

import json

import pytest
from loopback_server import serving

from aipsy_judge.backends.ollama import OllamaBackend
from aipsy_judge.backends.server_name import parse_server_name
from aipsy_judge.errors import AccessError, BackendError, CapacityError
from aipsy_judge.reply import read_reply
from aipsy_judge.rubric import load_rubric

SCHEMA = {"type": "object"}


def chat(content="{}", count=30, wrote=20, **more):
    counts = {"prompt_eval_count": count, "eval_count": wrote}
    told = {name: number for name, number in counts.items() if number is not None}
    answer = {"message": {"role": "assistant", "content": content}, "done": True, "done_reason": "stop", **told}
    return {**answer, **more}


class Ollama:
    """A server with one model of `limit` tokens that answers every chat with `answer`."""

    def __init__(self, answer, limit=32768):
        self.answer, self.limit = answer, limit

    def __call__(self, body):
        if "messages" in body:
            return self.answer(body) if callable(self.answer) else self.answer
        return {"model_info": {"general.architecture": "x", "x.context_length": self.limit}}


def ask(answer, text="hello", limit=32768, max_tokens=100, times=1, **settings):
    """The last of `times` replies, and the bodies of the chats."""
    with serving(Ollama(answer, limit)) as (server, url):
        backend = OllamaBackend(parse_server_name(f"ollama:m@{url}"), sleep=lambda seconds: None, **settings)
        try:
            messages = [{"role": "user", "content": text}]
            reply = [backend.ask(messages, schema=SCHEMA, max_tokens=max_tokens) for _ in range(times)][-1]
        finally:
            backend.close()
        return reply, [b for b in server.bodies if "messages" in b]


def test_the_call_sets_all_that_matters():
    reply, (body,) = ask(chat('{"empathy":4}'))
    assert (reply.text, reply.finish) == ('{"empathy":4}', "stop")
    assert body["messages"] == [{"role": "user", "content": "hello"}]
    assert body["options"] == {"temperature": 0, "seed": 0, "num_predict": 100, "num_ctx": 4096}
    fixed = {k: body[k] for k in ("think", "truncate", "shift", "stream", "format")}
    assert fixed == {"think": False, "truncate": False, "shift": False, "stream": False, "format": SCHEMA}


@pytest.mark.parametrize(("characters", "context"), [(100, 4096), (9_000, 8192), (20_000, 16384), (50_000, 32768)])
def test_the_context_is_set_to_hold_the_prompt_surely(characters, context):
    _, (body,) = ask(chat(count=characters // 4), "x" * characters)
    assert body["options"]["num_ctx"] == context


def test_the_context_does_not_shrink_between_turns_so_that_the_model_stays_loaded():
    with serving(Ollama(lambda body: chat(count=len(body["messages"][0]["content"]) // 4))) as (server, url):
        backend = OllamaBackend(parse_server_name(f"ollama:m@{url}"))
        for characters in (9_000, 10, 9_000):
            backend.ask([{"role": "user", "content": "x" * characters}], schema=None, max_tokens=10)
        backend.close()
    assert [b["options"]["num_ctx"] for b in server.bodies if "messages" in b] == [8192] * 3
    assert [path for path, _, _ in server.asked].count("/api/show") == 1


def test_the_context_stays_within_what_the_model_was_made_for():
    _, (body,) = ask(chat(count=3000), "x" * 12_000, limit=4096)
    assert body["options"]["num_ctx"] == 4096


def test_a_context_can_be_given():
    _, (body,) = ask(chat(count=30), context_tokens=5000)
    assert body["options"]["num_ctx"] == 5000


def test_a_prompt_that_cannot_fit_is_refused_before_it_is_sent():
    with serving(Ollama(chat(), 2048)) as (server, url):
        backend = OllamaBackend(parse_server_name(f"ollama:m@{url}"))
        with pytest.raises(CapacityError, match="2048"):
            backend.ask([{"role": "user", "content": "x" * 40_000}], schema=None, max_tokens=10)
        backend.close()
    assert all("messages" not in body for body in server.bodies)


@pytest.mark.parametrize("count", [4096, 4095])
def test_a_count_that_fills_the_context_tells_that_the_prompt_was_cut(count):
    with pytest.raises(CapacityError, match="cut"):
        ask(chat(count=count), "x" * 12_000, limit=4096)
    with pytest.raises(CapacityError, match="cut"):
        ask(chat(count=count), "hello")


@pytest.mark.parametrize("count", [None, 900, 0, "3000", True])
def test_where_the_prompt_may_not_fit_the_count_must_show_that_it_was_read(count):
    with pytest.raises(CapacityError, match="read"):
        ask(chat(count=count), "x" * 12_000, limit=4096)


@pytest.mark.parametrize("wrote", [None, "20", True, -1])
def test_where_the_prompt_may_not_fit_the_count_of_the_answer_must_be_told(wrote):
    with pytest.raises(CapacityError, match="read"):
        ask(chat(count=3000, wrote=wrote), "x" * 12_000, limit=4096)


@pytest.mark.parametrize(("count", "wrote"), [(3000, 1096), (3000, 2048), (4000, 96)])
@pytest.mark.parametrize("text", ["hello", "x" * 12_000])
def test_an_answer_in_whose_middle_the_context_was_full_is_refused_though_it_says_stop(count, wrote, text):
    with pytest.raises(CapacityError, match="answer"):
        ask(chat(count=count, wrote=wrote), text, limit=4096, max_tokens=2048)


def test_an_answer_that_ends_before_the_context_is_full_is_taken():
    reply, _ = ask(chat(count=3000, wrote=1095), "x" * 12_000, limit=4096, max_tokens=2048)
    assert reply.text == "{}"


@pytest.mark.parametrize("missing", [{"count": None}, {"wrote": None}, {"count": None, "wrote": None}])
def test_where_the_prompt_surely_fits_a_missing_count_does_no_harm(missing):
    reply, _ = ask(chat(**missing))
    assert reply.text == "{}"


def test_a_server_that_refuses_to_cut_is_a_capacity_error():
    with pytest.raises(CapacityError):
        ask((400, {"error": "the input length exceeds the context length"}))


@pytest.mark.parametrize(
    ("changed", "finish"),
    [
        ({"done_reason": "length"}, "length"),
        ({"done_reason": "load"}, None),
        ({"done_reason": None}, None),
        ({"done": False}, None),
        ({"done": None}, None),
    ],
)
def test_only_a_finished_answer_counts_as_finished(changed, finish):
    reply, _ = ask(chat(**changed))
    assert reply.finish == finish


@pytest.mark.parametrize("message", [None, {}, {"content": None}, "text"])
def test_an_answer_without_text_has_none(message):
    reply, _ = ask(chat(message=message))
    assert reply.text is None


def test_thinking_that_took_all_is_told_apart_from_an_empty_answer():
    reply, _ = ask(chat(message={"content": "", "thinking": "let me see"}))
    assert read_reply(reply, load_rubric()).failure.reason == "thinking_exhausted"


@pytest.mark.parametrize("status", [404, 200])
def test_an_unknown_model_is_an_access_error_or_an_error_never_an_answer(status):
    expected = AccessError if status == 404 else BackendError
    with pytest.raises(expected, match="not found"):
        ask((status, {"error": "model 'm' not found"}))


def test_an_unknown_model_is_found_out_before_any_text_is_sent():
    with serving((404, {"error": "model 'm' not found"})) as (server, url):
        backend = OllamaBackend(parse_server_name(f"ollama:m@{url}"))
        with pytest.raises(AccessError):
            backend.ask([{"role": "user", "content": "hello"}], schema=None, max_tokens=10)
        backend.close()
    assert [body for _, body, _ in server.asked] == [{"model": "m"}]


def test_the_description_holds_what_can_change_a_figure():
    backend = OllamaBackend(parse_server_name("ollama:m"))
    assert not backend.is_remote
    assert json.dumps(backend.describe())
    assert backend.describe()["model"] == "m"
    backend.close()
