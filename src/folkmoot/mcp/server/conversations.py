"""The conversations of a front, each carried in a task of its own until it ends."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from folkmoot.core.errors import FolkmootError, HubStopping, InternalError, ServerUnreachable
from folkmoot.mcp.server.responses import until_gone

if TYPE_CHECKING:
    from starlette.types import Receive

    from folkmoot.mcp.carrier import Carrier
    from folkmoot.mcp.server.carriers import FrontCarrier
    from folkmoot.mcp.server.streams import Reader

logger = logging.getLogger("folkmoot.proxy")

Serve: TypeAlias = "Callable[[Carrier], Awaitable[None]]"
"""Carries one conversation until it ends."""
GRACE_SECONDS: Final = 5.0
"""How long conversations may take to end when the front stops."""


class Conversations:
    """Begins conversations, and ends them all when it is left."""

    def __init__(self, serve: Serve) -> None:
        self._serve = serve
        self._tasks: asyncio.TaskGroup | None = None
        self._carried: dict[asyncio.Task[None], FrontCarrier] = {}
        self.stopping = False

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Carry conversations while entered."""
        failure: BaseException | None = None
        async with asyncio.TaskGroup() as tasks:
            self._tasks = tasks
            try:
                yield
            except BaseException as error:  # noqa: BLE001 - raised again, out of the group
                failure = error
            await self._finish()
        if failure is not None:
            raise failure

    async def _finish(self) -> None:
        self.stop()
        if self._carried:
            await asyncio.wait(self._carried, timeout=GRACE_SECONDS)
        for task in list(self._carried):
            task.cancel()

    def begin(self, carrier: FrontCarrier, ended: Callable[[], object] = lambda: None) -> None:
        """Carry a conversation, and tell when it has ended."""
        task = self.start(self._carry(carrier, ended))
        self._carried[task] = carrier
        task.add_done_callback(self._carried.pop)

    def start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Do something beside."""
        if self._tasks is None or self.stopping:
            work.close()
            raise HubStopping("The proxy is stopping.")
        return self._tasks.create_task(work)

    @asynccontextmanager
    async def watching(self, receive: Receive, reader: Reader) -> AsyncIterator[None]:
        """Let a reader go when its client does, or at the end."""
        watch = self.start(until_gone(receive, reader))
        try:
            yield
        finally:
            watch.cancel()
            reader.leave()

    def stop(self) -> None:
        """End every conversation, and begin no other."""
        self.stopping = True
        for carrier in list(self._carried.values()):
            carrier.end(HubStopping("The proxy is stopping."))

    async def _carry(self, carrier: FrontCarrier, ended: Callable[[], object]) -> None:
        error: FolkmootError = ServerUnreachable("The conversation with the server has ended.")
        try:
            await self._serve(carrier)
        except FolkmootError as failed:
            error = failed
            logger.warning("a conversation failed", extra={"error": failed.message})
        except Exception:
            error = InternalError("The proxy failed to carry this conversation.")
            logger.exception("a conversation failed")
        finally:
            carrier.end(error)
            ended()
