"""Who may ask, and how much: checked before any route sees a request.

A page on the web can make a browser on this machine send requests here, and can point its own name at this address
(rebinding). So a request must name this server by an address or by a name that it was given, and one that says it
comes from a page is refused unless that page was named. Where other machines can reach the server, a token is needed
besides.
"""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import re
import socket
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from ..errors import InputError
from ..strict_json import dumps
from .error_body import error_body
from .metrics import Metrics
from .refusal import Refusal
from .serving import ServeOptions

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

OPEN_PATHS = ("/health",)  # say only that the server is up; asked by supervisors that hold no token
DRAIN_BYTES = 256 * 2**20  # of a body that is too large, read and thrown away so that the client reads the answer
NOT_ANSWERED = 499  # as nginx writes that the client was gone before an answer
# By a pattern, since urlsplit forgives what follows an address in brackets.
_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::[0-9]{0,5})?")
_LOCAL_NAMES = frozenset({"localhost"})


def is_loopback(host: str) -> bool:
    if host.lower() in _LOCAL_NAMES:
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def check_options(options: ServeOptions) -> None:
    """Raise InputError where the server would be open to other machines without a token."""
    if not is_loopback(options.host) and options.token is None:
        raise InputError(
            "other machines could reach the judge there, and nothing would keep them out",
            where=f"--host {options.host}",
            hint="Give a token with --token-file FILE, or leave out --host: 127.0.0.1 is this machine alone.",
        )
    for name in options.hosts:
        if _host_name(name) != name.lower():
            raise InputError("is no name of a machine", where=f"--allow-host {name}", hint="Without https:// and port.")
    for origin in options.origins:
        parts = urlsplit(origin)
        if parts.scheme not in ("http", "https") or not parts.netloc or f"{parts.scheme}://{parts.netloc}" != origin:
            raise InputError("is no origin", where=f"--cors {origin}", hint="Write it as https://host[:port].")


@dataclass(frozen=True, slots=True)
class _Sizes:
    body_bytes: int
    body_seconds: float


class Guard:
    """ASGI middleware: refuses, or hands on the request with its body read."""

    def __init__(self, app: ASGIApp, options: ServeOptions, metrics: Metrics) -> None:
        self._app, self._options, self._metrics = app, options, metrics
        self._sizes = _Sizes(options.body_bytes, options.body_seconds)
        names = {*_LOCAL_NAMES, *(h.lower() for h in options.hosts)}
        if not is_loopback(options.host):
            names |= {options.host.lower(), socket.gethostname().lower()}
        self._names = frozenset(names)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun = time.monotonic()
        counted = _Counted(send, self._cors(scope))
        try:
            answered = await self._admit(scope, receive, counted)
            if answered is not None:
                await self._app(scope, answered, counted)
        except Refusal as refusal:
            await _refuse(scope, counted, refusal)
        except asyncio.CancelledError:  # told to stop, and the grace is over; a stream that has begun breaks off
            if counted.status == NOT_ANSWERED:
                await _refuse(scope, counted, Refusal(503, "Not now: the server is stopping.", retry_after=5))
        except Exception:
            # Answered and told already (app.py). Its text may quote a transcript, and the library would log it.
            if counted.status == NOT_ANSWERED:
                await _refuse(scope, counted, Refusal(500, "The server failed."))
        finally:
            self._count(scope, counted.status, time.monotonic() - begun)

    async def _admit(self, scope: Scope, receive: Receive, send: Send) -> Receive | None:
        """What the routes receive from; None where the request is answered already."""
        headers = [(k.decode("latin-1").lower(), v.decode("latin-1")) for k, v in scope["headers"]]
        self._check_host([v for k, v in headers if k == "host"])
        self._check_origin(headers)
        if scope["method"] == "OPTIONS":
            await _preflight(send, allowed=any(k == "origin" for k, _ in headers))
            return None
        self._check_token(scope["path"], dict(headers))
        return await self._with_body(scope, receive, dict(headers))

    # -- who ------------------------------------------------------------------------------------------------------

    def _check_host(self, hosts: Sequence[str]) -> None:
        if len(hosts) != 1 or not self._known_host(hosts[0]):
            raise Refusal(
                421,
                "This server does not answer to that name.",
                hint="Call it by its address or as localhost; further names are given with --allow-host.",
            )

    def _known_host(self, header: str) -> bool:
        name = _host_name(header)
        if name is None:
            return False
        if name in self._names:
            return True
        try:
            address = ipaddress.ip_address(name)
        except ValueError:
            return False
        # An address cannot be rebound; on loopback no other address leads here.
        return address.is_loopback or not is_loopback(self._options.host)

    def _check_origin(self, headers: Sequence[tuple[str, str]]) -> None:
        origins = [v for k, v in headers if k == "origin"]
        crossing = any(k == "sec-fetch-site" and v in ("cross-site", "same-site") for k, v in headers)
        if any(o not in self._options.origins for o in origins) or (crossing and not origins):
            raise Refusal(
                403, "A web page may not call this server.", hint="Pages are allowed one by one: --cors ORIGIN."
            )

    def _check_token(self, path: str, headers: Mapping[str, str]) -> None:
        if self._options.token is None or path in OPEN_PATHS:
            return
        kind, _, given = headers.get("authorization", "").partition(" ")
        right = hmac.compare_digest(given.strip().encode(), self._options.token.encode())
        if kind.lower() != "bearer" or not right:
            raise Refusal(401, "A token is needed.", hint="Send it as Authorization: Bearer TOKEN.")

    # -- how much -------------------------------------------------------------------------------------------------

    async def _with_body(self, scope: Scope, receive: Receive, headers: Mapping[str, str]) -> Receive:
        if scope["method"] not in ("POST", "PUT", "PATCH", "DELETE"):
            return receive
        if "content-length" not in headers and "transfer-encoding" not in headers:
            raise Refusal(411, "The body's length is missing.", hint="Send Content-Length, or the body in chunks.")
        told = headers.get("content-length")
        too_large = told is not None and told.isdigit() and int(told) > self._sizes.body_bytes
        if too_large and headers.get("expect", "").lower() == "100-continue":
            raise self._large()  # the client asked before sending
        try:
            async with asyncio.timeout(self._sizes.body_seconds):
                body = await self._read(receive)
        except TimeoutError:
            raise Refusal(408, f"The body did not come within {self._sizes.body_seconds:g} seconds.") from None
        given = False

        async def replayed() -> Message:
            nonlocal given
            if given:
                return await receive()
            given = True
            return {"type": "http.request", "body": body, "more_body": False}

        return replayed

    async def _read(self, receive: Receive) -> bytes:
        """The body; what is too large is read to its end and not kept, since a client that still sends does not read
        what it is told."""
        blocks: list[bytes] = []
        size = 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise Refusal(400, "The client hung up within its request.")
            block: bytes = message.get("body", b"")
            size += len(block)
            if size <= self._sizes.body_bytes:
                blocks.append(block)
            else:
                blocks.clear()
            if size > DRAIN_BYTES or not message.get("more_body"):
                break
        if size > self._sizes.body_bytes:
            raise self._large()
        return b"".join(blocks)

    def _large(self) -> Refusal:
        return Refusal(413, f"The body is larger than {self._sizes.body_bytes} bytes.", hint="Send fewer at a time.")

    # -- the answer -----------------------------------------------------------------------------------------------

    def _cors(self, scope: Scope) -> list[tuple[bytes, bytes]]:
        """Headers for a page that was named; no other is ever echoed."""
        origin = next((v for k, v in scope["headers"] if k.lower() == b"origin"), None)
        if origin is None or origin.decode("latin-1") not in self._options.origins:
            return []
        return [(b"access-control-allow-origin", origin), (b"vary", b"Origin")]

    def _count(self, scope: Scope, status: int, seconds: float) -> None:
        route = scope.get("route")
        path = route.path if route is not None else "other"  # a path of the client's own making is not repeated
        self._metrics.add("requests_total", route=path, status=str(status))
        self._metrics.add("request_seconds_total", seconds, route=path)


class _Counted:
    """Send, with the headers for a page, and the status noted."""

    def __init__(self, send: Send, headers: Sequence[tuple[bytes, bytes]]) -> None:
        self._send, self._headers = send, headers
        self.status = NOT_ANSWERED

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            message = {**message, "headers": [*message.get("headers", []), *self._headers]}
        await self._send(message)


def _host_name(header: str) -> str | None:
    """The name in a Host header, without its port; None where it is none."""
    found = _HOST.fullmatch(header)
    return found.group(1).strip("[]").lower() if found else None


async def _preflight(send: Send, *, allowed: bool) -> None:
    headers = [
        (b"access-control-allow-methods", b"GET, POST"),
        (b"access-control-allow-headers", b"authorization, content-type"),
        (b"access-control-max-age", b"600"),
    ]
    start = {"type": "http.response.start", "status": 204, "headers": headers if allowed else []}
    await send(start)
    await send({"type": "http.response.body", "body": b""})


async def _refuse(scope: Scope, send: Send, refusal: Refusal) -> None:
    body = dumps(error_body(scope["path"], refusal)).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    if refusal.status in (408, 411, 413):
        headers.append((b"connection", b"close"))  # what may still be on its way is not the next request
    if refusal.retry_after is not None:
        headers.append((b"retry-after", str(refusal.retry_after).encode()))
    if refusal.status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    await send({"type": "http.response.start", "status": refusal.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
