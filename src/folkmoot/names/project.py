"""The nouns: the names that a server offers, and the project that they belong to."""

from __future__ import annotations

from pathlib import Path
from typing import Final, Literal, NamedTuple, TypeAlias

from msgspec import Struct, field

Kind: TypeAlias = Literal["tool", "resource", "template", "prompt"]
NAMED: Final[tuple[Kind, ...]] = ("tool", "prompt")
"""What is called by a name, `ns:tool`, and not by a URI."""


class DeclaredDeprecation(NamedTuple):
    """That a name is going away: since which release, in which it is gone, and what to use."""

    since: str | None = None
    removed_in: str | None = None
    use: str | None = None


class Declared(Struct, frozen=True, kw_only=True):
    """One name a server offers."""

    kind: Kind
    name: str
    """As it is listed: `ns:tool`, or a URI, or a template with `{…}` in it."""
    description: str = ""
    """Its first line."""
    mime_type: str = ""
    deprecation: DeclaredDeprecation | None = None
    line: int | None = None
    """Where it stands in the file that lists it, from 1."""

    @property
    def namespace(self) -> str | None:
        """What stands before `:` or `://`; None where nothing does."""
        head, found, _ = self.name.partition(self.separator)
        return head if found else None

    @property
    def own(self) -> str:
        """What stands behind `:` or `://`; the whole name where neither is there."""
        head, found, tail = self.name.partition(self.separator)
        return tail if found else head

    @property
    def separator(self) -> str:
        """What stands between the namespace and the rest."""
        return ":" if self.kind in NAMED else "://"


class Project(Struct, kw_only=True):
    """A server's names, with what its project says of them."""

    root: Path = Path()
    name: str = ""
    """The name of the distribution, or of the server."""
    namespace: str | None = None
    """As configured or, where the names agree on one, as they say it."""
    version: str | None = None
    declared: list[Declared] = field(default_factory=list)
    path: str | None = None
    """The file that the names were read from; None if a running server listed them."""
    namespaces_file: str = "NAMESPACES.md"
    """The register, relative to the root."""
    compared: bool = False
    """Whether the register must have the same names."""
    register: str | None = None
    """The text of that file; None if there is none."""
    client_prefix: str = "mcp__{namespace}__"
    """What a client puts before a tool's name."""
    hub: bool = False
    """Whether the server is a hub, whose names are those of many servers and its own."""
