"""What `serve` does: check everything, open the port and the judge, say what is served, serve."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..backends.server_name import server_address
from ..errors import InputError, MissingExtraError
from ..judge import Rationale
from .judge_options import JudgeChoice

if TYPE_CHECKING:
    from ..server.serving import Served, ServeOptions

LEAST_TOKEN = 16  # characters; shorter ones are guessed


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the options said; see server.serving.ServeOptions."""

    host: str
    port: int
    token_file: Path | None
    hosts: tuple[str, ...]
    origins: tuple[str, ...]
    upstream: str | None
    answer_as_own: bool
    rationale: Rationale
    queue: int
    parallel: int
    park_gb: float
    keep_prefix: bool
    body_bytes: int
    grace_seconds: float


def serve_judge(choice: JudgeChoice, wanted: Wanted) -> None:
    """Serve until told to stop. Raises AipsyJudgeError before anything is opened that would have to be closed."""
    for package in ("starlette", "uvicorn"):
        if importlib.util.find_spec(package) is None:
            raise MissingExtraError(package, "serve", "serving a judge")
    from ..server.guard import check_options
    from ..server.running import listen, make_served, serve

    options = _options(wanted)
    check_options(options)
    listening = listen(options.host, options.port)
    try:
        with choice.open() as judge:
            served = make_served(judge, options)
            serve(served, listening, on_ready=lambda: _announce(served, listening.url))
    finally:
        for opened in listening.sockets:
            opened.close()


def _options(wanted: Wanted) -> ServeOptions:
    from ..server.serving import ServeOptions

    token = read_token(wanted.token_file) if wanted.token_file is not None else None
    upstream = server_address(wanted.upstream, "--upstream") if wanted.upstream is not None else None
    known = {f.name for f in fields(ServeOptions)}
    plain = {f.name: getattr(wanted, f.name) for f in fields(wanted) if f.name in known}
    return ServeOptions(**{**plain, "token": token, "upstream": upstream})


def read_token(path: Path) -> str:
    """The token in a file, one line. Raises InputError."""
    try:
        token = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot be read: {error}", where=str(path)) from error
    if len(token) < LEAST_TOKEN or not token.isascii() or not token.isprintable() or " " in token:
        raise InputError(
            f"is no token: at least {LEAST_TOKEN} ASCII characters without blanks",
            where=str(path),
            hint="openssl rand -hex 32 > FILE makes one.",
        )
    return token


def _announce(served: Served, url: str) -> None:
    """Who is served where, on stderr; and what may surprise."""
    lane, options = served.judge.lane, served.options
    click.echo(f"judge {lane.judge}, contract {lane.contract}, as {', '.join(served.names.all)} on {url}", err=True)
    for remark in served.judge.remarks:
        click.echo(f"note: {remark}", err=True)
    if options.upstream is not None:
        click.echo(f"other models are passed on to {options.upstream}", err=True)
    if options.answer_as_own:
        click.echo("the benchmark's prompt is answered by the judge's own contract, and every answer says so", err=True)
    click.echo("after a change of judge, clear the client's cache: it keeps answers for a week", err=True)
