"""The limits of `telemetry`: sizes, counts and times that no setting changes."""

from __future__ import annotations

from typing import Final

MAX_QUEUED_LOG_BYTES: Final = 4 * 1024 * 1024
"""Log lines that wait to be written; further ones are dropped and counted."""
LOG_BATCH_BYTES: Final = 65_536
"""Log lines that are written at once."""
PAUSE_SECONDS: Final = 0.05
"""How long lines are gathered after a write, so that not every one of them wakes the thread."""
FLUSH_SECONDS: Final = 2.0
"""How long an exit waits for the last lines to be taken."""
MAX_KNOWN_LINES: Final = 1_024
"""Log lines that are remembered as cleaned, but for their times and ids."""
MAX_KNOWN_LINE: Final = 512
"""Characters of the values of such a line."""
MAX_LOG_MESSAGE: Final = 8_192
"""Characters of the message of a log line."""
MAX_LOG_EXCEPTION: Final = 32_768
"""Characters of a traceback in a log line."""
MAX_MEASURED: Final = 100
"""Backends that have times and outcomes of their own; those of the others are added up."""
MAX_QUEUED_SPANS: Final = 2_048
"""Spans that wait to be sent; further ones are dropped."""
SPANS_PER_EXPORT: Final = 256
"""Spans that are sent at once."""
EXPORT_DELAY_MILLISECONDS: Final = 2_000
"""Milliseconds after which spans are sent that do not fill a batch."""
EXPORT_SECONDS: Final = 5.0
"""How long a collector of traces may take."""
