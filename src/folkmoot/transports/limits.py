"""The limits of `transports`: sizes, counts and times that no setting changes."""

from __future__ import annotations

from typing import Final

REJECTED_LOG_SECONDS: Final = 1.0
"""How often rejected connections are logged, all in one line."""
MAX_ACCEPTED_PER_TURN: Final = 256
"""Connections that are accepted in one turn of the event loop."""
MAX_BEGUN_PER_TURN: Final = 4
"""Accepted connections that begin in one turn; each takes about half a millisecond."""
ADDRESS_SHARE: Final = 2
"""One in so many of the accepted connections that wait may be from one address."""
ACCEPT_PAUSE_SECONDS: Final = 0.2
"""How long nothing is accepted after the system had no descriptor or memory left."""
MAX_FORWARDED_HOPS: Final = 32
"""Hops of `X-Forwarded-For` that are read."""
MAX_CACHED_PEERS: Final = 1_024
"""Addresses of peers that are remembered in their one spelling."""
SUBSCRIBER_BITS: Final = 64
"""Bits of an IPv6 address that one subscriber has, so that they count as one."""
FILE_CHUNK_BYTES: Final = 256 * 1024
"""Bytes of a file that are read and sent at once."""
BODY_SECONDS: Final = 10.0
"""In this time the rest of a body must arrive, or enough of it."""
MIN_BODY_BYTES_A_SECOND: Final = 16_384
"""How fast a body that takes longer must arrive."""
BODY_STRANGERS_SHARE: Final = 8
"""One in so many of the bytes of all bodies is for strangers."""
BODY_ACCOUNT_SHARE: Final = 4
"""One in so many of them is the most of one account, if it is more than one body."""
SMALL_BODY_BYTES: Final = 4_096
"""A stranger's body up to this size is accepted although their share is used up."""
BODY_CHECK_BYTES: Final = 262_144
"""After so much of a body its values are counted; then after four times as much."""
BODY_RETRY_SECONDS: Final = 2
"""When to try again if there is no room for a body at the moment."""
MAX_COOKIE_BYTES: Final = 8_192
"""Bytes of cookies that are read, with those of other programs on the host."""
OPEN_FACTOR: Final = 2
"""How many times as many connections may be open as are served; the others are answered 503."""
SIGNED_IN_RESERVE: Final = 10
"""One in so many connections is for those who are signed in."""
SHED_SHARE: Final = 20
"""One in so many connections is cleared at once, so that clearing is seldom done."""
IDLE_SECONDS: Final = 1.0
"""How long a connection must be idle before it is closed for another."""
IDLE_CHECK_SECONDS: Final = 0.05
"""How soon idle connections are looked for again when none were found."""
MAX_LINGERING: Final = 8
"""Connections that may send a large body to its end after its answer: one an account or address."""
MIN_BEGUN_PER_TURN: Final = 2
"""Requests that begin in one turn of the loop, at least."""
BEGUN_SHARE: Final = 4
"""One in so many waiting requests begins in a turn: the more wait, the faster they begin."""
USE_HALF_LIFE_SECONDS: Final = 1.0
"""After so long half of the time that an account or address used is forgotten."""
USE_FORGOTTEN_SECONDS: Final = 0.001
"""Used time that is too little to be remembered."""
MAX_QUERY_PARAMETERS: Final = 50
"""Parameters of a query."""
MAX_OPERATOR_TOKEN: Final = 4_096
"""Characters of the operator's token."""
MIN_OPERATOR_TOKEN: Final = 16
"""Characters that the operator's token must have."""
STREAM_KEEP_ALIVE_SECONDS: Final = 15.0
"""After so much silence a comment is sent, which keeps a proxy from closing the stream."""
HEALTH_COUNT_SECONDS: Final = 1.0
"""How long `/health` waits for the number of accounts before it tells the last one known."""
HEALTH_CACHE_SECONDS: Final = 1.0
"""How long the result of health checks is reused, so that frequent requests write no more often."""
READY_SECONDS: Final = 8.0
"""How long a check may take: longer than the database waits for a lock, so that it says why."""
MAX_LOGGED_PATH: Final = 1_024
"""Characters of a path that are logged."""
LISTEN_BACKLOG: Final = 2048
"""Connections that the system may hold until they are accepted."""
SPARE_DESCRIPTORS: Final = 256
"""File descriptors beside connections: database, log, operators, backups, links to servers."""
OPERATOR_BACKLOG: Final = 16
"""The same for the operator's socket."""
MAX_OPERATOR_CONNECTIONS: Final = 32
"""Open connections of operators."""
HEAD_SECONDS: Final = 20.0
"""How long the head of a request may take to arrive."""
LINGER_SECONDS: Final = 5.0
"""How long the rest of a body is read and discarded after its request was answered."""
MAX_LINGER_BYTES: Final = 65_536
"""How much of it is read; a few connections may send more."""
MAX_HEAD_BYTES: Final = 65_536
"""Size of a head, and of trailers after a body."""
MAX_HEADERS: Final = 100
"""Headers of a request."""
MAX_WAITING_REQUESTS: Final = 16
"""Requests that wait on a connection for the answer to an earlier one."""
TINY_CHUNK_BYTES: Final = 16
MAX_TINY_CHUNKS: Final = 20_000
"""Parts of one body that have fewer bytes than `TINY_CHUNK_BYTES`."""
WRITE_SECONDS: Final = 30.0
"""How long a client may take to read an answer."""
MIN_READ_BYTES_A_SECOND: Final = 16_384
"""How fast an answer that takes longer must be read."""
STOP_WRITE_SECONDS: Final = 1.0
"""How long a client may take to read an answer while the hub stops."""
MAX_JOINED_BYTES: Final = 65_536
"""A larger part of an answer is not copied to be sent with its head."""
LARGE_BUFFER_BYTES: Final = 131_072
"""Buffers from this size on are given back to the system as soon as they are freed."""
COLLECT_SECONDS: Final = 60.0
"""How often all objects are searched for garbage."""
COLLECT_AFTER_OBJECTS: Final = 2_000
"""New objects after which the young generation is collected; open calls hold some of them."""
COLLECT_AFTER_YOUNG: Final = 1_000
"""After so many collections of the young generation they are searched sooner."""
CANCEL_SECONDS: Final = 2.0
"""How long requests may take to end after a stopping hub cancelled them."""
DATE_SECONDS: Final = 1.0
"""How often the `date` header is updated."""
DRAIN_SECONDS: Final = 0.005
"""How often a stopping hub checks whether its last request is answered."""
KEEP_ALIVE_SECONDS: Final = 20
"""How long a connection may be idle between requests; clients close theirs sooner."""
MAX_DECLARATION_BYTES: Final = 1_024
"""Size of a client's declaration that is kept as it is; usual ones have a few hundred bytes."""
MAX_DECLARED_MEMBER: Final = 128
"""Bytes of one member of a longer declaration."""
MAX_CALLS_OF_SESSION: Final = 64
"""Calls to backends that may be open at once in one session."""
MAX_CALLS_OF_ACCOUNT: Final = 256
"""Calls to backends that may be open at once for one account."""
DRAIN_SHARE: Final = 0.8
"""The part of the time for stopping that open calls to backends have."""
IDLE_CHECKS: Final = 4
"""How often idle sessions are looked for within the time that makes a session idle."""
SESSION_CHECK_SECONDS: Final = 30.0
"""How often idle sessions are looked for at the least."""
MAX_SESSION_SECONDS: Final = 30 * 24 * 3600
"""A restart ends a session that is older."""
DELIVERY_SECONDS: Final = 2.0
"""How long a request waits until the effects of the last answer are stored."""
MAX_SESSION_ID: Final = 1_024
"""Characters of a session id; what does not fit is kept in a row."""
MAX_SESSION_STATE_BYTES: Final = 8_192
"""Size of the stored state of a session; beyond it, a restart loses its subscriptions."""
MAX_SESSION_ROWS: Final = 1_000
"""Stored states of one account, and of all sessions without one; the oldest go first."""
MAX_SESSION_ROWS_REMOVED: Final = 16
"""Old states that one write removes: more than it adds."""
MIN_SESSIONS: Final = 10
"""Sessions that anyone may have, however few there may be in all."""
SESSION_BYTES: Final = 24_576
"""What a session takes, by a careful estimate: measured were 2 to 17 KB."""
SESSION_STRANGERS_SHARE: Final = 8
"""One in so many of the bytes of all sessions is for those without an account."""
SESSION_RETRY_SECONDS: Final = 5
"""When to try again if there is no room for a session."""
MAX_KNOWN_HOMES: Final = 10_000
"""Sessions at other nodes of which a node remembers where they are."""
KNOWN_HOME_SECONDS: Final = 15.0
"""How long it does: something else may come to the address of a node that died."""
MAX_FORWARDED: Final = 4_096
"""Requests that a node has forwarded at once, and that it answers at once for others."""
MAX_FORWARDED_HEAD_BYTES: Final = 262_144
"""Bytes of a forwarded request beside its body."""
MAX_NODES_REACHED: Final = 256
"""Nodes that connections are kept to."""
FORWARD_CONNECT_SECONDS: Final = 5.0
"""How long another node may take to accept a connection."""
FORWARD_BODY_SECONDS: Final = 30.0
"""How long a forwarded request may take to arrive."""
FORWARD_PROBE_SECONDS: Final = 5.0
"""How often a node that is to answer is asked whether it is there, and how long that may take."""
OWN_ADDRESS_ATTEMPTS: Final = 5
"""How often a node asks at its own address, one time after another, before it warns."""
OWN_ADDRESS_SECONDS: Final = 60.0
"""How long until a node asks at its own address again."""
FORWARD_ATTEMPTS: Final = 3
"""How often the node of a session is looked for while it changes."""
COUNT_SECONDS: Final = 1.0
"""How often a node tells the others how many sessions it has, where that changed."""
RECOUNT_SECONDS: Final = 60.0
"""How often it tells of all."""
EXCESS_SECONDS: Final = 3.0
"""How long a new session waits until another node has ended one of the same account."""
EXCESS_CHECK_SECONDS: Final = 0.05
"""How often it looks whether that is done."""
MAX_COUNTS_WAITING: Final = 1_024
"""Accounts one session of which is to end for one at another node."""
MAX_COUNTS_UNTOLD: Final = 65_536
"""Counts that are told again after the database did not take them."""
MAX_TASKS_WATCHED: Final = 64
"""Tasks that one stream may watch: as many as may be unfinished."""
MAX_RESOURCES_WATCHED: Final = 256
"""Resources that one session or stream may watch."""
MAX_WATCHES_OF_ACCOUNT: Final = 1_024
"""Resources that all sessions and streams of one account may watch, each counted by itself."""
WATCH_DELAY_SECONDS: Final = 0.25
"""Changes within this time are notified together."""
MAX_EVENTS_WAITING: Final = 200
"""Events that wait for one client to read them; beyond, all are dropped for one `reload`."""
MAX_EVENTS_WAITING_BYTES: Final = 64 * 1024
"""Size of all of them."""
MAX_ROOMS_FOLLOWED: Final = 1_000
"""Rooms that one stream follows."""
EVENTS_RETRY_SECONDS: Final = 5
"""When to try again if there is no room for a stream of events."""
MAX_CONTROL_BYTES: Final = 125
"""Payload of a close, ping or pong, by the WebSocket standard."""
WEBSOCKET_LINGER_SECONDS: Final = 0.2
"""After so much silence a broken stream is closed; before, its client would not learn why."""
READ_BUFFER_BYTES: Final = 4096
"""Size of a new read buffer; it doubles when a frame does not fit."""
PULSE_GRAIN_SECONDS: Final = 0.02
"""Connections whose time comes this close together are checked together."""
MAX_KEPT_BUFFER_BYTES: Final = 65_536
"""A read buffer that grew beyond this for a large frame is given back after it."""
MAX_FED_BYTES: Final = 16_384
"""Bytes of frames that are parsed at once: some thousand empty ones."""
LARGE_FRAGMENT_BYTES: Final = 1_024
"""Fragments of a message from this size on do not count as frames."""
MAX_FRAMES_AFTER_CLOSE: Final = 100
"""Frames that are read until the client answers our close; after more, the rest is dropped."""
