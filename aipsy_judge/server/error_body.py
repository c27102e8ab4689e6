"""A refusal in the words of the wire it came by."""

from __future__ import annotations

from typing import Any

from .refusal import Refusal

# OpenAI's clients choose their exception by the status and show type and message.
_TYPES = {401: "authentication_error", 404: "not_found_error", 429: "rate_limit_error"}


def error_body(path: str, refusal: Refusal) -> dict[str, Any]:
    """`{"error": {...}}` under /v1 (and where a client left out the /v1), `{"error": "..."}` elsewhere, as Ollama."""
    if path.startswith(("/v1/", "/chat/")):
        usual = "server_error" if refusal.status >= 500 else "invalid_request_error"
        return {
            "error": {
                "message": refusal.text,
                "type": _TYPES.get(refusal.status, usual),
                "param": None,
                "code": refusal.status,
            }
        }
    return {"error": refusal.text}
