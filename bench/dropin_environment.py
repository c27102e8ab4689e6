"""The benchmark's client as anybody installs it: its own Python, its own packages, nothing of it changed."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

PACKAGE, VERSION = "aipsy-bench", "0.1.5"
LEAST_PYTHON = (3, 12)
# From later ones on, Inspect counts the tokens of a stand-in model's output with a file from the network.
LAST_WITHOUT_TOKENIZER = "inspect-ai==0.3.260"
TOKENIZER_FILE = "fb374d419588a4632f3f557e76b4b70aebbca790"  # sha1 of its address, as tiktoken names it
INSTALL_SECONDS = 1800
_ROOT = Path(__file__).parents[1]


class NoPythonError(Exception):
    """There is no Python on this machine that the client runs on."""


@dataclass(frozen=True, slots=True)
class ClientHome:
    """python: of the environment that holds the client; tiktoken: folder with the tokenizer's file, if there is one."""

    python: Path
    tiktoken: Path | None

    def environment(self, folder: Path) -> dict[str, str]:
        """For one run: no proxy, no key, and caches of its own, so that no answer of another run is taken for one."""
        kept = {k: v for k, v in os.environ.items() if "proxy" not in k.lower() and not k.endswith("_API_KEY")}
        homes = {name: str(folder / name.lower()) for name in ("INSPECT_CACHE_DIR", "XDG_CACHE_HOME", "XDG_DATA_HOME")}
        told = {"TIKTOKEN_CACHE_DIR": str(self.tiktoken)} if self.tiktoken is not None else {}
        return {**kept, **homes, **told, "NO_PROXY": "*", "PYTHONWARNINGS": "ignore"}


def client_home(work: Path) -> ClientHome:
    """Make the environment under `work`, or take the one that is there. NoPythonError; CalledProcessError from pip."""
    tiktoken = tokenizer_folder()
    wanted = [f"{PACKAGE}=={VERSION}", *([] if tiktoken is not None else [LAST_WITHOUT_TOKENIZER])]
    home = work / ("client" if tiktoken is not None else "client-without-tokenizer")
    python = home / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    done = home / "installed.txt"
    if not done.is_file() or done.read_text(encoding="utf-8").split() != wanted:
        shutil.rmtree(home, ignore_errors=True)
        base = find_python(work)
        print(f"installing {' '.join(wanted)} for {base} (once, a minute or two)", file=sys.stderr)
        _run([base, "-m", "venv", str(home)])
        _run([str(python), "-m", "pip", "install", "-qq", "--disable-pip-version-check", *wanted])
        done.write_text("\n".join(wanted), encoding="utf-8")
    return ClientHome(python, tiktoken)


def tokenizer_folder() -> Path | None:
    """Where tiktoken's file lies, so that later versions of Inspect count tokens without the network."""
    told = os.environ.get("TIKTOKEN_CACHE_DIR")
    places = [Path(told)] if told else []
    places.append(_ROOT.parent / "shared" / "tiktoken_cache")
    return next((p.resolve() for p in places if (p / TOKENIZER_FILE).is_file()), None)


def find_python(work: Path) -> str:
    """A Python that is new enough: this one, one on the path that does run, or one that uv finds. NoPythonError."""
    for python in _candidates(work):
        if new_enough(python):
            return python
    least = ".".join(map(str, LEAST_PYTHON))
    raise NoPythonError(f"{PACKAGE} {VERSION} wants Python {least} or newer, and none was found on this machine")


def new_enough(python: str) -> bool:
    """Whether it runs (a launcher without a Python behind it does not) and is new enough."""
    program = f"import sys, venv; sys.exit(sys.version_info < {LEAST_PYTHON})"
    try:
        done = subprocess.run([python, "-c", program], capture_output=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def _candidates(work: Path) -> Iterator[str]:
    yield sys.executable
    for name in ("python3.12", "python3.13", "python3.14", "python3"):
        found = shutil.which(name)
        if found:
            yield found
    # pyenv's launchers on the path run only the version that is switched on, and uv gives up at the first that fails
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    yield from map(str, sorted(pyenv.glob("versions/3.*/bin/python3")))
    yield from _found_by_uv(work)


def _found_by_uv(work: Path) -> Iterator[str]:
    """One that it knows of, else one that it can bring."""
    uv = _uv(work)
    if not uv:
        return
    path = os.pathsep.join(p for p in os.environ.get("PATH", "").split(os.pathsep) if "shims" not in Path(p).parts)
    environment = {**os.environ, "PATH": path}
    version = ".".join(map(str, LEAST_PYTHON))
    for words in (["find", f">={version}"], ["install", "--no-bin", version], ["find", version]):
        done = subprocess.run(
            [*uv, "python", *words], capture_output=True, text=True, env=environment, timeout=600, check=False
        )
        if words[0] == "find" and done.returncode == 0 and done.stdout.strip():
            yield done.stdout.strip().splitlines()[-1]


def _uv(work: Path) -> list[str]:
    """How uv is called; where it is not here it is brought into a folder of its own. Empty where that fails."""
    if shutil.which("uv"):
        return ["uv"]
    if importlib.util.find_spec("uv") is not None:
        return [sys.executable, "-m", "uv"]
    folder = work / "uv"
    try:
        _run([sys.executable, "-m", "pip", "install", "-qq", "--target", str(folder), "uv"])
    except (OSError, subprocess.SubprocessError):
        return []
    brought = folder / "bin" / ("uv.exe" if sys.platform == "win32" else "uv")
    return [str(brought)] if brought.is_file() else []


def _run(words: Sequence[str]) -> None:
    subprocess.run(words, check=True, timeout=INSTALL_SECONDS, stdout=sys.stderr)
