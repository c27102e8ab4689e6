"""What is asked of the model hub, in its own client's words: what a file is, and the file from a byte on.

The hub is told nothing that it need not know: no usage figures, and no name of a person unless it asks for one. A
token is read from huggingface-hub's own login, sent to the hub alone (never to where a file redirects to), and
neither kept nor shown. Errors of the client name addresses that are signed for one person; ours never do.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import urlsplit

from ..errors import HubError, MissingExtraError

# Waiting for an answer about a file; the download itself has huggingface-hub's own limits.
LOOK_UP_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """A file on the hub. sha256 is None where the hub does not say (small files); revision is its commit."""

    repository: str
    path: str
    revision: str
    size_bytes: int
    sha256: str | None
    location: str
    headers: Mapping[str, str]

    @property
    def words(self) -> str:
        return f"{self.path} of {self.repository}"


class Sink(Protocol):
    """What a download needs of the file it is written to."""

    def write(self, data: bytes, /) -> int: ...
    def tell(self) -> int: ...
    def seek(self, offset: int, /) -> int: ...
    def truncate(self) -> int: ...


def _hub() -> Any:
    """huggingface_hub's module of downloads. What it tells of this machine, by a request of its own, is off."""
    try:
        from huggingface_hub import constants, file_download
        from huggingface_hub.utils.tqdm import disable_progress_bars
    except ImportError as error:
        raise MissingExtraError("huggingface-hub", "hub", "fetching from the model hub") from error
    constants.HF_HUB_DISABLE_TELEMETRY = True
    logging.getLogger("huggingface_hub").setLevel(logging.CRITICAL)  # its warnings show signed addresses
    disable_progress_bars("huggingface_hub.http_get")
    return file_download


def look_up(repository: str, path: str, revision: str = "main") -> RemoteFile:
    """What the hub says of a file. Without a login first; with it only if the hub asks for one.

    Raises HubError: offline, not reachable, refused, not there.
    """
    hub = _hub()
    from huggingface_hub import constants, get_token

    if constants.HF_HUB_OFFLINE:
        raise HubError(
            "huggingface-hub is set to work offline, so nothing can be fetched",
            hint="Unset HF_HUB_OFFLINE (and TRANSFORMERS_OFFLINE), or put the file there yourself.",
        )
    try:
        return _ask(hub, repository, path, revision, token=False)
    except HubError as error:
        if not error.wants_login or get_token() is None:
            raise
        return _ask(hub, repository, path, revision, token=True)


def _ask(hub: Any, repository: str, path: str, revision: str, *, token: bool) -> RemoteFile:
    from huggingface_hub.utils._headers import build_hf_headers

    url = hub.hf_hub_url(repository, path, revision=revision)
    words = f"{path} of {repository}"
    try:
        found = hub.get_hf_file_metadata(url, token=token, timeout=LOOK_UP_SECONDS, retry_on_errors=False)
    except Exception as error:
        raise as_hub_error(error, words) from None
    if found.commit_hash is None or found.size is None or found.etag is None:
        raise HubError(
            f"the server does not answer as the model hub does (asked for {words})",
            hint="Is HF_ENDPOINT set to something else, or does a proxy or sign-in page stand between?",
        )
    headers = build_hf_headers(token=token)
    if urlsplit(url)[:2] != urlsplit(found.location)[:2]:
        headers.pop("authorization", None)  # a signed address elsewhere: the login is none of its business
    sha = found.etag if len(found.etag) == 64 else None  # large files: the tag is their sha256
    return RemoteFile(repository, path, found.commit_hash, found.size, sha, found.location, headers)


def fetch_from(remote: RemoteFile, file: Sink, start: int) -> None:
    """Write the file from byte `start` on to `file`, which stands there; short breaks of the line are waited out.

    Raises HubError (retryable where the line broke), or OSError where `file` cannot be written. What was written
    before stays and can be gone on from.
    """
    hub = _hub()
    try:
        hub.http_get(
            remote.location, file, resume_size=start, headers=dict(remote.headers), expected_size=remote.size_bytes
        )
    except Exception as error:
        if isinstance(error, OSError) and error.errno is not None and _status(error) is None:
            raise
        raise as_hub_error(error, remote.words) from None


def as_hub_error(error: Exception, words: str) -> HubError:
    """The client's error in words of ours, without its addresses and headers."""
    from huggingface_hub import constants, errors

    if isinstance(error, errors.GatedRepoError):
        return HubError(
            f"the hub gives {words} only to people who have agreed to its terms",
            hint="Agree on the repository's page, then log in: hf auth login",
            wants_login=True,
        )
    if isinstance(error, errors.RevisionNotFoundError):
        return HubError(f"the revision asked for does not exist ({words})", hint=_NEWER)
    if isinstance(error, errors.EntryNotFoundError):
        return HubError(f"the hub has no file {words}", hint=_NEWER, missing=True)
    status = _status(error)
    if isinstance(error, errors.RepositoryNotFoundError) or status in (401, 403):
        return HubError(
            f"the hub does not show {words}: it does not exist, or not for you (HTTP {status})",
            hint="Where access is restricted, log in with huggingface-hub's own command: hf auth login",
            wants_login=True,
        )
    if status is not None:
        return HubError(f"the hub answered HTTP {status} for {words}", hint="Try again later.", retryable=True)
    return HubError(
        f"the model hub at {constants.ENDPOINT.split('?')[0]} cannot be reached, or the line broke ({words})",
        hint="Is the network there? The same command goes on where it stopped.",
        retryable=True,
    )


_NEWER = "Is this aipsy-judge up to date? pip install --upgrade aipsy-judge"


def _status(error: Exception) -> int | None:
    status = getattr(getattr(error, "response", None), "status_code", None)
    return status if isinstance(status, int) else None
