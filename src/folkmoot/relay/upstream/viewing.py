"""How it is with a server, as it is shown."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from folkmoot.gateway.model import Inventory
from folkmoot.relay.upstream.health import AWAY
from folkmoot.relay.upstream.model import BackendView
from folkmoot.telemetry.clean import clean

if TYPE_CHECKING:
    from folkmoot.relay.upstream.backend import LiveBackend
    from folkmoot.relay.upstream.conversation import Conversation

EMPTY = Inventory()
LONGEST = 200


def view_of(backend: LiveBackend) -> BackendView:
    """The view of one server."""
    lists = backend.inventory or EMPTY
    open_ = conversations(backend)
    return BackendView(
        namespace=backend.spec.namespace,
        name=backend.spec.name,
        transport=backend.connecting.transport,
        target=backend.connecting.target,
        state=backend.state.value,
        why=clean(backend.connecting.told(backend.why) if backend.state in AWAY else backend.why),
        since=backend.health.since,
        server=_text(lists.server.get("name")),
        version=_text(lists.server.get("version")),
        era="" if backend.inventory is None else ("stateless" if lists.stateless else "handshake"),
        tools=len(lists.tools),
        resources=len(lists.resources),
        templates=len(lists.templates),
        prompts=len(lists.prompts),
        faults=lists.faults,
        connections=len(open_),
        in_flight=backend.in_flight,
        calls=backend.tally.calls,
        errors=backend.tally.errors,
        restarts=sum(line.losses for line in backend.lines),
        dropped=sum(conversation.dropped for conversation in open_),
        last_error=backend.tally.last_error,
        median_ms=backend.tally.median_ms,
        outcomes=dict(backend.tally.outcomes),
        buckets=tuple(backend.tally.buckets),
        seconds=backend.tally.seconds,
        retry_after=retry_after(backend),
    )


def conversations(backend: LiveBackend) -> list[Conversation]:
    """Everything that is open to a server."""
    kept = [line.conversation for line in backend.lines if line.conversation is not None]
    return kept if backend.pool is None else [*kept, *backend.pool.conversations]


def retry_after(backend: LiveBackend) -> float | None:
    """In how many seconds a server that is not reached is tried again."""
    attempts = [line.next_attempt for line in backend.lines if line.next_attempt is not None]
    if not attempts:
        return None
    return max(0.0, round(min(attempts) - asyncio.get_running_loop().time(), 1))


def _text(value: Any) -> str:
    return value[:LONGEST] if isinstance(value, str) else ""
