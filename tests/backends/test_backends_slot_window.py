"""The context of one slot, from servers that tell it, tell nonsense, or tell nothing."""

import httpx
import pytest

from aipsy_judge.backends.server_name import parse_server_name
from aipsy_judge.backends.slot_window import SlotWindow, slot_window


def asked(handler, name="openai:m@http://localhost:8080/v1"):
    return slot_window(parse_server_name(name), httpx.Client(transport=httpx.MockTransport(handler)))


def test_the_window_of_one_slot_is_told_not_that_of_all():
    """A server started with 16384 tokens for 4 slots."""

    def handler(request):
        assert str(request.url) == "http://localhost:8080/props"
        assert "authorization" not in request.headers
        return httpx.Response(200, json={"default_generation_settings": {"n_ctx": 4096}, "total_slots": 4})

    assert asked(handler) == SlotWindow(4096, 4)


@pytest.mark.parametrize(
    "response",
    [
        httpx.Response(404, text="not found"),
        httpx.Response(200, text="<!DOCTYPE html>"),
        httpx.Response(200, json={"error": "no such endpoint"}),
        httpx.Response(200, json=[]),
        httpx.Response(200, json={"default_generation_settings": {"n_ctx": "4096"}}),
        httpx.Response(200, json={"default_generation_settings": {"n_ctx": 0}}),
        httpx.Response(302, headers={"location": "http://elsewhere.example/props"}),
    ],
)
def test_a_server_that_does_not_tell_has_no_window(response):
    assert asked(lambda request: response) is None


def test_a_server_that_is_not_there_has_no_window():
    def handler(request):
        raise httpx.ConnectError("refused")

    assert asked(handler) is None
