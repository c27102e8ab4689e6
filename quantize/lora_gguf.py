"""A LoRA adapter as a small GGUF file, to be worn by a base that stays as it is.

    python -m quantize.lora_gguf --adapter DIR --base DIR --out FILE.gguf [--type F16] [--base-gguf FILE]

The file format knows one alpha for all pairs and divides it by each pair's rank. Whatever else an adapter's settings
make of its scale (rslora, patterns of ranks and alphas) is multiplied into its B matrices.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from aipsy_judge.cli.ending import told_errors
from aipsy_judge.errors import WeightsError

from .checkpoint import open_checkpoint
from .new_file import Made, check_new, keep

if TYPE_CHECKING:
    from .delta import Change
    from .lora import Adapter

TYPES = ("F16", "F32")


def lora_gguf(
    adapter_folder: Path,
    base_folder: Path,
    out: Path,
    kind: str = "F16",
    *,
    base_gguf: Path | None = None,
    any_base: bool = False,
    tell: Callable[[str], None] = lambda line: None,
) -> Made:
    """Write `out`, whole and checked or not at all. base_gguf: the file that will wear it, which it is then held to.

    Raises WeightsError for an adapter that no GGUF can hold (experts), that is not one of this base, or that lost
    something; InputError where `out` is there already; BackendError where llama.cpp's converter fails.
    """
    from .base_check import check_base
    from .converter import check_convertible
    from .delta import plan
    from .lora import open_adapter

    check_new(out)
    base, adapter = open_checkpoint(base_folder), open_adapter(adapter_folder)
    for difference in check_base(base.folder, adapter.folder, any_base, tell):
        tell(f"warning: {difference}")
    changes = plan(base, adapter)
    _refuse_experts(changes)
    tell(f"{check_convertible(base)}: {len(changes)} pairs")
    with tempfile.TemporaryDirectory(prefix=f".{out.name}.", dir=out.parent) as part:
        made = _convert(adapter, changes, base_folder, Path(part), out.stem, kind)
        _check(made, len(changes), base_gguf)
        return keep(made, out, kind)


def _refuse_experts(changes: dict[str, Change]) -> None:
    stacked = [name for name, change in changes.items() if change.experts > 1 or len(change.tensor.shape) > 2]
    if stacked:
        raise WeightsError(
            f"changes stacked experts, which llama.cpp's converter cannot map: {', '.join(stacked[:2])}, ...",
            hint="Merge instead: python -m quantize.merge, then python -m quantize.to_gguf.",
        )


def _convert(adapter: Adapter, changes: dict[str, Change], base_folder: Path, part: Path, name: str, kind: str) -> Path:
    from .converter import run_converter

    plain = part / name  # the converter names the adapter after its folder
    plain.mkdir()
    _write_plain(adapter, changes, plain)
    made = part / f"{kind}.gguf"
    run_converter(
        "convert_lora_to_gguf.py", [plain, "--base", base_folder, "--outtype", kind.lower(), "--outfile", made]
    )
    return made


def _write_plain(adapter: Adapter, changes: dict[str, Change], folder: Path) -> None:
    """The same adapter under the base's own tensor names, at 32 bits, with nothing but alpha / rank as its scale."""
    from safetensors.torch import save_file

    from .delta import load

    alpha = float(adapter.config["lora_alpha"])
    tensors = {}
    for name, change in changes.items():
        matrices = load(change, adapter)
        module = f"base_model.model.{name.removesuffix('.weight')}"
        tensors[f"{module}.lora_A.weight"] = matrices.a[0].contiguous()
        tensors[f"{module}.lora_B.weight"] = (matrices.b[0] * (change.scale * change.rank / alpha)).contiguous()
    if not any(bool(t.any()) for name, t in tensors.items() if name.endswith(".lora_B.weight")):
        raise WeightsError(
            "the adapter changes nothing: all its B matrices are zero",
            where=str(adapter.folder),
            hint="It was not trained, or another file was saved in its place.",
        )
    save_file(tensors, folder / "adapter_model.safetensors")
    config = {"peft_type": "LORA", "r": adapter.config["r"], "lora_alpha": alpha}
    (folder / "adapter_config.json").write_text(json.dumps(config), encoding="utf-8")


def _check(file: Path, pairs: int, base_gguf: Path | None) -> None:
    from aipsy_judge.gguf_adapter import check_adapter
    from aipsy_judge.gguf_header import read_gguf_header
    from aipsy_judge.gguf_model import check_model

    from .gguf_checks import check_finite

    header = read_gguf_header(file)
    if len(header.tensors) != 2 * pairs:
        raise WeightsError(f"{pairs} pairs went in, {len(header.tensors)} matrices came out of the converter")
    check_finite(file, header)
    if base_gguf is not None:
        check_adapter(file, check_model(base_gguf))


_FOLDER = click.Path(path_type=Path, file_okay=False)
_FILE = click.Path(path_type=Path, dir_okay=False)


@click.command(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option("--adapter", required=True, type=_FOLDER, help="The adapter's folder, as PEFT writes it.")
@click.option("--base", required=True, type=_FOLDER, help="The base's folder, as published or dequantised.")
@click.option("--out", required=True, type=_FILE, help="The GGUF file to write.")
@click.option("--type", "kind", default="F16", show_default=True, type=click.Choice(TYPES, case_sensitive=False))
@click.option("--base-gguf", type=_FILE, help="The model file that will wear it: check that it fits.")
@click.option("--any-base", is_flag=True, help="Convert though the base is not known to be the adapter's.")
def main(adapter: Path, base: Path, out: Path, kind: str, base_gguf: Path | None, any_base: bool) -> None:
    """Write a LoRA adapter as a GGUF file beside an untouched base."""
    with told_errors():
        made = lora_gguf(
            adapter,
            base,
            out,
            kind.upper(),
            base_gguf=base_gguf,
            any_base=any_base,
            tell=lambda line: click.echo(line, err=True),
        )
        click.echo(f"{made.path}: {made.type}, {made.size_bytes} bytes, sha256 {made.sha256}")


if __name__ == "__main__":
    main()
