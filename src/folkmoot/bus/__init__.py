"""Publish and subscribe: events about committed changes, for everyone who subscribed.

An *event* is published on a *subject*, tokens joined by dots (`mail.42`). A *subscription*
is made with a *pattern*, in which `*` stands for one token and a last `>` for one or more. Each
subscription has a bounded queue of its own; when it overflows, a `Missed` tells the subscriber to
re-read the store. A lost event costs latency, never data.
"""

from __future__ import annotations

from folkmoot.bus.memory import MemoryBus
from folkmoot.bus.subjects import check_pattern, check_subject

__all__ = ["MemoryBus", "check_pattern", "check_subject"]
