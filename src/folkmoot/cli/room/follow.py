"""A room in lines: messages are printed as they come, and lines of stdin are sent."""

from __future__ import annotations

import asyncio
import os
import stat
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from functools import partial
from threading import Semaphore, Thread
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from msgspec import Struct, field

from folkmoot.cli.credentials import ACCOUNT_UNKNOWN, GUEST_UNKNOWN
from folkmoot.cli.limits import MAX_LINE, MAX_WAIT
from folkmoot.cli.output import complain, escape_json, say
from folkmoot.cli.room.messages import Looks, mentioned, plain, verbatim
from folkmoot.cli.room.options import Entrance
from folkmoot.cli.room.sentences import may_instead
from folkmoot.client import Gap, Message, Room
from folkmoot.core import errors as e

if TYPE_CHECKING:
    from folkmoot.cli.client import HubClient
    from folkmoot.client import Message, Room


PAGE: Final = 500
GAPS: Final[dict[str, str]] = {
    "history_gone": "the history no longer has them",
    "epoch_changed": "the room was restarted, and its numbering with it",
    "skipped": "the hub skipped some messages",
}
"""What may have become of messages, by the reason of their gap."""

READ_SECONDS: Final = 1.0
"""How often a room that is followed is marked as read."""
Output = TypeVar("Output")


@asynccontextmanager
async def inside(room: str, who: Entrance) -> AsyncIterator[Room]:
    """The room, with someone in it; a connection that is lost comes back by itself."""
    try:
        async with Room(who.hub, room=room, token=who.source) as entered:
            reading = asyncio.create_task(keep_read(entered))
            try:
                yield entered
            finally:
                reading.cancel()
    except e.AuthenticationRequired:
        raise e.NotSignedIn(GUEST_UNKNOWN if who.guest else ACCOUNT_UNKNOWN) from None


async def keep_read(room: Room) -> None:
    """Mark a room that is followed as read, however often something comes."""
    read = -1
    while True:
        await asyncio.sleep(READ_SECONDS)
        last = room.last_seq
        if last > read:
            # The next message is another chance.
            with suppress(e.FolkmootError):
                await room.mark_read(last)
            read = last


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
        page = await in_thread(partial(rest.read_messages, room, after=after, limit=PAGE))
        if not page.messages:
            return
        for message in page.messages:
            seq = message.get("seq")
            if not isinstance(seq, int) or seq > through:
                return
            after = seq
            yield message


async def in_thread(ask: Callable[[], Output]) -> Output:
    """Ask the hub over HTTP while the room goes on; nobody who leaves waits for the answer."""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[Output] = loop.create_future()

    def give(value: Output | None, error: Exception | None) -> None:
        if answer.done():
            return
        if error is None:
            answer.set_result(cast("Output", value))
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


class LinkedTasks:
    """Tasks that end together."""

    def __init__(self) -> None:
        self._group: asyncio.TaskGroup | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def until_one_ends(self, *works: Coroutine[Any, Any, None]) -> None:
        """Run the tasks until one ends; its exception is raised unchanged."""
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


CHUNK: Final = 65_536
AHEAD: Final = 64
"""Chunks that are read before those in front of them are wanted."""
_END: Final = b""


async def typed_lines(descriptor: int) -> AsyncIterator[str]:
    """The lines of a descriptor without their ends, and without those that are empty."""
    rest = b""
    async for chunk in _chunks(descriptor):
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            if text := _text(line):
                yield text
        if len(rest) > MAX_LINE:
            raise e.MessageTooLarge("A line of the standard input is longer than 4 MiB.")
    if text := _text(rest):
        yield text


def _text(line: bytes) -> str:
    return line.removesuffix(b"\r").decode("utf-8", "replace")


async def _chunks(descriptor: int) -> AsyncIterator[bytes]:
    loop = asyncio.get_running_loop()
    chunks: asyncio.Queue[bytes] = asyncio.Queue()
    room = Semaphore(AHEAD)

    def read() -> None:
        while True:
            room.acquire()
            try:
                # Not through `sys.stdin`: its lock would be held when the program ends.
                chunk = os.read(descriptor, CHUNK)
            except OSError:
                chunk = _END
            try:
                loop.call_soon_threadsafe(chunks.put_nowait, chunk)
            except RuntimeError:
                # The loop is closed: nobody wants more.
                return
            if chunk == _END:
                return

    Thread(target=read, name="standard input", daemon=True).start()
    while (chunk := await chunks.get()) != _END:
        yield chunk
        room.release()


class RoomFollower(Struct, eq=False):
    """Prints what is said in a room, a line each."""

    as_json: bool
    _looks: Looks = field(default_factory=Looks)
    shown: int = 0
    """The last message that came and was printed."""
    _before: int = 0
    """The last one from before that was; it may come again as one of the first."""
    _until: int | None = None

    async def follow(self, room: Room) -> None:
        """Print all that comes, until the room ends."""
        async for message in room:
            self._print(message)
            if self._until is not None and self.shown >= self._until:
                return

    async def catch_up(self, rest: HubClient, room: Room, after: int) -> None:
        """Print what was said after a number, before we came."""
        expected = after + 1
        async for envelope in before(rest, room.name, after, room.last_seq):
            if envelope["seq"] > expected:
                lost = f"messages {expected} to {envelope['seq'] - 1} are no longer kept"
                complain(lost, kind="warning")
            self._before = envelope["seq"]
            expected = self._before + 1
            self._put(envelope, lambda it: escape_json(_compact(it)))

    def end_at(self, seq: int) -> bool:
        """Print no further than a number; whether that is reached already."""
        self._until = seq
        return self.shown >= seq

    def _print(self, message: Message) -> None:
        if isinstance(message, Gap):
            complain(missing(message), kind="warning")
        elif message.seq > self._before:
            self._put(envelope_of(message), lambda _: verbatim(message.raw))
        # After a gap the numbers may begin anew.
        self._before = 0 if isinstance(message, Gap) else self._before
        self.shown = message.seq

    def _put(self, envelope: dict[str, Any], as_json: Callable[[dict[str, Any]], str]) -> None:
        look = self._looks.look(envelope)
        say(as_json(envelope) if self.as_json else plain(look))


def _compact(envelope: dict[str, Any]) -> str:
    import json

    return json.dumps(envelope, ensure_ascii=False, separators=(",", ":"))


async def tail(name: str, who: Entrance, after: int | None, *, as_json: bool) -> None:
    """Follow a room until the reader is gone."""
    async with inside(name, who) as room:
        follower = RoomFollower(as_json=as_json)
        if after is not None:
            await follower.catch_up(who.client, room, after)
        await LinkedTasks().until_one_ends(follower.follow(room), reader_gone())


async def converse(name: str, who: Entrance) -> None:
    """Follow a room and say the lines of the standard input, until they end."""
    async with inside(name, who) as room:
        follower = RoomFollower(as_json=False)
        speaker = Speaker(room)

        async def speak() -> None:
            await speaker.speak()
            if not follower.end_at(speaker.said):
                await asyncio.Event().wait()

        await LinkedTasks().until_one_ends(follower.follow(room), speak(), reader_gone())
    if speaker.refused:
        raise e.ToolRefused(f"{speaker.refused} of the lines were refused.")


class Speaker(Struct, eq=False):
    """Says lines, one after the other; waits where the hub asks for it."""

    room: Room
    said: int = 0
    refused: int = 0

    async def speak(self) -> None:
        """Say the lines of the standard input to their end."""
        if sys.stdin is None:
            return
        async for line in typed_lines(sys.stdin.fileno()):
            try:
                await self._say(line)
            except e.FolkmootError as error:
                self.refused += 1
                complain(*refused(error))

    async def _say(self, line: str) -> None:
        whom = mentioned(line, self.room.participants)
        while True:
            try:
                self.said = (await self.room.say(line, mentions=whom)).seq
            except e.RateLimited as error:
                wait = error.data.get("retry_after")
                if not isinstance(wait, int | float) or not 0 <= wait <= MAX_WAIT:
                    raise
                complain(f"{error.message} Waiting.", kind="warning")
                await asyncio.sleep(wait)
            else:
                return


def refused(error: e.FolkmootError) -> list[str]:
    """A refusal in lines: why, and what is allowed."""
    return [error.message, *may_instead(error.code, error.data)]


async def reader_gone() -> None:
    """Wait until nobody reads our output any more; for ever where that cannot be told."""
    gone = asyncio.Event()
    descriptor = sys.stdout.fileno()
    if not stat.S_ISFIFO(os.fstat(descriptor).st_mode):
        await gone.wait()
    loop = asyncio.get_running_loop()
    # The writing end of a pipe is never readable, unless its reader is gone.
    loop.add_reader(descriptor, gone.set)
    try:
        await gone.wait()
    finally:
        loop.remove_reader(descriptor)
    raise BrokenPipeError
