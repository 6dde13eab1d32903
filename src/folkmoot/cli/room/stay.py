"""Being in a room for a while: come in as someone, fetch what was said before, and end well."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from functools import partial
from threading import Thread
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from folkmoot.cli.credentials import ACCOUNT_UNKNOWN, GUEST_UNKNOWN
from folkmoot.cli.room.entrance import Entrance
from folkmoot.client import Gap, Message, Room
from folkmoot.core.errors import AuthenticationRequired, NotSignedIn

if TYPE_CHECKING:
    from folkmoot.cli.client import HubClient

PAGE: Final = 500
GAPS: Final[dict[str, str]] = {
    "history_gone": "the history no longer has them",
    "epoch_changed": "the room was restarted, and its numbering with it",
    "skipped": "the hub skipped some messages",
}
"""What may have become of messages, by the reason of their gap."""

Answer = TypeVar("Answer")


@asynccontextmanager
async def inside(room: str, who: Entrance) -> AsyncIterator[Room]:
    """The room, with someone in it; a connection that is lost comes back by itself."""
    try:
        async with Room(who.hub, room=room, token=who.token) as entered:
            yield entered
    except AuthenticationRequired:
        raise NotSignedIn(GUEST_UNKNOWN if who.guest else ACCOUNT_UNKNOWN) from None


def envelope_of(message: Message) -> dict[str, Any]:
    """A message in the members it came with."""
    return {
        "seq": message.seq,
        "ts": message.ts,
        "id": message.id,
        "from": message.sender,
        "to": list(message.to),
        "kind": message.kind,
        "correlation_id": list(message.correlation_id),
        "payload": message.payload,
    }


def missing(gap: Gap) -> str:
    """That messages are missing, which, and why."""
    why = GAPS.get(gap.reason, "the hub could not resume from there")
    if gap.seq <= gap.after or gap.reason == "epoch_changed":
        return f"some messages are missing: {why}"
    return f"messages {gap.after + 1} to {gap.seq} are missing: {why}"


async def before(
    rest: HubClient, room: str, after: int, through: int
) -> AsyncIterator[dict[str, Any]]:
    """What was said after a number and up to another, page by page."""
    while after < through:
        page = await aside(partial(rest.read_messages, room, after=after, limit=PAGE))
        if not page.messages:
            return
        for message in page.messages:
            seq = message.get("seq")
            if not isinstance(seq, int) or seq > through:
                return
            after = seq
            yield message


async def aside(ask: Callable[[], Answer]) -> Answer:
    """Ask the hub over HTTP while the room goes on; nobody who leaves waits for the answer."""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[Answer] = loop.create_future()

    def give(value: Answer | None, error: Exception | None) -> None:
        if answer.done():
            return
        if error is None:
            answer.set_result(cast("Answer", value))
        else:
            answer.set_exception(error)

    def run() -> None:
        value, failure = None, None
        try:
            value = ask()
        except Exception as error:  # noqa: BLE001 - raised where it is awaited
            failure = error
        # Whoever asked may have left, and the loop with them.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(give, value, failure)

    Thread(target=run, name="asking the hub", daemon=True).start()
    return await answer


class Company:
    """Tasks that end together."""

    def __init__(self) -> None:
        self._group: asyncio.TaskGroup | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def until_one_ends(self, *works: Coroutine[Any, Any, None]) -> None:
        """Do several things until one is done; what one of them raises is raised as it is."""
        try:
            async with asyncio.TaskGroup() as self._group:
                tasks = [self._start(self._group, work) for work in works]
                await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                self._group = None
                for task in self._tasks:
                    task.cancel()
        except BaseExceptionGroup as failures:
            raise failures.exceptions[0] from None

    def also(self, work: Coroutine[Any, Any, None]) -> None:
        """Do something beside, and let it go when the others end."""
        if self._group is None:
            work.close()
        else:
            self._start(self._group, work)

    def _start(
        self, group: asyncio.TaskGroup, work: Coroutine[Any, Any, None]
    ) -> asyncio.Task[None]:
        task = group.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task
