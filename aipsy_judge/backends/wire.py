"""JSON over HTTP to one server: bounded in time and size, retried where that can help, never redirected.

What a server answers is either data or a Problem; an `error` key is a problem whatever the status says.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

import httpx

from ..errors import BackendError
from ..strict_json import whole_characters

RETRYABLE = frozenset({408, 425, 429, 500, 502, 503, 504, 529})
LOOPBACK_TIMEOUT_SECONDS = 600.0  # a first call may load tens of GB and then decode on a CPU
REMOTE_TIMEOUT_SECONDS = 120.0
_LARGEST_BYTES = 16 * 1024 * 1024  # of an answer; a whole verdict has a few thousand


@dataclass(frozen=True, slots=True)
class Patience:
    """How long to wait and how often to try again. `timeout_seconds` bounds each wait for the next piece of an answer,
    and after how long no further piece of its body is taken: a body that falls silent ends within twice that."""

    timeout_seconds: float
    connect_seconds: float = 10.0
    retries: int = 3
    first_wait_seconds: float = 1.0
    longest_wait_seconds: float = 60.0


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a server gave no data. `status` is the one in the error where that says more than the HTTP status."""

    status: int
    message: str
    code: str = ""
    param: str = ""
    retry_after_seconds: float | None = None

    @property
    def retryable(self) -> bool:
        return self.status in RETRYABLE and self.code != "insufficient_quota"


@dataclass(frozen=True, slots=True)
class Answer:
    """Data, or a problem."""

    data: Mapping[str, Any]
    problem: Problem | None = None


class Wire:
    """A connection to one server. `secret` never appears in an error; `sleep` is there for tests."""

    def __init__(
        self,
        url: str,
        *,
        loopback: bool,
        patience: Patience,
        secret: str | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._base, _, self._query = url.partition("?")
        self._patience = patience
        self._secret = secret
        self._sleep = sleep
        headers = {"Authorization": f"Bearer {secret}"} if secret else {}
        self._client = httpx.Client(
            headers=headers,
            timeout=httpx.Timeout(patience.timeout_seconds, connect=patience.connect_seconds),
            # A proxy has no business between two programs of one machine. A redirect would send text elsewhere.
            trust_env=not loopback,
            follow_redirects=False,
            # Plain http has no certificates to check, and loading the list of authorities takes 70 ms.
            verify=url.lower().startswith("https:"),
        )

    def post(self, path: str, body: Mapping[str, Any]) -> Answer:
        """The server's answer, after bounded retries. Raises BackendError where there was none at all."""
        content = whole_characters(json.dumps(body, ensure_ascii=False, allow_nan=False)).encode()
        url = f"{self._base}/{path}" + (f"?{self._query}" if self._query else "")
        for attempt in range(self._patience.retries + 1):
            last = attempt == self._patience.retries
            try:
                answer = self._exchange(url, content)
            except BackendError as error:
                if last or not error.retryable or error.reason == "timeout":
                    raise
                self._wait(attempt, None)
                continue
            if answer.problem is None or not answer.problem.retryable or last:
                return answer
            if not self._wait(attempt, answer.problem.retry_after_seconds):
                return answer
        raise AssertionError("unreachable: the last attempt returns or raises")

    def close(self) -> None:
        self._client.close()

    def _exchange(self, url: str, content: bytes) -> Answer:
        try:
            return self._send(url, content)
        except httpx.ConnectTimeout as error:
            raise self._failed("does not accept the connection in time", retryable=True) from error
        except httpx.TimeoutException as error:
            seconds = f"{self._patience.timeout_seconds:g} s"
            raise self._failed(f"gave no answer within {seconds}", retryable=True, reason="timeout") from error
        except httpx.TransportError as error:
            raise self._failed(f"cannot be reached: {error}", retryable=True) from error
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise self._failed(f"cannot be used: {error}") from error

    def _send(self, url: str, content: bytes) -> Answer:
        deadline = time.monotonic() + self._patience.timeout_seconds
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        received = bytearray()
        with self._client.stream("POST", url, content=content, headers=headers) as response:
            for chunk in response.iter_bytes():
                received += chunk
                if len(received) > _LARGEST_BYTES:
                    raise self._failed(f"sent more than {_LARGEST_BYTES // 1024**2} MiB for one answer")
                # A server that trickles never runs into the read time-out.
                if time.monotonic() > deadline:
                    raise httpx.ReadTimeout("too slow")
            return self._interpret(response, bytes(received))

    def _interpret(self, response: httpx.Response, received: bytes) -> Answer:
        try:
            data = json.loads(received)
        except (ValueError, RecursionError):
            data = None
        if response.is_redirect:
            return Answer({}, Problem(response.status_code, "the server redirects, which is not followed"))
        if response.is_success and isinstance(data, dict) and not _is_error(data):
            return Answer(data)
        if response.is_success and not isinstance(data, dict):
            return Answer({}, Problem(502, "the answer is not a JSON object"))
        problem = _problem(response.status_code, data, received, _retry_after(response.headers.get("Retry-After")))
        return Answer({}, self._without_secret(problem))

    def _without_secret(self, problem: Problem) -> Problem:
        if not self._secret or self._secret not in problem.message:
            return problem
        message = problem.message.replace(self._secret, "***")
        return Problem(problem.status, message, problem.code, problem.param, problem.retry_after_seconds)

    def _wait(self, attempt: int, asked_seconds: float | None) -> bool:
        """Wait before the next attempt; False where the server asks for more patience than there is."""
        seconds = self._patience.first_wait_seconds * 2**attempt if asked_seconds is None else asked_seconds
        if asked_seconds is not None and asked_seconds > self._patience.longest_wait_seconds:
            return False
        self._sleep(min(seconds, self._patience.longest_wait_seconds))
        return True

    def _failed(self, what: str, *, retryable: bool = False, reason: str = "server_error") -> BackendError:
        hint = "Is the server running, and the address right? A longer time can be allowed." if retryable else None
        return BackendError(f"the server {what}", where=self._base, hint=hint, retryable=retryable, reason=reason)


def _is_error(data: Mapping[str, Any]) -> bool:
    return data.get("error") not in (None, False) or data.get("object") == "error"


def _problem(status: int, data: Any, received: bytes, retry_after_seconds: float | None) -> Problem:
    """Servers tell of errors as {"error": {...}}, {"error": "..."}, {"message": ...} or {"detail": ...}."""
    data = data if isinstance(data, dict) else {}
    error = data.get("error") or data
    if not isinstance(error, dict):
        error = {"message": error}
    message = error.get("message") or error.get("detail") or data.get("detail") or received.decode("utf-8", "replace")
    code = error.get("code")
    if isinstance(code, int) and not isinstance(code, bool) and 400 <= code <= 599:
        status = code  # other numbers are the provider's own, and say nothing in place of the status
    elif status < 400:
        status = 400  # an error told with status 200, and no better status named
    kind = code if isinstance(code, str) and code else error.get("type")
    return Problem(
        status=status,
        message=" ".join(str(message).split())[:300],
        code=kind if isinstance(kind, str) else "",
        param=error["param"] if isinstance(error.get("param"), str) else "",
        retry_after_seconds=retry_after_seconds,
    )


def _retry_after(header: str | None) -> float | None:
    """Seconds to wait, from a number or a date; None where there is neither."""
    if not header:
        return None
    try:
        return max(0.0, float(int(header)))
    except ValueError:
        pass
    try:
        when = parsedate_to_datetime(header)
    except ValueError:
        return None
    when = when if when.tzinfo else when.replace(tzinfo=UTC)
    return max(0.0, (when - datetime.now(UTC)).total_seconds())
