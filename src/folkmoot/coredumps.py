"""Keeps keys out of core dumps, and a process's memory from other processes of its user."""

from __future__ import annotations

import ctypes
import logging
import resource
import sys

logger = logging.getLogger("folkmoot")

PR_SET_DUMPABLE = 4
"""The option of Linux's `prctl`: whether a process may be dumped, or attached to."""


def forbid_dumps() -> None:
    """Have this process's memory not dumped, nor read by other processes of its user.

    What it starts is not concerned: a program that is executed begins as dumpable as any. Where
    the system has no such switch, at least no core file is written.
    """
    if sys.platform == "linux":
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0:
            return
        logger.warning(
            "the memory of this process can be dumped", extra={"errno": ctypes.get_errno()}
        )
    try:
        _, hard = resource.getrlimit(resource.RLIMIT_CORE)
        resource.setrlimit(resource.RLIMIT_CORE, (0, hard))
    except (OSError, ValueError):
        logger.warning("core files of this process cannot be switched off")
