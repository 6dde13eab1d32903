"""The limits of `bus`: sizes, counts and times that no setting changes."""

from __future__ import annotations

from typing import Final

MAX_EVENT: Final = 1024 * 1024
"""Bytes of one event, as JSON."""
MAX_QUEUED_EVENTS: Final = 1_024
"""Events that wait in one subscription; beyond it the oldest are dropped for a `Missed`."""
MAX_QUEUED_EVENT_BYTES: Final = 8 * MAX_EVENT
"""The same in bytes."""
MAX_SENT_BYTES: Final = 16 * 1024 * 1024
"""Bytes of what one node sends to another at once."""
MAX_FRAME_BYTES: Final = 1024 * 1024
"""Bytes of one frame: the largest payload that a NATS server accepts by default."""
MAX_LINE_BYTES: Final = 65_536
"""Bytes of one line that a NATS server says; among them is the list of its cluster's addresses."""
MIN_FRAME_BYTES: Final = 1_024
"""The smallest limit of payloads that a NATS server may have."""
MAX_OUTBOX: Final = 8_192
"""Frames that wait to be written; further ones are dropped, and the other nodes notice a gap."""
MAX_OUTBOX_BYTES: Final = 2 * MAX_SENT_BYTES
"""The same in bytes."""
WRITE_BYTES: Final = 262_144
"""Bytes that are written before it is waited until most of them are sent."""
MAX_UNFINISHED_BYTES: Final = 4 * MAX_SENT_BYTES
"""Bytes of all messages of which pieces are missing; the oldest is dropped."""
MAX_PEERS: Final = 65_536
"""Processes that are remembered, so that nothing they sent is accepted twice."""
MAX_ASKED: Final = 256
"""Unknown processes that are remembered as asked whether they are running."""
ASK_SECONDS: Final = 1.0
"""How soon an unknown process is asked again."""
FRAMES_PER_TURN: Final = 256
"""Frames that are checked before others have their turn."""
PULSE_SECONDS: Final = 1.0
"""How often a node tells how many events it published, and checks that its server answers."""
ANSWER_SECONDS: Final = 5.0
"""How long a NATS server may take to answer, while this process runs."""
BEHIND_FACTOR: Final = 4
"""How much longer a server's answer may take while frames come before it."""
ANSWER_STEP_SECONDS: Final = 0.5
"""How often it is looked whether it has answered."""
SILENT_SECONDS: Final = 2.0
"""From so long a silence on, whoever waits for events looks each second. What was written is to be
acknowledged by the other machine, and a connection closed, in the same time.
"""
CONNECT_SECONDS: Final = 5.0
"""How long connecting to one NATS server may take."""
RETRY_SECONDS: Final = 0.5
"""How soon servers that could not be reached are tried again."""
MISSED_SECONDS: Final = 0.1
"""Losses within this time are reported as one `Missed`."""
MAX_CHANGES: Final = 65_536
"""Changes that are remembered as delivered, and subjects of them."""
