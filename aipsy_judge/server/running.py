"""A judge served until it is told to stop."""

from __future__ import annotations

import socket
import sys
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass

import uvicorn

from ..errors import AipsyJudgeError, InputError
from .answering import warm_up
from .app import make_app, stop_judging
from .assembly import make_served as make_served
from .patient_protocol import PatientProtocol
from .serving import Served
from .working import CallTask

KEEP_ALIVE_SECONDS = 75
HEADER_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class Listening:
    """The sockets that are open, and the address to call."""

    sockets: list[socket.socket]
    url: str


class Server(uvicorn.Server):
    """Told to stop, it refuses what waits at once and lets what runs finish."""

    def __init__(self, config: uvicorn.Config, served: Served) -> None:
        super().__init__(config)
        self._served = served

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._served.scheduler.refuse_waiting()
        await super().shutdown(sockets)


def listen(host: str, port: int) -> Listening:
    """Open the port, on both loopback addresses where the host is this machine's. Raises InputError."""
    sockets = [_bound(host, port)]
    actual = sockets[0].getsockname()[1]
    if host in ("127.0.0.1", "localhost"):
        # "localhost" is looked up as ::1 first on many machines.
        other = _other_loopback(actual)
        sockets += [other] if other is not None else []
    shown = f"[{host}]" if ":" in host else host
    return Listening(sockets, f"http://{shown}:{actual}")


def make_server(served: Served) -> Server:
    """The server, not yet running."""
    options = served.options
    config = uvicorn.Config(
        make_app(served),
        log_level="warning",
        access_log=False,  # its lines are paths, but nothing of a request is anybody else's business
        server_header=False,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=max(1, int(options.grace_seconds)),
        h11_max_incomplete_event_size=HEADER_BYTES,
        http=PatientProtocol,
        ws="none",
        proxy_headers=False,  # nothing here hangs on who a proxy says asks
        backlog=512,
    )
    return Server(config, served)


def serve(served: Served, listening: Listening, *, on_ready: Callable[[], None] = lambda: None) -> None:
    """Serve until SIGINT or SIGTERM. The judge is made ready at once, as its first job."""
    served.scheduler.submit(CallTask(warm_up)).done.add_done_callback(_tell_failure)
    on_ready()
    try:
        make_server(served).run(sockets=listening.sockets)
    finally:
        stop_judging(served, 0)  # told twice to stop, the library skips the end of the application


def _tell_failure(warming: Future[None]) -> None:
    """Nobody waits for the first job; what is wrong with it will be wrong with all others."""
    error = warming.exception()
    if isinstance(error, AipsyJudgeError):
        print(f"error: the judge could not be made ready: {error}", file=sys.stderr)


def _bound(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    opened = socket.socket(family, socket.SOCK_STREAM)
    try:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        opened.bind((host, port))
    except OSError as error:
        opened.close()
        raise InputError(
            f"the port cannot be opened: {error.strerror or error}",
            where=f"{host}:{port}",
            hint="Is another server (an Ollama) running there? Choose another with --port.",
        ) from error
    return opened


def _other_loopback(port: int) -> socket.socket | None:
    try:
        opened = socket.socket(socket.AF_INET6, socket.SOCK_STREAM)
    except OSError:
        return None
    try:
        opened.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        opened.bind(("::1", port))
    except OSError:
        opened.close()
        return None
    return opened
