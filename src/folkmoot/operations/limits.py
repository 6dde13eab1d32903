"""The limits of `operations`: sizes, counts and times that no setting changes."""

from __future__ import annotations

from typing import Final

MAX_NAMES_SHOWN: Final = 5
"""Unknown arguments that an error names."""
MAX_NAME_SHOWN: Final = 40
"""Characters of such a name."""
MAX_ARGUMENT_DEPTH: Final = 64
"""How deep lists and objects may lie inside each other in one argument."""
HELD_BYTES: Final = 1_000
"""What a held message takes on a page, about."""
MIN_SECRET: Final = 8
"""Characters of a value that is looked for in the whole of an answer."""
MAX_TOOLS_FOUND: Final = 50
"""Tools that one search answers."""
MAX_SENDERS_NAMED: Final = 5
"""Senders that the sentence about a digest names."""
MAX_CURSOR: Final = 100
"""Characters of a cursor."""
MAX_PAGE_BYTES: Final = 1024 * 1024
"""A page ends early when its entries are larger together; one is always shown."""
MAX_QUERY_TEXT: Final = 1_000
"""Characters of a text in a query."""
MAX_INTEGER: Final = 2**53 - 1
"""The largest number that every reader of JSON keeps exactly."""
MAX_SCOPE: Final = 1_000
"""Characters of a scope."""
MAX_MARKED_READ: Final = 100
"""Messages that one call marks read: as many as one page shows."""
MAX_INVITE_DAYS: Final = 365
"""Days that an invite for a handle can be claimed."""
MAX_OPERATOR_PAGE: Final = 200
"""People or rooms on one page for the operator."""
MAX_BACKUPS_KEPT: Final = 7
"""Backups that the hub keeps in its data folder; making one more removes the oldest."""
MAX_AUDIT_LINES: Final = 500
"""Lines of the audit log in one answer."""
MAX_SERVER_TEXT: Final = 64 * 1024
"""Characters of a text that describes a server."""
MAX_TOOLS_PAGE: Final = 100
"""Tools of a server on one page."""
MAX_TOOLS_PAGE_BYTES: Final = 512 * 1024
"""Size of all tools on that page, unless it is one alone."""
SERVERS_START_SECONDS: Final = 5.0
"""How long an answer about held tools waits for servers that are still starting."""
MAX_DIFFS_BYTES: Final = 512 * 1024
"""Size of all differences in one answer; the rest are left for the next."""
MAX_DIFF_CHARACTERS: Final = 128 * 1024
"""Characters of one difference; escaped, a character may take six bytes."""
MAX_TOOLS_ACCEPTED: Final = 1_000
"""Tools that one call accepts."""
ROOM_TOOLS_SECONDS: Final = 5
"""How long participants may take to list their tools."""
MAX_ROOM_TOOL_NAME: Final = 1_024
"""Characters of the name of a participant's tool."""
MAX_ROOM_TOOLS_BYTES: Final = 262_144
"""Size of all definitions in one listing, unless it is one alone."""
MAX_REASON: Final = 4096
"""Characters of the reason of a rejection."""
MAX_PATTERNS: Final = 64
"""Capabilities of one guest or role in the arguments."""
MAX_RECIPIENTS: Final = 64
"""Participants that one message may address."""
MAX_READ_SECONDS: Final = 55
"""The longest that a call waits for messages, like that of the mailbox."""
MAX_MESSAGES_READ: Final = 100
"""Messages in one answer."""
MAX_ROOMS_TOLD: Final = 20
"""Rooms where someone is mentioned or invited that a digest names."""
MAX_SEARCH: Final = 200
"""Characters that are searched for in a room."""
MAX_MESSAGES_SEARCHED: Final = 5_000
"""Messages that one search looks through."""
MAX_MESSAGES_SCANNED: Final = 1_000
"""Messages that one call looks through for the kinds it wants."""
MAX_MESSAGES_BYTES: Final = 262_144
"""Size of all messages in one answer, unless it is one alone."""
MAX_PROPOSAL_SECONDS: Final = 31_536_000
"""The longest a proposal may stay open; a room's own limit is shorter as a rule."""
