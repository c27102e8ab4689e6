"""The arrow goes one way: the workshop imports the instrument, its folders not each other, bench what it measures."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MAY_IMPORT = {
    "aipsy_judge": {"aipsy_judge"},
    "training": {"training", "aipsy_judge"},
    "quantize": {"quantize", "aipsy_judge"},
    "bench": {"bench", "training", "quantize", "aipsy_judge"},
}


def imported(path: Path) -> set[str]:
    """First names of all absolute imports in a file, those inside functions included."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module is not None:
            names.add(node.module.split(".")[0])
    return names


@pytest.mark.parametrize("folder", MAY_IMPORT)
def test_a_folder_imports_only_what_lies_below_it(folder: str) -> None:
    files = sorted((ROOT / folder).rglob("*.py"))
    assert files, "nothing to look at"
    for path in files:
        foreign = imported(path) & set(MAY_IMPORT) - MAY_IMPORT[folder]
        assert not foreign, f"{path.relative_to(ROOT)} imports {', '.join(sorted(foreign))}"


def test_backends_know_nothing_of_how_replies_are_read() -> None:
    for path in sorted((ROOT / "aipsy_judge" / "backends").rglob("*.py")):
        assert "from ..reply" not in path.read_text(encoding="utf-8"), path.name


def test_the_benchmarks_contract_is_named_in_one_place() -> None:
    files = [p for p in (ROOT / "aipsy_judge").rglob("*.py") if '"aipsy-bench-v1"' in p.read_text(encoding="utf-8")]
    assert [p.name for p in files] == ["bench_contract.py"]
