"""The SDK's own log, made fit for a hub.

The id of a session that `msg/register` or `msg/recover` bound to an account is a secret like a
token, and the SDK writes ids into its messages.
"""

from __future__ import annotations

import logging
import re

SDK = ("mcp", "sse_starlette")
WITH_IDS = ("mcp.server.streamable_http_manager", "mcp.server.streamable_http")
SESSION_ID = re.compile(r"[0-9a-f]{32}")


class HideSessionIds(logging.Filter):
    """Masks session ids in what passes."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Let every record through, without ids."""
        record.msg, record.args = SESSION_ID.sub("[session]", record.getMessage()), None
        return True


_hide = HideSessionIds()


def quieten() -> None:
    """Keep the SDK's loggers to warnings, and ids out of those."""
    for name in SDK:
        logging.getLogger(name).setLevel(logging.WARNING)
    for name in WITH_IDS:
        logging.getLogger(name).addFilter(_hide)
