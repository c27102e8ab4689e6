"""The names by which files call the four roles."""

from __future__ import annotations

from ..conversation import Role
from .place import Place

ROLE_NAMES: dict[str, Role] = {
    **dict.fromkeys(("user", "human", "person", "prompter", "customer", "client", "patient"), "user"),
    **dict.fromkeys(
        ("assistant", "ai", "bot", "chatbot", "model", "gpt", "chatgpt", "claude", "gemini", "bing", "companion"),
        "assistant",
    ),
    **dict.fromkeys(("system", "developer"), "system"),
    **dict.fromkeys(("tool", "function", "observation", "ipython", "tool_response", "tool_result"), "tool"),
}


def role_of(name: object, place: Place) -> Role:
    """The role that `name` stands for, whatever its case. Raises TranscriptError when it stands for none."""
    role = ROLE_NAMES.get(name.strip().lower()) if isinstance(name, str) else None
    if role is None:
        shown = repr(name[:40]) if isinstance(name, str) else type(name).__name__
        raise place.error(
            f"unknown role {shown}",
            hint="Known roles: user (human, ...), assistant (ai, bot, gpt, model, ...), system (developer), tool.",
        )
    return role
