"""The types of settings beyond Python's: hosts, URLs, paths, networks, and how each is checked."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

from msgspec import Meta, Struct

from folkmoot.settings.limits import MAX_ARGUMENT, MAX_TOOL_PATTERN

HOST = re.compile(r"[A-Za-z0-9_.:%-]{1,253}")
SCOPE = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]{1,256}")
HOST_PATTERN = re.compile(r"(\*\.)?[A-Za-z0-9_.-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\]")
_PLACE = r"(?:\[[0-9A-Fa-f:.]+\]|[^\s:@/?#,\[\]]*)(?::[0-9]{1,5})?"
DATABASE = re.compile(
    r"(?P<scheme>postgres(?:ql)?://)(?:(?P<user>[^\s:@/?#]*)(?::[^\s@/?#]*)?(?=@))?"
    rf"(?P<place>@?{_PLACE}(?:,{_PLACE})*(?:/[^\s@?#]*)?)(?:\?[^\s@#]*)?"
)
"""The address of a PostgreSQL database; whatever else a password contains is written as `%40`."""
_SERVER = r"(?:[^\s@/?#,]*@)?(?:\[[0-9A-Fa-f:.]+\]|[^\s:@/?#,\[\]]+)(?::[0-9]{1,5})?"
BUS = re.compile(rf"(?P<scheme>(?:nats|tls)://){_SERVER}(?:,(?P=scheme)?{_SERVER})*/?")
"""The addresses of NATS servers; a password is written as that of a database is."""
BUS_LOGIN = re.compile(r"(?<=[/,])[^/,@]*@")
PORT = re.compile(r"(?<=[^/]):([0-9]+)(?=[,/]|$)")
CONTROL = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff]"
)
"""What a terminal obeys, what turns text around, and what is no character."""


def text(value: str) -> bool:
    """Text without control characters."""
    return not CONTROL.search(value)


def host(value: str) -> bool:
    """A host name or an IP address."""
    return HOST.fullmatch(value) is not None


def is_loopback(value: str) -> bool:
    """Whether a host stands for this machine alone."""
    if value.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(value).is_loopback
    except ValueError:
        return False


def host_pattern(value: str) -> bool:
    """Host names without a port, such as `hub.example.org` or `*.example.org`."""
    return HOST_PATTERN.fullmatch(value) is not None


def origin(value: str) -> bool:
    """Origins of web pages, such as `https://app.example.org`."""
    if not http_url(value) or not value:
        return False
    url = urlsplit(value)
    return value == f"{url.scheme}://{url.netloc}" == value.lower()


def network(value: str) -> bool:
    """IP addresses or networks, such as `10.0.0.7` or `10.0.0.0/8`."""
    try:
        ipaddress.ip_network(value)
    except ValueError:
        return False
    return True


def path(value: str) -> bool:
    """The path of a folder."""
    if not value or not text(value):
        return False
    try:
        Path(value).expanduser()
    except RuntimeError:
        return False
    return True


def file_path(value: str) -> bool:
    """Empty, or the path of a file."""
    return not value or path(value)


def file_paths(value: str) -> bool:
    """Paths of files."""
    return path(value)


def folder_path(value: str) -> bool:
    """Empty, or the path of a folder."""
    return not value or path(value)


def argument(value: str) -> bool:
    """Pieces of text without control characters."""
    return len(value) <= MAX_ARGUMENT and text(value)


def tool_pattern(value: str) -> bool:
    """Names of tools, in which `*` may stand for anything."""
    # A deny, as rights know it, would be taken for a name that no tool has.
    return (
        0 < len(value) <= MAX_TOOL_PATTERN and text(value) and " " not in value and value[0] != "!"
    )


def capability(_: str) -> bool:
    """Capabilities as in `[grants]`, which allow; patterns, or tables of them and a payload."""
    # Each is compiled where the names of the backends are known.
    return True


def holder(value: str) -> bool:
    """Handles and @GROUPs."""
    from folkmoot.names.grammar import parse_handle

    return parse_handle(value.removeprefix("@")) is not None


def handle(value: str) -> bool:
    """A handle; empty is nobody's."""
    from folkmoot.names.grammar import parse_handle

    return not value or parse_handle(value) is not None


def namespace(value: str) -> bool:
    """A namespace: a lower-case letter, and 2 to 19 lower-case letters and digits behind it."""
    # The grammar takes a while to import, and most who look at settings write no namespace.
    from folkmoot.core import errors as e
    from folkmoot.names import validate_namespace

    try:
        validate_namespace(value)
    except e.InvalidName:
        return False
    return True


def server_url(value: str) -> bool:
    """An http:// or https:// URL without user, password or fragment."""
    bare, _, query = value.partition("?")
    return bool(bare) and http_url(bare) and text(query) and not set(query) & {" ", "#"}


def issuer(value: str) -> bool:
    """Names of authorization servers, such as `https://sign-in.example.org`."""
    local = value.startswith("http://") and is_loopback(urlsplit(value).hostname or "")
    return http_url(value) and (value.startswith("https://") or local)


def scope_word(value: str) -> bool:
    """Scopes, such as `files:read`."""
    return SCOPE.fullmatch(value) is not None


def database_url(value: str) -> bool:
    """Empty, or an address such as postgresql://hub@db.example.org/folkmoot."""
    return not value or (DATABASE.fullmatch(value) is not None and has_ports(value))


def bus_url(value: str) -> bool:
    """Empty, or addresses such as nats://nats1:4222,nats2:4222, or with tls://."""
    return not value or (BUS.fullmatch(value) is not None and has_ports(value))


def has_ports(url: str) -> bool:
    """Whether every port in a checked URL is one."""
    return all(0 < int(port) <= 65_535 for port in PORT.findall(without_password(url)))


def without_password(url: str) -> str:
    """The URL of a database or bus for display: without password, token and parameters."""
    if BUS.fullmatch(url):
        return BUS_LOGIN.sub("", url)
    found = DATABASE.fullmatch(url)
    if found is None:
        return f"{url.partition(':')[0]}://…" if "://" in url else "…"
    return f"{found['scheme']}{found['user'] or ''}{found['place']}"


def http_url(value: str) -> bool:
    """Empty, or an http:// or https:// URL without user, query or fragment."""
    if not value:
        return True
    if not value.isprintable() or " " in value or "?" in value or "#" in value:
        return False
    try:
        url = urlsplit(value)
        port = url.port
    except ValueError:
        return False
    return (
        url.scheme in {"http", "https"}
        and bool(url.hostname)
        and port != 0
        and "@" not in url.netloc
    )


def node_url(value: str) -> bool:
    """Empty, or an http:// or https:// URL without user, path, query or fragment."""
    return http_url(value) and urlsplit(value).path in {"", "/"}


Host = Annotated[str, Meta(extra={"shape": host})]
FolderPath = Annotated[str, Meta(extra={"shape": path})]
OptionalFolder = Annotated[str, Meta(extra={"shape": folder_path})]
FilePath = Annotated[str, Meta(extra={"shape": file_path})]
FilePaths = Annotated[str, Meta(extra={"shape": file_paths})]
HttpUrl = Annotated[str, Meta(extra={"shape": http_url})]
NodeUrl = Annotated[str, Meta(extra={"shape": node_url})]
DatabaseUrl = Annotated[str, Meta(extra={"shape": database_url})]
BusUrl = Annotated[str, Meta(extra={"shape": bus_url})]
HostPattern = Annotated[str, Meta(extra={"shape": host_pattern})]
Origin = Annotated[str, Meta(extra={"shape": origin})]
Network = Annotated[str, Meta(extra={"shape": network})]
Argument = Annotated[str, Meta(extra={"shape": argument})]
NamespaceName = Annotated[str, Meta(extra={"shape": namespace})]
ServerUrl = Annotated[str, Meta(extra={"shape": server_url})]
Issuer = Annotated[str, Meta(extra={"shape": issuer})]
ScopeWord = Annotated[str, Meta(extra={"shape": scope_word})]
Count = Annotated[int, Meta(ge=1, le=1_000_000)]
ToolPattern = Annotated[str, Meta(extra={"shape": tool_pattern})]
CapabilityText = Annotated[str | dict[str, Any], Meta(extra={"shape": capability})]
Holder = Annotated[str, Meta(extra={"shape": holder})]
OptionalHandle = Annotated[str, Meta(extra={"shape": handle})]


WITH_PASSWORDS = frozenset({database_url, bus_url})
"""Shapes of settings that may have a password in them."""
MASK = "***"
SHOWN: dict[str, Callable[[str], str]] = {
    "master_key": lambda _: MASK,
    "token": lambda _: MASK,
    "client_secret": lambda _: MASK,
    "url": without_password,
}
"""How settings are shown that are secret, or have something secret in them."""


class SettingsTable(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One table of the settings file."""

    def __repr__(self) -> str:
        # The settings may end up in a log or a traceback; their secrets must not.
        shown = ", ".join(f"{name}={value!r}" for name, value in self.__rich_repr__())
        return f"{type(self).__name__}({shown})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        values = ((name, getattr(self, name)) for name in self.__struct_fields__)
        return [
            (name, SHOWN[name](value) if name in SHOWN and value else value)
            for name, value in values
        ]
