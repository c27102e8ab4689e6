"""A LoRA adapter added to its base, file by file, without loading the model.

    python -m quantize.merge --base DIR --adapter DIR --out DIR

Sums are made at 32 bits and rounded once to the type that is stored. Whatever the adapter does not touch, config.json,
tokenizer, template and generation settings included, is the base's, byte by byte. A stopped merge goes on where it was
when the same command is given again; one that is done is read again and left as it is.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from aipsy_judge.atomic import sync_folder, write_text
from aipsy_judge.base_record import base_record
from aipsy_judge.cli.ending import told_errors
from aipsy_judge.errors import WeightsError

from .base_check import check_base
from .beside_weights import copy_beside
from .checkpoint import INDEX, Checkpoint, check_full_weights, open_checkpoint
from .disk_space import check_disk
from .new_file import check_new

if TYPE_CHECKING:
    from .lora import Adapter
    from .merge_state import MergeState

FORMAT = 1


def merge(
    base_folder: Path,
    adapter_folder: Path,
    out: Path,
    *,
    any_base: bool = False,
    tell: Callable[[str], None] = lambda line: None,
) -> dict[str, Any]:
    """Merge and return what merged.json in `out` says. `out` is there whole or not at all.

    Raises WeightsError for a base or adapter that cannot be merged exactly, InputError where something is `out` already
    that is not this very merge, CapacityError where the disk is too small. any_base: merge although the base is not the
    adapter's, and record it.
    """
    from .delta import load, plan
    from .lora import open_adapter
    from .merge_done import finish, merge_done
    from .merge_shard import merge_file
    from .merge_state import RECORD, alone, merge_key, open_state

    if not (out / RECORD).is_file():
        check_new(out)  # before anything is read
    base = open_checkpoint(base_folder)
    check_full_weights(base)
    adapter = open_adapter(adapter_folder)
    asked = _asked(base, adapter, check_base(base.folder, adapter.folder, any_base, tell))
    done = merge_done(out, base, asked)
    if done is not None:
        tell(f"{out}: merged before, and whole")
        return done
    changes = plan(base, adapter)
    part = out.with_name(out.name + ".part")
    with alone(part):
        state = open_state(part, merge_key(base, adapter))
        check_disk(out, sum(f.size_bytes for f in base.files if f.path.name not in state.done))
        for number, file in enumerate(base.files, 1):
            if file.path.name in state.done:
                tell(f"{number}/{len(base.files)} {file.path.name}: done before")
                continue
            tell(f"{number}/{len(base.files)} {file.path.name}: {file.size_bytes / 1e9:.2f} GB")
            state.add(merge_file(file, part / file.path.name, changes, lambda change: load(change, adapter)))
        record = asked | _result(adapter, state)
        _place(base, part, out, record)
        finish(out)
    return record


def _asked(base: Checkpoint, adapter: Adapter, unlike: tuple[str, ...]) -> dict[str, Any]:
    """What is merged into what: the part of the record that is known before."""
    origin = base_record(base.folder).to_dict() | {"types": list(base.weight_types), "dequantised": base.dequantised}
    settings = {k: adapter.config.get(k) for k in ("r", "lora_alpha", "use_rslora", "rank_pattern", "alpha_pattern")}
    return {
        "format": FORMAT,
        "base": origin,
        "adapter": {"sha256": adapter.sha256(), "pairs": len(adapter.pairs), **settings},
        "unlike_the_adapters_base": list(unlike),
    }


def _result(adapter: Adapter, state: MergeState) -> dict[str, Any]:
    effects = [e for file in state.done.values() for e in file.effects.values()]
    changed = sum(e.changed for e in effects)
    if changed == 0:
        raise WeightsError(
            f"the adapter changes none of the {sum(e.values for e in effects)} values that it is added to",
            where=str(adapter.folder),
            hint="It was not trained, or its changes are smaller than the stored type can hold.",
        )
    change = sum(e.change_squares for e in effects)
    return {
        "effect": {
            "tensors": len(effects),
            "tensors_unchanged": sum(e.changed == 0 for e in effects),
            "values": sum(e.values for e in effects),
            "values_changed": changed,
            "change_norm": change**0.5,
            # 0: stored exactly; 1: rounding is as large as the change (it is spread evenly, the change is not)
            "rounding_to_change": (sum(e.lost_squares for e in effects) / change) ** 0.5,
        },
        "files": [
            {"name": f.name, "bytes": f.size_bytes, "sha256": f.sha256, "source_sha256": f.source_sha256}
            for f in sorted(state.done.values(), key=lambda f: f.name)
        ],
    }


def _place(base: Checkpoint, part: Path, out: Path, record: dict[str, Any]) -> None:
    from .merge_state import RECORD

    copied = copy_beside(base.folder, part)
    if (base.folder / INDEX).is_file():  # the same files with the same tensors: it stays right
        shutil.copyfile(base.folder / INDEX, part / INDEX)
    record["copied"] = copied
    write_text(part / RECORD, json.dumps(record, indent=2, sort_keys=True) + "\n")
    sync_folder(part)
    os.rename(part, out)


_FOLDER = click.Path(path_type=Path, file_okay=False)


@click.command(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option("--base", required=True, type=_FOLDER, help="The base's folder, as published or dequantised.")
@click.option("--adapter", required=True, type=_FOLDER, help="The adapter's folder, as PEFT writes it.")
@click.option("--out", required=True, type=_FOLDER, help="The new folder; its files take as much room as the base's.")
@click.option("--any-base", is_flag=True, help="Merge though the base is not known to be the adapter's; recorded.")
def main(base: Path, adapter: Path, out: Path, any_base: bool) -> None:
    """Add a LoRA adapter to its base, file by file, in bounded memory."""
    with told_errors():
        record = merge(base, adapter, out, any_base=any_base, tell=lambda line: click.echo(line, err=True))
        effect = record["effect"]
        click.echo(
            f"{out}: {effect['tensors']} tensors merged, {effect['values_changed']} of {effect['values']} values "
            f"changed; rounding is {effect['rounding_to_change']:.1%} of the change"
        )


if __name__ == "__main__":
    main()
