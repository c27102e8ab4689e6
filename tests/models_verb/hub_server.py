"""A model hub on this machine: what huggingface-hub's own client asks of the real one, answered by a real server.

Large files are redirected to a second server, as the hub does; either can be told to misbehave.
"""

from __future__ import annotations

import hashlib
import re
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

COMMIT = "0123456789abcdef0123456789abcdef01234567"
REPOSITORY = "some-lab/small-judge"


@dataclass
class Hub:
    """files: by path in the repository; `large` ones lie on the second server. asked: (server, method, path, headers).

    cuts: after so many bytes of a download the connection is closed, once for each. status: answers instead of files.
    """

    files: dict[str, bytes]
    large: set[str]
    cuts: list[int] = field(default_factory=list)
    ignores_range: bool = False
    gated: bool = False
    status: dict[str, tuple[int, str]] = field(default_factory=dict)
    sends: dict[str, bytes] = field(default_factory=dict)  # other bytes than it says
    tags: dict[str, str] = field(default_factory=dict)  # another sha256 than the file's
    broken: set[str] = field(default_factory=set)  # servers that answer nothing any more
    signature: str = "secret-of-this-address"  # what the second server takes
    during: Callable[[], None] | None = None  # called within a download
    asked: list[tuple[str, str, str, dict[str, str]]] = field(default_factory=list)
    url: str = ""
    store: str = ""

    def gets(self) -> list[tuple[str, dict[str, str]]]:
        """(server, headers) of every download of a large file."""
        return [(server, headers) for server, method, _, headers in self.asked if method == "GET" and server == "store"]


@contextmanager
def serving_hub(hub: Hub) -> Iterator[Hub]:
    """Both servers running."""
    servers = [_server(hub, "hub"), _server(hub, "store")]
    hub.url, hub.store = (f"http://127.0.0.1:{s.server_port}" for s in servers)
    threads = [threading.Thread(target=s.serve_forever, args=(0.01,), daemon=True) for s in servers]
    for thread in threads:
        thread.start()
    try:
        yield hub
    finally:
        for server in servers:
            server.shutdown()
            server.server_close()


def _server(hub: Hub, name: str) -> ThreadingHTTPServer:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_HEAD(self) -> None:
            self._answer()

        def do_GET(self) -> None:
            self._answer()

        def _answer(self) -> None:
            headers = {k.lower(): v for k, v in self.headers.items()}
            hub.asked.append((name, self.command, self.path, headers))
            if name in hub.broken:
                self.close_connection = True
                return
            (_from_hub if name == "hub" else _from_store)(self, hub, headers)

        def log_message(self, *args: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        def handle_error(self, request: object, client_address: object) -> None:
            """A client that is gone is none."""

    server = Server(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    return server


def reply(handler: BaseHTTPRequestHandler, status: int, headers: dict[str, str], body: bytes = b"") -> None:
    handler.send_response(status)
    for key, value in {"Content-Length": str(len(body)), **headers}.items():
        handler.send_header(key, value)
    handler.end_headers()
    if handler.command != "HEAD":
        handler.wfile.write(body)


def _from_hub(handler: BaseHTTPRequestHandler, hub: Hub, headers: dict[str, str]) -> None:
    found = re.fullmatch(rf"/{REPOSITORY}/resolve/(?P<revision>[^/]+)/(?P<path>.+)", handler.path)
    if found is None:
        return reply(handler, 404, {"X-Error-Code": "RepoNotFound"})
    path = found["path"]
    if hub.gated and "authorization" not in headers:
        return reply(handler, 401, {"X-Error-Code": "GatedRepo"})
    if path in hub.status:
        status, code = hub.status[path]
        return reply(handler, status, {"X-Error-Code": code} if code else {})
    if path not in hub.files:
        return reply(handler, 404, {"X-Error-Code": "EntryNotFound"})
    data = hub.files[path]
    if path not in hub.large:
        tag = hashlib.sha1(data).hexdigest()
        return reply(handler, 200, {"ETag": f'"{tag}"', "X-Repo-Commit": COMMIT}, data)
    tag = hub.tags.get(path, hashlib.sha256(data).hexdigest())
    linked = {"X-Linked-ETag": f'"{tag}"', "X-Linked-Size": str(len(data)), "X-Repo-Commit": COMMIT}
    where = f"{hub.store}/{path}?Signature={hub.signature}"
    # the storage that deduplicates is offered too; whoever does not speak it takes the address
    xet = {"X-Xet-Hash": "0" * 64, "X-Xet-Refresh-Route": f"{hub.url}/api/xet"}
    return reply(handler, 302, {"Location": where, "ETag": '"pointer"', **linked, **xet})


def _from_store(handler: BaseHTTPRequestHandler, hub: Hub, headers: dict[str, str]) -> None:
    path, _, query = handler.path.lstrip("/").partition("?")
    if query != f"Signature={hub.signature}":
        return reply(handler, 403, {})
    data = hub.sends.get(path, hub.files[path])
    start = int(headers["range"].removeprefix("bytes=").partition("-")[0]) if "range" in headers else 0
    if hub.ignores_range:
        start = 0
    body = data[start:]
    handler.send_response(206 if start else 200)
    handler.send_header("Content-Length", str(len(body)))
    if start:
        handler.send_header("Content-Range", f"bytes {start}-{len(data) - 1}/{len(data)}")
    handler.end_headers()
    if hub.during is not None:
        handler.wfile.write(body[: len(body) // 2])
        hub.during()
        body = body[len(body) // 2 :]
    if hub.cuts:
        handler.wfile.write(body[: hub.cuts.pop(0)])
        handler.wfile.flush()
        handler.close_connection = True
        handler.connection.shutdown(socket.SHUT_RDWR)
        return None
    handler.wfile.write(body)
    return None
