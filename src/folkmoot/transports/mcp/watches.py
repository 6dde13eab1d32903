"""What backends change: resources that somebody watches, and lists, which rights change too.

A backend is asked once for a resource, however many watch it.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final, NamedTuple

from folkmoot.core.errors import BackendUnavailable, FolkmootError, TooManyInFlight
from folkmoot.core.events import ACCOUNTS, BACKENDS, GRANTS, SETTINGS, about
from folkmoot.taskgroups import group
from folkmoot.transports.mcp.hearers import LIST_CHANGED, RIGHTS

if TYPE_CHECKING:
    from folkmoot.core.ports import Bus, Event
    from folkmoot.gateway.gateway import Gateway
    from folkmoot.gateway.ports import Backend
    from folkmoot.transports.mcp.hearers import Hearer, Hearers

logger = logging.getLogger("folkmoot.mcp")

MOST_WATCHED: Final = 256
"""Resources that one session or stream may watch."""
MOST_OF_ACCOUNT: Final = 1_024
"""Resources that all sessions and streams of one account may watch, each counted for itself."""


class Spot(NamedTuple):
    """What is watched: a backend's own URI, and for whom where each person has a link."""

    namespace: str
    own: str
    person: str


class Watched:
    """One resource, and who is told of its changes under which URI."""

    def __init__(self, spot: Spot) -> None:
        self.spot = spot
        self.hearers: dict[Hearer, str] = {}
        self.backend: Backend | None = None
        """Whoever tells us of it, once they do."""
        self.stop: Callable[[], None] | None = None
        self.asking: asyncio.Task[FolkmootError | None] | None = None
        """Asks the backend to tell; what it comes to is why it does not."""
        self.heard = False
        """Whether a backend has told of it before."""

    def end(self) -> None:
        """Have the backend tell us nothing more of it."""
        stop, self.stop, self.backend = self.stop, None, None
        if stop is not None:
            stop()


class Ours:
    """What one session or stream watches, by canonical URI, and for which account."""

    def __init__(self, owner: str) -> None:
        self.owner = owner
        self.watched: dict[str, Watched] = {}


class Watches:
    """All of them."""

    def __init__(self, gateway: Gateway, hearers: Hearers) -> None:
        self._gateway = gateway
        self._hearers = hearers
        self._watched: dict[Spot, Watched] = {}
        self._of: dict[Hearer, Ours] = {}
        self._counts: Counter[str] = Counter()
        """By account."""
        self._tasks: asyncio.TaskGroup | None = None
        self._asking: set[asyncio.Task[FolkmootError | None]] = set()

    def __len__(self) -> int:
        return len(self._watched)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Own what asks backends to tell; on leaving, nothing is watched any more."""
        async with group() as tasks:
            self._tasks = tasks
            try:
                yield
            finally:
                for watched in tuple(self._watched.values()):
                    watched.hearers.clear()
                    watched.end()
                for task in tuple(self._asking):
                    task.cancel()

    async def add(self, hearer: Hearer, uri: str, shown: str) -> None:
        """Have someone told of a resource by its canonical URI, under the one it is shown by.

        Raises a `GatewayError` if its backend is away or tells of no changes.
        """
        ours = self._of.get(hearer) or Ours(hearer.account_id)
        if uri in ours.watched:
            return
        if len(ours.watched) >= MOST_WATCHED or self._counts[ours.owner] >= MOST_OF_ACCOUNT:
            raise TooManyInFlight(f"No more than {MOST_WATCHED} resources can be watched at once.")
        spot = self._spot(uri, ours.owner)
        watched = self._watched.get(spot)
        if watched is None:
            watched = self._watched[spot] = Watched(spot)
        watched.hearers[hearer] = shown
        self._of[hearer] = ours
        ours.watched[uri] = watched
        self._counts[ours.owner] += 1
        try:
            # Others may wait for the same: whoever leaves first does not end it for them.
            why = await asyncio.shield(self._ask(watched))
        except BaseException:
            self.remove(hearer, uri)
            raise
        if why is not None:
            self.remove(hearer, uri)
            raise why

    def remove(self, hearer: Hearer, uri: str) -> None:
        """Tell someone no more of a resource."""
        ours = self._of.get(hearer)
        watched = None if ours is None else ours.watched.pop(uri, None)
        if ours is None or watched is None:
            return
        self._counts[ours.owner] -= 1
        if not self._counts[ours.owner]:
            del self._counts[ours.owner]
        if not ours.watched:
            del self._of[hearer]
        watched.hearers.pop(hearer, None)
        if not watched.hearers and self._watched.get(watched.spot) is watched:
            del self._watched[watched.spot]
            watched.end()

    def shown(self, hearer: Hearer) -> list[str]:
        """The URIs that someone asked to be told of."""
        ours = self._of.get(hearer)
        return [] if ours is None else [each.hearers[hearer] for each in ours.watched.values()]

    def remove_all(self, hearer: Hearer) -> None:
        """Tell someone no more of anything."""
        ours = self._of.get(hearer)
        for uri in () if ours is None else tuple(ours.watched):
            self.remove(hearer, uri)

    def renew(self) -> None:
        """See which backends have become others: those are asked anew."""
        for watched in self._watched.values():
            backend = self._gateway.backends.get(watched.spot.namespace)
            if watched.backend is not None and backend is not watched.backend:
                watched.end()
            if backend is not None and watched.backend is None:
                self._ask(watched)

    def _spot(self, uri: str, person: str) -> Spot:
        found = self._gateway.catalogue.resource(uri)
        backend = self._gateway.backends.get(found[0]) if found is not None else None
        if found is None or backend is None:
            raise BackendUnavailable("The backend of this resource is not available.")
        return Spot(*found, person if backend.spec.per_user else "")

    def _ask(self, watched: Watched) -> asyncio.Task[FolkmootError | None]:
        """The task that asks a backend to tell, begun unless it is under way or was heard."""
        asking = watched.asking
        if asking is not None and (not asking.done() or watched.backend is not None):
            return asking
        if self._tasks is None:
            raise RuntimeError("watches are not running")
        watched.asking = asking = self._tasks.create_task(self._begin(watched))
        self._asking.add(asking)
        asking.add_done_callback(self._asking.discard)
        return asking

    async def _begin(self, watched: Watched) -> FolkmootError | None:
        spot, renewed = watched.spot, watched.heard
        backend = self._gateway.backends.get(spot.namespace)
        if backend is None:
            return BackendUnavailable(f"The backend {spot.namespace} was removed.")
        try:
            stop = await backend.watch(spot.own, lambda: self._changed(watched), spot.person)
        except FolkmootError as error:
            return error
        except Exception:
            logger.exception("a backend was not asked to tell", extra={"backend": spot.namespace})
            return BackendUnavailable(f"The backend {spot.namespace} failed.")
        if not watched.hearers:
            stop()
            return None
        watched.backend, watched.stop, watched.heard = backend, stop, True
        if renewed:
            # Whatever happened before the backend was there again went unheard.
            self._changed(watched)
        return None

    def _changed(self, watched: Watched) -> None:
        for hearer, shown in tuple(watched.hearers.items()):
            self._hearers.tell(hearer, shown)


QUIET_SECONDS: Final = 0.25
"""Changes that come within this time are told of together."""


class Changes:
    """Gathers what has changed, and has everyone told whom it may concern."""

    def __init__(
        self,
        bus: Bus,
        hearers: Hearers,
        also: Callable[[], None] = lambda: None,
    ) -> None:
        self._hearers = hearers
        self._also = also
        """Called with every change of what backends offer."""
        self._running = False
        self._timer: asyncio.TimerHandle | None = None
        self._lists: dict[str, None] = {}
        self._accounts: set[str] = set()
        self._everyone = False
        bus.listen(BACKENDS, self._lists_changed)
        bus.listen(SETTINGS, self._everyones_changed)
        for pattern in (GRANTS, ACCOUNTS):
            bus.listen(pattern, self._rights_changed)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Tell of changes while entered."""
        self._running = True
        try:
            yield
        finally:
            self._running = False
            if self._timer is not None:
                self._timer.cancel()

    def _lists_changed(self, event: Event) -> None:
        self._lists |= dict.fromkeys(LIST_CHANGED[each] for each in event.data["lists"])
        self._soon()

    def _rights_changed(self, event: Event) -> None:
        self._accounts.add(about(event))
        self._soon()

    def _everyones_changed(self, _: Event) -> None:
        self._everyone = True
        self._soon()

    def _soon(self) -> None:
        if self._running and self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(QUIET_SECONDS, self._tell)

    def _tell(self) -> None:
        self._timer = None
        lists, self._lists = self._lists, {}
        accounts, self._accounts = frozenset(self._accounts), set()
        everyone, self._everyone = self._everyone, False
        if lists:
            self._also()
        for each in lists:
            self._hearers.tell_all(each)
        if everyone or accounts:
            self._hearers.tell_all(RIGHTS, None if everyone else accounts)
