"""Sockets bound before anything else starts serving, so that a taken port is one clear line."""

from __future__ import annotations

import errno
import socket

from folkmoot.core.errors import AddressUnusable, PortTaken, ServeError

BACKLOG = 2048
ABSENT = frozenset({errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT})
"""What a machine says of an address it does not have, as `localhost` may name one of IPv6."""


def listen(host: str, port: int, option: str = "--port") -> list[socket.socket]:
    """Sockets that listen on every address of this machine `host` stands for, on one port.

    `option` is where whoever started this chooses the port.
    """
    try:
        found = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE | socket.AI_NUMERICSERV
        )
    except (socket.gaierror, UnicodeError):
        raise AddressUnusable(
            f"Cannot listen on {host}: it is not an address of this machine."
        ) from None
    sockets: list[socket.socket] = []
    failure: OSError | None = None
    for family, address in dict.fromkeys((entry[0], entry[4]) for entry in found):
        if sockets:
            port = sockets[0].getsockname()[1]
        try:
            sockets.append(_listen_on(family, (address[0], port, *address[2:])))
        except OSError as error:
            failure = error
            if error.errno not in ABSENT:
                close(sockets)
                sockets = []
                break
    if failure is not None and not sockets:
        raise _explained(failure, host, port, option)
    return sockets


def _listen_on(family: int, address: tuple[object, ...]) -> socket.socket:
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            # `::` means every network, those of IPv4 included; any other address means itself.
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, address[0] != "::")
        made.bind(address)
        made.listen(BACKLOG)
        made.setblocking(False)  # noqa: FBT003
    except OSError:
        made.close()
        raise
    return made


def close(sockets: list[socket.socket]) -> None:
    """Stop listening."""
    for each in sockets:
        each.close()


def _explained(error: OSError, host: str, port: int, option: str) -> ServeError:
    if error.errno == errno.EADDRINUSE:
        return PortTaken(
            f"Port {port} on {host} is in use by another program. Stop that program, or "
            f"choose another port with {option}.",
            port=port,
        )
    if error.errno == errno.EACCES:
        return AddressUnusable(
            f"This user may not listen on port {port}. Choose one above 1023 with {option}.",
            port=port,
        )
    return AddressUnusable(f"Cannot listen on {host}: it is not an address of this machine.")


def base_url(host: str, port: int, *, tls: bool = False) -> str:
    """The URL of a listening address, as it was given; `::` becomes `[::]`."""
    scheme = "https" if tls else "http"
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"
