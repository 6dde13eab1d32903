"""The nouns: the names a project declares, and the findings about them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from msgspec import Struct, field

if TYPE_CHECKING:
    from folkmoot.names.lint.project import FileText


Kind: TypeAlias = Literal["tool", "resource", "template", "prompt"]
Severity: TypeAlias = Literal["error", "warning", "hint"]
How: TypeAlias = Literal["literal", "function", "helper", "constant", "formatted", "listed"]


class SourcePlace(Struct, frozen=True, order=True):
    """Where something stands: lines and columns are those of characters, and begin at 1."""

    path: str
    """Relative to the project's root, with `/`; or the address of a live server."""
    line: int = 1
    column: int = 1
    end_line: int = 1
    end_column: int = 1


class TextSpan(Struct, frozen=True, order=True):
    """Characters of a file's text, from the first to the one behind the last.

    The text is the file's, decoded, without a byte order mark and with its own line ends.
    """

    start: int
    end: int


class Edit(Struct, frozen=True):
    """Other text for a span of a file; `path` is as in `Place`."""

    path: str
    span: TextSpan
    text: str


class NameSource(Struct, frozen=True, kw_only=True):
    """How a name is written in the source, for whoever wants to write another."""

    how: How
    """`helper` is a call such as `make_tool_name("x")`, `formatted` an f-string or a sum."""
    span: TextSpan | None = None
    """The text to replace; None if nobody knows."""
    text: str = ""
    """What stands there: the whole name, or the part that is the tool's own (`create_task`)."""
    quoted: bool = True
    """Whether the span is a literal with its quotes; otherwise it is the bare text."""
    path: str = ""
    """The file of the span, which is another than that of the place for some constants."""
    insert: Edit | None = None
    """For a name that is the function's: what gives it another one, with `{}` for the name."""


class DeclaredDeprecation(Struct, frozen=True, kw_only=True):
    """That a name is going away: since which release, in which it is gone, and what to use."""

    since: str | None = None
    removed_in: str | None = None
    use: str | None = None
    place: SourcePlace | None = None


class Declared(Struct, frozen=True, kw_only=True):
    """One name a server offers."""

    kind: Kind
    name: str
    """As it is registered: `ns:tool`, or a URI, or a template with `{…}` in it."""
    place: SourcePlace | None = None
    written: NameSource = NameSource(how="listed")
    function: str = ""
    """The function behind it, where there is one."""
    description: str = ""
    """Its first line."""
    mime_type: str = ""
    deprecation: DeclaredDeprecation | None = None
    version: str = ""
    """Of the component, for servers that offer several under one name."""
    server: str = ""
    """Which server of the project registers it; names of different servers do not collide."""
    branches: tuple[tuple[int, int], ...] = ()
    """Each `if`, `match` or `try` around it by its line, with which of its branches this is."""
    lines: tuple[int, int] | None = None
    """The first and the last line of what registers it."""

    @property
    def namespace(self) -> str | None:
        """What stands before `:` or `://`; None where nothing does."""
        separator = ":" if self.kind in {"tool", "prompt"} else "://"
        head, found, _ = self.name.partition(separator)
        return head if found else None

    @property
    def own(self) -> str:
        """What stands behind `:` or `://`; the whole name where neither is there."""
        separator = ":" if self.kind in {"tool", "prompt"} else "://"
        head, found, tail = self.name.partition(separator)
        return tail if found else head


class Constant(Struct, frozen=True, kw_only=True):
    """The namespace constant of a project's file: `NAMESPACE = "myproject"`."""

    name: str
    value: str
    place: SourcePlace
    span: TextSpan
    """The literal with its quotes."""


class LintFinding(Struct, frozen=True, kw_only=True):
    """One thing found, by which rule, where, and how it can be mended without judgement."""

    rule: str
    severity: Severity
    message: str
    place: SourcePlace | None = None
    name: str = ""
    """The name it is about."""
    lines: tuple[int, int] | None = None
    """Lines on which a comment can say that it is to be ignored, besides those of the place."""
    fix: Edit | None = None


class LintNote(Struct, frozen=True):
    """Something that cannot be known without running the code; no fault."""

    message: str
    place: SourcePlace


class Project(Struct, kw_only=True):
    """A server's names, with the files and configuration around them."""

    root: Path
    name: str = ""
    """The name of the distribution, or of the live server."""
    namespace: str | None = None
    """As configured or, where the sources agree on one, as they say it."""
    namespace_said: bool = False
    """Whether something says that it is the namespace, so that it is not just used."""
    version: str | None = None
    declared: list[Declared] = field(default_factory=list)
    constants: list[Constant] = field(default_factory=list)
    notes: list[LintNote] = field(default_factory=list)
    unreadable: list[LintFinding] = field(default_factory=list)
    """What could not be read or parsed, a finding each."""
    namespaces_file: str = "NAMESPACES.md"
    """Relative to the root."""
    namespaces_md: str | None = None
    """The text of that file; None if there is none."""
    client_prefix: str = "mcp__{namespace}__"
    """What a client puts before a tool's name."""
    files: list[str] = field(default_factory=list)
    """The sources that were read, as in `Place`."""
    texts: dict[str, FileText] = field(default_factory=dict)
    """Their texts."""
    partial: bool = False
    """Whether only single files were read, so that more names than these may be declared."""
    live: bool = False
    """Whether a running server told it, so that there are no files to look at."""
    hub: bool = False
    """Whether that server is a hub, whose names are those of many servers and its own."""
