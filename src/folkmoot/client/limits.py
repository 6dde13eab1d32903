"""The limits of `client`: sizes, counts and times that no setting changes."""

from __future__ import annotations

from typing import Final

MAX_PARTICIPANTS: Final = 20_000
"""Participants that are kept track of; of larger rooms the rest is not listed."""
MAX_ANSWER: Final = 64 * 1024 * 1024
"""The largest answer to a request, in bytes."""
MAX_SOCKET_ANSWER: Final = 16 * 1024 * 1024
"""The largest answer on the socket of a hub's operator, in bytes."""
CONNECT_SECONDS: Final = 5.0
"""How long a connection to that socket may take."""
ANSWER_SECONDS: Final = 30.0
"""Seconds without a byte after which a hub counts as unreachable."""
OPEN_SECONDS: Final = 15.0
"""How long a connection may take until its handshake is done."""
IDLE_SECONDS: Final = 20.0
"""Silence after which the hub is asked whether it is still there, and time it has to answer."""
CLOSE_SECONDS: Final = 2.0
"""How long the hub may take to close a connection."""
MAX_MESSAGE: Final = 17 * 1024 * 1024
"""The largest message a hub can be set to accept, and what it adds."""
MAX_INBOX: Final = 1_024
"""Messages that wait to be read; with more, reading stops. Twice as many are kept."""
MAX_INBOX_BYTES: Final = 8 * 1024 * 1024
"""The same in bytes."""
MAX_SENT: Final = 256
"""Messages that may wait for their acknowledgement; further ones wait before they are sent."""
MAX_POSTED: Final = 256
"""Messages that nobody waits for; of more than these the oldest are forgotten."""
CALLS_AT_ONCE: Final = 16
"""Calls of this program's tools that are answered at once, unless told otherwise."""
MAX_CALLS: Final = 256
"""Requests that are served or wait for their turn; further ones are told that we are busy."""
WELCOME_SECONDS: Final = 30.0
"""How long the hub may take to say welcome."""
MAX_TOOL_NAME: Final = 128
"""Characters of the name of a tool."""
LIST_SECONDS: Final = 5.0
"""How long a participant may take to list its tools, unless told otherwise."""
MAX_LIST_SECONDS: Final = 25
"""The most of it; the answer must come before a hub counts as unreachable."""
