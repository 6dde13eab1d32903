"""The nouns: what a server offers and under which names, and the port that reaches it."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any, Literal, Protocol, TypeAlias

from msgspec import Struct, field

from folkmoot.core.message import Notification, Response
from folkmoot.core.session import Era
from folkmoot.settings.backends import BackendSpec

What: TypeAlias = Literal["tools", "resources", "templates", "prompts"]
Definition: TypeAlias = dict[str, Any]
"""A tool, resource, template or prompt, as a server lists it."""


class Inventory(Struct, frozen=True, kw_only=True):
    """All lists of one server, all pages, unchanged."""

    tools: tuple[Definition, ...] = ()
    resources: tuple[Definition, ...] = ()
    templates: tuple[Definition, ...] = ()
    prompts: tuple[Definition, ...] = ()
    capabilities: dict[str, Any] = field(default_factory=dict)
    server: dict[str, Any] = field(default_factory=dict)
    """Its `serverInfo`."""
    instructions: str = ""
    stateless: bool = False
    """Whether it speaks the stateless era."""
    faults: tuple[str, ...] = ()
    """What could not be listed or was left out, a sentence each."""
    partial: frozenset[What] = frozenset()
    """The lists that were not read to their end."""
    findings: dict[What, dict[str, tuple[str, ...]]] = field(default_factory=dict)
    """What the descriptions of some entries hold that they should not, by their own names."""


class ToolEntry(Struct, frozen=True, kw_only=True, eq=False):
    """A server's tool under its name here."""

    canonical: str
    """`ns:tool`"""
    namespace: str
    own: str
    definition: Definition
    """As shown, but for `name`, which each style spells its own way."""
    schema: dict[str, Any]
    """The pinned `inputSchema`."""
    repeatable: bool = False
    """Annotated as read-only or idempotent."""
    mirrored: bool = False
    """Whether its schema wants some arguments repeated in `Mcp-Param-…` headers."""
    quarantined: Literal["", "changed", "new"] = ""
    """Why it is held back until it is accepted: not listed, and calls are refused."""
    task_support: Literal["", "optional", "required"] = ""
    """Whether it may, or must, be called as a task."""


class PromptEntry(Struct, frozen=True, kw_only=True, eq=False):
    """A server's prompt under its name here."""

    canonical: str
    namespace: str
    own: str
    definition: Definition
    quarantined: Literal["", "changed", "new"] = ""
    """Why it is held back, as a tool is."""


class ResourceEntry(Struct, frozen=True, kw_only=True, eq=False):
    """A resource or a template of a server's: `uri` is its canonical URI, or the template."""

    uri: str
    namespace: str
    own: str
    definition: Definition


Tell: TypeAlias = Callable[[Notification], None]
"""Takes what a server says while a call of someone's is open; never waits."""


class BackendState(Enum):
    """The state of a server."""

    STARTING = "starting"
    UP = "up"
    DOWN = "down"
    """Not reached; tried again after a while."""
    BROKEN = "broken"
    """Failed so often that calls are refused at once until it is reached again."""
    SIGN_IN = "sign_in"
    """Nobody is signed in to it whose connection could tell how it is."""
    OFF = "off"
    """Switched off in the settings."""


class UpstreamRequest(Struct, frozen=True, kw_only=True):
    """One request to a server, with the server's own names and URIs, as the stateless era has it.

    The answer may be a wish for input: then the same is wanted again, with `inputResponses` and
    `requestState` among the params.
    """

    method: str
    params: dict[str, Any]
    """Without `_meta` of the protocol's own; other members of a caller's `_meta` may be in it."""
    person: str = ""
    """The account id of whoever asks; empty for the hub itself."""
    capabilities: dict[str, Any] = field(default_factory=dict)
    """What the caller's client can be asked for: `elicitation`, `sampling`."""
    log_level: str | None = None
    """From which level on the caller wants log messages; None for none."""
    tell: Tell | None = None
    """Told of progress and log messages of this call alone."""
    progress: bool = False
    """Whether progress is wanted; what is told has no token of use, the caller's is put in."""
    repeatable: bool = False
    """Whether doing it twice does no harm, so that it may be sent again after a broken link."""
    seconds: float | None = None
    """How long the answer may take; None for what the backend's settings say."""
    era: Era | None = None
    """The era that the caller's client speaks, in which a server of both is asked; None for any."""
    tasks: bool = False
    """Whether it speaks of tasks as that era does, so that no link of the other will do."""


class Backend(Protocol):
    """One server behind the hub, however it is reached."""

    @property
    def spec(self) -> BackendSpec:
        """The backend's settings."""

    @property
    def state(self) -> BackendState:
        """The present state of the backend."""

    @property
    def why(self) -> str:
        """Why it is not up, in one sentence without secrets; empty while it is."""

    async def request(self, wanted: UpstreamRequest) -> Response:
        """The server's answer, a result or an error of its own.

        Raises a `GatewayError` where there is none, and `ConsentNeeded` where the person has to
        sign in to the server first. Whoever cancels the task cancels the request
        at the server too.
        """

    async def watch(
        self, uri: str, changed: Callable[[], None], person: str = ""
    ) -> Callable[[], None]:
        """Have `changed` called when a resource of the server's changes, until the answer is.

        `person` is for whom, where each has a connection of their own.
        Outlives reconnections. Raises a `GatewayError` if the server tells of no changes.
        """

    async def watch_task(
        self, own: str, changed: Callable[[], None], person: str
    ) -> Callable[[], None]:
        """The same for a task of the stateless era, by the server's own id of it.

        Those of the handshake era are told of unasked.
        """
