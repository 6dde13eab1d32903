"""Tables of the settings with many rows: rooms, quotas, the gateway, recording."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from msgspec import Meta

from folkmoot.settings.types import Count, FilePath, FilePaths, OptionalFolder, SettingsTable

NewTools: TypeAlias = Literal["hold", "list"]


class GatewaySettings(SettingsTable, frozen=True, kw_only=True):
    """What goes for all servers behind the hub."""

    mcp_servers: Annotated[tuple[FilePaths, ...], Meta(max_length=32)] = ()
    """Files in the format of MCP clients, with `mcpServers` or `servers` in them, whose servers are
    added as backends. A relative path is relative to the settings file."""
    page_size: Annotated[int, Meta(ge=10, le=10_000)] = 1000
    """How many tools, resources or prompts are on one page of a list. Some clients read only the
    first page."""
    audit_arguments: Literal["hash", "record", "none"] = "hash"
    """What the audit log records of a call's arguments: a hash, which is the same for equal
    arguments; the arguments themselves; or nothing."""
    new_tools: NewTools = "hold"
    """What happens to tools that a server adds after its first listing: held back until an operator
    accepts them, or listed. Those of a trusted server are listed."""
    edit_from_web: bool = True
    """Whether operators can add, test and remove servers in the console, and change groups. Servers
    run programs on this machine, so that needs https or localhost, and the operator's passkey or a
    token given once more. When off, only `folkmoot backends` and the hub's own socket can."""


ProxiesShown: TypeAlias = Literal["this_machine", "operators", "nobody"]


class RecordSettings(SettingsTable, frozen=True, kw_only=True):
    """Recording of what is said at `/mcp`, on tapes."""

    enabled: bool = True
    """Whether the hub records, if it has a folder for tapes. Operators switch it in the console."""
    folder: OptionalFolder = ""
    """Where tapes are written; nothing is recorded while it is empty. A relative path is relative
    to the working directory."""
    best_effort: bool = False
    """Whether the hub keeps serving when a tape cannot be written; otherwise `/mcp` answers with
    503 until it is restarted."""
    compress: bool = False
    """Whether tapes are compressed with zstd; this needs the extra `zstd`."""
    tape_bytes: Annotated[int, Meta(ge=65_536, le=1_099_511_627_776)] = 268_435_456
    """The size in bytes at which the next tape is started."""
    redact: Annotated[tuple[Annotated[str, Meta(max_length=256)], ...], Meta(max_length=256)] = ()
    """Paths that are redacted on tapes in addition to secrets and mail, such as
    "$.params.arguments.ssn"."""

    @property
    def wanted(self) -> str:
        """Where tapes are written; empty where nothing is recorded."""
        return self.folder if self.enabled else ""


class InterceptorSettings(SettingsTable, frozen=True, kw_only=True):
    """Interceptors, which see each message at `/mcp` and in rooms before policy does."""

    rules: FilePath = ""
    """A file of rules. It is reloaded when it changes; an invalid file changes nothing, and the log
    says why."""
    plugins: Annotated[tuple[Annotated[str, Meta(max_length=128)], ...], Meta(max_length=32)] = ()
    """Interceptors written in Python, by the names of their entry points in
    `folkmoot.interceptors`, in the order in which they are applied, after the rules."""
    local_proxies: ProxiesShown = "this_machine"
    """Which operators see the tapes and the held messages of the proxies that the hub's own user
    runs on the hub's machine, and may decide about them. this_machine: operators whose requests are
    made on that machine, while the hub has neither `public_url` nor `http.trusted_proxies`.
    operators: every operator. nobody: they are not looked for."""


KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
MOST = 1 << 50

Bytes = Annotated[int, Meta(ge=0, le=MOST)]
Limit = Annotated[int, Meta(ge=0, le=1_000_000_000)]


class QuotaSettings(SettingsTable, frozen=True, kw_only=True):
    """How much one account, and the whole hub, may store and hold; 0 is no limit."""

    mail_bytes_per_account: Bytes = GIB
    """Bytes of mail that one account has sent and that are still stored. A message counts for its
    sender until they delete it. If the recipient still has it, it then counts apart, as kept by
    them, up to as many bytes; nobody's mailbox can be filled by others."""
    mail_bytes: Bytes = 64 * GIB
    """Bytes of all mail of the hub."""
    room_bytes_per_account: Bytes = 2 * GIB
    """Bytes that one account has stored in all rooms, and bytes stored by anyone in all rooms it
    created."""
    room_bytes: Bytes = 256 * MIB
    """Bytes that the history of one room may take; beyond it, the oldest messages of those who
    stored most are removed."""
    all_rooms_bytes: Bytes = 64 * GIB
    """Bytes of all rooms of the hub."""
    memory_room_bytes: Bytes = 4 * MIB
    """Bytes that the history of one room in memory may take; beyond it, the oldest messages of
    those who stored most are removed."""
    memory_bytes_per_account: Bytes = 8 * MIB
    """Bytes that all in-memory rooms of one account may take; beyond it, the largest of them is
    trimmed."""
    memory_bytes: Bytes = 256 * MIB
    """Bytes that all in-memory rooms may take; beyond it, the largest room of the account that uses
    most is trimmed."""
    invites_per_account: Limit = 500
    """Invites to the hub that one account has made and nobody has claimed."""
    guests_per_account: Limit = 1_000
    """Guests that one account has invited into rooms, including those who have not come yet."""
    tokens_per_account: Limit = 100
    """Tokens that one account may have at the same time."""
    sessions_per_account: Limit = 200
    """Sessions of the handshake era that one account may have open; a further one ends the least
    recently used. Never more than a tenth of `mcp.max_sessions`."""
    min_free_disk_bytes: Bytes = 256 * MIB
    """Bytes that must stay free on the disk of the data folder; with less, the hub stores nothing
    new, and still reads and deletes."""


class LimitSettings(SettingsTable, frozen=True, kw_only=True):
    """The limits of one message in a room, and of one connection to it."""

    message_bytes: Annotated[int, Meta(ge=1024, le=16_777_216)] = 1_048_576
    """The largest message a room accepts, in bytes; a WebSocket that sends a larger one is closed
    with 1009. On several nodes, at most 4194304."""
    nesting: Annotated[int, Meta(ge=8, le=256)] = 64
    """How deep objects and lists may be nested in a message."""
    unfinished_bytes: Annotated[int, Meta(ge=65_536, le=1_099_511_627_776)] = 8_388_608
    """Bytes of partly received messages on all WebSockets; beyond it (and beyond two of the largest
    messages), the WebSocket with the oldest one is closed with 4008."""
    unsent_bytes: Annotated[int, Meta(ge=65_536, le=1_073_741_824)] = 4_194_304
    """How many bytes may wait for a client that does not read; with more, its WebSocket is closed
    with 4008."""
    unsent_frames: Annotated[int, Meta(ge=16, le=1_000_000)] = 10_000
    """How many messages may wait for a client that does not read; with more, its WebSocket is
    closed with 4008."""
    ping_seconds: Annotated[float, Meta(ge=0.1, le=3600)] = 20.0
    """How long a WebSocket may be idle before the hub pings it."""
    pong_seconds: Annotated[float, Meta(ge=0.1, le=3600)] = 20.0
    """How soon the client must answer the ping; otherwise the WebSocket is closed with 4408."""
    frames_per_second: Count = 200
    """How many frames per second one WebSocket may send on average: messages, pings, pongs and
    small fragments; a burst may have five seconds' worth. One that sends more is closed with
    4029."""


class RoomSettings(SettingsTable, frozen=True, kw_only=True):
    """Rooms; what a room's own policy says goes before what is said here."""

    keep_messages: Annotated[int, Meta(ge=100, le=1_000_000_000)] = 100_000
    """Messages kept of one room; older ones are removed. A room's own policy may keep fewer."""
    keep_days: Annotated[int, Meta(ge=0, le=36_500)] = 0
    """Days after which a message of a room is removed; 0 keeps them forever. A room's own policy
    may keep them for less time."""
    memory_messages: Annotated[int, Meta(ge=0, le=1_000_000)] = 10_000
    """Messages kept in memory of a room that is not durable."""
    max_rooms_each: Annotated[int, Meta(ge=0, le=1_000_000)] = 100
    """Rooms one account may own."""
    tool_presence_seconds: Annotated[float, Meta(ge=1, le=86_400)] = 600.0
    """How long someone who joined by a tool, without a WebSocket, counts as present after their
    last call."""
    request_seconds: Annotated[float, Meta(ge=0.1, le=86_400)] = 300.0
    """How long a request in a room waits for its answer, unless the room's policy sets its own
    time."""
    progress_seconds: Annotated[float, Meta(ge=0.1, le=86_400)] = 3600.0
    """How long a request in a room may stay open while it reports progress: each progress message
    lets it wait for `request_seconds` again. A room's policy may set its own time."""
    proposal_seconds: Annotated[float, Meta(ge=0.1, le=31_536_000)] = 3600.0
    """How long a proposal stays open, unless the room's policy sets its own time."""
    return_seconds: Annotated[float, Meta(ge=0.1, le=3600)] = 30.0
    """How long those who were present before a restart count as present until they reconnect; and
    how long the connection that began a call may be away before the call counts as interrupted."""


class KindSettings(SettingsTable, frozen=True, kw_only=True):
    """Kinds of messages in rooms."""

    accept_old_spellings: bool = False
    """Whether messages may use the older spellings of kinds, such as `mcp/request:tools/call`; they
    are read as the present ones."""
