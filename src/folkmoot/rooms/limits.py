"""The limits of `rooms`: sizes, counts and times that no setting changes."""

from __future__ import annotations

from typing import Final

from msgspec import Struct


class RoomBounds(Struct, frozen=True):
    """How much one room keeps in memory beside its messages."""

    participants: int = 20_000
    """Participants who are in a room at the same time; backends do not count."""
    connections_each: int = 16
    """Connections of one participant."""
    open_requests: int = 10_000
    """Open requests of a room."""
    open_requests_each: int = 256
    """Open requests of one participant."""
    open_proposals: int = 1_000
    """Open proposals of a room."""
    open_proposals_each: int = 64
    """Open proposals of one participant."""
    closed_proposals: int = 1_000
    """Closed proposals that are remembered; the oldest are dropped first."""
    grants: int = 1_000
    """Grants by messages in a room."""
    grants_each: int = 64
    """Grants to one account."""
    granted: int = 2_000
    """Capabilities in all grants of a room together."""
    granted_each: int = 128
    """Capabilities granted to one account."""
    granted_bytes: int = 32_768
    """Bytes of JSON of all granted capabilities."""
    paused: int = 1_000
    """Participants who are paused at the same time."""
    ids: int = 65_536
    """Ids of the latest messages that are known without a look into the store."""
    listed: int = 256
    """Participants that a welcome lists; it says how many there are."""
    waiting: int = 64
    """Open requests, and open proposals, that a welcome lists; it says when there are more."""


MAX_LISTED: Final = 100
"""Rooms on one page of the list of rooms."""
MAX_MEMBERS_LISTED: Final = 1_000
"""Members of a room among whom those who are away are listed, by name."""
MAX_READ: Final = 500
"""Messages on one page of a history."""
PAGE_BYTES: Final = 1_048_576
"""Bytes of the messages on one page, unless it has only one."""
MAX_EDITS: Final = 50
"""Edits of one message that change it; it can be deleted after them as well."""
MAX_COUNTED: Final = 100
"""Up to how many unread messages, and mentions, of one person in one room are counted."""
COUNTED_MESSAGES: Final = 500
"""The last messages of a room, among which those that are unread are counted."""
MAX_ROOMS_COUNTED: Final = 100
"""Rooms of one person in which what is unread is counted at once; the newest rooms."""
MAX_MENTIONED: Final = 32
"""People whom one message mentions; further names in it are no mentions."""
MAX_MENTIONING: Final = 32_768
"""Characters of a text in which names are looked for."""
NEWS_SECONDS: Final = 0.05
"""How soon those who follow a room by events are told again that something was said."""
MAX_WAIT_SECONDS: Final = 55.0
"""How long reading waits for a new message."""
GLANCE_MESSAGES: Final = 500
"""Messages whose kinds are read at once while a page is folded."""
MAX_GLANCED: Final = 5_000
"""Messages that are looked at for one folded page."""
MAX_FOLDED_NAMES: Final = 10
"""People who are named where their comings and goings are folded."""
ANSWERS_PAGE: Final = 100
"""Messages that are read at once while an answer is awaited."""
MAX_ASKED: Final = 32
"""Participants that one listing of tools asks."""
MAX_LISTINGS: Final = 32
"""Listings of tools that one connection is asked for at once."""
MAX_TOOL_PAGES: Final = 5
"""Pages of one participant's list of tools."""
MAX_DECIDABLE: Final = 5_000
"""Open proposals of all rooms that are looked at for one person; those that end soonest first."""
MAX_ROOMS_ASKED: Final = 32
"""Memory-only rooms on other nodes that are asked for the proposals of one list."""
MAX_BACKENDS: Final = 16
"""Backends that take part in one room."""
MAX_BACKEND_CALLS: Final = 32
"""Requests that one backend answers in one room at once; a further one gets an error."""
PROGRESS_SECONDS: Final = 0.5
"""Between two progress messages about one request to a backend."""
MAX_OWNERS: Final = 16
"""Owners of one room."""
MAX_PATTERNS: Final = 64
"""Capabilities in one list of a room's settings."""
MAX_GRANTED: Final = 256
"""Handles that the settings of a room grant something."""
MAX_RIGHTS_BYTES: Final = 65_536
"""Bytes of JSON of the capabilities and grants in a room's settings."""
MAX_GRANT_CAPABILITIES: Final = 64
"""Capabilities in one grant by message."""
MAX_GRANT_BYTES: Final = 8_192
"""Bytes of JSON of the capabilities in one grant by message."""
MAX_REASON: Final = 1_024
"""Characters of the reason for a grant, a revocation or a pause."""
MAX_PAUSE_SECONDS: Final = 31_536_000
"""The longest pause with an end; without a time, a pause has none."""
MAX_HANDLE: Final = 128
"""Characters of a handle in an invitation or a kick."""
MAX_PAYLOAD_ID: Final = 1_024
"""Characters of the JSON-RPC id and the progress token of an open request."""
MAX_SHOWN_KIND: Final = 1_280
"""Characters of a refused message's kind that its error repeats."""
MAX_GUESTS: Final = 1_000
"""Guests of one room, those who have not come included."""
INVITATION_SECONDS: Final = 604_800
"""How long a guest's invitation is valid."""
ENTER_SECONDS: Final = 10.0
"""How long the hub takes at most to let a WebSocket into a room."""
BURST_SECONDS: Final = 5
"""Seconds' worth of a connection's rate that may come at once."""
MAX_QUEUED: Final = 64
"""Messages of one connection that wait for interceptors; with as many it is not read."""
MAX_UNSTORED: Final = 4_096
"""Messages of one room that wait for their commit; with more, senders are not read."""
MAX_UNSTORED_BYTES: Final = 8_388_608
"""The same in bytes."""
CHECK_SECONDS: Final = 1.0
"""How long a room in memory waits before it asks a database again that did not answer."""
CATCH_UP_SECONDS: Final = 30.0
"""How long a connection that resumes may take to read what it was sent."""
RECENT_MESSAGES: Final = 256
"""Messages of a durable room that are kept in memory, for connections that resume."""
RECENT_BYTES: Final = 262_144
"""The same in bytes."""
SNAPSHOT_MESSAGES: Final = 2_000
"""Messages after which a snapshot is stored, so that loading a room stays short."""
SNAPSHOT_BYTES: Final = 8_388_608
"""The same in bytes."""
SCAN_MESSAGES: Final = 2_000
"""Messages that one statement looks at while a history is searched."""
MAX_BUDGETS: Final = 100_000
"""Accounts whose stored amounts are remembered; with more, all are read again."""
CLOCK_SECONDS: Final = 5.0
"""Between two looks at the clock while something is due, since it may be set."""
UPKEEP_SECONDS: Final = 5.0
"""Between two rounds of upkeep of the rooms in use."""
SWEEP_SECONDS: Final = 600.0
"""Between two looks at every stored room for messages that are too old."""
IDLE_SECONDS: Final = 300.0
"""How long a room that nobody uses stays loaded."""
FINISH_SECONDS: Final = 10.0
"""How long a hub that stops waits until all messages are stored."""
STOP_SECONDS: Final = 14.0
"""How long a hub that stops takes at most to store messages and to hand its rooms over."""
RELEASE_SECONDS: Final = 2.0
"""How long a hub that stops tries afterwards to leave all its rooms to others."""
REMOVED_AT_ONCE: Final = 500
"""Old messages, or invitations, that one statement removes."""
ROOMS_AT_ONCE: Final = 200
"""Stored rooms that are read at once for upkeep."""
LOOK_SECONDS: Final = 1.0
"""Between two looks for new messages of a room on another node, while someone waits for them."""
REMOTE_IDLE_SECONDS: Final = 60.0
"""How long the session with a room on another node is kept when nobody here uses it."""
NOTICE_SECONDS: Final = 6.0
"""How long a node may take to notice that it does not reach the bus."""
ALONE_LOOKS: Final = 3
"""How often a node finds that others reach the bus and it does not, before it lets its rooms go."""
HAND_OVER_SECONDS: Final = 2.0
"""How long a node that stops waits until other nodes know that its rooms are free."""
DRAINED_AT_ONCE: Final = 16
"""Rooms that a node that is drained gives away at once; those that wait go on."""
STATUS_SECONDS: Final = 1.0
"""How long the node of a room may take to tell how many are in it."""
MAX_STATUSES: Final = 1_000
"""Rooms that a node is asked of at once, how many are in each."""
TOUCH_SECONDS: Final = 10.0
"""How often the owner of a room is told at most that someone is active at another node."""
CLOCK_SLACK: Final = 1.0
"""Seconds by which the clock that all nodes share may go differently from that of a process."""
SEEN_SHARE: Final = 10
"""Of the time after which an idle visit ends: how old the stored time of its activity may be."""
MAX_STORED_VISITS: Final = 1_000
"""Visits of a room that its next owner goes on with."""
MAX_TOUCHED: Final = 1_024
"""Visitors of one room of whom a node remembers when it told of them."""
