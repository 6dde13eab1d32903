"""The listening sockets: bound before anything else starts, with TLS and room for connections."""

from __future__ import annotations

import errno
import logging
import resource
import socket
import ssl
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from folkmoot.core import errors as e
from folkmoot.transports.limits import LISTEN_BACKLOG, OPEN_FACTOR, SPARE_DESCRIPTORS

if TYPE_CHECKING:
    from folkmoot.settings.model import ClusterSettings, TlsSettings


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
        raise e.AddressUnusable(
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
        made.listen(LISTEN_BACKLOG)
        made.setblocking(False)  # noqa: FBT003
    except OSError:
        made.close()
        raise
    return made


def close(sockets: list[socket.socket]) -> None:
    for each in sockets:
        each.close()


def _explained(error: OSError, host: str, port: int, option: str) -> e.ServeError:
    if error.errno == errno.EADDRINUSE:
        return e.PortTaken(
            f"Port {port} on {host} is in use by another program. Stop that program, or "
            f"choose another port with {option}.",
            port=port,
        )
    if error.errno == errno.EACCES:
        return e.AddressUnusable(
            f"This user may not listen on port {port}. Choose one above 1023 with {option}.",
            port=port,
        )
    return e.AddressUnusable(f"Cannot listen on {host}: it is not an address of this machine.")


def base_url(host: str, port: int, *, tls: bool = False) -> str:
    """The URL of a listening address, as it was given; `::` becomes `[::]`."""
    scheme = "https" if tls else "http"
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"


def load_tls(settings: TlsSettings) -> ssl.SSLContext | None:
    """What the port is served with; None without TLS, a `SettingsError` when it cannot be."""
    if not (settings.certificate or settings.key):
        return None
    certificate = _readable("tls.certificate", settings.certificate)
    key = _readable("tls.key", settings.key)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    # Not every build of Python or configuration of OpenSSL refuses older versions by default.
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    try:
        # Without an answer of ours OpenSSL would ask the terminal for a password.
        context.load_cert_chain(certificate, key, password=_no_password)
    except ssl.SSLError as error:
        raise _unusable(error, certificate, key) from None
    return context


def load_ca(settings: ClusterSettings) -> ssl.SSLContext | None:
    """What servers of the bus and other nodes are trusted by; None for what the system trusts."""
    if not settings.ca_file:
        return None
    path = _readable("cluster.ca_file", settings.ca_file)
    try:
        context = ssl.create_default_context(cafile=path)
    except ssl.SSLError:
        raise e.SettingsError(f"cluster.ca_file: {path} has no certificates in PEM form.") from None
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


def _readable(setting: str, name: str) -> Path:
    if not name:
        raise e.SettingsError("tls.certificate and tls.key are set together or not at all.")
    path = Path(name).expanduser().absolute()
    try:
        with path.open("rb"):
            return path
    except FileNotFoundError:
        raise e.SettingsError(f"{setting}: there is no file {path}.") from None
    except OSError as error:
        reason = (error.strerror or type(error).__name__).lower()
        raise e.SettingsError(f"{setting}: {path} cannot be read: {reason}.") from None


def _no_password() -> NoReturn:
    raise e.SettingsError("tls.key: the key is protected by a password; the hub needs one without.")


def _unusable(error: ssl.SSLError, certificate: Path, key: Path) -> e.SettingsError:
    if error.reason == "KEY_VALUES_MISMATCH":
        return e.SettingsError(f"tls.key: {key} is not the key of {certificate}.")
    return e.SettingsError(
        f"tls.certificate and tls.key: {certificate} and {key} are not a certificate and its key "
        "in PEM form."
    )


logger = logging.getLogger("folkmoot.transports")


def make_room(max_connections: int) -> None:
    """Raise this process's own limit as far as the connections need and the system allows."""
    wanted = OPEN_FACTOR * (max_connections + 1) + SPARE_DESCRIPTORS
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return
    allowed = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    except (OSError, ValueError):
        allowed = soft
    if allowed < wanted:
        logger.warning(
            "the system allows fewer open files than http.max_connections needs",
            extra={"allowed": allowed, "needed": wanted},
        )
