"""Ollama's own chat call. Beside the OpenAI wire it has what matters here: the context length is set, not assumed.

Ollama cuts a prompt that does not fit its context, and says so only in its log (ollama/ollama#4967). So the context
is set to what the prompt needs at most, cutting is forbidden (`truncate`, `shift`; older servers ignore them), and the
counts that come back are checked: the prompt's tokens, and the answer's, since a server that ignores `shift` drops the
older half of a context that fills in the middle of an answer, and still says that the answer stopped of itself
(ollama/ollama#3839). What may have been cut is refused, never judged.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..errors import CapacityError
from .protocol import Reply
from .refusals import as_error, is_blocked
from .server_name import ServerName
from .wire import LOOPBACK_TIMEOUT_SECONDS, REMOTE_TIMEOUT_SECONDS, Patience, Wire

# UTF-8 bytes a token: common text has 3 to 5 in every tokenizer in use. The lower bound sets the context, the upper
# one tells a count that is too small to be of the whole prompt.
_FEWEST_BYTES_PER_TOKEN = 2.0
_MOST_BYTES_PER_TOKEN = 12.0
_TEMPLATE_TOKENS = 64  # what a chat template adds around the messages
_STEPS = (4096, 8192, 16384, 32768, 65536, 131072, 262144)  # few sizes, as each change loads the model anew
_KEEP_ALIVE = "30m"  # turns of one run must not load the model again and again
_FINISHES = {"stop": "stop", "length": "length"}


class OllamaBackend:
    """A ReplyBackend over one Ollama server and model.

    `context_tokens` None takes what the prompt needs, up to what the model was made for.
    """

    def __init__(
        self,
        server: ServerName,
        *,
        context_tokens: int | None = None,
        timeout_seconds: float | None = None,
        patience: Patience | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._server = server
        self._fixed = context_tokens
        self._limit: int | None = None
        self._context = 0
        local = server.is_loopback
        default = LOOPBACK_TIMEOUT_SECONDS if local else REMOTE_TIMEOUT_SECONDS
        self._wire = Wire(
            server.url, loopback=local, patience=patience or Patience(timeout_seconds or default), sleep=sleep
        )

    @property
    def name(self) -> str:
        return self._server.text

    @property
    def is_remote(self) -> bool:
        return not self._server.is_loopback

    def ask(self, messages: Sequence[Mapping[str, str]], *, schema: Mapping[str, Any] | None, max_tokens: int) -> Reply:
        """One reply. Raises CapacityError where the prompt does not fit or may have been cut, BackendError."""
        prompt_bytes = sum(len(m["content"].encode("utf-8", "replace")) for m in messages)
        context = self._choose_context(prompt_bytes, max_tokens)
        body = {
            "model": self._server.model,
            "messages": [{"role": m["role"], "content": m["content"]} for m in messages],
            "stream": False,
            "think": False,
            "truncate": False,
            "shift": False,
            "keep_alive": _KEEP_ALIVE,
            "options": {"temperature": 0, "seed": 0, "num_predict": max_tokens, "num_ctx": context},
        }
        if schema is not None:
            body["format"] = schema
        answer = self._wire.post("api/chat", body)
        if answer.problem is not None:
            if is_blocked(answer.problem):
                return Reply(None, "content_filter")
            raise as_error(answer.problem, where=self.name, model=self._server.model)
        self._refuse_if_cut(answer.data, prompt_bytes, context, max_tokens)
        return _read(answer.data)

    def describe(self) -> dict[str, Any]:
        return {
            "backend": "ollama",
            "url": self._server.url.split("?")[0],
            "model": self._server.model,
            "temperature": 0,
            "seed": 0,
            "think": False,
            "context_tokens": self._fixed,
        }

    def close(self) -> None:
        self._wire.close()

    def _choose_context(self, prompt_bytes: int, max_tokens: int) -> int:
        """The smallest step that surely holds prompt and answer; never smaller than before, to load once only."""
        limit = self._fixed or self._model_limit()
        fewest = int(prompt_bytes / _MOST_BYTES_PER_TOKEN)
        if fewest + max_tokens > limit:
            raise self._too_long(f"has at least {fewest} tokens; with the answer it exceeds {limit}")
        if self._fixed:
            return self._fixed
        most = int(prompt_bytes / _FEWEST_BYTES_PER_TOKEN) + _TEMPLATE_TOKENS + max_tokens
        step = next((s for s in _STEPS if s >= most), _STEPS[-1])
        self._context = min(limit, max(step, self._context))
        return self._context

    def _model_limit(self) -> int:
        """The context that the model was made for, as the server tells; asked once."""
        if self._limit is None:
            answer = self._wire.post("api/show", {"model": self._server.model})
            if answer.problem is not None:
                raise as_error(answer.problem, where=self.name, model=self._server.model)
            info = answer.data.get("model_info")
            lengths = [
                v for k, v in (info.items() if isinstance(info, dict) else ()) if str(k).endswith(".context_length")
            ]
            known = [v for v in lengths if isinstance(v, int) and v > 0]
            self._limit = min(known) if known else _STEPS[2]
        return self._limit

    def _refuse_if_cut(self, data: Mapping[str, Any], prompt_bytes: int, context: int, max_tokens: int) -> None:
        """Refuse unless the whole prompt was surely read, and stood before the judge up to the answer's end.

        Where the context holds prompt and answer at the fewest bytes a token, only counts that fill the context speak
        against it (Ollama cuts to just that). Where it does not, both must be there, and the prompt's large enough.
        """
        count, wrote = _count(data.get("prompt_eval_count")), _count(data.get("eval_count"))
        if count is not None and count >= context - 1:
            raise self._too_long(f"fills the whole context of {context} tokens and was probably cut")
        if count is not None and wrote is not None and count + wrote >= context:
            raise self._too_long(f"fills with its answer the context of {context} tokens; its beginning may be lost")
        surely_fits = prompt_bytes / _FEWEST_BYTES_PER_TOKEN + _TEMPLATE_TOKENS + max_tokens <= context
        if surely_fits:
            return
        if count is None or wrote is None or count < prompt_bytes / _MOST_BYTES_PER_TOKEN:
            raise self._too_long(f"may not fit into {context} tokens, and the server does not show that it was read")

    def _too_long(self, what: str) -> CapacityError:
        return CapacityError(
            f"the prompt ({what})", where=self.name, hint="Take a model with a longer context, or a shorter text."
        )


def _count(told: Any) -> int | None:
    return told if type(told) is int and told >= 0 else None


def _read(data: Mapping[str, Any]) -> Reply:
    message = data.get("message")
    message = message if isinstance(message, dict) else {}
    text, thinking, said = message.get("content"), message.get("thinking"), data.get("done_reason")
    finished = data.get("done") is True and isinstance(said, str)
    return Reply(
        text=text if isinstance(text, str) else None,
        finish=_FINISHES.get(said) if finished and isinstance(said, str) else None,
        thinking=thinking if isinstance(thinking, str) else None,
        raw={k: data[k] for k in ("model", "done_reason", "prompt_eval_count", "eval_count") if k in data},
    )
