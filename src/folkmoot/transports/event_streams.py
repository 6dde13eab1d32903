"""Answers that go on, as `text/event-stream`: events as they come, or how far a long call is."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from typing import TYPE_CHECKING, Any, Final

import msgspec
from starlette.datastructures import Headers

from folkmoot.core import errors as e
from folkmoot.mcp.wire import EVENT_STREAM
from folkmoot.operations.call import EventStream, StreamEvent, run_until
from folkmoot.transports.answers import refusal
from folkmoot.transports.limits import STREAM_KEEP_ALIVE_SECONDS

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

    from folkmoot.operations.call import Caller, OperationResult
    from folkmoot.transports.resource import WaitingCallers

HEADERS: Final = [
    (b"content-type", EVENT_STREAM.encode()),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
]
COMMENT: Final = b":\n\n"
STOPPING: Final = "The hub is stopping; try again in a moment."
PROGRESS: Final = "progress"
RESULT: Final = "result"
ERROR: Final = "error"

_encode = msgspec.json.Encoder().encode


def wants_events(scope: Scope) -> bool:
    """Whether a client asks for events."""
    return EVENT_STREAM in Headers(scope=scope).get("accept", "")


def written(event: StreamEvent) -> bytes:
    """An event as it goes over the wire; JSON has no line breaks of its own."""
    head = f"id: {event.id}\n" if event.id else ""
    head += f"event: {event.name}\n" if event.name else ""
    return head.encode() + b"data: " + _encode(event.data) + b"\n\n"


class EventResponse:
    """Sends events until there are no more, the client leaves, or the hub stops."""

    def __init__(self, stream: EventStream, caller: Caller, waiting: WaitingCallers) -> None:
        self._events = stream.source
        self._ends_itself = stream.ends_itself
        self._caller = caller
        self._waiting = waiting

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        try:
            await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
            if scope["method"] != "HEAD":
                follows = not self._ends_itself
                async with self._waiting.watched(self._caller, receive, follows=follows):
                    await run_until(self._caller.leaving, self._send(send))
        finally:
            close = getattr(self._events, "aclose", None)
            if close is not None:
                await close()
        await send({"type": "http.response.body", "body": b""})

    async def _send(self, send: Send) -> None:
        coming = asyncio.ensure_future(anext(self._events, None))
        try:
            while True:
                there, _ = await asyncio.wait((coming,), timeout=STREAM_KEEP_ALIVE_SECONDS)
                body = COMMENT
                if there:
                    event = coming.result()
                    if event is None:
                        return
                    body = event if isinstance(event, bytes) else written(event)
                    coming = asyncio.ensure_future(anext(self._events, None))
                await send({"type": "http.response.body", "body": body, "more_body": True})
        finally:
            coming.cancel()
            await asyncio.gather(coming, return_exceptions=True)


async def progressing(
    work: Coroutine[Any, Any, OperationResult],
    caller: Caller,
    waiting: WaitingCallers,
    receive: Receive,
) -> ASGIApp:
    """A long call as events: `progress`, and at the end `result` or `error`.

    What fails before there is any progress is raised, and gets the status of its error; so does
    a hub that stops before.
    """
    told: asyncio.Queue[msgspec.Struct | None] = asyncio.Queue()
    caller.progress = told.put_nowait
    working = asyncio.ensure_future(work)
    working.add_done_callback(lambda _: told.put_nowait(None))
    try:
        async with waiting.watched(caller, receive):
            first = await run_until(caller.leaving, told.get())
    except asyncio.CancelledError:
        working.cancel()
        raise
    if first is None and not working.done():
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)
        raise e.HubStopping(STOPPING)
    if first is None and (working.cancelled() or working.exception() is not None):
        await working

    async def events() -> AsyncIterator[StreamEvent]:
        so_far = first
        try:
            while so_far is not None:
                yield StreamEvent(so_far, PROGRESS)
                so_far = await told.get()
            yield outcome(working, whole=caller.operator)
        finally:
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)

    return EventResponse(EventStream(events()), caller, waiting)


def outcome(working: asyncio.Future[OperationResult], *, whole: bool) -> StreamEvent:
    """The last event of a long call."""
    error = working.exception()
    if isinstance(error, e.FolkmootError):
        return StreamEvent(refusal(error, whole=whole), ERROR)
    return StreamEvent(working.result().payload, RESULT)
