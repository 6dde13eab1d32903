"""The tables of a settings file that have as many keys as their writer wants: the servers behind
the hub, groups of people, what people may do, and what they are asked before.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from msgspec import Meta, Struct, field

from folkmoot.core import errors as e
from folkmoot.settings.types import (
    Argument,
    CapabilityText,
    FolderPath,
    Holder,
    Issuer,
    NamespaceName,
    OptionalFolder,
    OptionalHandle,
    ScopeWord,
    ServerUrl,
    ToolPattern,
)

Transport: TypeAlias = Literal["auto", "http", "sse"]


class SecretReference(Struct, frozen=True, forbid_unknown_fields=True):
    """A value that is not written in the file: the name of a variable, or of a file, has it."""

    env: str = ""
    file: str = ""
    prefix: str = ""
    """What stands before it in the whole value, such as `Bearer `."""
    suffix: str = ""

    def around(self, value: str) -> str:
        """The whole value, once what it refers to is known."""
        return f"{self.prefix}{value}{self.suffix}"

    def __repr__(self) -> str:
        return f"<secret in {self.env or self.file}>"


Value: TypeAlias = str | SecretReference


class BackendSpec(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One MCP server behind the hub: `command` or `url` says where it is."""

    name: str
    """The key of its table."""
    namespace: NamespaceName
    """The prefix of its tools' names. Defaults to the key of the table; required if that is not a
    valid namespace."""
    command: Annotated[tuple[Argument, ...], Meta(max_length=256)] = ()
    """The program to start and its arguments; the hub talks to it on standard input and output."""
    url: ServerUrl = ""
    """The address of a running server. Put credentials into `headers`, by reference."""
    cwd: OptionalFolder = ""
    """The folder the command is started in. A relative path is taken from the settings file; empty
    is the hub's own."""
    user: Annotated[str, Meta(max_length=64)] = ""
    """The user that the command runs as; needs a hub that runs as root. Empty is the hub's own, who
    can read the hub's key and database."""
    sandbox: Literal["none", "bwrap"] = "none"
    """Whether the command runs in a sandbox of bubblewrap: it sees the system read-only, a
    temporary folder of its own, and the folders named here; never the hub's data and settings."""
    folders: Annotated[tuple[FolderPath, ...], Meta(max_length=64)] = ()
    """Folders that the sandbox shows, read-only."""
    writable_folders: Annotated[tuple[FolderPath, ...], Meta(max_length=64)] = ()
    """Folders that the sandbox shows and that it may write to."""
    network: bool = True
    """Whether the sandbox has the network of the machine, or none."""
    env: Annotated[dict[str, Value], Meta(max_length=256)] = field(default_factory=dict)
    """Environment variables of the command, in addition to a few harmless ones of the hub."""
    headers: Annotated[dict[str, Value], Meta(max_length=64)] = field(default_factory=dict)
    """Headers that go with every request to `url`."""
    auth: Literal["none", "oauth"] = "none"
    """How the server at `url` knows who calls. With `oauth` each person signs in to it themselves
    (OAuth 2.1), and their calls go over connections of their own, with their own token."""
    client_id: Annotated[str, Meta(max_length=2048)] = ""
    """The id of the hub at the server's sign-in, if it was agreed on. Otherwise the hub registers
    itself."""
    client_secret: Value = ""
    """The secret that belongs to `client_id`, if there is one."""
    scopes: Annotated[tuple[ScopeWord, ...], Meta(max_length=64)] = ()
    """What people are asked to consent to. Empty asks for what the server says it needs."""
    trusted_issuers: Annotated[tuple[Issuer, ...], Meta(max_length=16)] = ()
    """The authorization servers that people can be sent to, by their names. Empty trusts the one
    that the server names."""
    shared: bool = False
    """Whether one consent, which an operator gives, is used for everyone."""
    transport: Transport = "auto"
    """The transport of the server at `url`: `http` is Streamable HTTP, `sse` the older HTTP+SSE;
    `auto` detects it."""
    era: Literal["auto", "handshake", "stateless"] = "auto"
    """The era of MCP that the server is spoken to in. `auto` finds out which it knows; one that
    knows both is spoken to in the era of each caller's client, which for a `command` takes a second
    process."""
    tools: Annotated[tuple[ToolPattern, ...], Meta(max_length=1000)] = ()
    """The tools that are shown, by their names here or at the server; `*` matches any characters.
    Empty shows all."""
    call_seconds: Annotated[float, Meta(ge=0.1, le=86_400)] = 60.0
    """How long the answer to a call may take."""
    connect_seconds: Annotated[float, Meta(ge=0.1, le=600)] = 15.0
    """How long the server may take to start or connect, and to complete the handshake."""
    connections: Annotated[int, Meta(ge=1, le=64)] = 1
    """How many processes or sessions share the calls; more than one helps with a server that
    answers one call at a time."""
    most_calls: Annotated[int, Meta(ge=1, le=4096)] = 64
    """Calls in flight on all connections; further ones are refused with `backend_busy`. One person
    may use at most seven eighths of them."""
    per_user: bool = False
    """Whether each person has their own connection (and process, for a command). Needed for servers
    that keep state per user, and for servers that ask the client questions while several people use
    them."""
    single: bool = False
    """Whether only one node of a hub connects to it, and the others use it through that node. For
    servers that keep state in memory, or must run once. No difference on a hub of one node."""
    everyone: bool = False
    """Whether every account may use all of it, without a grant."""
    trusted: bool = False
    """Whether changed and new tools are listed without review; otherwise they are held back until
    an operator accepts them."""
    new_tools: Literal["default", "hold", "list"] = "default"
    """What happens to tools that it adds later: held back until an operator accepts them, or
    listed; `default` follows `gateway.new_tools`."""
    lenient: bool = False
    """Whether the server alone checks the arguments of calls. Otherwise the hub refuses arguments
    that do not match a tool's schema, also those that the server would convert, such as `"1"` for
    `1`."""
    enabled: bool = True
    """Whether it is used; false keeps the table but disables the backend."""

    def __repr__(self) -> str:
        return f"<BackendSpec {self.namespace}>"

    def owner(self, person: str) -> str:
        """Whose connections the calls of a person go over; empty for those that all share."""
        if self.auth == "oauth":
            if not person:
                raise e.ConsentNeeded(self.namespace)
            return "" if self.shared else person
        return person if self.per_user else ""


class AskRule(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One rule about calls of tools of servers behind the hub, by people who have the right to
    call them. Of the rules that fit a call, the first in the file counts.
    """

    name: str
    """The key of its table."""
    what: Annotated[tuple[CapabilityText, ...], Meta(min_length=1, max_length=100)]
    """The calls that it is about, written as in `[grants]`: patterns such as
    `mcp.request.tools/call:shell:*`, or `{ kind = …, payload = … }` for some arguments alone."""
    who: Annotated[tuple[Holder, ...], Meta(max_length=1000)] = ()
    """Whose calls: handles and @groups. Empty is everyone's."""
    callers: Literal["all", "people", "agents"] = "all"
    """Whether it is for accounts of people alone, or of agents alone."""
    more_than: Annotated[int, Meta(ge=0, le=1_000_000)] = 0
    """How many such calls an account can make in `seconds` before the rule holds. Each node of a
    hub counts its own."""
    seconds: Annotated[int, Meta(ge=1, le=86_400)] = 60
    """The time in which `more_than` calls are counted."""
    verdict: Literal["ask", "allow", "deny"] = "ask"
    """What becomes of such a call: a person is asked first, it is made at once, or it is refused.
    To allow is for exceptions from rules that follow."""
    to: OptionalHandle = ""
    """The handle of who is asked. Empty is the person whose account calls, who then decides in a
    browser, showing that they are there."""
    person: bool = False
    """Whether only a person in a browser who shows that they are there can decide, with a passkey
    or a token given once more, and no program of theirs."""
    wait_seconds: Annotated[float, Meta(ge=0, le=600)] = 30.0
    """How long the call waits for the decision before it answers that it was asked. Some clients
    give a call up after 60 seconds."""
    expires_seconds: Annotated[int, Meta(ge=10, le=604_800)] = 3_600
    """How long the person has to decide."""
    reason: Annotated[str, Meta(max_length=500)] = ""
    """Why the rule is there. Who decides sees it, and so does the caller."""


class GatewaySpec(Struct, frozen=True, kw_only=True):
    """All of it: backends by namespace, groups of handles, patterns by handle or group, and the
    rules that ask before calls.
    """

    backends: dict[str, BackendSpec] = field(default_factory=dict)
    groups: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Handles by the name of their group."""
    grants: dict[str, tuple[Any, ...]] = field(default_factory=dict)
    """Capabilities by handle, or by `@GROUP` for everyone in a group."""
    asks: tuple[AskRule, ...] = ()
    """In the order of the file."""
