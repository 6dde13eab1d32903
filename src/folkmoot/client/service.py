"""Serving tools: requests come in, each is answered by a task of its own, and some are cancelled.

What was asked while the connection was away is served only if nobody has answered it since: the
hub answers for those who left.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, Final, Protocol, TypeAlias

from folkmoot.client.model import Message
from folkmoot.client.tools import Context, TellProgress, Tool
from folkmoot.core.errors import ArgumentInvalid, FolkmootError
from folkmoot.core.errors.base import INVALID_PARAMS

logger = logging.getLogger("folkmoot.client")

METHOD_NOT_FOUND: Final = -32601
BUSY: Final = -32000
MOST_CALLS: Final = 256
"""Requests that are served or wait for their turn; further ones are told that we are busy."""

Answer: TypeAlias = dict[str, Any]
Spawn: TypeAlias = Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]]


class Respond(Protocol):
    """Answers a request, with a result or an error, and waits until the answer is stored."""

    async def __call__(self, request: Message, answer: Answer) -> None:
        """Answer."""


class Service:
    """The tools of one program, and the calls to them that are running."""

    def __init__(
        self,
        respond: Respond,
        post: Callable[[Message, Answer], None],
        tell: TellProgress,
        *,
        at_once: int,
    ) -> None:
        self.tools: dict[str, Tool] = {}
        self.spawn: Spawn | None = None
        self._respond = respond
        self._post = post
        self._tell = tell
        self._turn = asyncio.Semaphore(at_once)
        self._running: dict[str, asyncio.Task[None]] = {}
        self._waiting: dict[str, Message] = {}
        self._live = False

    def hold(self) -> None:
        """The connection is away, or what was missed is being replayed."""
        self._live = False

    def flow(self) -> None:
        """Everything that was missed is known: serve what still waits for an answer."""
        self._live = True
        waiting, self._waiting = self._waiting, {}
        for request in waiting.values():
            self._start(request)

    def hear_request(self, request: Message, me: str) -> None:
        """A request; it is ours if it is to us, and we have tools."""
        if not self.tools or request.to != (me,):
            return
        if self._live:
            self._start(request)
        elif len(self._waiting) < MOST_CALLS:
            self._waiting[request.id] = request

    def hear_ended(self, message: Message) -> None:
        """A request was answered for us, or cancelled: nobody waits for our answer."""
        for id_ in message.correlation_id:
            self._waiting.pop(id_, None)
            task = self._running.pop(id_, None)
            if task is not None:
                task.cancel()

    def missed(self) -> None:
        """What became of the requests is unknown; those not begun are not begun any more."""
        self._waiting.clear()

    def end(self) -> None:
        """Serve nothing more."""
        self._live = False
        self.spawn = None
        for task in list(self._running.values()):
            task.cancel()

    def _start(self, request: Message) -> None:
        if self.spawn is None:
            return
        if len(self._running) >= MOST_CALLS:
            self._post(request, _error(BUSY, "Too many calls at once; try again later."))
            return
        self._running[request.id] = self.spawn(self._serve(request))

    async def _serve(self, request: Message) -> None:
        try:
            async with self._turn:
                answer = await self._answer(request)
        finally:
            # From here on nothing cancels the task: its answer is on its way.
            self._running.pop(request.id, None)
        # The request may have been cancelled while its answer was made.
        with suppress(FolkmootError):
            await self._respond(request, answer)

    async def _answer(self, request: Message) -> Answer:
        method = request.payload.get("method")
        if method == "tools/call":
            return await self._call(request)
        if method == "tools/list":
            return {"result": {"tools": [tool.listed for tool in self.tools.values()]}}
        if method == "ping":
            return {"result": {}}
        return _error(METHOD_NOT_FOUND, f"There is no method {method} here.")

    async def _call(self, request: Message) -> Answer:
        params = request.payload.get("params", {})
        tool = self.tools.get(params.get("name"))
        if tool is None:
            return _error(INVALID_PARAMS, f"There is no tool {params.get('name')} here.")
        try:
            called = await tool.call(params.get("arguments"), Context(request, self._tell))
        except ArgumentInvalid as error:
            return _error(INVALID_PARAMS, error.message)
        except Exception:
            # Everyone in the room would read what went wrong, so only our own log does.
            logger.exception("the tool %s failed", tool.name)
            text = f"The tool {tool.name} failed."
            return {"result": {"content": [{"type": "text", "text": text}], "isError": True}}
        return {"result": called}


def _error(code: int, message: str) -> Answer:
    return {"error": {"code": code, "message": message}}
