"""JSON in and out: one object from a body, checked; what is wrong is said by place, never by quoting the body."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError
from starlette.requests import Request
from starlette.responses import Response

from ..strict_json import dumps, loads
from .refusal import Refusal

Model = TypeVar("Model", bound=BaseModel)


class Wire(BaseModel):
    """A body of somebody else's protocol: what is not known here is passed over."""

    model_config = ConfigDict(extra="ignore", strict=True, frozen=True)


async def read_body(request: Request) -> dict[str, Any]:
    """The body as a JSON object. Refusal(400)."""
    raw = await request.body()
    if not raw.strip():
        raise Refusal(400, "The request has no body; a JSON object is expected.")
    try:
        data = loads(raw)
    except (ValueError, RecursionError) as error:
        raise Refusal(400, f"The body is not JSON that can be read: {_reason(error)}.") from None
    if not isinstance(data, dict):
        raise Refusal(400, "The body is JSON, but not an object.")
    return data


def checked(model: type[Model], data: Mapping[str, Any]) -> Model:
    """Raises Refusal(400) with all faults, each with its place."""
    try:
        return model.model_validate(data)
    except ValidationError as error:
        faults = error.errors(include_input=False, include_url=False, include_context=False)
        words = "; ".join(f"{'.'.join(map(str, f['loc']))[:100] or 'body'}: {f['msg']}" for f in faults[:5])
        raise Refusal(400, f"The request is not understood: {words}.") from None


def reply(data: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return Response(dumps(data), status, headers=headers, media_type="application/json")


def _reason(error: Exception) -> str:
    match error:
        case json.JSONDecodeError():
            return f"{error.msg} at character {error.pos}"
        case UnicodeDecodeError():
            return f"not UTF-8 at byte {error.start}"
        case RecursionError():
            return "nested too deeply"
        case _:
            return str(error)[:100]
