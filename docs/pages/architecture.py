"""The tables of `architecture.md`: layers from the import rules, modules, and bounds."""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path
from typing import Any

from docs.pages.markdown import code, table
from folkmoot.accounts.limits import MAX_CACHED_IDENTITIES
from folkmoot.bus.limits import MAX_QUEUED_EVENT_BYTES, MAX_QUEUED_EVENTS
from folkmoot.bus.subjects import check_subject
from folkmoot.client.limits import MAX_CALLS, MAX_INBOX, MAX_INBOX_BYTES, MAX_SENT
from folkmoot.core.glob import glob
from folkmoot.core.kinds import parse
from folkmoot.core.limits import MAX_CACHED_VERDICTS, MAX_RATE_KEYS
from folkmoot.gateway.limits import HISTORY_MINUTES
from folkmoot.mail.limits import (
    MAX_CACHED_BODIES,
    MAX_CACHED_BOX,
    MAX_CACHED_LISTS,
    MAX_CACHED_SUBJECTS,
    MAX_LISTS_OF_READER,
    MAX_SHARED_KEYS,
)
from folkmoot.mcp.peer import MOST_CANCELLED
from folkmoot.mcp.server.resumable import ACCOUNT_SHARE, SESSION_SHARE
from folkmoot.mcp.server.streams import MOST_BYTES as MOST_EVENT_BYTES
from folkmoot.mcp.server.streams import MOST_EVENTS
from folkmoot.rooms.limits import (
    MAX_UNSTORED,
    MAX_UNSTORED_BYTES,
    RECENT_BYTES,
    RECENT_MESSAGES,
    RoomBounds,
)
from folkmoot.store.sqlite import CACHE_BYTES, STATEMENTS_KEPT
from folkmoot.store.writer import MAX_BATCH
from folkmoot.telemetry.limits import MAX_QUEUED_SPANS
from folkmoot.telemetry.redaction import LONGEST_HARMLESS, MOST_HARMLESS
from folkmoot.transports.limits import BODY_STRANGERS_SHARE as BODIES_SHARE
from folkmoot.transports.limits import MAX_DECLARATION_BYTES as MOST_DECLARED
from folkmoot.transports.limits import MAX_EVENTS_WAITING as MOST_EVENTS_WAITING
from folkmoot.transports.limits import MAX_EVENTS_WAITING_BYTES as MOST_EVENTS_BYTES
from folkmoot.transports.limits import MAX_SESSION_ROWS, MAX_SESSION_STATE_BYTES, SESSION_BYTES
from folkmoot.transports.limits import SESSION_STRANGERS_SHARE as SESSIONS_SHARE

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "folkmoot"


def layers() -> list[list[str]]:
    """The parts, those that may import all below them first; parts of one layer keep apart."""
    project: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = project["tool"]["importlinter"]["contracts"]
    (layered,) = (contract for contract in contracts if contract["type"] == "layers")
    return [layer.replace("|", " ").replace(":", " ").split() for layer in layered["layers"]]


def parts() -> str:
    """Every part of the program with what it says of itself, from the top layer down."""
    rows = (
        [str(number), code(part), first_sentence(part)]
        for number, layer in enumerate(layers(), start=1)
        for part in layer
    )
    return table(["Layer", "Part", "What it is"], rows)


def core() -> str:
    """Every module of the core."""
    folder = SOURCE / "core"
    packages = (path.parent.name for path in folder.glob("*/__init__.py"))
    modules = sorted({*packages, *(path.stem for path in folder.glob("[!_]*.py"))})
    return table(
        ["Module", "What it holds"],
        ([code(module), first_sentence(f"core/{module}")] for module in modules),
    )


def bounds() -> str:
    """Every queue and cache, how much it holds, and what happens when it is full."""
    kinds, globs, subjects = (
        cached.cache_parameters()["maxsize"] for cached in (parse, glob, check_subject)
    )
    return table(
        ["What", "Bound", "When full"],
        [
            ["writes, and reads, that wait", "`store.queue` each", "refused: `store_overloaded`"],
            ["units in one commit", str(MAX_BATCH), "the rest goes into the next"],
            [
                "pages of the database, of a connection",
                f"{CACHE_BYTES >> 20} MiB",
                "the least recently used are read again",
            ],
            ["statements of a connection", str(STATEMENTS_KEPT), "the oldest is prepared again"],
            [
                "events of one subscription",
                f"{MAX_QUEUED_EVENTS:,}, and {MAX_QUEUED_EVENT_BYTES >> 20} MiB",
                "the oldest are dropped and replaced by `Missed`",
            ],
            ["checked subjects", f"{subjects:,}", "the least recently used is forgotten"],
            ["parsed kinds", f"{kinds:,}", "the least recently used is forgotten"],
            ["compiled globs", f"{globs:,}", "the least recently used is forgotten"],
            ["verdicts of one principal", str(MAX_CACHED_VERDICTS), "all are forgotten"],
            [
                "texts known to hold no secret",
                f"{MOST_HARMLESS:,}, of {LONGEST_HARMLESS} characters at most",
                "all are forgotten",
            ],
            [
                "spans that wait for the collector",
                f"{MAX_QUEUED_SPANS:,}",
                "further ones are dropped",
            ],
            [
                "known tokens",
                f"{MAX_CACHED_IDENTITIES:,}",
                "the least recently used is looked up again",
            ],
            [
                "shared keys of pairs",
                f"{MAX_SHARED_KEYS:,}",
                "the least recently used is derived again",
            ],
            [
                "decrypted bodies in memory",
                f"{MAX_CACHED_BODIES:,}, of {MAX_CACHED_BOX:,} characters at most when encrypted",
                "the oldest is decrypted again",
            ],
            [
                "decrypted subjects",
                f"{MAX_CACHED_SUBJECTS:,}",
                "the least recently used is decrypted again",
            ],
            [
                "lists of threads in memory",
                f"{MAX_CACHED_LISTS:,} readers, {MAX_LISTS_OF_READER} each",
                "the others are read again",
            ],
            [
                "sessions of the handshake era",
                "`mcp.max_sessions`; without an account `mcp.max_anonymous_sessions` an address",
                "answered 503; 429",
            ],
            [
                "memory of all sessions of the handshake era",
                (
                    f"`mcp.max_session_bytes`, {SESSION_BYTES >> 10} KiB for each; "
                    f"1/{SESSIONS_SHARE} without an account"
                ),
                "one without an account is ended; then answered 503",
            ],
            [
                "stored states of sessions",
                (
                    f"{MAX_SESSION_ROWS:,} of one account, and of those in which "
                    f"accounts were made; {MAX_SESSION_STATE_BYTES // 1024} KiB each"
                ),
                "the oldest are forgotten",
            ],
            [
                "streams kept for clients that come back",
                (
                    f"`mcp.max_stream_bytes`; 1/{ACCOUNT_SHARE} an account, "
                    f"1/{SESSION_SHARE} a session; `mcp.resume_seconds`"
                ),
                "the oldest that nobody reads are dropped, and their calls cancelled",
            ],
            [
                "events kept of one stream",
                f"{MOST_EVENTS}, and {MOST_EVENT_BYTES >> 20} MiB",
                "progress is dropped first, then log messages",
            ],
            [
                "streams of events, at `/v1/events`",
                (
                    "`events.max_streams`, `events.max_streams_per_account`; `events.max_bytes`, "
                    f"1/{SESSION_SHARE} an account; `events.resume_seconds`"
                ),
                "the oldest that nobody reads are dropped; then answered 503; 429",
            ],
            [
                "events that wait for one client to read them",
                f"{MOST_EVENTS_WAITING}, and {MOST_EVENTS_BYTES // 1024} KiB",
                "all are dropped and replaced by `reload`",
            ],
            [
                "what a client declares of itself",
                f"{MOST_DECLARED:,} bytes",
                "only the parts that are used are kept",
            ],
            ["keys of one rate limit", f"{MAX_RATE_KEYS:,}", "the oldest are removed"],
            [
                "HTTP connections",
                "`http.max_connections`; a tenth is for those who are signed in",
                "idle and slow ones without an account are closed; then answered 503",
            ],
            [
                "bodies of all requests in progress",
                f"`http.max_bodies_bytes`; 1/{BODIES_SHARE} without a valid token",
                "answered 503",
            ],
            [
                "partly received large messages on WebSockets",
                "`limits.unfinished_bytes` in total",
                "the WebSocket with the oldest one is closed with 4008",
            ],
            [
                "messages that wait for a WebSocket's client to read them",
                "`limits.unsent_bytes`, `limits.unsent_frames`",
                "closed with 4008",
            ],
            [
                "effects of a room that wait for their commit",
                f"{MAX_UNSTORED:,}, and {MAX_UNSTORED_BYTES >> 20} MiB",
                "their senders are not read until there is room",
            ],
            [
                "recent messages of a durable room",
                f"{RECENT_MESSAGES}, and {RECENT_BYTES >> 10} KiB",
                "read from the store",
            ],
            [
                "messages of a room in memory",
                "`rooms.memory_messages`, `quotas.memory_room_bytes`",
                "the oldest are forgotten",
            ],
            ["ids of a room", f"{RoomBounds().ids:,}", "looked up in the store"],
            [
                "messages an agent's author has not read",
                f"{MAX_INBOX:,}, and {MAX_INBOX_BYTES >> 20} MiB",
                "reading pauses, or they are fetched again later",
            ],
            ["messages an agent sent, not acknowledged", f"{MAX_SENT:,}", "further ones wait"],
            ["calls an agent serves, or that wait", f"{MAX_CALLS:,}", "answered: busy"],
            [
                "cancelled requests that a backend has not answered, on one link",
                f"{MOST_CANCELLED:,}",
                "the link is replaced",
            ],
            ["minutes of a backend's calls", f"{HISTORY_MINUTES:,}", "the oldest is forgotten"],
        ],
    )


def first_sentence(part: str) -> str:
    """The first line of a module's docstring, up to the end of its sentence."""
    path = SOURCE / f"{part}.py"
    if not path.exists():
        path = SOURCE / part / "__init__.py"
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    paragraph = " ".join(docstring.split("\n\n")[0].split())
    sentence, stop, _ = paragraph.partition(". ")
    return sentence + stop.strip()


BLOCKS = {"layers": parts, "core-modules": core, "bounds": bounds}
