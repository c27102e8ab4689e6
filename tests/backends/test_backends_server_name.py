"""Names of judges on servers: what is meant, and whether text leaves this machine."""

import pytest

from aipsy_judge.backends.server_name import ServerName, is_loopback, parse_server_name
from aipsy_judge.errors import InputError


@pytest.mark.parametrize(
    ("name", "kind", "model", "url"),
    [
        ("openai:gpt-x@https://api.example.com/v1", "openai", "gpt-x", "https://api.example.com/v1"),
        ("openai:gpt-x@https://api.example.com/v1/", "openai", "gpt-x", "https://api.example.com/v1"),
        ("openai:org/m:q8@http://localhost:8080", "openai", "org/m:q8", "http://localhost:8080/v1"),
        ("openai:a@b@http://h:1/v1", "openai", "a@b", "http://h:1/v1"),
        ("openai:m@http://h/v1/chat/completions", "openai", "m", "http://h/v1"),
        ("openai:m@https://h/openai?api-version=1", "openai", "m", "https://h/openai?api-version=1"),
        ("openai:m@http://[::1]:8080/v1", "openai", "m", "http://[::1]:8080/v1"),
        ("ollama:gemma3:4b", "ollama", "gemma3:4b", "http://localhost:11434"),
        ("ollama:gemma3@http://box:11434/", "ollama", "gemma3", "http://box:11434"),
    ],
)
def test_names_are_taken_apart(name, kind, model, url):
    assert parse_server_name(name) == ServerName(kind, model, url)


@pytest.mark.parametrize(
    "name",
    [
        "openai:gpt-x",
        "openai:gpt-x@api.example.com",
        "openai:gpt-x@ftp://h/v1",
        "openai:@http://h/v1",
        "openai:",
        "ollama:",
        "openai:m@http://",
        "openai:m@http://h:99999/v1",
        "openai:m@http://[::1/v1",
        "other:m@http://h",
        "",
    ],
)
def test_other_names_are_one_clear_error(name):
    with pytest.raises(InputError) as caught:
        parse_server_name(name)
    assert "openai:MODEL@URL" in caught.value.hint


def test_a_password_in_the_address_is_refused_and_not_repeated():
    with pytest.raises(InputError) as caught:
        parse_server_name("openai:m@https://user:hunter2@h/v1")
    assert "hunter2" not in str(caught.value)


def test_what_stands_behind_a_question_mark_is_not_part_of_the_judges_name():
    assert parse_server_name("openai:m@https://h/v1?key=secret").text == "openai:m@https://h/v1"


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST", "127.0.0.1", "127.8.8.8", "[::1]", "judge.localhost", "localhost."]
)
def test_this_machine_is_loopback(host):
    assert is_loopback(f"http://{host}:8080/v1")


@pytest.mark.parametrize(
    "host",
    ["example.com", "localhost.example.com", "127.0.0.1.example.com", "10.0.0.1", "0.0.0.0", "128.0.0.1", "[::2]"],
)
def test_everything_else_is_not(host):
    assert not is_loopback(f"http://{host}:8080/v1")
