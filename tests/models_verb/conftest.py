"""A known judge whose file is small, a hub that has it, and the command line run in this process."""

from __future__ import annotations

import hashlib
import sys
from dataclasses import dataclass

import pytest
from hub_server import REPOSITORY, Hub, serving_hub
from small_gguf import write_small_gguf

from aipsy_judge.cli.main import main
from aipsy_judge.known_judges import KnownJudge, known_judges

WEIGHTS, FILE = "gguf/small-q8.gguf", "small-q8.gguf"


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """The cache folder of these tests; nothing of the user's login or hub cache is seen."""
    monkeypatch.setenv("AIPSY_JUDGE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    for name in ("HF_TOKEN", "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "cache"


@pytest.fixture(scope="session")
def weights(tmp_path_factory) -> bytes:
    return write_small_gguf(tmp_path_factory.mktemp("weights") / FILE).read_bytes()


@pytest.fixture
def judge(weights, monkeypatch) -> KnownJudge:
    """small-judge, known beside the published ones; it comes from the hub and needs no contract's prompt."""
    made = KnownJudge.model_validate(
        {
            "name": "small-judge",
            "about": "a judge for tests",
            "trained": True,
            "contract": "compact",
            "context_tokens": 512,
            "licence": "Apache-2.0",
            "file": {"name": FILE, "bytes": len(weights), "sha256": hashlib.sha256(weights).hexdigest()},
            "hub": {"repository": REPOSITORY, "path": WEIGHTS},
            "needs": {"resident": 0.1},
            "figures": ["a figure that was published"],
            "source": "made for tests",
        }
    )
    real = known_judges()
    from aipsy_judge import known_judges as module

    monkeypatch.setattr(module, "known_judges", lambda: (*real, made))
    for name, loaded in list(sys.modules.items()):
        if name.startswith("aipsy_judge.") and getattr(loaded, "known_judges", None) is known_judges:
            monkeypatch.setattr(loaded, "known_judges", lambda: (*real, made))
    return made


@pytest.fixture
def hub(weights, monkeypatch):
    """The hub, and the client pointed at it as HF_ENDPOINT does at its import."""
    from huggingface_hub import constants

    with serving_hub(Hub({WEIGHTS: weights}, {WEIGHTS})) as served:
        monkeypatch.setattr(constants, "ENDPOINT", served.url)
        monkeypatch.setattr(
            constants, "HUGGINGFACE_CO_URL_TEMPLATE", served.url + "/{repo_id}/resolve/{revision}/{filename}"
        )
        # so that a small file comes in many pieces, and a break is not waited out for a second
        monkeypatch.setattr(constants, "DOWNLOAD_CHUNK_SIZE", 4096)
        monkeypatch.setattr("huggingface_hub.file_download.time.sleep", lambda seconds: None)
        yield served


@pytest.fixture
def run(monkeypatch, capsys):
    """run("models", "pull", "small-judge") -> exit code, standard output, standard error."""

    def call(*words, says=""):
        import io

        monkeypatch.setattr(sys, "argv", ["aipsy-judge", *map(str, words)])
        monkeypatch.setattr(sys, "stdin", io.StringIO(says))
        with pytest.raises(SystemExit) as ended:
            main()
        captured = capsys.readouterr()
        return Ran(ended.value.code or 0, captured.out, captured.err)

    return call
