"""Every route with bodies that nobody would send: no fault of ours (500), no hang, and the server lives on. The judge
is the stand-in: what is tried is what stands before it."""

from __future__ import annotations

import copy
import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from server_at_work import SYSTEM, TALK, bench_text

MESSAGES = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": bench_text(TALK, "Yes.")}]
SCHEMA = {
    "type": "object",
    "properties": {"x": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/y"}]}},
    "$defs": {"y": {}},
}
BODIES = {
    "/api/chat": {"model": "aipsy-judge", "messages": MESSAGES, "format": SCHEMA, "options": {"num_predict": 5}},
    "/api/generate": {"model": "aipsy-judge", "prompt": "x", "system": SYSTEM, "stream": False, "format": SCHEMA},
    "/api/show": {"model": "aipsy-judge", "name": "aipsy-judge"},
    "/api/pull": {"model": "aipsy-judge"},
    "/v1/chat/completions": {
        "model": "aipsy-judge",
        "messages": [MESSAGES[0], {"role": "user", "content": [{"type": "text", "text": "x"}]}],
        "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": SCHEMA}},
        "max_tokens": 3,
        "stream": True,
        "stream_options": {"include_usage": True},
    },
    "/v1/responses": {
        "model": "aipsy-judge",
        "input": [{"role": "user", "content": [{"type": "input_text", "text": "x"}]}],
        "instructions": SYSTEM,
        "text": {"format": {"type": "json_schema", "schema": SCHEMA}},
    },
    "/v1/score": {
        "id": "a",
        "messages": [{"role": "user", "content": "a", "spoken": True}, {"role": "assistant", "content": "b"}],
        "rationale": "never",
        "stream": True,
    },
}
ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=8),
    st.sampled_from(["", "\x00", "\ud800", "assistant", "#", "a" * 3000]),
    st.lists(st.none() | st.text(max_size=2), max_size=2),
    st.dictionaries(
        st.sampled_from(["type", "role", "content", "$ref", ""]), st.none() | st.text(max_size=3), max_size=2
    ),
)
pytestmark = pytest.mark.slow
ALLOWED = {200, 400, 404, 409, 422}


def places(data, path=()):
    """Every place in a body, itself included."""
    yield path
    if isinstance(data, dict | list):
        for key in data if isinstance(data, dict) else range(len(data)):
            yield from places(data[key], (*path, key))


@st.composite
def bodies(draw):
    """A route and its body with a place or two replaced or left out."""
    route = draw(st.sampled_from(sorted(BODIES)))
    body = copy.deepcopy(BODIES[route])
    for _ in range(draw(st.integers(1, 2))):
        path = draw(st.sampled_from([p for p in places(body) if p] or [("x",)]))
        at = body
        for key in path[:-1]:
            at = at[key]
        if draw(st.booleans()):
            at[path[-1]] = draw(ODD)
        elif path != ("x",):
            del at[path[-1]]
    return route, body


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(bodies())
def test_no_body_whatever_is_a_fault_of_ours(server, bench_prompt, asked):
    route, body = asked
    answer = server.client.post(route, content=json.dumps(body).encode("utf-8", "surrogatepass"), timeout=20)
    assert answer.status_code in ALLOWED, answer.text
    assert answer.status_code != 200 or "error" not in answer.text[:20]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(sorted(BODIES)), st.binary(max_size=60))
def test_no_bytes_whatever_are_a_fault_of_ours(server, route, content):
    assert server.client.post(route, content=content, timeout=20).status_code == 400


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.sampled_from(["GET", "POST", "PUT", "DELETE", "HEAD", "PATCH", "OPTIONS"]),
    st.sampled_from(["/", *BODIES, "/api/tags", "/metrics", "/v1/models/%00", "/v1/models/a/b", "/..", "//"]),
    st.text(st.characters(codec="ascii", exclude_categories=["C"], exclude_characters="#?"), max_size=6),
)
def test_no_method_or_path_whatever_is_a_fault_of_ours(server, method, path, tail):
    answer = server.client.request(method, f"{server.url}{path}{tail.replace('%', '')}", content=b"")
    assert answer.status_code < 500 or answer.status_code == 501
    assert server.client.get("/health").status_code == 200
