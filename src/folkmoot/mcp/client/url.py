"""Addresses on HTTP, in the form in which they are sent."""

from __future__ import annotations

import re
from typing import Final, NamedTuple, Self
from urllib.parse import quote, unquote, urljoin, urlsplit

PORTS: Final = {"http": 80, "https": 443}
SAFE: Final = "/:@!$&'()*+,;=-._~%"
"""What may stand in a path as it is; an encoded character stays one."""
HOST: Final = re.compile(r"[a-z0-9._-]+|[0-9a-f:.]*:[0-9a-f:.]*(?:%[a-z0-9._-]+)?")


class HttpUrl(NamedTuple):
    """An address: its host in ASCII, its path and query encoded, and no fragment."""

    scheme: str
    host: str
    port: int
    path: str = ""
    query: str = ""
    login: str | None = None
    """Name and password with a colon between them, which are never shown."""

    @classmethod
    def parse(cls, text: str) -> Self:
        """An address that is whole; `ValueError` for anything else."""
        parts = urlsplit(text)
        host = parts.hostname or ""
        if not host.isascii():
            host = host.encode("idna").decode()
        port = parts.port or PORTS.get(parts.scheme, 0)
        if parts.scheme not in PORTS or parts.port == 0 or HOST.fullmatch(host) is None:
            raise ValueError("not an address on HTTP")
        login = None
        if parts.username is not None:
            login = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        path, query = quote(parts.path, SAFE), quote(parts.query, f"{SAFE}?")
        return cls(parts.scheme, host, port, path, query, login)

    def join(self, reference: str) -> Self:
        """Where a reference found at this address leads; `ValueError` if not to HTTP."""
        return self.parse(urljoin(str(self), reference))._replace(login=None)

    @property
    def authority(self) -> str:
        """The host, and its port if it is not the usual one."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def target(self) -> str:
        """What is asked for at the host."""
        return f"{self.path or '/'}{'?' if self.query else ''}{self.query}"

    @property
    def origin(self) -> Self:
        """The scheme, host and port alone."""
        return self._replace(path="", query="", login=None)

    def __str__(self) -> str:
        asked = self.target if self.path or self.query else ""
        return f"{self.scheme}://{self.authority}{asked}"

    def __repr__(self) -> str:
        return f"<HttpUrl {self}>"
