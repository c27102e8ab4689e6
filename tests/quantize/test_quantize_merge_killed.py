"""A merge that is killed, at whatever moment, goes on with the same command and ends as if it had not been."""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from small_checkpoints import IN, OUT, Q0, TARGETS, all_matrices, pair, write_adapter

from aipsy_judge.errors import InputError
from quantize.merge import merge
from training.export import Job
from training.recipe_reading import parse_recipe

KILLED = 99
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT


def killed_before(step: int, work: Callable[[], object], under: Path) -> bool:
    """Do `work` in a process of its own that ends, with nothing tidied up, before its step-th change of the files
    whose names begin with `under`. False: it had fewer steps and came to its end."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of threads, which the child does not use
        child = os.fork()
    if child == 0:
        code = 1
        try:
            sys.addaudithook(_killer(step, str(under)))
            work()
            code = 0
        finally:
            os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code in (0, KILLED)
    return code == KILLED


def _killer(step: int, under: str) -> Callable[[str, tuple[Any, ...]], None]:
    seen = 0

    def hook(event: str, given: tuple[Any, ...]) -> None:
        nonlocal seen
        changes = event in ("os.rename", "os.remove", "os.mkdir", "os.rmdir")
        changes |= event == "open" and isinstance(given[2], int) and bool(given[2] & _WRITES)
        if changes and any(str(g).startswith(under) for g in given[:2]):
            seen += 1
            if seen == step:
                os._exit(KILLED)

    return hook


def contents(folder: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in folder.iterdir()}


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("then", ["the same", "another adapter"])
def test_a_merge_killed_before_any_of_its_steps_goes_on_to_the_same_end(tmp_path: Path, base: Path, then: str) -> None:
    """Another adapter: what the killed one left is then thrown away, unless it was in place already."""
    first = write_adapter(tmp_path / "adapter", base, all_matrices(), target_parameters=TARGETS)
    other = write_adapter(tmp_path / "other", base, {Q0: pair(OUT, IN)})
    adapter = first if then == "the same" else other
    merge(base, adapter, tmp_path / "whole")
    wanted = contents(tmp_path / "whole")
    step, stopped = 1, True
    while stopped:
        out = tmp_path / f"out-{step:03}-"
        stopped = killed_before(step, partial(merge, base, first, out), out)
        if out.exists() and adapter is other:
            with pytest.raises(InputError, match="another merge"):
                merge(base, other, out)
        else:
            merge(base, adapter, out)
            assert contents(out) == wanted, step
            assert not out.with_name(f"{out.name}.part").exists()
        step += 1
    assert step > 15  # two files of weights, each with its state, and all that lies beside them


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_throwing_away_anothers_unfinished_merge_can_be_killed_too(tmp_path: Path, base: Path) -> None:
    first = write_adapter(tmp_path / "adapter", base, all_matrices(), target_parameters=TARGETS)
    other = write_adapter(tmp_path / "other", base, {Q0: pair(OUT, IN)})
    merge(base, other, tmp_path / "whole")
    tries = (tmp_path / f"try-{n:03}-" for n in count(1))
    steps = next(n for n, out in enumerate(tries) if not killed_before(n + 1, partial(merge, base, first, out), out))
    step, stopped = 1, True
    while stopped:
        out = tmp_path / f"out-{step:03}-"
        # the last step but one puts the folder in place: all files are written by then
        assert killed_before(steps - 1, partial(merge, base, first, out), out)
        assert (out.with_name(f"{out.name}.part") / "merged.json").is_file()
        stopped = killed_before(step, partial(merge, base, other, out), out)
        merge(base, other, out)
        assert contents(out) == contents(tmp_path / "whole"), step
        step += 1


@pytest.mark.parametrize("harm", ["a file was cut", "a file is gone", "the record was edited", "the base's tokenizer"])
def test_an_output_that_is_no_longer_that_merge_is_not_accepted(tmp_path: Path, base: Path, harm: str) -> None:
    adapter = write_adapter(tmp_path / "adapter", base, {Q0: pair(OUT, IN)})
    out = tmp_path / "out"
    told = merge(base, adapter, out)
    assert merge(base, adapter, out) == told == json.loads((out / "merged.json").read_text())
    part = sorted(out.glob("*.safetensors"))[0]
    if harm == "a file was cut":
        part.write_bytes(part.read_bytes()[:-1])
    elif harm == "a file is gone":
        (out / "tokenizer.json").unlink()
    elif harm == "the record was edited":
        (out / "merged.json").write_text(json.dumps({**told, "files": [3]}))
    else:
        (base / "tokenizer.json").write_text("{}")
    before = contents(out)
    with pytest.raises(InputError, match="another merge, or was changed"):
        merge(base, adapter, out)
    assert contents(out) == before


def test_an_export_killed_after_the_merge_goes_on_without_merging_again(tmp_path: Path, base: Path) -> None:
    adapter = write_adapter(tmp_path / "adapter", base, {Q0: pair(OUT, IN)})
    recipe = parse_recipe(f"name: made\nbase: {{checkpoint: '{base}'}}\ndata: {{conversations: a, ratings: b}}\n")

    def merged(words: Sequence[str]) -> int:
        assert words[0] == "quantize.merge"
        merge(base, adapter, Path(words[words.index("--out") + 1]))
        return 0

    def merged_then_killed(words: Sequence[str]) -> int:
        merged(words)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Job(recipe, tmp_path / "run", base, adapter, merged_then_killed).merged()
    left = tmp_path / "run" / "export" / ".merged.part" / "model"
    before = {p.name: p.stat().st_ino for p in left.iterdir()}
    made = Job(recipe, tmp_path / "run", base, adapter, merged).merged()
    assert made == tmp_path / "run" / "export" / "merged" / "model"
    assert {p.name: p.stat().st_ino for p in made.iterdir()} == before
