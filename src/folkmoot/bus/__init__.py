"""Publish and subscribe: events about committed changes, for everyone who subscribed.

An *event* is published on a *subject*, tokens joined by dots (`mail.42`). A *subscription*
is made with a *pattern*, in which `*` stands for one token and a last `>` for one or more. Each
subscription has a bounded queue of its own; when it overflows, a `Missed` tells the subscriber to
re-read the store. A lost event costs latency, never data.

A *listener* has no queue: it is called before whoever publishes goes on. That is for what must not
be later than the answer to a caller, such as a cache that forgets a token that was revoked.

`MemoryBus` is for one process. `nats.NatsBus` also reaches the other processes of a hub, its
*nodes*, through servers that are not trusted.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from folkmoot.bus.memory import MemoryBus
from folkmoot.bus.subjects import check_pattern, check_subject

if TYPE_CHECKING:
    from ssl import SSLContext


def make_bus(url: str, *, local: Iterable[str] = (), tls: SSLContext | None = None) -> MemoryBus:
    """The bus that an address names, in memory for an empty one; `local` stays in this process.

    Servers with TLS are trusted by `tls`, or as the system does.
    """
    if not url:
        return MemoryBus()
    from folkmoot.bus.nats import NatsBus
    from folkmoot.bus.nats_client import parse_servers

    return NatsBus(parse_servers(url), local=local, tls=tls)
