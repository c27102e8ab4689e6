"""Run by the client's own Python: `aipsy-bench WORDS`, with everything but this machine out of reach.

    python dropin_client.py ATTEMPTS_FILE BASE_URL|- WORDS...

Whatever else it tries to reach is refused and written to ATTEMPTS_FILE. The client's address of the judge is a
constant; where another BASE_URL is given, that constant is set before the client begins, and nothing else is changed.
"""

from __future__ import annotations

import ipaddress
import socket
import sys
from typing import Any


def is_here(host: object) -> bool:
    if host in (None, "", "localhost", b"localhost"):
        return True
    try:
        return ipaddress.ip_address(str(host).split("%")[0]).is_loopback
    except ValueError:
        return False


def stay_here(attempts: str) -> None:
    """Refuse every connection, datagram and look-up that does not stay on this machine."""

    def refused(what: object) -> OSError:
        with open(attempts, "a", encoding="utf-8") as file:
            file.write(f"{what}\n")
        return OSError(f"only this machine can be reached, not {what}")

    def guarded(name: str, place: int) -> None:
        real = getattr(socket.socket, name)

        def checked(self: socket.socket, *arguments: Any) -> Any:
            address = arguments[place]
            if isinstance(address, tuple) and not is_here(address[0]):
                raise refused(address)
            return real(self, *arguments)

        setattr(socket.socket, name, checked)

    for name, place in (("connect", 0), ("connect_ex", 0), ("sendto", -1)):
        guarded(name, place)
    look_up = socket.getaddrinfo

    def checked(host: Any, *arguments: Any, **named: Any) -> Any:
        if not is_here(host):
            raise refused(host)
        return look_up(host, *arguments, **named)

    socket.getaddrinfo = checked


def main() -> int:
    attempts, base_url, *words = sys.argv[1:]
    stay_here(attempts)
    if base_url != "-":
        import aipsy_bench.spec

        aipsy_bench.spec.OLLAMA_BASE_URL = base_url
    from aipsy_bench.cli import main as client

    code: int = client(words)
    return code


if __name__ == "__main__":
    raise SystemExit(main())
