"""What backends change: resources that somebody watches, and lists, which rights change too."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING

from msgspec import Struct, field

from folkmoot.core import errors as e
from folkmoot.core.entity import Entity
from folkmoot.core.events import ACCOUNTS, BACKENDS, GRANTS, SETTINGS, about
from folkmoot.taskgroups import background_tasks
from folkmoot.transports.limits import (
    MAX_RESOURCES_WATCHED,
    MAX_WATCHES_OF_ACCOUNT,
    WATCH_DELAY_SECONDS,
)
from folkmoot.transports.mcp.subscribers import GRANTED, LIST_CHANGED, RIGHTS

if TYPE_CHECKING:
    from folkmoot.core.ports import Bus, Event
    from folkmoot.gateway.gateway import Gateway
    from folkmoot.gateway.model import Backend
    from folkmoot.taskgroups import BackgroundTasks
    from folkmoot.transports.mcp.subscribers import Subscriber, Subscribers

logger = logging.getLogger("folkmoot.mcp")


class WatchedResource(Struct, eq=False):
    """A watched resource: its canonical URI, and the watcher's own spelling."""

    subscriber: Subscriber
    uri: str
    shown: str
    owner: str
    """Whose account it counts for."""
    asking: bool = False
    """Whether its backend is being asked to tell."""
    backend: Backend | None = None
    """Whoever tells us of it, once they do."""
    stop: Callable[[], None] | None = None

    def end(self) -> None:
        """Have the backend tell us nothing more of it."""
        stop, self.stop, self.backend = self.stop, None, None
        if stop is not None:
            stop()


class Watches(Entity):
    """Who watches which resource; several watchers share one subscription at the backend."""

    gateway: Gateway
    subscribers: Subscribers
    _of: dict[Subscriber, dict[str, WatchedResource]] = {}
    _counts: Counter[str] = field(default_factory=Counter)
    """By account."""
    _renewing: BackgroundTasks | None = None

    def __len__(self) -> int:
        return sum(map(len, self._of.values()))

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Own what asks backends anew; on leaving, nothing is watched any more."""
        async with background_tasks() as self._renewing:
            try:
                yield
            finally:
                for subscriber in tuple(self._of):
                    self.remove_all(subscriber)

    async def add(self, subscriber: Subscriber, uri: str, shown: str) -> None:
        """Have someone told of a resource by its canonical URI, under the one it is shown by.

        Raises a `GatewayError` if its backend is away or tells of no changes.
        """
        ours, owner = self._of.get(subscriber, {}), subscriber.account_id
        if uri in ours:
            return
        if len(ours) >= MAX_RESOURCES_WATCHED or self._counts[owner] >= MAX_WATCHES_OF_ACCOUNT:
            raise e.TooManyInFlight(
                f"No more than {MAX_RESOURCES_WATCHED} resources can be watched at once."
            )
        watched = WatchedResource(subscriber, uri, shown, owner)
        self._of.setdefault(subscriber, {})[uri] = watched
        self._counts[owner] += 1
        try:
            await self._begin(watched)
        except BaseException:
            self.remove(subscriber, uri)
            raise

    def remove(self, subscriber: Subscriber, uri: str) -> None:
        """Tell someone no more of a resource."""
        ours = self._of.get(subscriber, {})
        watched = ours.pop(uri, None)
        if watched is None:
            return
        if not ours:
            del self._of[subscriber]
        self._counts[watched.owner] -= 1
        if not self._counts[watched.owner]:
            del self._counts[watched.owner]
        watched.end()

    def shown(self, subscriber: Subscriber) -> list[str]:
        """The URIs that someone asked to be told of."""
        return [watched.shown for watched in self._of.get(subscriber, {}).values()]

    def remove_all(self, subscriber: Subscriber) -> None:
        """Tell someone no more of anything."""
        for uri in tuple(self._of.get(subscriber, ())):
            self.remove(subscriber, uri)

    def renew(self) -> None:
        """See which backends have become others: those are asked anew."""
        for watched in [each for ours in self._of.values() for each in ours.values()]:
            backend = self.gateway.backends.get(watched.uri.partition("://")[0])
            if watched.backend is not None and backend is not watched.backend:
                watched.end()
            idle = watched.backend is None and not watched.asking
            if backend is not None and idle and self._renewing is not None:
                self._renewing.run(self._again(watched))

    async def _again(self, watched: WatchedResource) -> None:
        try:
            await self._begin(watched)
        except e.FolkmootError:
            return
        # Whatever happened before the backend was there again went unheard.
        self.subscribers.notify(watched.subscriber, watched.shown)

    async def _begin(self, watched: WatchedResource) -> None:
        """Ask a backend to tell; raises why it does not."""
        found = self.gateway.catalogue.resource(watched.uri)
        backend = self.gateway.backends.get(found[0]) if found is not None else None
        if found is None or backend is None:
            raise e.BackendUnavailable("The backend of this resource is not available.")
        person = watched.owner if backend.spec.per_user else ""
        tell = partial(self.subscribers.notify, watched.subscriber, watched.shown)
        watched.asking = True
        try:
            stop = await backend.watch(found[1], tell, person)
        except e.FolkmootError:
            raise
        except Exception:
            logger.exception("a backend was not asked to tell", extra={"backend": found[0]})
            raise e.BackendUnavailable(f"The backend {found[0]} failed.") from None
        finally:
            watched.asking = False
        if self._of.get(watched.subscriber, {}).get(watched.uri) is watched:
            watched.backend, watched.stop = backend, stop
        else:
            stop()


class ListChanges(Entity):
    """Collects changed lists, and notifies everyone they may concern."""

    bus: Bus
    subscribers: Subscribers
    also: Callable[[], None] = lambda: None
    """Called with every change of what backends offer."""
    _running: bool = False
    _timer: asyncio.TimerHandle | None = None
    _lists: dict[str, None] = {}
    _accounts: set[str] = set()
    _granted: set[str] = set()
    _everyone: bool = False

    def __post_init__(self) -> None:
        self.bus.listen(BACKENDS, self._lists_changed)
        self.bus.listen(SETTINGS, self._settings_changed)
        self.bus.listen(ACCOUNTS, self._rights_changed)
        self.bus.listen(GRANTS, self._grants_changed)

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

    def _grants_changed(self, event: Event) -> None:
        self._granted.add(about(event))
        self._soon()

    def _settings_changed(self, _: Event) -> None:
        self._everyone = True
        self._soon()

    def _soon(self) -> None:
        if self._running and self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(WATCH_DELAY_SECONDS, self._notify)

    def _notify(self) -> None:
        self._timer = None
        lists, self._lists = self._lists, {}
        granted, self._granted = frozenset(self._granted), set()
        accounts, self._accounts = frozenset(self._accounts - granted), set()
        everyone, self._everyone = self._everyone, False
        if lists:
            self.also()
        for each in lists:
            self.subscribers.notify_all(each)
        if granted:
            self.subscribers.notify_all(GRANTED, granted)
        if everyone or accounts:
            self.subscribers.notify_all(RIGHTS, None if everyone else accounts)
