"""How long a prompt one request may have, as the server itself tells: llama.cpp divides its context by its slots."""

from __future__ import annotations

from dataclasses import dataclass

import httpx

from .server_name import ServerName

TIMEOUT_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class SlotWindow:
    """tokens: context of one slot; slots: requests that are served at a time, each with such a context."""

    tokens: int
    slots: int


def slot_window(server: ServerName, client: httpx.Client | None = None) -> SlotWindow | None:
    """What llama.cpp's server says at /props; None where it is another server, or does not say. No key is sent."""
    root = server.url.split("?")[0].removesuffix("/v1")
    with client or httpx.Client(timeout=TIMEOUT_SECONDS, follow_redirects=False) as asked:
        try:
            data = asked.get(f"{root}/props").json()
            tokens = data["default_generation_settings"]["n_ctx"]
            slots = data.get("total_slots", 1)
        except (httpx.HTTPError, ValueError, KeyError, TypeError, AttributeError):
            return None
    if not all(isinstance(n, int) and n > 0 for n in (tokens, slots)):
        return None
    return SlotWindow(tokens, slots)
