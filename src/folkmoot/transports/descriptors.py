"""Room for connections: each takes a file descriptor, and systems give a process few at first."""

from __future__ import annotations

import logging
import resource

from folkmoot.transports.connections import CROWD

logger = logging.getLogger("folkmoot.transports")

SPARE = 256
"""For the database, the log, operators, backups and links to other servers."""


def make_room(max_connections: int) -> None:
    """Raise this process's own limit as far as the connections need and the system allows."""
    wanted = CROWD * (max_connections + 1) + SPARE
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return
    allowed = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    except (OSError, ValueError):
        allowed = soft
    if allowed < wanted:
        logger.warning(
            "the system allows fewer open files than http.max_connections needs",
            extra={"allowed": allowed, "needed": wanted},
        )
