"""What a server's problem means for the item at hand: too long, blocked, no access, or just failed."""

from __future__ import annotations

import re

from ..errors import AccessError, BackendError, CapacityError
from .wire import Problem

_TOO_LONG_CODES = {"context_length_exceeded", "exceed_context_size_error", "string_above_max_length"}
_TOO_LONG = re.compile(
    r"context[ _](?:length|window|size)|maximum context|available context|prompt is too long|too many (?:input )?tokens"
    r"|input token count|`?inputs`? tokens \+|`?inputs`? must have less than"  # Google, Together and TGI
    r"|input (?:length|is too long)|exceeds? (?:the )?(?:model's )?(?:token|context)",
    re.IGNORECASE,
)
_BLOCKED_CODES = {"content_filter", "content_policy_violation", "responsibleaipolicyviolation", "invalid_prompt"}
_BLOCKED = re.compile(r"content[ _](?:management|filter|policy)|moderation|flagged|usage polic", re.IGNORECASE)


def is_blocked(problem: Problem) -> bool:
    """The provider's filter refused this text."""
    named = problem.code.lower() in _BLOCKED_CODES
    return named or (problem.status in (400, 403, 422) and bool(_BLOCKED.search(problem.message)))


def is_too_long(problem: Problem) -> bool:
    """The prompt does not fit the model's context or the server's limit."""
    named = problem.code.lower() in _TOO_LONG_CODES or problem.status == 413
    return named or (problem.status in (400, 422, 500) and bool(_TOO_LONG.search(problem.message)))


def as_error(problem: Problem, *, where: str, model: str) -> BackendError | CapacityError:
    """The error to raise for a problem that nothing can be done about here."""
    said = f"status {problem.status}: {problem.message}"
    if is_too_long(problem):
        return CapacityError(f"the server says that the prompt does not fit: {problem.message}", where=where)
    if problem.status == 401:
        return AccessError(
            f"the server refuses the key ({said})",
            where=where,
            hint="Set AIPSY_JUDGE_API_KEY to this server's key; OPENAI_API_KEY goes to OpenAI and this machine only.",
        )
    if problem.status == 404:
        return AccessError(
            f"the server does not have the model {model!r}, or not this address ({said})",
            where=where,
            hint="Ask the server which models it has; nothing is pulled from here.",
        )
    return BackendError(f"the server failed ({said})", where=where, retryable=problem.retryable)
