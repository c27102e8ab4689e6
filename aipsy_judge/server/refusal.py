"""What the server does not do, as an HTTP status and one sentence. Never a 200 that could be read as a verdict."""

from __future__ import annotations

from ..errors import (
    AipsyJudgeError,
    BackendError,
    CapacityError,
    ContractError,
    InputError,
    MissingExtraError,
)

RETRY_SECONDS = 5  # for a failure of which nobody says how long it lasts


class Refusal(Exception):
    """Answered as `status` with `message`, and `hint` where there is a next step. `retry_after` in seconds."""

    def __init__(self, status: int, message: str, *, hint: str | None = None, retry_after: int | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.hint = hint
        self.retry_after = retry_after

    @property
    def text(self) -> str:
        return f"{self.message} {self.hint}" if self.hint else self.message


def refusal_of(error: AipsyJudgeError) -> Refusal:
    """An error of this package as an answer to a client. What a retry can cure is 503, what none can is 4xx."""
    message = str(error) + ("" if str(error).endswith((".", "!", "?")) else ".")
    match error:
        case BackendError():
            return Refusal(503, message, hint=error.hint, retry_after=RETRY_SECONDS if error.retryable else None)
        case ContractError():
            return Refusal(409, message, hint=error.hint)
        case CapacityError() | InputError():
            return Refusal(422, message, hint=error.hint)
        case MissingExtraError():
            return Refusal(501, message, hint=error.hint)
        case _:
            return Refusal(422, message, hint=error.hint)
