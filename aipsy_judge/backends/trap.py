"""Does a server really hold its model to a JSON schema? Asked, not believed: some ignore it and answer 200."""

from __future__ import annotations

from ..schema import conforms
from .protocol import ReplyBackend

# Nobody writes this unless held to it.
_TRAP = {
    "type": "object",
    "properties": {"zq7": {"type": "string", "enum": ["vw3x"]}},
    "required": ["zq7"],
    "additionalProperties": False,
}


def honours_schema(backend: ReplyBackend) -> bool:
    """One short request whose schema allows one unlikely answer only. Raises what the backend raises.

    False means that replies are unconstrained: they are validated all the same, but more of them will be unscored.
    """
    message = {"role": "user", "content": "Say hello in one short sentence."}
    reply = backend.ask([message], schema=_TRAP, max_tokens=64)
    # Told the schema in words, a capable model keeps to it here and breaks it elsewhere.
    told = {"format:json_object", "format:prompt"}.intersection(reply.notes)
    return not told and reply.finish == "stop" and conforms(reply.text or "", _TRAP)
