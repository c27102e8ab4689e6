"""The application: routes, the guard before them, and how errors are told."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from ..errors import AipsyJudgeError
from . import health, ollama_wire, openai_chat, openai_responses, score_wire
from .error_body import error_body
from .guard import Guard
from .refusal import Refusal, refusal_of
from .scheduler import Cancelled
from .serving import Served
from .wire_json import reply

_POST = {
    "/api/chat": ollama_wire.chat,
    "/api/generate": ollama_wire.generate,
    "/api/show": ollama_wire.show,
    "/api/pull": ollama_wire.pull,
    "/api/embed": ollama_wire.elsewhere,
    "/api/embeddings": ollama_wire.elsewhere,
    "/api/create": ollama_wire.elsewhere,
    "/v1/completions": ollama_wire.elsewhere,
    "/v1/embeddings": ollama_wire.elsewhere,
    "/api/copy": ollama_wire.elsewhere,
    "/v1/chat/completions": openai_chat.completions,
    "/chat/completions": openai_chat.completions,  # clients whose base address lacks the /v1
    "/v1/responses": openai_responses.responses,
    "/v1/score": score_wire.score,
}
_GET = {
    "/": health.root,
    "/health": health.health,
    "/metrics": health.metrics,
    "/api/version": ollama_wire.version,
    "/api/tags": ollama_wire.tags,
    "/api/ps": ollama_wire.running,
    "/v1/models": openai_chat.models,
    "/v1/models/{model:path}": openai_chat.model,
}


def make_app(served: Served) -> ASGIApp:
    """The ASGI application of one judge, whose thread is started and stopped by whoever serves it."""
    routes = [Route(path, end, methods=["POST"]) for path, end in _POST.items()]
    routes += [Route(path, end, methods=["GET"]) for path, end in _GET.items()]
    routes.append(Route("/api/delete", ollama_wire.elsewhere, methods=["DELETE"]))
    # A slash too many is the same route; a redirect would make a client send its transcript twice.
    # These go first: to {model:path} the empty name behind /v1/models/ is a name.
    slashed = [Route(r.path + "/", r.endpoint, methods=list(r.methods or ())) for r in routes if r.path != "/"]
    app = Starlette(
        routes=[*slashed, *routes],
        exception_handlers={
            Refusal: _refused,
            AipsyJudgeError: _failed,
            Cancelled: _gone,
            HTTPException: _http,
            Exception: _unexpected,
        },
    )
    app.router.redirect_slashes = False
    app.state.served = served
    return Guard(app, served.options, served.metrics)


def _tell(request: Request, refusal: Refusal) -> Response:
    headers: Mapping[str, str] = {"Retry-After": str(refusal.retry_after)} if refusal.retry_after else {}
    return reply(error_body(request.url.path, refusal), refusal.status, {"Cache-Control": "no-store", **headers})


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, Refusal)
    return _tell(request, error)


async def _failed(request: Request, error: Exception) -> Response:
    assert isinstance(error, AipsyJudgeError)
    return _tell(request, refusal_of(error))


async def _gone(request: Request, error: Exception) -> Response:
    """Nobody reads this."""
    return Response(status_code=499)


async def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    hints: dict[int, str] = {404: "This path is not served.", 405: "This path takes another method."}
    return _tell(request, Refusal(error.status_code, hints.get(error.status_code, "The request is not understood.")))


async def _unexpected(request: Request, error: Exception) -> Response:
    """A fault of ours: named by its kind alone, since its text may quote a transcript."""
    place = _innermost(error)
    print(f"error: {type(error).__name__} at {place}, answering {request.method} {_path(request)}", file=sys.stderr)
    return _tell(request, Refusal(500, f"The server failed ({type(error).__name__} at {place})."))


def _innermost(error: BaseException) -> str:
    trace: Any = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return "an unknown place"
    return f"{trace.tb_frame.f_globals.get('__name__', '?')}:{trace.tb_lineno}"


def _path(request: Request) -> str:
    route = request.scope.get("route")
    return route.path if route is not None else "an unknown path"
