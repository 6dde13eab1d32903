"""The limits of `cluster`: sizes, counts and times that no setting changes."""

from __future__ import annotations

from typing import Final

LEASE_MARGIN: Final = 0.5
"""Seconds before the end of its lease at which a node stops acting: clocks differ in speed."""
KEEPALIVE_SECONDS: Final = 1.0
"""How often an idle session sends a packet."""
ACK_SECONDS: Final = 0.05
"""How long an acknowledgement may wait for a packet that is sent anyway."""
GATHER_SECONDS: Final = 0.002
"""How long commands wait for others while earlier ones are on their way to the owner."""
MIN_POLL_SECONDS: Final = 0.001
"""How soon a machine is asked again that had nothing to do."""
RESEND_SECONDS: Final = 0.3
"""How long until something that was not acknowledged is sent again."""
SILENCE_SECONDS: Final = 3.0
"""After which a node that sends nothing counts as unreachable."""
SEEK_SECONDS: Final = 0.5
"""How often the owner of a room is looked for."""
MAX_COMMANDS: Final = 1_024
"""Commands of one node to one room that are not resolved; with more, its senders are not read."""
MAX_PACKET_BYTES: Final = 262_144
"""Bytes of commands or batches in one packet, unless it has only one."""
MAX_UNRECEIVED: Final = 1_024
"""Batches to one node that it has not received; with more, its session is ended."""
MAX_UNRECEIVED_BYTES: Final = 12_582_912
"""The same in bytes."""
BACKLOG_BYTES: Final = 4_194_304
"""What a node may have before it, told or about to be; with more, others of it wait their turn."""
PAGE_BYTES: Final = 1_048_576
"""What a connection or a call may be told in one turn."""
WELCOME_BYTES: Final = 131_072
"""What is thought to suffice for a welcome."""
MAX_EARLY: Final = 1_024
"""Batches that came before others and wait for them."""
MARK_SECONDS: Final = 60.0
"""How old the mark of a forwarded request may be; nodes have one clock, the database's."""
MAX_MARKS_OUT_OF_ORDER: Final = 8_192
"""Marks of one node that may arrive before one that it made earlier."""
MAX_FORWARDERS: Final = 1_024
"""Processes whose marks are remembered; no more start while a mark holds."""
MAX_FORWARDED_HEADERS: Final = 1_024
"""Headers of a forwarded request."""
