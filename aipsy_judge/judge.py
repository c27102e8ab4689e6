"""Judge: weights + rubric + contract. `open_judge(name or path)`, then `judge.score(conversation)`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from types import TracebackType
from typing import Any, Literal, Protocol, Self

from .conversation import Conversation
from .rubric import Rubric
from .verdict import Verdict

Rationale = Literal["always", "flagged", "never"]


@dataclass(frozen=True, slots=True)
class Lane:
    """What may be compared: same rubric hash, same judge id, same contract. Unlike lanes are never averaged."""

    judge: str
    rubric: str
    contract: str

    def to_dict(self) -> dict[str, str]:
        return asdict(self)


class Judge(Protocol):
    """Turns a conversation into verdicts, one for every turn (or one for the whole, as the rubric's unit says)."""

    @property
    def lane(self) -> Lane: ...
    @property
    def rubric(self) -> Rubric: ...
    @property
    def is_remote(self) -> bool:
        """True where text leaves this machine."""

    @property
    def remarks(self) -> tuple[str, ...]:
        """What a reader of any of its scores must know, e.g. that its weights were never trained for judging."""

    @property
    def settings(self) -> Mapping[str, Any]:
        """Everything beside the lane that can change a figure; part of the key under which a verdict is stored."""

    def score(
        self,
        conversation: Conversation,
        *,
        rationale: Rationale = "flagged",
        on_verdict: Callable[[Verdict], None] | None = None,
    ) -> list[Verdict]:
        """Verdicts in the order of the turns. What cannot be judged comes back as Unscored, never left out.

        `on_verdict` is called once a verdict, as soon as it is final.
        """

    def close(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...
