"""HTTP on one connection, closed where no request comes in time: whoever sends a byte a minute holds a place. And
there are only so many: every one takes memory and one of the files that a process may have open.
"""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.h11_impl import H11Protocol

HEADER_SECONDS = 20.0  # from connecting, or from the first byte of a later request, to the end of its headers


_BODY = b'{"error": "Not now: too many connections are open."}'
_FULL = b"\r\n".join(
    [
        b"HTTP/1.1 503 Service Unavailable",
        b"Content-Type: application/json",
        b"Content-Length: %d" % len(_BODY),
        b"Retry-After: 5",
        b"Connection: close",
        b"",
        _BODY,
    ]
)


def patient_protocol(most_connections: int) -> type[PatientProtocol]:
    """The protocol of a server that has at most so many connections open; one more is told 503 and closed."""
    return type("PatientProtocol", (PatientProtocol,), {"most_connections": most_connections})


class PatientProtocol(H11Protocol):
    """The library's own has a limit between requests, and none before the first or once a later one has begun."""

    most_connections = 1024
    _patience: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > self.most_connections:
            transport.write(_FULL)
            transport.close()
            return
        self._wait_for_headers()

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():  # turned away
            return
        super().data_received(data)
        if self._at_work:
            self._stop_waiting()
        elif self._patience is None:
            self._wait_for_headers()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    @property
    def _at_work(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _wait_for_headers(self) -> None:
        self._patience = self.loop.call_later(HEADER_SECONDS, self._close_if_silent)

    def _stop_waiting(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None

    def _close_if_silent(self) -> None:
        self._patience = None
        if not self._at_work and not self.transport.is_closing():
            self.transport.close()
