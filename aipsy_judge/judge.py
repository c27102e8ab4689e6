"""Judge: weights + rubric + contract. `open_judge(name or path)` gives one (opening.py)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, dataclass
from types import TracebackType
from typing import Any, Literal, Protocol, Self

from .conversation import Conversation
from .rubric import Rubric
from .verdict import Verdict

Rationale = Literal["always", "flagged", "never"]
BackendChoice = Literal["auto", "llamacpp", "mlx"]


@dataclass(frozen=True, slots=True)
class JudgeOptions:
    """How a judge is run. What does not concern a kind of judge is ignored by it.

    backend           library that runs weights on this machine; "auto": MLX for a folder of safetensors, llama.cpp for
                      a GGUF file
    threads           0: all processors this process may use
    memory_gb         GiB that the cache of a local judge may take
    window            leave out the oldest messages of what does not fit (recorded in the verdict), not refuse it
    cpu_moe           layers whose experts stay in RAM; None: as many as the GPU's memory asks for ("auto")
    timeout_seconds   per request to a server; None: 600 for one on this machine, 120 for another
    unblessed         open a judge although the checks in its manifest did not pass (stands in every verdict)
    """

    backend: BackendChoice = "auto"
    threads: int = 0
    memory_gb: float = 4.0
    window: bool = False
    cpu_moe: int | None = 0
    timeout_seconds: float | None = None
    unblessed: bool = False


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
        known: Collection[int | None] = (),
    ) -> list[Verdict]:
        """Verdicts in the order of the turns. What cannot be judged comes back as Unscored, never left out.

        `on_verdict` is called once a verdict, as soon as it is final. `known` are the turns (None: the whole
        conversation) whose verdicts are at hand: a judge that asks about each turn by itself leaves them out; one
        whose figures may depend on what is judged in one go judges them again.
        """

    def close(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...
