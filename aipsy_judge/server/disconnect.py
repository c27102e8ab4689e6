"""Knowing that a client has hung up."""

from __future__ import annotations

from starlette.requests import Request

from .waiting import Gone


def gone(request: Request) -> Gone:
    """Waits until the client has hung up. Only once the body was read: nothing else is expected then."""

    async def wait() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    return wait
