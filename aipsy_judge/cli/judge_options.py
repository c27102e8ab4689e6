"""The options that name a judge and say how it runs, the same for every verb that opens one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from ..judge import BackendChoice, Judge
    from ..rubric import Rubric

Command = TypeVar("Command", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class JudgeChoice:
    """What the options said; `open` gives the judge. `rubric` None: the one that the judge takes."""

    judge: str | None
    rubric: str | None
    contract: str | None
    adapter: str | None
    window: bool
    cpu_moe: int | None
    threads: int
    memory_gb: float
    timeout: float | None
    unblessed: bool = False
    backend: BackendChoice | None = None

    def load_rubric(self) -> Rubric:
        """The rubric asked for. Raises RubricError."""
        from ..rubric import DEFAULT_RUBRIC, load_rubric

        return load_rubric(self.rubric or DEFAULT_RUBRIC)

    def open(self, *, announce: bool = True) -> Judge:
        """The judge; the best installed one where none is named. A line on stderr says where text goes, if it does
        and `announce` is not False."""
        from ..judge import JudgeOptions
        from ..opening import open_judge

        options = JudgeOptions(
            backend=self.backend or "auto",
            threads=self.threads,
            memory_gb=self.memory_gb,
            window=self.window,
            cpu_moe=self.cpu_moe,
            timeout_seconds=self.timeout,
            unblessed=bool(self.unblessed),
        )
        judge = open_judge(
            self.judge, rubric=self.rubric, contract=self.contract, adapter=self.adapter, options=options
        )
        if judge.is_remote and announce:
            from urllib.parse import urlsplit

            from ..backends.server_name import parse_server_name

            host = urlsplit(parse_server_name(self.judge or "").url).netloc  # holds no key: such names are refused
            click.echo(f"text leaves this machine: it is sent to {host}", err=True)
        return judge


class LayerCount(click.ParamType[int | None]):
    """A number of layers, or "auto" (None)."""

    name = "N|auto"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int | None:
        if value == "auto":
            return None
        try:
            layers = int(value)
        except ValueError:
            self.fail(f"{value!r} is neither a whole number nor 'auto'", param, ctx)
        if layers < 0:
            self.fail(f"{layers} is below 0", param, ctx)
        return layers


# Outermost first, so that --help lists them in this order.
_OPTIONS = (
    click.option(
        "--judge",
        metavar="NAME",
        help="A known judge, a folder, a GGUF file, openai:MODEL@URL or ollama:MODEL@URL.",
    ),
    click.option("--rubric", metavar="FILE", help="A rubric of your own (default: aipsy-judge-v1)."),
    click.option("--contract", metavar="NAME", help="How weights of unknown origin are asked: full or compact."),
    click.option("--adapter", metavar="GGUF", help="A LoRA adapter beside the judge's weights."),
    click.option(
        "--backend",
        type=click.Choice(["auto", "llamacpp", "mlx"]),
        default="auto",
        help="What runs local weights (default: MLX for a folder of safetensors, llama.cpp for a GGUF file).",
    ),
    click.option("--window", is_flag=True, help="Leave out the oldest messages of what does not fit (recorded)."),
    click.option(
        "--cpu-moe", type=LayerCount(), default=0, help="Layers whose experts stay in RAM (mixture-of-experts models)."
    ),
    click.option("--threads", type=click.IntRange(0), default=0, help="Threads; 0: all processors."),
    click.option(
        "--memory-gb",
        type=click.FloatRange(0.1),
        default=4.0,
        show_default=True,
        help="GiB for the cache of a local judge.",
    ),
    click.option("--timeout", type=click.FloatRange(1), metavar="SECONDS", help="For one answer of a server."),
    click.option("--unblessed", is_flag=True, help="Open a judge whose checks did not pass; every verdict says so."),
)
_NAMES = (
    "judge",
    "rubric",
    "contract",
    "adapter",
    "backend",
    "window",
    "cpu_moe",
    "threads",
    "memory_gb",
    "timeout",
    "unblessed",
)


# What several judges have in common: all but who they are.
_COMMON = tuple(o for o, name in zip(_OPTIONS, _NAMES, strict=True) if name not in ("judge", "adapter"))


def judge_options(command: Command) -> Command:
    """Adds the options; the command gets them as one `choice: JudgeChoice`."""
    return _collected(command, _OPTIONS)


def options_of_judges(command: Command) -> Command:
    """Adds the options that hold for several judges alike; the command gets a `choice` that names none."""
    return _collected(command, _COMMON)


def _collected(command: Command, options: Sequence[Any]) -> Command:
    from functools import wraps

    @wraps(command)
    def collected(*args: Any, **values: Any) -> Any:
        choice = JudgeChoice(**{name: values.pop(name, None) for name in _NAMES})
        return command(*args, choice=choice, **values)

    decorated: Any = collected
    for option in reversed(options):
        decorated = option(decorated)
    return decorated  # type: ignore[no-any-return]
