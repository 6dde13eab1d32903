"""The hub itself: its state, its database check, its settings and its audit log.

Metrics and readiness stay where monitoring expects them: at `/metrics` and `/health/ready`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final

from msgspec import Meta, Struct
from msgspec.structs import asdict

from folkmoot.core import errors as e
from folkmoot.core.ports import ListedNode
from folkmoot.operations.declare import OPERATED, Topic, get, post
from folkmoot.operations.limits import MAX_AUDIT_LINES, MAX_OPERATOR_PAGE
from folkmoot.operations.row import Absent, After, AuditSpec, describe
from folkmoot.rooms.queries import RoomRow, rooms_overview

if TYPE_CHECKING:
    from folkmoot.audit import Entry
    from folkmoot.core.ports import Tx
    from folkmoot.operations.call import Call

OF_CREDENTIALS: Final = ("token.", "browser.", "app.", "passkey.")
"""How actions begin that are about a credential, by its id."""
NO_NODES: Final = "The hub has one node. Stop it instead."
operator = Topic(scope="operate", who="operator", tool=OPERATED, needs=("store",))


class Use(Struct, frozen=True):
    """How much of a quota of the hub is used; a limit of 0 is none."""

    used: int
    limit: int


class FreeDisk(Struct, frozen=True):
    """How many bytes are free where the hub stores, and how many must stay free."""

    free: int
    least: int


class HubStatus(Struct, frozen=True):
    """Who runs here, since when, and how much of each quota is used."""

    pid: int
    version: str
    uptime: Annotated[float, Meta(ge=0)]
    """Seconds since the start."""
    url: str
    """Where it listens; empty for a proxy."""
    quotas: dict[str, Use] = {}
    disk: FreeDisk | None = None


@operator.reads(
    "folkmoot/status",
    get("/v1/status", "getStatus", "Show the hub's status"),
    needs=("status",),
    commands=("status",),
)
async def status(call: Call) -> HubStatus:
    """Show who runs here, since when, and how much of each quota is used."""
    return call.services.status()


class Checked(Struct, frozen=True):
    """What is wrong with the database."""

    whole: bool
    faults: list[str]


@operator.reads(
    "folkmoot/check",
    post("/v1/check", "checkDatabase", "Check the database"),
    commands=Absent("'folkmoot doctor' reads the database itself, also of a stopped hub."),
)
async def check(call: Call) -> Checked:
    """Read the whole database and tell its faults. A large one takes a while."""
    faults = await call.services.store.check()
    return Checked(not faults, faults)


class ShownSetting(Struct, frozen=True):
    """A setting as it is in effect, and where it comes from; secrets are masked."""

    value: Any
    origin: str


class ShownSettings(Struct, frozen=True):
    """All settings by their paths."""

    file: str | None
    settings: dict[str, ShownSetting]


@operator.reads(
    "folkmoot/settings",
    get("/v1/settings", "getSettings", "Show the settings"),
    needs=("settings",),
    commands=Absent("'folkmoot config show' reads the files and the environment itself."),
)
async def settings(call: Call) -> ShownSettings:
    """Show every setting that is in effect, and where it comes from. Secrets are masked; references
    to them are shown.
    """
    assert call.services.settings is not None  # noqa: S101 - see `needs`
    return call.services.settings()


class RoomOfHub(RoomRow, frozen=True, kw_only=True):
    """A room as the operator sees it."""

    present: int = 0
    """How many are in it now."""


class RoomRows(Struct, frozen=True):
    """A page of rooms by name."""

    rooms: list[RoomOfHub]
    next: str | None


@operator.reads(
    "folkmoot/rooms",
    get("/v1/hub/rooms", "listAllRooms", "List every room"),
    commands=("room list",),
)
async def rooms(call: Call, *, after: After = "") -> RoomRows:
    """List every room of the hub, including private ones."""
    services = call.services
    found = await services.store.read(
        lambda tx: rooms_overview(tx, after, MAX_OPERATOR_PAGE), long=True
    )
    here = await services.present(list(found))
    rows = [
        RoomOfHub(**asdict(room), present=here.get(room_id, 0)) for room_id, room in found.items()
    ]
    return RoomRows(rows, rows[-1].name if len(rows) == MAX_OPERATOR_PAGE else None)


class HubNodes(Struct, frozen=True):
    """The nodes of the hub; none where its database is a file."""

    nodes: list[ListedNode]


@operator.reads(
    "folkmoot/nodes",
    get("/v1/nodes", "listNodes", "List the nodes"),
    commands=("nodes",),
)
async def nodes(call: Call) -> HubNodes:
    """List the nodes of a hub on PostgreSQL: their addresses, versions and rooms."""
    owners = call.services.store.room_owners
    return HubNodes([] if owners is None else await owners.list_nodes())


class DrainedNode(Struct, frozen=True):
    """The node that gives its rooms away."""

    node: ListedNode


@operator.changes(
    "folkmoot/drain",
    post("/v1/nodes/drain", "drainNode", "Drain a node"),
    errors=(e.CommandInvalid,),
    audit=AuditSpec("node.drained", "node"),
    commands=("drain",),
)
async def drain(
    call: Call,
    *,
    node: Annotated[
        str,
        describe("Its address, name or process; empty: the one that is asked.", max_length=2_048),
    ] = "",
) -> DrainedNode:
    """Drain a node before it is stopped: it is no longer ready, other nodes get its rooms, and then
    its connections to rooms are closed.
    """
    owners = call.services.store.room_owners
    if owners is None:
        raise e.CommandInvalid(NO_NODES)
    running = [each for each in await owners.list_nodes() if each.lease_seconds > 0]
    wanted = node or owners.process
    found = [each for each in running if wanted in (each.address, each.name, each.process)]
    if len(found) != 1:
        raise e.CommandInvalid(f"No running node is called {wanted}.")
    if not await owners.drain(found[0].process):
        raise e.CommandInvalid("No other node could take its rooms. Stop it instead.")
    return DrainedNode(found[0])


class AuditLine(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One line of the audit log; unknown fields are left out."""

    id: int
    at: float
    action: str
    by: str
    about: str
    name: str = ""
    """What people call what it is about, where that is an id: a token, a browser, a passkey."""
    detail: dict[str, Any] = {}
    account: str | None = None
    outcome: str | None = None
    room: str | None = None
    server: str | None = None
    credential_id: str | None = None
    request: str | None = None
    seconds: float | None = None


class AuditLines(Struct, frozen=True):
    """Lines of the audit log, the newest first unless others are asked for."""

    lines: list[AuditLine]


@operator.reads(
    "folkmoot/audit",
    get("/v1/audit", "readAudit", "Read the audit log"),
    about="",
    commands=("audit",),
)
async def read_audit(
    call: Call,
    *,
    limit: Annotated[
        int, describe(f"How many. Default 50, max {MAX_AUDIT_LINES}.", ge=1, le=MAX_AUDIT_LINES)
    ] = 50,
    before: Annotated[int, "Only lines older than the one with this id."] | None = None,
    after: Annotated[int, "Only lines newer than the one with this id, the oldest first."]
    | None = None,
    since: Annotated[int, "Only lines since then, in seconds since 1970."] | None = None,
    until: Annotated[int, "Only lines before then, in seconds since 1970."] | None = None,
    by: Annotated[str, "Only what this handle did; `operator` is the operator."] | None = None,
    action: Annotated[str, "Only these actions; `*` stands for anything."] | None = None,
    room: Annotated[str, "Only lines about this room."] | None = None,
    server: Annotated[str, "Only calls of this server, by its namespace."] | None = None,
    about: Annotated[str, "Only lines about this; `*` stands for anything."] | None = None,
    outcome: Annotated[str, "Only this outcome: `ok`, `error` for any other, or a code with `*`."]
    | None = None,
    text: Annotated[str, "Only lines in which this text stands."] | None = None,
) -> AuditLines:
    """Read the audit log: who did what, the newest line first."""
    from folkmoot.accounts.queries_credentials import names_of
    from folkmoot.audit import AuditQuery, read

    wanted = AuditQuery(
        limit=limit,
        before=before,
        after=after,
        since=since,
        until=until,
        by=by,
        action=action,
        room=room,
        server=server,
        about=about,
        outcome=outcome,
        text=text,
    )

    async def query(tx: Tx) -> tuple[list[Entry], dict[str, str]]:
        lines = await read(tx, wanted)
        ids = sorted({line.about for line in lines if line.action.startswith(OF_CREDENTIALS)})
        return lines, await names_of(tx, ids) if ids else {}

    found, names = await call.services.store.read(query, long=True)
    return AuditLines([AuditLine(**asdict(line), name=names.get(line.about, "")) for line in found])
