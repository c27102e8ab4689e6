"""The official clients of Ollama and OpenAI against the server, with the stand-in judge: they must be able to read
every answer and every error. What a real judge says through them is in test_server_real_judge.py."""

from __future__ import annotations

import json

import pytest
from server_at_work import TALK, bench_text

pytestmark = pytest.mark.slow  # importing the clients takes longer than all they do here


@pytest.fixture(scope="module")
def ollama():
    return pytest.importorskip("ollama")


@pytest.fixture(scope="module")
def openai():
    return pytest.importorskip("openai")


@pytest.fixture
def messages(bench_prompt):
    return [{"role": "system", "content": bench_prompt}, {"role": "user", "content": bench_text(TALK, "Yes.")}]


@pytest.fixture
def ollama_client(server, ollama):
    client = ollama.Client(host=server.url, trust_env=False)
    yield client
    client._client.close()  # it has no way of its own


@pytest.fixture
def openai_client(server, openai):
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0) as client:
        yield client


def scores(content):
    return json.loads(content)["scores"]


def test_the_ollama_client_lists_shows_and_loads(ollama_client):
    assert [m.model for m in ollama_client.list().models] == ["aipsy-judge:latest"]
    assert ollama_client.show("aipsy-judge").capabilities == ["completion"]
    assert [m.model for m in ollama_client.ps().models] == ["aipsy-judge:latest"]
    assert ollama_client.generate("aipsy-judge").done_reason == "load"
    assert ollama_client.pull("aipsy-judge").status == "success"


def test_the_ollama_client_chats_whole_and_streamed_to_the_same_words(ollama_client, messages):
    whole = ollama_client.chat("aipsy-judge", messages)
    streamed = "".join(part.message.content for part in ollama_client.chat("aipsy-judge", messages, stream=True))
    generated = ollama_client.generate("aipsy-judge", messages[1]["content"], system=messages[0]["content"])
    assert scores(whole.message.content)
    assert whole.message.content == streamed == generated.response


def test_the_ollama_client_hears_of_a_refusal(ollama_client, ollama):
    with pytest.raises(ollama.ResponseError, match="is not served here") as error:
        ollama_client.chat("no-such-judge", [{"role": "user", "content": "x"}])
    assert error.value.status_code == 404
    with pytest.raises(ollama.ResponseError, match="schema"):
        ollama_client.chat("aipsy-judge", [{"role": "user", "content": "x"}])


def test_the_openai_client_lists_and_completes_whole_and_streamed_to_the_same_words(openai_client, messages):
    assert "aipsy-judge" in [m.id for m in openai_client.models.list()]
    assert openai_client.models.retrieve("aipsy-judge").id == "aipsy-judge"
    whole = openai_client.chat.completions.create(model="aipsy-judge", messages=messages)
    content = whole.choices[0].message.content
    options = {"stream": True, "stream_options": {"include_usage": True}}
    chunks = list(openai_client.chat.completions.create(model="aipsy-judge", messages=messages, **options))
    assert scores(content)
    assert content == "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
    assert chunks[-1].usage is not None
    assert whole.model_extra["aipsy_judge"]["judge"] == "fake"


def test_the_openai_client_reads_responses_whole_and_streamed_to_the_same_words(openai_client, messages):
    asked = {"model": "aipsy-judge", "instructions": messages[0]["content"], "input": messages[1]["content"]}
    whole = openai_client.responses.create(**asked)
    with openai_client.responses.stream(**asked) as stream:
        final = stream.get_final_response()
    assert scores(whole.output_text)
    assert whole.output_text == final.output_text
    assert whole.usage.output_tokens_details.reasoning_tokens == 0


def test_the_openai_client_hears_of_refusals_by_their_kind(openai_client, openai):
    chat = openai_client.chat.completions.create
    with pytest.raises(openai.NotFoundError, match="is not served here"):
        chat(model="no-such-judge", messages=[{"role": "user", "content": "x"}])
    with pytest.raises(openai.UnprocessableEntityError, match="schema"):
        chat(model="aipsy-judge", messages=[{"role": "user", "content": "x"}])
    with pytest.raises(openai.UnprocessableEntityError, match="n is 1"):
        chat(model="aipsy-judge", messages=[{"role": "user", "content": "x"}], n=2)


def test_a_schema_asked_of_a_judge_without_probabilities_is_refused(openai_client, openai):
    schema = {"type": "object", "properties": {"sure": {"type": "boolean"}}}
    wanted = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
    with pytest.raises(openai.ConflictError, match="gives no probabilities"):
        openai_client.chat.completions.create(
            model="aipsy-judge", messages=[{"role": "user", "content": "x"}], response_format=wanted
        )
