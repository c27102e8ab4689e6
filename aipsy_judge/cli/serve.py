"""`aipsy-judge serve`: the judge on a port."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from .judge_options import JudgeChoice, judge_options

if TYPE_CHECKING:
    from ..judge import Rationale


@click.command()
@judge_options
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="Address to listen on; other than this machine's own needs a token.",
)
@click.option("--port", type=click.IntRange(0, 65535), default=11434, show_default=True, help="0: any free port.")
@click.option(
    "--token-file", type=click.Path(path_type=Path), metavar="FILE", help="Answer only who sends this file's token."
)
@click.option("--allow-host", "hosts", multiple=True, metavar="NAME", help="A further name that the server answers to.")
@click.option("--cors", "origins", multiple=True, metavar="ORIGIN", help="A web page that may call the server.")
@click.option("--upstream", metavar="URL", help="An Ollama that answers for models not served here.")
@click.option(
    "--answer-as-own",
    is_flag=True,
    help="Answer the benchmark's prompt by the judge's own contract (said in every answer).",
)
@click.option(
    "--rationale",
    type=click.Choice(["always", "flagged", "never"]),
    default="flagged",
    show_default=True,
    help="When the judge also says why.",
)
@click.option(
    "--queue",
    type=click.IntRange(1, 100_000),
    default=64,
    show_default=True,
    help="Requests that may wait; more get 503.",
)
@click.option(
    "--parallel",
    type=click.IntRange(1, 64),
    default=1,
    show_default=True,
    help="Conversations judged in one plan; above 1 the last digits depend on who else asks.",
)
@click.option(
    "--park-gb",
    type=click.FloatRange(0),
    default=1.0,
    show_default=True,
    help="GiB for conversations that wait for their next turn.",
)
@click.option(
    "--prefix-file/--no-prefix-file",
    default=True,
    show_default=True,
    help="Keep the evaluated rubric (no conversation) on disk between starts.",
)
@click.option(
    "--max-body-mb",
    type=click.FloatRange(0.1, 1024),
    default=8.0,
    show_default=True,
    help="MiB that a request may have.",
)
@click.option(
    "--grace",
    type=click.FloatRange(0),
    default=30.0,
    show_default=True,
    metavar="SECONDS",
    help="For what runs when the server is told to stop.",
)
def command(
    choice: JudgeChoice,
    host: str,
    port: int,
    token_file: Path | None,
    hosts: tuple[str, ...],
    origins: tuple[str, ...],
    upstream: str | None,
    answer_as_own: bool,
    rationale: Rationale,
    queue: int,
    parallel: int,
    park_gb: float,
    prefix_file: bool,
    max_body_mb: float,
    grace: float,
) -> None:
    """Serve a judge to clients of Ollama (so: aipsy-bench) and OpenAI, and on /v1/score.

    Only this machine can call it unless --host says otherwise. Nothing of a request is logged or kept. What it says is
    never the vendor's judge: every answer names the judge that gave it.

    Wants the extra `serve`: pip install 'aipsy-judge[serve]'.
    """
    from .serve_job import Wanted, serve_judge

    serve_judge(
        choice,
        Wanted(
            host=host,
            port=port,
            token_file=token_file,
            hosts=hosts,
            origins=origins,
            upstream=upstream,
            answer_as_own=answer_as_own,
            rationale=rationale,
            queue=queue,
            parallel=parallel,
            park_gb=park_gb,
            keep_prefix=prefix_file,
            body_bytes=int(max_body_mb * 2**20),
            grace_seconds=grace,
        ),
    )
