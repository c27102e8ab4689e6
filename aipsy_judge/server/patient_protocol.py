"""HTTP on one connection, closed where no request comes in time: whoever sends a byte a minute holds a place."""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.h11_impl import H11Protocol

HEADER_SECONDS = 20.0  # from connecting to the end of the first request's headers


class PatientProtocol(H11Protocol):
    """The library's own has a limit between requests, and none before the first."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._opening = self.loop.call_later(HEADER_SECONDS, self._close_if_silent)

    def connection_lost(self, exc: Exception | None) -> None:
        self._opening.cancel()
        super().connection_lost(exc)

    def _close_if_silent(self) -> None:
        if self.cycle is None and not self.transport.is_closing():
            self.transport.close()
