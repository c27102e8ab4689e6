"""A checkpoint folder as one GGUF file, converted a tensor at a time.

    python -m quantize.to_gguf DIR --out FILE.gguf [--type Q8_0]

F32, F16, BF16 and Q8_0 are written by llama.cpp's converter. The K types are quantised by llama.cpp from a file of the
stored precision, which is removed afterwards. Q8_0 is the type that judges are shipped in: with fewer bits some
replies end inside their JSON.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import click

from aipsy_judge.cli.ending import told_errors
from aipsy_judge.errors import BackendError

from .checkpoint import Checkpoint, check_full_weights, open_checkpoint
from .disk_space import check_disk
from .new_file import Made, check_new, keep

# bits a weight, at most: rows that are no multiple of 256 fall back to wider types
_DIRECT = {"F32": 32.0, "F16": 16.0, "BF16": 16.0, "Q8_0": 8.5}
_QUANTISED = {"Q6_K": 8.5, "Q4_K_M": 5.5, "Q2_K": 4.5}
TYPES = (*_DIRECT, *_QUANTISED)
_ROWS_BYTES = 512 << 20  # the library's own default keeps 8 GiB of rows in memory


def to_gguf(folder: Path, out: Path, kind: str = "Q8_0", *, tell: Callable[[str], None] = lambda line: None) -> Made:
    """Convert `folder` to `out`, which is there whole and checked or not at all.

    Memory: one tensor at 32 bits and its result. Raises WeightsError for a folder that cannot be converted or a result
    that lost something, InputError where `out` is there already, CapacityError, BackendError where llama.cpp fails.
    """
    from .converter import check_convertible
    from .gguf_checks import check_converted, check_finite, end_tokens

    check_new(out)
    model = open_checkpoint(folder)
    check_full_weights(model)
    tell(f"{check_convertible(model)}: {model.weight_bytes / 1e9:.2f} GB of {', '.join(model.weight_types)}")
    end_tokens(folder)  # what would fail after the conversion fails before it
    check_disk(out, _needed_bytes(model, kind))
    with tempfile.TemporaryDirectory(prefix=f".{out.name}.", dir=out.parent) as part:
        made = _convert(model, Path(part), kind, out.stem, tell)
        check_finite(made, check_converted(made, folder))
        return keep(made, out, kind)


def _needed_bytes(model: Checkpoint, kind: str) -> int:
    values = sum(_values(t.shape) for t in model.tensors.values())
    bits = _DIRECT.get(kind) or _QUANTISED[kind] + _DIRECT[_kept(model)]
    return int(values * bits / 8)


def _values(shape: tuple[int, ...]) -> int:
    count = 1
    for n in shape:
        count *= n
    return count


def _kept(model: Checkpoint) -> str:
    """The type that holds the stored weights exactly."""
    types = model.weight_types
    return types[0] if types in (("BF16",), ("F16",)) else "F32"


def _convert(model: Checkpoint, part: Path, kind: str, name: str, tell: Callable[[str], None]) -> Path:
    from .converter import run_converter

    first = kind if kind in _DIRECT else _kept(model)
    made = part / f"{first}.gguf"
    tell(f"writing {first}")
    run_converter(
        "convert_hf_to_gguf.py",
        [model.folder, "--outtype", first.lower(), "--outfile", made, "--model-name", name],
    )
    if kind in _DIRECT:
        return made
    tell(f"quantising to {kind}")
    _quantise(made, part / f"{kind}.gguf", kind)
    made.unlink()
    return part / f"{kind}.gguf"


def _quantise(source: Path, target: Path, kind: str) -> None:
    import llama_cpp

    from aipsy_judge.backends.llamacpp_library import last_errors, quiet_library

    quiet_library()
    params = llama_cpp.llama_model_quantize_default_params()
    params.ftype = getattr(llama_cpp, f"LLAMA_FTYPE_MOSTLY_{kind}")
    params.nthread = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    params.max_buf_size = _ROWS_BYTES
    if llama_cpp.llama_model_quantize(str(source).encode(), str(target).encode(), params) != 0:
        raise BackendError(f"llama.cpp could not quantise to {kind}: {' / '.join(last_errors()[-3:])}")


@click.command(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@click.option("--out", required=True, type=click.Path(path_type=Path, dir_okay=False), help="The GGUF file to write.")
@click.option("--type", "kind", default="Q8_0", show_default=True, type=click.Choice(TYPES, case_sensitive=False))
def main(folder: Path, out: Path, kind: str) -> None:
    """Convert a checkpoint folder to one GGUF file, in bounded memory."""
    with told_errors():
        made = to_gguf(folder, out, kind.upper(), tell=lambda line: click.echo(line, err=True))
        click.echo(f"{made.path}: {made.type}, {made.size_bytes} bytes, sha256 {made.sha256}")


if __name__ == "__main__":
    main()
