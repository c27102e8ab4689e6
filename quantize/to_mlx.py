"""A checkpoint folder as a quantised MLX folder, for Macs.

    python -m quantize.to_mlx DIR --out DIR [--bits 8] [--group 64]

mlx-lm converts. Routers of experts stay as they are stored: one that is off by little sends a token to another expert.
config.json keeps every key of the source (mlx-lm drops some and others cannot do without them) and gains those that
mlx-lm reads where the source says the same under newer names; tokenizer, template and generation settings are the
source's byte by byte.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from aipsy_judge.atomic import sync_folder, write_text
from aipsy_judge.cli.ending import told_errors
from aipsy_judge.errors import BackendError, MissingExtraError, WeightsError
from aipsy_judge.rope_settings import older_rope_keys

from .beside_weights import copy_beside
from .checkpoint import Checkpoint, check_full_weights, open_checkpoint, read_json
from .converter import check_convertible
from .disk_space import check_disk
from .new_file import check_new

# Saved again by transformers, Gemma 4's settings lose these two; mlx-lm then builds layers of another size.
_GEMMA4_KEYS = ("global_head_dim", "num_global_key_value_heads")
_QUANTISATION = ("quantization", "quantization_config")


@dataclass(frozen=True, slots=True)
class MadeFolder:
    """size_bytes: of the weights; bits_per_weight: over all of them, those left as they were included."""

    path: Path
    bits: int
    size_bytes: int
    bits_per_weight: float


def to_mlx(
    folder: Path, out: Path, bits: int = 8, group: int = 64, *, tell: Callable[[str], None] = lambda line: None
) -> MadeFolder:
    """Convert `folder` to `out`, which is there whole and loadable or not at all. group: weights that share a scale.

    Raises MissingExtraError where mlx-lm is not installed, WeightsError for a folder that cannot be converted,
    InputError where `out` is there already, CapacityError, BackendError where mlx-lm fails.
    """
    check_new(out)
    model = open_checkpoint(folder)
    check_full_weights(model)
    tell(f"{check_convertible(model)}: {model.weight_bytes / 1e9:.2f} GB of {', '.join(model.weight_types)}")
    _check_settings(model)
    check_disk(out, model.weight_bytes)  # more than is needed: what stays unquantised differs from model to model
    with tempfile.TemporaryDirectory(prefix=f".{out.name}.", dir=out.parent) as part:
        made = Path(part) / "model"
        _convert(folder, made, bits, group)
        _restore(folder, made)
        bits_per_weight = _check_loads(made)
        os.rename(made, out)
    sync_folder(out.parent)
    size = sum(p.stat().st_size for p in out.glob("*.safetensors"))
    return MadeFolder(out, bits, size, bits_per_weight)


def _check_settings(model: Checkpoint) -> None:
    text = model.config.get("text_config")
    text = text if isinstance(text, dict) else model.config
    if str(text.get("model_type", "")).startswith("gemma4"):
        missing = [key for key in _GEMMA4_KEYS if key not in text]
        if missing:
            raise WeightsError(
                f"lacks {', '.join(missing)}: it was written by transformers, not by the makers of the model",
                where=str(model.folder / "config.json"),
                hint="Put the base's own config.json there; merging keeps it.",
            )


def _convert(folder: Path, out: Path, bits: int, group: int) -> None:
    convert = _mlx("mlx_lm").convert
    said = io.StringIO()
    try:
        with contextlib.redirect_stdout(said):
            convert(str(folder), out, quantize=True, q_bits=bits, q_group_size=group, quant_predicate=_is_quantised)
    except Exception as error:  # mlx-lm has no errors of its own
        raise BackendError(f"mlx-lm could not convert: {error}", where=str(folder)) from error


def _mlx(module: str) -> Any:
    """By name: whether a type checker knows these modules depends on the machine."""
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingExtraError("mlx-lm", "mlx", "converting to MLX") from error


def _is_quantised(path: str, module: Any) -> bool:
    return not any("router" in part for part in path.split("."))


def _restore(source: Path, made: Path) -> None:
    written = read_json(made / "config.json")
    config = read_json(source / "config.json") | {key: written[key] for key in _QUANTISATION if key in written}
    config |= older_rope_keys(config)
    if "quantization" not in config:
        raise WeightsError("mlx-lm quantised nothing", where=str(source))
    for path in made.iterdir():
        if not path.name.startswith("model"):
            path.unlink()
    copy_beside(source, made)
    write_text(made / "config.json", json.dumps(config, indent=2) + "\n")


def _check_loads(made: Path) -> float:
    """Load the folder as a user will; bits a weight. Nothing is evaluated: weights stay on the disk."""
    try:
        model, _ = _mlx("mlx_lm").load(str(made), lazy=True)
    except Exception as error:
        raise BackendError(f"what mlx-lm wrote does not load: {error}", where=str(made)) from error
    arrays = list(_mlx("mlx.utils").tree_flatten(model.parameters()))
    kept = [name for name, _ in arrays if name.endswith(".scales") and "router" in name]
    if kept:
        raise WeightsError(f"the router {kept[0]!r} was quantised", where=str(made))
    weights = int(_mlx("mlx_lm.utils").get_total_parameters(model))
    return float(sum(8 * a.nbytes for _, a in arrays) / weights)


_FOLDER = click.Path(path_type=Path, file_okay=False)


@click.command(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.argument("folder", type=_FOLDER)
@click.option("--out", required=True, type=_FOLDER, help="The MLX folder to write.")
@click.option("--bits", default="8", show_default=True, type=click.Choice(["8", "4"]))
@click.option("--group", default="64", show_default=True, type=click.Choice(["32", "64", "128"]))
def main(folder: Path, out: Path, bits: str, group: str) -> None:
    """Convert a checkpoint folder to a quantised MLX folder."""
    with told_errors():
        made = to_mlx(folder, out, int(bits), int(group), tell=lambda line: click.echo(line, err=True))
        click.echo(f"{made.path}: {made.bits} bit, {made.size_bytes} bytes, {made.bits_per_weight:.2f} bits a weight")


if __name__ == "__main__":
    main()
