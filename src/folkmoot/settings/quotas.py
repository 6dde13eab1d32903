"""The settings of quotas: how much one account, and the whole hub, may store and hold."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from folkmoot.settings.section import Section

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
MOST = 1 << 50

Bytes = Annotated[int, Meta(ge=0, le=MOST)]
Count = Annotated[int, Meta(ge=0, le=1_000_000_000)]


class QuotaSettings(Section, frozen=True, kw_only=True):
    """How much one account, and the whole hub, may store and hold; 0 is no limit."""

    mail_bytes_per_account: Annotated[
        Bytes,
        Meta(
            description="Bytes of mail that one account has sent and that are still stored. A "
            "message counts for its sender until both sides have deleted it, or retention removes "
            "it; nobody's mailbox can be filled by others.",
        ),
    ] = GIB
    mail_bytes: Annotated[Bytes, Meta(description="Bytes of all mail of the hub.")] = 64 * GIB
    room_bytes_per_account: Annotated[
        Bytes,
        Meta(
            description="Bytes that one account has stored in all rooms, and bytes stored by "
            "anyone in all rooms it created.",
        ),
    ] = 2 * GIB
    room_bytes: Annotated[
        Bytes,
        Meta(
            description="Bytes that the history of one room may take; beyond it, the oldest "
            "messages of those who stored most are removed.",
        ),
    ] = 256 * MIB
    all_rooms_bytes: Annotated[Bytes, Meta(description="Bytes of all rooms of the hub.")] = 64 * GIB
    memory_room_bytes: Annotated[
        Bytes,
        Meta(
            description="Bytes that the history of one room in memory may take; beyond it, the "
            "oldest messages of those who stored most are removed.",
        ),
    ] = 4 * MIB
    memory_bytes_per_account: Annotated[
        Bytes,
        Meta(
            description="Bytes that all in-memory rooms of one account may take; beyond it, "
            "the largest of them is trimmed.",
        ),
    ] = 8 * MIB
    memory_bytes: Annotated[
        Bytes,
        Meta(
            description="Bytes that all in-memory rooms may take; beyond it, the largest room "
            "of the account that uses most is trimmed.",
        ),
    ] = 256 * MIB
    invites_per_account: Annotated[
        Count,
        Meta(description="Invites to the hub that one account has made and nobody has claimed."),
    ] = 500
    guests_per_account: Annotated[
        Count,
        Meta(
            description="Guests that one account has invited into rooms, including those who "
            "have not come yet."
        ),
    ] = 1_000
    tokens_per_account: Annotated[
        Count, Meta(description="Tokens that one account may have at the same time.")
    ] = 100
    sessions_per_account: Annotated[
        Count,
        Meta(
            description="Sessions of the handshake era that one account may have open; a "
            "further one ends the least recently used. Never more than a tenth of "
            "`mcp.max_sessions`.",
        ),
    ] = 200
    min_free_disk_bytes: Annotated[
        Bytes,
        Meta(
            description="Bytes that must stay free on the disk of the data folder; with less, the "
            "hub stores nothing new, and still reads and deletes.",
        ),
    ] = 256 * MIB
