"""Watching: resources whose changes are told, over as many links as it takes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final, TypeAlias

from folkmoot.core.errors import BackendBusy, BackendFailed, GatewayError
from folkmoot.mcp.wire import URIS
from folkmoot.relay.upstream.line import wait_after
from folkmoot.relay.upstream.waiting import Late, Unanswered

if TYPE_CHECKING:
    from folkmoot.core.message import Notification
    from folkmoot.relay.upstream.conversation import Conversation
    from folkmoot.relay.upstream.waiting import Listen

logger = logging.getLogger("folkmoot.backend")

MOST_WATCHED: Final = 200
"""Resources of one server that are watched at once; one more is refused."""
EVERY_SECONDS: Final = 0.1
"""Changes of one resource within this time are one."""
LISTEN_SECONDS: Final = 10.0
"""How long a server may take to agree to tell of changes."""

Changed: TypeAlias = Callable[[], None]
Reach: TypeAlias = Callable[[], Awaitable["Conversation"]]
"""A conversation to listen on; a `GatewayError` says why there is none."""


class Watch:
    """One resource, who wants to know when it changes, and the task that listens for that."""

    def __init__(self) -> None:
        self.tellers: list[Changed] = []
        self.begun: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Done when the server agreed to tell of it, or did not."""
        self.task: asyncio.Task[None] | None = None
        self._loop = asyncio.get_running_loop()
        self._told_at = float("-inf")
        self._soon: asyncio.TimerHandle | None = None

    def tell(self, _: Notification | None = None) -> None:
        """Tell everyone, at once or soon: what changes all the time is told now and then."""
        wait = self._told_at + EVERY_SECONDS - self._loop.time()
        if wait <= 0:
            self._tell()
        elif self._soon is None:
            self._soon = self._loop.call_later(wait, self._tell)

    def _tell(self) -> None:
        self._told_at, self._soon = self._loop.time(), None
        for teller in list(self.tellers):
            try:
                teller()
            except Exception:
                logger.exception("a change of a resource could not be announced")

    def settle(self, error: GatewayError | None) -> None:
        """Let those who wait for the server to agree know."""
        if self.begun.done():
            return
        if error is None:
            self.begun.set_result(None)
        else:
            self.begun.set_exception(error)
            # Whoever waited for it may have left.
            self.begun.exception()


class Watching:
    """What is watched at one server, by whose conversation it is."""

    def __init__(self, tasks: asyncio.TaskGroup) -> None:
        self._tasks = tasks
        self._watches: dict[tuple[str, str], Watch] = {}

    def watched_by(self, person: str) -> bool:
        """Whether someone watches something over a link of their own."""
        return any(who == person for who, _ in self._watches)

    async def watch(self, uri: str, changed: Changed, person: str, reach: Reach) -> Changed:
        """Have `changed` called when a resource changes, until the answer is called."""
        key = (person, uri)
        watch = self._watches.get(key)
        if watch is None:
            if len(self._watches) >= MOST_WATCHED:
                raise BackendBusy("Too many resources of the server are watched already.")
            watch = self._watches[key] = Watch()
            watch.task = self._tasks.create_task(self._keep(key, watch, reach))
        watch.tellers.append(changed)
        stop = self._leaving(key, watch, changed)
        try:
            await asyncio.shield(watch.begun)
        except BaseException:
            stop()
            raise
        return stop

    def _leaving(self, key: tuple[str, str], watch: Watch, changed: Changed) -> Changed:
        there = [True]

        def stop() -> None:
            if not there:
                return
            there.clear()
            watch.tellers.remove(changed)
            if not watch.tellers and watch.task is not None:
                watch.task.cancel()
                self._forget(key, watch)

        return stop

    def _forget(self, key: tuple[str, str], watch: Watch) -> None:
        if self._watches.get(key) is watch:
            del self._watches[key]

    async def _keep(self, key: tuple[str, str], watch: Watch, reach: Reach) -> None:
        """Listen, and listen again when the link or the server ends that."""
        failures = 0
        try:
            while True:
                listen = await self._listen(key[1], watch, reach)
                if listen is not None:
                    if watch.begun.done():
                        # It may have changed while nobody listened.
                        watch.tell()
                    watch.settle(None)
                    failures = 0
                    try:
                        await listen.ended.wait()
                    finally:
                        listen.close()
                failures += 1
                await asyncio.sleep(wait_after(failures))
        except GatewayError as error:
            watch.settle(error)
        finally:
            watch.settle(BackendFailed("The backend was stopped."))
            self._forget(key, watch)

    async def _listen(self, uri: str, watch: Watch, reach: Reach) -> Listen | None:
        """Have the server agree to tell; None to try again, unless this was the first time."""
        try:
            conversation = await reach()
            listen = await conversation.listen({URIS: [uri]}, watch.tell, LISTEN_SECONDS)
        except GatewayError:
            if watch.begun.done():
                return None
            raise
        except (Unanswered, Late) as error:
            if watch.begun.done() or (isinstance(error, Unanswered) and error.gone):
                return None
            raise BackendFailed("The server does not announce changes.") from None
        if uri in (listen.agreed.result().get(URIS) or ()):
            return listen
        listen.close()
        raise BackendFailed("The server does not announce changes of this resource.")
