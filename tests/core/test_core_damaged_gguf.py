"""Damaged GGUF files, hundreds of them: each is refused with its reason, or the library really runs it; none ends a
process, hangs it or takes its memory. What changes a file without breaking it is found by its sha256: `models verify`.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections import Counter
from itertools import pairwise
from pathlib import Path

import load_each
import pytest
from gguf_damage import KINDS, Damage, fields_of
from small_gguf import spm_vocabulary, write_small_adapter, write_small_gguf

from aipsy_judge.errors import WeightsError
from aipsy_judge.gguf_adapter import check_adapter
from aipsy_judge.gguf_header import GgufHeader
from aipsy_judge.gguf_model import check_model

SECONDS_A_CHECK = 1.0  # of the processor; each takes milliseconds


def write(folder: Path, kind: str) -> tuple[Path, Path | None]:
    """(the whole file, the base it is worn by if it is an adapter)."""
    if kind == "adapter":
        names = tuple(f"blk.{n}.attn_{m}.weight" for n in (0, 1) for m in ("q", "output"))
        return write_small_adapter(folder / "whole.gguf", names=names), write_small_gguf(folder / "base.gguf")
    vocabulary = spm_vocabulary() if kind == "spm" else None
    return write_small_gguf(folder / "whole.gguf", vocabulary=vocabulary, quantised=kind == "quantised"), None


def spoiled(folder: Path, whole: bytes, base: Path | None, wanted: int) -> tuple[Counter[str], list[Path]]:
    """How many copies there were of each kind, and those that the checks let pass."""
    made: Counter[str] = Counter()
    passed = []
    header = check_model(base) if base is not None else None
    for number, (kind, data) in enumerate(Damage(whole, wanted).made()):
        made[kind] += 1
        path = folder / f"{kind}-{number}.gguf"
        path.write_bytes(data)
        start = time.process_time()
        reason = refusal(path, header)
        assert time.process_time() - start < SECONDS_A_CHECK, (kind, number)
        if reason is None:
            passed.append(path)
        else:
            assert len(reason) > 10, (kind, reason)
            path.unlink()
    return made, passed


def refusal(path: Path, base: GgufHeader | None) -> str | None:
    try:
        if base is None:
            check_model(path)
        else:
            check_adapter(path, base)
    except WeightsError as error:
        return error.message
    return None


def load(files: list[Path], base: Path | None) -> dict[str, str]:
    """What became of each file in a process that loads them all; one that was ended is followed by another."""
    fate: dict[str, str] = {}
    left = list(files)
    while left:
        done = subprocess.run(
            [sys.executable, load_each.__file__, str(base or "-")],
            input="\n".join(map(str, left)),
            capture_output=True,
            text=True,
            timeout=60 + len(left),
            check=False,
            env={**os.environ, "GGML_NO_BACKTRACE": "1"},
        )
        names = {path.name for path in left}
        lines = [line.partition(" ") for line in done.stdout.splitlines()]
        fate |= {name: said.strip() for name, _, said in lines if name in names}
        if done.returncode == 0:
            break
        last = next(name for name in reversed(fate) if name in names)
        fate[last] = f"ENDED {done.returncode}: {done.stderr[-300:]}"
        left = left[[p.name for p in left].index(last) + 1 :]
    return fate


def fates(tmp_path: Path, kind: str, wanted: int) -> tuple[Counter[str], dict[str, str]]:
    whole, base = write(tmp_path, kind)
    folder = tmp_path / "spoiled"
    folder.mkdir()
    made, passed = spoiled(folder, whole.read_bytes(), base, wanted)
    fate = load(passed, base)
    assert set(fate) == {p.name for p in passed}
    assert [f"{n} {said}" for n, said in fate.items() if said.startswith("ENDED")] == []
    # what the library alone refuses has its own words too
    assert all(len(said) > len("refused: ") + 10 for said in fate.values() if said != "loaded")
    return made, fate


@pytest.mark.parametrize("kind", ["bpe", "adapter"])
def test_some_damage_of_each_kind_is_refused_or_run(tmp_path, kind):
    made, _ = fates(tmp_path, kind, 3)
    # an adapter has no vocabulary to damage
    assert len(made) >= (len(KINDS) if kind == "bpe" else len(KINDS) - 6)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["bpe", "spm", "quantised", "adapter"])
def test_damage_of_many_kinds_at_many_places_ends_no_process(tmp_path, kind):
    made, fate = fates(tmp_path, kind, 60)
    assert sum(count >= 20 for count in made.values()) >= 10
    assert sum(made.values()) > 500
    # the test would prove nothing if everything were refused, or nothing
    assert 0 < len(fate) < sum(made.values()) / 2
    assert "loaded" in fate.values()


def test_a_whole_file_passes_and_is_loaded(tmp_path):
    for kind in ("bpe", "spm", "quantised", "adapter"):
        folder = tmp_path / kind
        folder.mkdir()
        whole, base = write(folder, kind)
        if base is None:
            check_model(whole)
        else:
            check_adapter(whole, check_model(base))
    assert load([whole], base) == {"whole.gguf": "loaded"}


def test_the_fields_of_a_file_are_where_the_format_says(tmp_path):
    """The damage is aimed by them."""
    data = write(tmp_path, "bpe")[0].read_bytes()
    fields = fields_of(data)
    assert all(a.at + a.size == b.at for a, b in pairwise(fields))
    assert data[fields[0].at : 4] == b"GGUF"
    assert next(f.key for f in fields if f.what == "name_text") == "token_embd.weight"
    assert {f.what for f in fields} >= {"scalar", "numbers", "element_text", "dimension", "tensor_offset"}
