"""`openai:MODEL@URL`, `ollama:MODEL@URL`: which server is meant, and whether text sent to it leaves this machine."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from ..errors import InputError

OLLAMA_URL = "http://localhost:11434"
_FORM = re.compile(r"(?P<kind>openai|ollama):(?P<model>\S+?)(?:@(?P<url>https?://\S+))?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ServerName:
    """A server, the model asked for, and where: `url` ends without a slash and holds no user name or key."""

    kind: str
    model: str
    url: str

    @property
    def text(self) -> str:
        """The judge's name in results; what stands behind a "?" in the address is left out."""
        return f"{self.kind}:{self.model}@{self.url.split('?')[0]}"

    @property
    def is_loopback(self) -> bool:
        return is_loopback(self.url)


def parse_server_name(name: str) -> ServerName:
    """Take a judge's name apart. Raises InputError with the form wanted.

    >>> parse_server_name("ollama:gemma3:4b").url
    'http://localhost:11434'
    >>> parse_server_name("openai:my/model@http://127.0.0.1:8080").url
    'http://127.0.0.1:8080/v1'
    """
    match = _FORM.fullmatch(name.strip())
    if match is None:
        raise _wrong(name, "not the name of a judge on a server")
    kind, model, url = match["kind"].lower(), match["model"], match["url"]
    if url is None:
        if "@" in model or "://" in model:
            raise _wrong(name, "the address behind @ must begin with http:// or https://")
        if kind == "openai":
            raise _wrong(name, "the address is missing; it is never guessed, for text would go there")
        url = OLLAMA_URL
    return ServerName(kind, model, _checked_url(name, url, kind))


def server_address(url: str, where: str) -> str:
    """An address that a person gave, without a slash at its end. Raises InputError naming `where` it was given."""
    try:
        parts = urlsplit(url)
        whole = parts.scheme in ("http", "https") and bool(parts.hostname) and not parts.query and not parts.username
        _ = parts.port
    except ValueError:
        whole = False
    if not whole:
        raise InputError(
            "is no address of a server", where=f"{where} {url}", hint="One looks like http://127.0.0.1:11435."
        )
    return url.rstrip("/")


def checked_key(key: str | None, where: str) -> str | None:
    """A key as a header can hold it; None where there is none. Raises InputError naming `where` it was given."""
    key = (key or "").strip()
    if any(not "!" <= c <= "~" for c in key):
        raise InputError("the API key holds blanks or characters that no key has", where=where)
    return key or None


def is_loopback(url: str) -> bool:
    """True where the address is this machine itself: localhost, *.localhost, 127.0.0.0/8, ::1."""
    host = (urlsplit(url).hostname or "").rstrip(".")
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _checked_url(name: str, url: str, kind: str) -> str:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise _wrong(name, f"the address is not valid: {error}") from error
    if not parts.hostname or port == 0:
        raise _wrong(name, "the address names no host")
    if parts.username is not None or parts.password is not None:
        raise _wrong("(address with a password)", "put the key into AIPSY_JUDGE_API_KEY, not into the address")
    path = parts.path.rstrip("/").removesuffix("/chat/completions").removesuffix("/api/chat")
    if kind == "openai" and not path:
        path = "/v1"
    query = f"?{parts.query}" if parts.query else ""
    return f"{parts.scheme}://{parts.netloc}{path}{query}"


def _wrong(name: str, what: str) -> InputError:
    return InputError(
        what,
        where=name,
        hint="Write openai:MODEL@URL (such as openai:my-model@http://localhost:8080/v1) or ollama:MODEL[@URL].",
    )
