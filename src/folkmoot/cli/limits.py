"""The limits of `cli`: sizes, counts and times that no setting changes."""

from __future__ import annotations

from typing import Final

REACH_SECONDS: Final = 35.0
"""How long the hub is asked whether it reached a server that was added."""
RELOAD_SECONDS: Final = 60.0
"""How long a hub may take to read its settings again."""
MAX_FAULTS: Final = 10
"""How many sentences about what cannot be shown people are told of one backend."""
MAX_NAMES: Final = 50
"""Names of each sort that people are shown; programs get all."""
MAX_REASON: Final = 500
"""Characters of the hub's reason that an error repeats."""
MAX_CLIENT_FILE_BYTES: Final = 32 * 1024 * 1024
"""The largest settings file of an MCP client."""
MAX_TYPED_TEXT: Final = 4 * 1024 * 1024
"""Bytes of a text from the standard input; the hub's own limit is lower, and it says so itself."""
SOCKET_ANSWER_SECONDS: Final = 10.0
"""How long a hub may say nothing on its own socket."""
MAX_AUDIT_LINES: Final = 10_000
"""Lines that `audit --last` shows."""
MAX_UNSENT: Final = 64
"""Messages that may be on their way before more are refused here."""
LIST_TOOLS_SECONDS: Final = 5
"""How long participants may take to list their tools."""
CALL_SECONDS: Final = 30
"""How long `room call` and `room approve` wait for the answer, unless told otherwise."""
WATCH_AGAIN_SECONDS: Final = 3.0
"""After how long `watch` asks a hub again that is away."""
MAX_ASKS: Final = 100
"""What `asks` and `decisions` list."""
MAX_LINE: Final = 4 * 1024 * 1024
"""Bytes of one line of the standard input that is said in a room."""
MAX_WAIT: Final = 120.0
"""Seconds for which a refusal's wish to be asked later is heeded."""
MAX_SHOWN_TEXT: Final = 65_536
"""Characters of a room's message that are shown."""
MAX_REMEMBERED: Final = 4_096
"""Messages whose numbers are remembered, to say what a later one is about."""
MAX_TOLD: Final = 64
"""Capabilities that a hub tells; of someone who holds more, nothing can be said."""
MAX_PROPOSALS: Final = 1_000
"""Proposals of a room that are remembered while one looks at it."""
MAX_ASKED: Final = 32
"""Participants who are asked for their tools at once."""
MAX_TOKEN_DAYS: Final = 3650
"""Days after which a token may expire."""
MAX_DIFFERING: Final = 5
"""Settings of a node that are named because they differ."""
MAX_ASK_WAIT: Final = 86_400
"""Seconds for which a script waits for a decision."""
MAX_ASK_WAIT_ONCE: Final = 50
"""Seconds for which the hub is asked to wait at a time."""
