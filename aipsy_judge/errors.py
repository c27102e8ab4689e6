"""The tree of errors. Each says what happened and where; `hint` says what to do next.

AipsyJudgeError
├── InputError            exit 2: something the user gave cannot be used
│   ├── TranscriptError       a conversation file is not understood
│   ├── RubricError           a rubric is not valid
│   ├── RatingsError          a ratings table is not valid
│   └── LaneError             results of unlike lanes were to be compared
├── JudgeError            exit 3: the judge cannot be opened or does not work
│   ├── WeightsError          a weights file is missing, damaged or of an unknown kind
│   │   ├── ManifestError         a judge's manifest is not valid, or its files are not those it names
│   │   └── HubError              a judge cannot be fetched: no network, no room, refused, another file
│   ├── ContractError         a judge was to be asked in a way it was not made for
│   ├── CapacityError         the plan does not fit the context or the memory
│   └── BackendError          the library or server that runs the judge failed (often retryable)
│       └── AccessError           the server refuses the key or does not have the model: no item can succeed
└── MissingExtraError     exit 3: an optional dependency is not installed
"""

from __future__ import annotations

EXIT_OK = 0
EXIT_GATE = 1
EXIT_INPUT = 2
EXIT_JUDGE = 3
EXIT_NOTHING_SCORED = 4
EXIT_INTERRUPTED = 130  # as a shell reports SIGINT


class AipsyJudgeError(Exception):
    """Root of all errors that this package raises on purpose.

    `where` names the file, line or id; `hint` the next step; both are shown by the command line.
    """

    exit_code: int = EXIT_INPUT
    retryable: bool = False
    hint: str | None = None

    def __init__(self, message: str, *, where: str | None = None, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.where = where
        if hint is not None:
            self.hint = hint

    def __str__(self) -> str:
        return f"{self.where}: {self.message}" if self.where else self.message


class InputError(AipsyJudgeError):
    """Something the user gave cannot be used."""


class TranscriptError(InputError):
    """A conversation file is not understood."""


class RubricError(InputError):
    """A rubric is not valid."""


class RatingsError(InputError):
    """A ratings table is not valid."""


class LaneError(InputError):
    """Results of unlike lanes (rubric, judge, contract) were to be compared or averaged."""

    hint = "Only results of the same rubric, judge and contract can be compared: score both again alike."


class JudgeError(AipsyJudgeError):
    """The judge cannot be opened or does not work."""

    exit_code = EXIT_JUDGE


class WeightsError(JudgeError):
    """A weights file is missing, damaged, or of a kind that cannot be used."""


class ManifestError(WeightsError):
    """A judge's manifest is not valid, or the files beside it are not those that it names."""


class HubError(WeightsError):
    """A judge cannot be fetched from the model hub.

    `wants_login`: it might be with a login; `missing`: the hub is there, the file is not.
    """

    def __init__(
        self,
        message: str,
        *,
        where: str | None = None,
        hint: str | None = None,
        retryable: bool = False,
        wants_login: bool = False,
        missing: bool = False,
    ) -> None:
        super().__init__(message, where=where, hint=hint)
        self.retryable = retryable
        self.wants_login = wants_login
        self.missing = missing


class ContractError(JudgeError):
    """A judge was to be asked in a way it was not made for."""


class CapacityError(JudgeError):
    """The plan does not fit the context or the memory that was allowed."""


class BackendError(JudgeError):
    """The library or server that runs the judge failed.

    `reason` is the word of verdict.UNSCORED_REASONS that an item takes which failed so.
    """

    def __init__(
        self,
        message: str,
        *,
        where: str | None = None,
        hint: str | None = None,
        retryable: bool = False,
        reason: str = "server_error",
    ) -> None:
        super().__init__(message, where=where, hint=hint)
        self.retryable = retryable
        self.reason = reason


class AccessError(BackendError):
    """The server refuses the key or does not have the model: no item can succeed."""


class MissingExtraError(AipsyJudgeError):
    """An optional dependency is needed that is not installed."""

    exit_code = EXIT_JUDGE

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(
            f"{purpose} needs the package {package!r}, which is not installed",
            hint=f"pip install 'aipsy-judge[{extra}]'",
        )
