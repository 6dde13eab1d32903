"""Every open connection of a server: where each comes from, which must go, and whose turn it is.

Strangers share most of the places; a tenth is kept for those who are signed in, and `/health` and
other nodes are always answered. When the strangers' places are taken, connections that are idle or
slow are closed: those of the address that has most of them first, and of these the newest first.

The hub answers everyone in one thread. While it has time, a request begins as soon as its head has
come. Under load requests wait, and those begin first whose account, or whose address for strangers,
used the least processor time in the last seconds: whoever sends much waits behind whoever asks a
little, but for no longer than about a second. On the connections of a trusted proxy, which carry
requests of many, the client's address counts for everyone. A part of those who wait begins in each
turn of the loop, so that others which arrive meanwhile are noticed soon.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Coroutine
from heapq import heappop, heappush
from time import monotonic
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Protocol

from msgspec import Struct, field

from folkmoot.core import errors as e
from folkmoot.core.entity import Entity
from folkmoot.transports.answers import JsonResponse, retry_after
from folkmoot.transports.bodies import nobody, nowhere
from folkmoot.transports.limits import (
    BEGUN_SHARE,
    BODY_RETRY_SECONDS,
    IDLE_CHECK_SECONDS,
    IDLE_SECONDS,
    MAX_LINGERING,
    MIN_BEGUN_PER_TURN,
    OPEN_FACTOR,
    SHED_SHARE,
    SIGNED_IN_RESERVE,
    USE_FORGOTTEN_SECONDS,
    USE_HALF_LIFE_SECONDS,
)

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

    from folkmoot.telemetry.metrics import Metrics
    from folkmoot.transports.accept import TurnedAway
    from folkmoot.transports.bodies import Identify

PEER: Final = "folkmoot.peer"
"""The member of a request's scope that is the `ConnectionPeer` it came from."""
FORWARD_PATH: Final = "/cluster/mcp"
"""Where nodes take what others forward; they have limits of their own for it."""
NODES: Final = "nodes"
"""What connections from other nodes are counted by; no account has such an id."""
METERED: Final = "folkmoot.metered"
"""The member of a forwarded request's scope that is its `Metered`."""
ALWAYS_SERVED: Final = frozenset({"/health", "/health/ready", "/metrics", FORWARD_PATH})


MOST: Final = "http.max_connections"
PER_ADDRESS: Final = "http.max_connections_per_address"
"""The settings of the two limits of connections."""

logger = logging.getLogger("folkmoot.http")


class Turns:
    """The requests of one server that wait to begin; there are no more than connections."""

    def __init__(self) -> None:
        self.used: dict[str, float] = {}
        """Seconds of the loop's time that each account or address used lately."""
        self._waiting: list[tuple[float, int, Callable[[], object]]] = []
        self._number = 0
        self._begun = 0
        self._is_turning = False
        self._forgotten = 0.0

    def begin(self, who: str, start: Callable[[], object]) -> None:
        """Call `start` now, or when its turn comes."""
        if self._begun < MIN_BEGUN_PER_TURN and not self._waiting:
            self._begun += 1
            start()
            self._keep_turning()
        else:
            self.queue(who, start)

    def queue(self, who: str, start: Callable[[], object]) -> None:
        """Call `start` when its turn comes, in a later turn of the loop."""
        self._number += 1
        # Waiting makes up for what was used, so that nobody waits for ever.
        heappush(self._waiting, (monotonic() + self.used.get(who, 0.0), self._number, start))
        self._keep_turning()

    def charge(self, who: str, seconds: float) -> None:
        """Count time that was used."""
        self.used[who] = self.used.get(who, 0.0) + seconds

    async def wait(self, who: str) -> None:
        """Wait for a turn in a request that has begun."""
        turn = asyncio.get_running_loop().create_future()
        self.begin(who, lambda: None if turn.done() else turn.set_result(None))
        await turn

    def _keep_turning(self) -> None:
        if not self._is_turning:
            self._is_turning = True
            asyncio.get_running_loop().call_soon(self._turn)

    def _turn(self) -> None:
        now = monotonic()
        if now - self._forgotten >= USE_HALF_LIFE_SECONDS:
            self._forgotten = now
            self.used = {
                who: spent / 2 for who, spent in self.used.items() if spent > USE_FORGOTTEN_SECONDS
            }
        waiting = self._waiting
        self._begun = min(len(waiting), max(MIN_BEGUN_PER_TURN, len(waiting) // BEGUN_SHARE))
        for _ in range(self._begun):
            try:
                heappop(waiting)[2]()
            except Exception:
                # Everyone else who waits goes on.
                logger.exception("a turn failed")
        if self._begun:
            asyncio.get_running_loop().call_soon(self._turn)
        else:
            self._is_turning = False


class Metered(Struct, eq=False):
    """A coroutine whose time is counted as its account's or address's, step by step."""

    inner: Coroutine[Any, Any, None]
    turns: Turns
    who: str

    def send(self, value: Any) -> Any:
        """Go on until the coroutine waits again."""
        began = monotonic()
        try:
            return self.inner.send(value)
        finally:
            used = self.turns.used
            used[self.who] = used.get(self.who, 0.0) + monotonic() - began

    def throw(
        self,
        kind: type[BaseException] | BaseException,
        error: BaseException | object = None,
        traceback: TracebackType | None = None,
    ) -> Any:
        """Go on with an error, as when the task is cancelled."""
        if isinstance(kind, BaseException):
            return self.inner.throw(kind)
        return self.inner.throw(kind, error, traceback)

    def close(self) -> None:
        """Give the coroutine up."""
        self.inner.close()

    def __await__(self) -> Any:
        """A task drives it step by step; nothing else awaits it."""
        return self.inner.__await__()


# Tasks take nothing else.
Coroutine.register(Metered)


class WaitingConnection(Protocol):
    """The part of a connection needed to close it."""

    transport: asyncio.Transport

    @property
    def waiting_since(self) -> float | None:
        """Since when it only waits for its client; None while it is served."""


class ConnectionPeer(Entity):
    """The other end of one open connection."""

    connections: OpenConnections
    address: str
    """What it is counted by while it is a stranger's; empty where addresses say nothing."""
    connection: WaitingConnection | None
    account: str = ""
    """Whose requests came on it last; empty for a stranger's."""
    shown: Any = None
    """What its last request showed, for whoever reads that; the connection keeps it anyway."""


class OpenConnections(Entity):
    """The connections of one server. At most `most` are served at the same time.

    `per_address` bounds those of strangers from one address, and `per_account` those of one
    account; 0 is no limit. `address_of` makes the key of a peer's address, empty where many share
    it, as they do behind a trusted proxy; `locate` finds the address of a request there.
    """

    most: int
    away: TurnedAway
    per_address: int = 0
    per_account: int = 0
    address_of: Callable[[str], str] = str
    locate: Callable[[Scope], str] = nowhere
    identify: Identify = nobody
    metrics: Metrics | None = None
    turns: Turns = field(default_factory=Turns)
    _peers: dict[ConnectionPeer, None] = {}
    _of_address: Counter[str] = field(default_factory=Counter)
    _of_account: Counter[str] = field(default_factory=Counter)
    _lingering: dict[ConnectionPeer, str] = {}

    def __post_init__(self) -> None:
        self._open_to_all = self.most - self.most // SIGNED_IN_RESERVE
        self._looked = {False: 0.0, True: 0.0}
        """When idle connections were last looked for in vain, while there was room and not."""

    def __len__(self) -> int:
        return len(self._peers)

    def opened(self, connection: WaitingConnection, host: str) -> ConnectionPeer:
        """Count a new connection, and close idle ones if it is one too many."""
        address = self.address_of(host) if host else ""
        peer = ConnectionPeer(self, address, connection)
        self._peers[peer] = None
        self._of_address[address] += 1
        if self._is_over(peer):
            self._shed(peer, only=address)
        elif len(self._peers) > self._open_to_all:
            self._shed(peer)
        if len(self._peers) > OPEN_FACTOR * self.most:
            self.away.count()
            connection.transport.abort()
        return peer

    def closed(self, peer: ConnectionPeer) -> None:
        """Forget a connection that is gone."""
        self._lingering.pop(peer, None)
        if self._peers.pop(peer, peer) is None:
            self._count(peer, -1)
            # The two hold each other, which would keep both for long.
            peer.connection = None

    def sign_in(self, peer: ConnectionPeer, account: str) -> None:
        """A request on a connection is this account's; raises where it has too many of them."""
        if account == peer.account:
            return
        if self.per_account and self._of_account[account] >= self.per_account:
            raise e.ConnectionsExceeded(
                f"You have {self.per_account} connections open; close some.",
                setting="http.max_connections_per_account",
                retry_after=BODY_RETRY_SECONDS,
            )
        self._count(peer, -1)
        peer.account = account
        self._count(peer, 1)

    def trust(self, peer: ConnectionPeer) -> None:
        """A connection is another node's: it is not counted by its address, which many share."""
        if peer.account != NODES:
            self._count(peer, -1)
            peer.address, peer.account = "", NODES
            self._count(peer, 1)

    def whose(self, peer: ConnectionPeer, scope: Scope) -> str:
        """Whose turn a request takes: that of an account or address."""
        if peer.address or peer.account == NODES:
            return peer.account or peer.address
        return self.locate(scope)

    def linger(self, peer: ConnectionPeer) -> bool:
        """Count a connection that sends on after its answer; False where too many do."""
        who = peer.account or peer.address
        taken = who and who in self._lingering.values()
        if taken or len(self._lingering) >= MAX_LINGERING:
            return False
        self._lingering[peer] = who
        return True

    def app_for(self, peer: ConnectionPeer, path: str, app: ASGIApp) -> ASGIApp:
        """What answers a request: the application, unless there is no room for it."""
        if len(self._peers) <= self._open_to_all and (peer.account or not self._is_over(peer)):
            return app
        if path in ALWAYS_SERVED:
            return app
        if len(self._peers) > self.most:
            return self._refuse(MOST)
        return app if peer.account else self._for_members(app, peer)

    def _for_members(self, app: ASGIApp, peer: ConnectionPeer) -> ASGIApp:
        async def ask(scope: Scope, receive: Receive, send: Send) -> None:
            setting = PER_ADDRESS if self._is_over(peer) else MOST
            try:
                answer = app if await self.identify(scope) else self._refuse(setting)
            except e.RequestError as error:
                answer = JsonResponse(error.as_http(), error.http, retry_after(error))
            await answer(scope, receive, send)

        return ask

    def _refuse(self, setting: str) -> ASGIApp:
        """What answers a request for which there is no room, because of a setting."""
        what = "your address" if setting == PER_ADDRESS else "the hub"
        error = e.HubFull(
            f"There are as many connections as {what} may have; try again in a moment.",
            setting=setting,
            retry_after=BODY_RETRY_SECONDS,
        )
        headers = {"connection": "close", **retry_after(error)}

        async def refuse(scope: Scope, receive: Receive, send: Send) -> None:
            self.away.count()
            await JsonResponse(error.as_http(), error.http, headers)(scope, receive, send)

        return refuse

    def _is_over(self, peer: ConnectionPeer) -> bool:
        """Whether a stranger's address has more connections than it may."""
        most = self.per_address
        return bool(most and peer.address and not peer.account) and (
            self._of_address[peer.address] > most
        )

    def _count(self, peer: ConnectionPeer, change: int) -> None:
        counts, key = (
            (self._of_account, peer.account) if peer.account else (self._of_address, peer.address)
        )
        counts[key] += change
        if not counts[key]:
            del counts[key]

    def _shed(self, newcomer: ConnectionPeer, only: str = "") -> None:
        """Close idle and slow connections of strangers for a newcomer, of all or one address."""
        now = asyncio.get_running_loop().time()
        full = len(self._peers) > OPEN_FACTOR * self.most
        if now < self._looked[full] + IDLE_CHECK_SECONDS:
            return
        latest = now if full else now - IDLE_SECONDS
        idle = [
            peer
            for peer in reversed(self._peers)
            if not peer.account
            and peer is not newcomer
            and (not only or peer.address == only)
            and (connection := peer.connection) is not None
            and (since := connection.waiting_since) is not None
            and since <= latest
        ]
        idle.sort(key=lambda peer: -self._of_address[peer.address])
        chosen = idle[: max(1, self.most // SHED_SHARE)]
        for peer in chosen:
            if peer.connection is not None:
                peer.connection.transport.abort()
            self.closed(peer)
        if not chosen:
            self._looked[full] = now
        elif self.metrics is not None:
            self.metrics.shed.inc(len(chosen))


def trust(scope: Scope) -> None:
    """Have the connection of a request be another node's."""
    peer: ConnectionPeer | None = scope.get(PEER)
    if peer is not None:
        peer.connections.trust(peer)


async def take_turn(scope: Scope, who: str) -> None:
    """Have the rest of a request be that of an account or address, and wait for its turn."""
    metered: Metered | None = scope.get(METERED)
    if metered is not None:
        metered.who = who
        await metered.turns.wait(who)


def sign_in(scope: Scope, account: str) -> None:
    """Have the connection of a request be this account's from now on."""
    peer: ConnectionPeer | None = scope.get(PEER)
    if peer is not None:
        peer.connections.sign_in(peer, account)
