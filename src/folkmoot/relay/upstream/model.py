"""What is told of servers behind the hub: how they are, what changed, and what a test found."""

from __future__ import annotations

from msgspec import Struct, field


class BackendView(Struct, frozen=True, kw_only=True):
    """The state of one server, for people and for measurements; nothing in it is secret."""

    namespace: str
    name: str
    """The key of its table in the settings."""
    transport: str
    """`stdio`, `http` or `sse`."""
    target: str
    """Its program, or its address without what may be secret in it."""
    state: str
    """A value of `BackendState`."""
    why: str = ""
    """Why it is not up; empty while it is."""
    since: float = 0.0
    """When it came into this state, in seconds since the epoch."""
    server: str = ""
    """What it calls itself."""
    version: str = ""
    era: str = ""
    """`handshake` or `stateless`; empty until it was reached."""
    tools: int = 0
    resources: int = 0
    templates: int = 0
    prompts: int = 0
    faults: tuple[str, ...] = ()
    """What its lists left to be desired, a sentence each."""
    advice: str = ""
    """What the operator could set to have it work better."""
    held: tuple[str, ...] = ()
    """The tools that are held back until an operator accepts them, by canonical name."""
    findings: dict[str, dict[str, tuple[str, ...]]] = field(default_factory=dict)
    """What descriptions hold that they should not, by list and canonical name or URI."""
    connections: int = 0
    """Links that are open."""
    in_flight: int = 0
    calls: int = 0
    """Requests it was given, those of the hub itself included."""
    errors: int = 0
    """How many of them got no answer."""
    restarts: int = 0
    """How often a link that was open was lost."""
    dropped: int = 0
    """Messages of its that nobody waited for."""
    last_error: str = ""
    median_ms: float | None = None
    """Of the latest answers; None until there was one."""
    outcomes: dict[str, int] = field(default_factory=dict)
    """Outcomes of its requests: `ok`, `tool_error`, `error`, `invalid`, or why there was none."""
    buckets: tuple[int, ...] = ()
    """Answers by how long they took, in the buckets of `folkmoot_backend_call_seconds`."""
    seconds: float = 0.0
    """How long all answers took together."""
    node: str = ""
    """The address of the node that links it, if one does for all."""
    retry_after: float | None = None
    """In how many seconds it will be tried again, while it is not up."""


class AppliedChanges(Struct, frozen=True, kw_only=True):
    """What became of the servers when the settings were applied, by namespace."""

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.changed)


class ReloadReport(Struct, frozen=True, kw_only=True):
    """What reading the settings again came to; backends are told by their namespaces."""

    file: str | None = None
    """The settings file; None where there is none."""
    backends: int = 0
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    rights: bool = False
    """Whether groups, grants or rules of asks changed."""
    followed: tuple[str, ...] = ()
    """Other settings that changed and count from now on."""
    restart: tuple[str, ...] = ()
    """Other settings that changed, which count from the next start on."""
    notes: tuple[str, ...] = ()

    @property
    def different(self) -> bool:
        """Whether anything was applied."""
        return bool(self.added or self.removed or self.changed or self.rights)
