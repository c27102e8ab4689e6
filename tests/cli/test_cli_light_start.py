"""`--help` starts at once: nothing heavy is imported for it, for any verb."""

import json
import subprocess
import sys

import pytest

HEAVY = (
    "numpy",
    "pydantic",
    "httpx",
    "rich",
    "llama_cpp",
    "yaml",
    "jinja2",
    "pandas",
    "scipy",
    "sklearn",
    "matplotlib",
)
PROGRAM = f"""
import json, sys
from aipsy_judge.cli.main import main
try:
    main()
except SystemExit as ended:
    print(json.dumps([ended.code, [m for m in {HEAVY!r} if m in sys.modules]]), file=sys.stderr)
"""


def imported(*words):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *words], capture_output=True, text=True, check=True, timeout=60
    )
    return done.stdout, json.loads(done.stderr.splitlines()[-1])


@pytest.mark.parametrize("words", [("--help",), ("score", "--help")])
def test_help_imports_nothing_heavy(words):
    text, (code, modules) = imported(*words)
    assert text.startswith("Usage:")
    assert (code or 0, modules) == (0, [])


@pytest.mark.parametrize("verb", ["repeat", "rescore", "doctor", "models", "rubric", "panel", "anchors"])
def test_the_module_of_a_verb_imports_nothing_heavy(verb):
    program = f"import sys, aipsy_judge.cli.{verb}; print([m for m in {HEAVY!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"
