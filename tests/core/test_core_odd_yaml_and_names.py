"""Odd YAML and names too long for the file system end in one error of this package, never in a traceback."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from aipsy_judge.atomic import check_writable
from aipsy_judge.errors import InputError, RubricError
from aipsy_judge.gate_file import parse_gate
from aipsy_judge.rubric import load_rubric, parse_rubric
from aipsy_judge.strict_yaml import load_yaml

ODD_YAML = {
    "thirteenth month": "name: 2020-13-45",
    "number of 6000 digits": "name: 1" + "0" * 6000,
    "tagged int": "name: !!int x",
    "tagged float": "name: !!float x",
    "tagged timestamp": "name: !!timestamp x",
    "deep list": "[" * 5000 + "]" * 5000,
    "deep mapping": "{a: " * 3000 + "1" + "}" * 3000,
}
TOO_LONG = "a" * 300


@pytest.mark.parametrize("text", ODD_YAML.values(), ids=ODD_YAML.keys())
def test_yaml_that_trips_the_library_is_an_input_error(text: str) -> None:
    with pytest.raises(yaml.YAMLError):
        load_yaml(text)
    with pytest.raises(RubricError, match="not valid YAML"):
        parse_rubric(text, where="r.yaml")
    with pytest.raises(InputError, match="not valid YAML"):
        parse_gate(text, where="g.yaml")


def test_name_too_long_for_a_rubric_or_an_output_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(RubricError, match="too long"):
        load_rubric(TOO_LONG)
    with pytest.raises(InputError, match="too long"):
        check_writable(tmp_path / TOO_LONG)


def test_system_error_on_the_command_line_is_one_line_and_exit_code_2() -> None:
    code = (
        "import sys; from aipsy_judge.cli import main as m\n"
        "def fail(**_): raise OSError(36, 'File name too long', 'x\\x1b[31m')\n"
        "m.cli = fail; m.main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("error: x")
    assert "File name too long" in done.stderr
    assert "Traceback" not in done.stderr
    assert "\x1b" not in done.stderr
