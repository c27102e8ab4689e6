"""The model `aipsy-judge/NAME`: a judge where Inspect wants a model, in a benchmark's judge seat.

It answers what the server answers, by the same code: the benchmark's frozen prompt, or any prompt with a schema.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from inspect_ai.model import (
    ChatMessage,
    ChatMessageTool,
    ContentText,
    GenerateConfig,
    ModelAPI,
    ModelOutput,
    ModelUsage,
)
from inspect_ai.tool import ToolChoice, ToolInfo

from ..errors import AipsyJudgeError, InputError
from ..judge import Rationale
from ..server.answering import Answer, Chat, Said, answer
from ..server.refusal import Refusal
from .at_work import Choice, check, check_rationale, error_of, judge_at_work, never_gone
from .over_http import asked_of, checked_address

BEST = "best"  # Inspect wants a name behind the slash


class JudgeAPI(ModelAPI):
    """`get_model("aipsy-judge/NAME", **arguments)`.

    NAME is what `aipsy-judge score --judge` takes, or "best" for the best installed. With `base_url` the judge is
    served there as NAME (`api_key` is the server's token) and no other argument is taken: it was started with its
    own. Usage is filled in from the judge's own tokenizer; nothing is fetched to count with.

    answer_as_own   a judge that was not made for the benchmark's prompt answers it by its own contract, and says so
    """

    def __init__(
        self,
        model_name: str,
        base_url: str | None = None,
        api_key: str | None = None,
        config: GenerateConfig = GenerateConfig(),  # noqa: B008 - as Inspect's own providers have it
        *,
        answer_as_own: bool = False,
        rationale: Rationale = "flagged",
        **choice: Any,
    ) -> None:
        super().__init__(model_name, base_url, api_key, [], config)
        self._address = checked_address(base_url) if base_url is not None else None
        self._rationale, self._as_own = rationale, answer_as_own
        check_rationale(rationale)
        if self._address is not None:
            _refuse_arguments(choice, answer_as_own=answer_as_own, rationale=rationale)
        self._choice = _choice(model_name, choice)
        if self._address is None:
            check(self._choice)

    async def generate(
        self, input: list[ChatMessage], tools: list[ToolInfo], tool_choice: ToolChoice, config: GenerateConfig
    ) -> ModelOutput:
        if tools:
            raise InputError("a judge calls no tools", where=self.model_name)
        if not input:
            raise InputError("nothing was asked", where=self.model_name)
        chat = Chat(tuple(_said(m) for m in input), _schema(config), config.max_tokens)
        found = await self._answer(chat, config)
        output = ModelOutput.from_content(model=str(found.about["judge"]), content=found.text)
        output.usage = ModelUsage(
            input_tokens=found.tokens.prompt,
            output_tokens=found.tokens.answer,
            total_tokens=found.tokens.prompt + found.tokens.answer,
        )
        output.metadata = {"aipsy_judge": dict(found.about)}
        return output

    async def _answer(self, chat: Chat, config: GenerateConfig) -> Answer:
        if self._address is not None:
            return await asked_of(self._address, self.model_name, chat, token=self.api_key, seconds=config.timeout)
        served = await judge_at_work(self._choice, rationale=self._rationale, answer_as_own=self._as_own)
        try:
            return await answer(served, chat, never_gone)
        except Refusal as refusal:
            raise error_of(refusal) from refusal

    async def count_text_tokens(self, text: str) -> int:
        """An estimate by length: Inspect's own fetches a tokenizer from the network."""
        return -(-len(text) // 4)

    def should_retry(self, ex: BaseException) -> bool:
        return isinstance(ex, AipsyJudgeError) and ex.retryable

    def connection_key(self) -> str:
        return self._address or repr(self._choice)


def _choice(name: str, given: Mapping[str, Any]) -> Choice:
    try:
        return Choice(judge=None if name == BEST else name, **given)
    except TypeError as error:
        raise InputError(
            f"the model takes no such argument: {error}",
            where=f"aipsy-judge/{name}",
            hint="rubric, contract, adapter, threads, memory_gb, window, unblessed, answer_as_own, rationale, base_url",
        ) from error


def _refuse_arguments(choice: Mapping[str, Any], *, answer_as_own: bool, rationale: str) -> None:
    given = [*choice, *(["answer_as_own"] if answer_as_own else []), *(["rationale"] if rationale != "flagged" else [])]
    if given:
        raise InputError(
            f"{', '.join(given)}: of no effect on a judge that is served elsewhere",
            hint="Start its server with them: aipsy-judge serve --help",
        )


def _said(message: ChatMessage) -> Said:
    if isinstance(message, ChatMessageTool) or getattr(message, "tool_calls", None):
        raise InputError("a judge reads text: no tools")
    return Said(message.role, _text(message.content))


def _text(content: str | list[Any]) -> str:
    if isinstance(content, str):
        return content
    other = [part.type for part in content if not isinstance(part, ContentText)]
    if other:
        raise InputError(f"a judge reads text, not {other[0]!r}")
    return "\n".join(part.text for part in content)


def _schema(config: GenerateConfig) -> Mapping[str, Any] | None:
    if config.response_schema is None:
        return None
    schema: dict[str, Any] = config.response_schema.json_schema.model_dump(exclude_none=True, by_alias=True)
    return schema
