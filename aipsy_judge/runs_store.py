"""An open run: takes verdicts as they come, on the disk or in memory, and knows which need not be had again."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self, overload

from .conversation import Conversation
from .errors import InputError, JudgeError, LaneError
from .journal import Journal, Shelf
from .redact import redact
from .runs import CONVERSATIONS, VERDICTS, conversation_to_dict
from .runs_info import RUN, InputFile, RunInfo, read_info, write_info
from .runs_key import is_final, unit_hashes, verdict_key
from .verdict import Verdict, verdict_from_dict, verdict_to_dict

Unit = tuple[str, int | None]


class Run:
    """An open run. `folder` None keeps everything in memory.

    What it holds of a verdict beside its place in the journal is a few hundred bytes, so that a run may be long.
    `warnings` says what was dropped on opening.
    """

    def __init__(self, info: RunInfo, folder: Path | None = None) -> None:
        self.info = info
        self.folder = folder
        self.warnings: list[str] = []
        self._by_key: dict[str, int] = {}  # where the newest verdict under a key is
        self._newest: dict[Unit, str] = {}  # key of the newest line of a unit
        self._text_of: dict[str, str] = {}  # hash of the newest text kept under an id
        self._texts: Journal | None = None
        self._verdicts: Journal | Shelf = Shelf()
        if folder is not None:
            self._open(folder)

    def keys(self, conversation: Conversation) -> dict[int | None, str]:
        """The key of each unit of a conversation, by turn number (None: the whole)."""
        whole = conversation.content_hash
        hashes = unit_hashes(conversation, self.info.rubric)
        return {t: verdict_key(h, whole, self.info.lane, self.info.settings) for t, h in hashes.items()}

    def verdict(self, conversation_id: str, turn: int | None) -> Verdict:
        """The newest verdict of a unit. KeyError where there is none."""
        found = self._at(self._by_key[self._newest[conversation_id, turn]])
        return replace(found, conversation_id=conversation_id, turn=turn)

    def begin(self, conversation: Conversation) -> dict[int | None, Verdict]:
        """Keep the text of a conversation (not where the run is redacted), and give the final verdicts there are.

        They are found by key, so those of an equal conversation under another id are taken over under this one.
        """
        if self._texts is not None and self._text_of.get(conversation.id) != conversation.content_hash:
            self._texts.append(conversation_to_dict(conversation))
        self._text_of[conversation.id] = conversation.content_hash
        kept: dict[int | None, Verdict] = {}
        for turn, key in self.keys(conversation).items():
            verdict = self._at(self._by_key[key]) if key in self._by_key else None
            if verdict is not None and is_final(verdict):
                kept[turn] = replace(verdict, conversation_id=conversation.id, turn=turn)
                if self._newest.get((conversation.id, turn)) != key:
                    self.add(kept[turn], key, conversation.content_hash)
        return kept

    def add(self, verdict: Verdict, key: str, conversation_hash: str) -> Verdict:
        """Keep a verdict, as the newest of its unit; on the disk when this returns. Gives back what was kept."""
        if self.info.redacted:
            verdict = redact(verdict)
        record = {"key": key, "conversation_hash": conversation_hash, **verdict_to_dict(verdict)}
        try:
            self._by_key[key] = self._verdicts.append(record)
        except ValueError as error:  # a number that is no number, with its place
            where = f"{verdict.conversation_id}, turn {verdict.turn}"
            raise JudgeError(f"the judge gave a verdict that cannot be kept: {error}", where=where) from error
        self._newest[verdict.conversation_id, verdict.turn] = key
        return verdict

    def close(self) -> None:
        self._verdicts.close()
        if self._texts is not None:
            self._texts.close()
            self._texts = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _at(self, place: int) -> Verdict:
        return verdict_from_dict(self._verdicts.read(place))

    def _open(self, folder: Path) -> None:
        try:
            verdicts = self._verdicts = Journal(folder / VERDICTS, self._remember)
            self.warnings += verdicts.warnings
            if not self.info.redacted:
                self._texts = Journal(folder / CONVERSATIONS, self._remember_text)
                self.warnings += self._texts.warnings
        except BaseException:
            self.close()
            raise

    def _remember(self, line: Mapping[str, Any], place: int) -> None:
        verdict = verdict_from_dict(line)
        self._newest[verdict.conversation_id, verdict.turn] = line["key"]
        self._by_key[line["key"]] = place

    def _remember_text(self, line: Mapping[str, Any], place: int) -> None:
        self._text_of[line["id"]] = line["content_hash"]


class StoredVerdicts(Sequence[Verdict]):
    """The verdicts of an open run on some units, read when they are asked for."""

    def __init__(self, run: Run, units: Sequence[Unit]) -> None:
        self._run, self._units = run, units

    def __len__(self) -> int:
        return len(self._units)

    @overload
    def __getitem__(self, place: int) -> Verdict: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Verdict]: ...
    def __getitem__(self, place: int | slice) -> Verdict | Sequence[Verdict]:
        if isinstance(place, slice):
            return StoredVerdicts(self._run, self._units[place])
        return self._run.verdict(*self._units[place])


def open_run(
    folder: str | Path | None, info: RunInfo, *, resume: bool = False, inputs: Iterable[InputFile] = ()
) -> Run:
    """A run in `folder` (made if need be; None: in memory), ready for verdicts.

    A folder that holds a run is gone on with where `resume` is True; it must then have been begun alike: LaneError
    for another lane, InputError for other settings or a folder that is not empty. A redacted run stays one.
    """
    info = info.with_inputs(inputs)
    if folder is None:
        return Run(info)
    folder = Path(folder)
    known = check_folder(folder, resume=resume)
    if known is None:
        _make(folder, info)
        return Run(info, folder)
    check_alike(known, info, where=str(folder))
    grown = known.with_inputs(info.inputs)
    run = Run(grown, folder)
    if grown != known:
        write_info(folder, grown)
    return run


def check_folder(folder: Path, *, resume: bool) -> RunInfo | None:
    """The run that a folder holds, None where it is empty or not there. InputError where it cannot take verdicts."""
    if _is_empty(folder):
        return None
    known = read_info(folder)
    if not resume:
        raise InputError(
            "this folder holds a run already",
            where=str(folder),
            hint="--resume goes on with it and judges only what is missing; or name another folder.",
        )
    return known


def check_alike(known: RunInfo, now: RunInfo, *, where: str) -> None:
    """Raise LaneError or InputError where verdicts of `now` would not belong among those of `known`."""
    unlike = _differences(known.lane.to_dict(), now.lane.to_dict())
    if unlike:
        raise LaneError(f"this run was begun in another lane: {unlike}", where=where)
    unlike = _differences(
        {**known.settings, "rationale": known.rationale, "redacted": known.redacted},
        {**now.settings, "rationale": now.rationale, "redacted": now.redacted},
    )
    if unlike:
        raise InputError(
            f"this run was begun otherwise: {unlike}",
            where=where,
            hint="Give the same options to go on with it, or name another folder.",
        )


def _differences(known: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    names = sorted(n for n in known.keys() | now.keys() if known.get(n) != now.get(n))
    return "; ".join(f"{n} was {known.get(n)!r}, is {now.get(n)!r}" for n in names)


def _is_empty(folder: Path) -> bool:
    """True where there is nothing, or nothing but what a run killed at its very start leaves behind."""
    try:
        return not folder.exists() or all(p.name.startswith(f".{RUN}.") for p in folder.iterdir())
    except NotADirectoryError as error:
        raise InputError("is a file, a folder was expected", where=str(folder)) from error
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", where=str(folder)) from error


def _make(folder: Path, info: RunInfo) -> None:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.chmod(folder, 0o700)
    except OSError as error:
        raise InputError(f"cannot be made: {error.strerror or error}", where=str(folder)) from error
    write_info(folder, info)
