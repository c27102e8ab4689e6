import pytest
from panel_setup import run_command


@pytest.fixture(autouse=True)
def no_keys(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("AIPSY_JUDGE_API_KEY", raising=False)


@pytest.fixture
def run(monkeypatch, capsys):
    """run("panel", file, ...) -> exit code, standard output, standard error."""
    return lambda *words: run_command(monkeypatch, capsys, *words)
