"""The judges of a panel: each by its name, with a folder of its own and the place where it runs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from ..backends.server_name import ServerName, parse_server_name
from ..errors import InputError

THIS_MACHINE = "this machine"
_SLUG_LENGTH = 80


@dataclass(frozen=True, slots=True)
class Member:
    """One judge of a panel: `name` as `open_judge` takes it, `folder` of its run beneath the panel's."""

    name: str
    folder: str

    @property
    def server(self) -> ServerName | None:
        """The server that it names; None for a judge whose weights are here."""
        return parse_server_name(self.name) if _names_server(self.name) else None

    @property
    def host(self) -> str | None:
        """Host (and port) that text is sent to; None where it stays on this machine."""
        server = self.server
        return None if server is None or server.is_loopback else urlsplit(server.url).netloc

    @property
    def place(self) -> str:
        """What it shares with other judges: judges of one place are asked one after another."""
        return self.host or THIS_MACHINE

    @property
    def model(self) -> str:
        """The model's own name, without address or folder."""
        server = self.server
        return server.model if server is not None else re.split(r"[\\/]", self.name)[-1].removesuffix(".gguf")


def make_members(names: Sequence[str], known: Iterable[Member] = ()) -> tuple[Member, ...]:
    """A member for each name; those in `known` keep their folder. Raises InputError for a name given twice."""
    twice = sorted({n for n in names if names.count(n) > 1})
    if twice:
        raise InputError(f"named twice: {', '.join(twice)}", hint="A panel asks each judge once.")
    folders = {m.name: m.folder for m in known}
    taken = {f.lower() for f in folders.values()}
    found = []
    for name in names:
        if name not in folders:
            folders[name] = _free(_slug(name), taken)
            taken.add(folders[name].lower())
        found.append(Member(name, folders[name]))
    return tuple(found)


def _names_server(name: str) -> bool:
    return name.split(":", 1)[0].lower() in ("openai", "ollama")


def _slug(name: str) -> str:
    """The name as a folder's; what no file system minds is kept.

    >>> _slug("openai:my/model@https://api.example.org/v1")
    'openai-my-model-api.example.org-v1'
    """
    text = re.sub(r"https?://", "", name)
    return re.sub(r"[^A-Za-z0-9._]+", "-", text).strip("-.")[-_SLUG_LENGTH:].strip("-.") or "judge"


def _free(slug: str, taken: set[str]) -> str:
    """The slug, or with a number where it is taken; case does not tell folders apart everywhere."""
    number, found = 1, slug
    while found.lower() in taken:
        number += 1
        found = f"{slug}-{number}"
    return found
