"""A judge served until it is told to stop."""

from __future__ import annotations

import errno
import os
import socket
import sys
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass

import uvicorn

from ..errors import EXIT_INTERRUPTED, AipsyJudgeError, InputError
from ..local_judge import LocalJudge
from .answering import warm_up
from .app import make_app
from .assembly import make_served as make_served
from .patient_protocol import patient_protocol
from .serving import Served
from .working import CallTask

KEEP_ALIVE_SECONDS = 75
HEADER_BYTES = 64 * 1024
OTHER_CONNECTIONS = 256  # beside those whose requests wait: kept open by clients, or asking for a list of models
BACKLOG = 512  # connections that wait to be taken, all of them while the judge is loaded


@dataclass(frozen=True, slots=True)
class Listening:
    """The sockets that are open, and the address to call."""

    sockets: list[socket.socket]
    url: str


class Server(uvicorn.Server):
    """The judge's thread runs as long as it. Told to stop, it refuses what waits at once and lets what runs finish;
    told twice, it ends what runs before its next pass."""

    def __init__(self, config: uvicorn.Config, served: Served) -> None:
        super().__init__(config)
        self._served = served

    def run(self, sockets: list[socket.socket] | None = None) -> None:
        self._served.scheduler.start()
        try:
            super().run(sockets=sockets)
        finally:
            _end(self._served)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._served.scheduler.refuse_waiting()
        await super().shutdown(sockets)


def listen(host: str, port: int) -> Listening:
    """Open the port, on both loopback addresses where the host is this machine's. Raises InputError.

    From here on nobody else can have it, and who connects waits: answered once the server runs, cut off where the
    sockets are closed instead.
    """
    sockets = [_bound(host, port)]
    actual = sockets[0].getsockname()[1]
    if host in ("127.0.0.1", "localhost"):
        try:
            other = _other_loopback(actual, wanted=bool(port))
        except InputError:
            sockets[0].close()
            raise
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
        http=patient_protocol(options.queue + options.parallel + OTHER_CONNECTIONS),
        ws="none",
        lifespan="off",  # it has nothing to begin or end, and cut off by a second Ctrl-C tells a traceback
        proxy_headers=False,  # nothing here hangs on who a proxy says asks
        backlog=BACKLOG,
    )
    return Server(config, served)


def serve(served: Served, listening: Listening, *, on_ready: Callable[[], None] = lambda: None) -> None:
    """Serve until SIGINT or SIGTERM. The judge is made ready at once, as its first job."""
    served.scheduler.submit(CallTask(warm_up)).done.add_done_callback(_tell_failure)
    on_ready()
    make_server(served).run(sockets=listening.sockets)


def _end(served: Served) -> None:
    """End the judge's thread before its next pass. A local judge's is waited for: its memory is freed next."""
    try:
        served.scheduler.stop(0, leave=not isinstance(served.judge, LocalJudge))
    except KeyboardInterrupt:  # told a third time: now, and nothing is freed that is in use
        print("interrupted", file=sys.stderr, flush=True)
        os._exit(EXIT_INTERRUPTED)


def _tell_failure(warming: Future[None]) -> None:
    """Nobody waits for the first job; what is wrong with it will be wrong with all others."""
    error = warming.exception()
    if isinstance(error, AipsyJudgeError):
        print(f"error: the judge could not be made ready: {error}", file=sys.stderr)


def _bound(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    opened = socket.socket(family, socket.SOCK_STREAM)
    try:
        _take(opened, host, port)
    except OSError as error:
        opened.close()
        raise _taken(error, f"{host}:{port}") from error
    return opened


def _taken(error: OSError, where: str) -> InputError:
    return InputError(
        f"the port cannot be opened: {error.strerror or error}",
        where=where,
        hint="Is another server (an Ollama) running there? Choose another with --port.",
    )


def _take(opened: socket.socket, host: str, port: int) -> None:
    """Bind and listen at once: a port that is only bound, others can bind too. Raises OSError."""
    if sys.platform == "win32":  # SO_REUSEADDR there lets another program share the port
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_EXCLUSIVEADDRUSE, 1)
    else:  # a port whose last connections still linger
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    opened.bind((host, port))
    opened.listen(BACKLOG)


def _other_loopback(port: int, *, wanted: bool) -> socket.socket | None:
    """The same port of ::1, which "localhost" means first on many machines; None where this machine has none. Raises
    InputError where another program has a port that was `wanted`: it would be asked in this server's place."""
    try:
        opened = socket.socket(socket.AF_INET6, socket.SOCK_STREAM)
    except OSError:
        return None
    try:
        opened.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        _take(opened, "::1", port)
    except OSError as error:
        opened.close()
        if wanted and error.errno in (errno.EADDRINUSE, errno.EACCES):  # Windows says the second of an exclusive one
            raise _taken(error, f"[::1]:{port}") from error
        return None
    return opened
