"""Serving tools: requests come in, each is answered by a task of its own, and some are cancelled.

An account may have several connections, and the hub says which of them serves. Before a call is
run the hub is told that it is begun, and lets one connection begin each; so a call is run once. One
that was begun by a connection that did not come back is interrupted: nobody knows how far it came,
so it is run again only if its tool is idempotent or the author says so.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import Any, Final, Protocol, TypeAlias
from uuid import uuid4

from folkmoot.client.limits import MAX_CALLS
from folkmoot.client.model import Message, OpenRequest, ServingNotice, ServingState, Waiting
from folkmoot.client.tools import Context, SendProgress, Tool
from folkmoot.core import errors as e
from folkmoot.core.entity import Entity
from folkmoot.mcp.wire import PING, TOOLS_CALL, TOOLS_LIST

logger = logging.getLogger("folkmoot.client")

METHOD_NOT_FOUND: Final = -32601
BUSY: Final = -32000
INTERRUPTED: Final = (
    "The call was interrupted when the agent restarted. It may have been done; it was not repeated."
)

Answer: TypeAlias = dict[str, Any]
Spawn: TypeAlias = Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]]
Begin: TypeAlias = Callable[[str, Message], Awaitable[None]]
"""Tells the hub, with a message of this id, that a request is begun; a refusal is raised."""
Owed: TypeAlias = Callable[[], Awaitable[list[tuple[OpenRequest, Message]]]]
"""Fetches the requests that are open, also those this program never heard of."""
Decide: TypeAlias = Callable[[Message], bool | Awaitable[bool | None] | None]


class Respond(Protocol):
    """Answers a request, with a result or an error, and waits until the answer is stored."""

    async def __call__(self, request: Message, answer: Answer) -> None: ...


class ToolServer(Entity):
    """The tools of one program, and the calls to them that are running."""

    respond: Respond
    post: Callable[[Message, Answer], None]
    tell: SendProgress
    begin: Begin
    owed: Owed
    at_once: int
    tools: dict[str, Tool] = {}
    spawn: Spawn | None = None
    on_interrupted: Decide | None = None
    _running: dict[str, asyncio.Task[None]] = {}
    _begun: dict[str, str] = {}
    """The message by which this program began a request, by the request's id."""
    _waiting: dict[str, Message] = {}
    """Requests that nobody has begun, as far as is known here."""
    _others: dict[str, Message] = {}
    """Requests that another connection of the account has begun."""
    _listed: dict[str, OpenRequest] = {}
    """What the hub said is open, and was not looked at yet."""
    _more: bool = False
    _fetching: asyncio.Task[None] | None = None
    _serving: bool = False
    _begins: bool = False
    _live: bool = False
    _resumes: int = 0

    def __post_init__(self) -> None:
        self._turn = asyncio.Semaphore(self.at_once)

    def told_serving(self, serving: ServingState | None, listed: Waiting | ServingNotice) -> None:
        """Whether this connection serves, and what is open; a hub that says nothing lets all."""
        self._begins = serving is not None
        self._serving = serving is None or serving.you
        self._listed = {one.id: one for one in listed.requests}
        self._more = listed.more
        self._go_on()

    def hold(self) -> None:
        """The connection is away, or what was missed is being replayed."""
        self._live = False

    def flow(self) -> None:
        """Everything that was missed is known: serve what still waits for an answer."""
        self._live = True
        self._go_on()

    def _go_on(self) -> None:
        if not (self._live and self._serving and self.tools):
            return
        waiting, self._waiting = self._waiting, {}
        for request in waiting.values():
            self._start(request)
        listed, self._listed = self._listed, {}
        fetch, self._more = self._more, False
        for one in listed.values():
            if one.id in self._running or one.state == "running":
                continue
            request_of = self._others.pop(one.id, None)
            if one.state == "interrupted" and request_of is not None:
                self._interrupted(request_of)
            else:
                fetch = True
        if fetch and self.spawn is not None:
            self._stop_fetching()
            self._fetching = self.spawn(self._fetch())

    def _stop_fetching(self) -> None:
        if self._fetching is not None:
            self._fetching.cancel()

    async def _fetch(self) -> None:
        """Serve the requests that arrived while this program was away."""
        try:
            owed = await self.owed()
        except e.FolkmootError as error:
            logger.warning("open requests could not be fetched: %s", error.message)
            return
        for one, request in owed:
            if one.id in self._running or not self._serving:
                continue
            if one.state == "waiting":
                self._start(request)
            elif one.state == "interrupted":
                self._interrupted(request)

    def hear_request(self, request: Message, me: str) -> None:
        """A request; it is ours if it is to us, and we have tools."""
        if not self.tools or request.to != (me,):
            return
        if self._live and self._serving:
            self._start(request)
        elif len(self._waiting) < MAX_CALLS:
            self._waiting[request.id] = request
        else:
            self._more = True

    def hear_begun(self, message: Message, me: str) -> None:
        """A connection of the account begins a request; where it is another, we do not."""
        if message.sender != me:
            return
        for id_ in message.correlation_id:
            if self._begun.get(id_) == message.id:
                continue
            request = self._waiting.pop(id_, None)
            if request is not None and len(self._others) < MAX_CALLS:
                self._others[id_] = request
            self._cancel(id_)

    def hear_resumed(self) -> None:
        """We were paused, and may begin something again."""
        self._resumes += 1
        self._go_on()

    def hear_ended(self, message: Message) -> None:
        """A request was answered for us, or cancelled: nobody waits for our answer."""
        for id_ in message.correlation_id:
            for known in (self._waiting, self._others, self._listed):
                known.pop(id_, None)
            self._cancel(id_)

    def _cancel(self, id_: str) -> None:
        task = self._running.pop(id_, None)
        if task is not None:
            task.cancel()

    def missed(self) -> None:
        """What became of the requests is unknown; those not begun are not begun any more."""
        self._waiting.clear()
        self._others.clear()

    def end(self) -> None:
        """Serve nothing more."""
        self._live = False
        self.spawn = None
        self._stop_fetching()
        for task in list(self._running.values()):
            task.cancel()

    def _start(self, request: Message) -> None:
        if self.spawn is None or request.id in self._running:
            return
        if len(self._running) >= MAX_CALLS:
            self.post(request, _error(BUSY, "Too many calls at once; try again later."))
            return
        self._running[request.id] = self.spawn(self._serve(request))

    async def _serve(self, request: Message) -> None:
        try:
            async with self._turn:
                if not await self._may_run(request):
                    return
                answer = await self._answer(request)
        finally:
            # From here on nothing cancels the task: its answer is on its way.
            self._running.pop(request.id, None)
            self._begun.pop(request.id, None)
        # The request may have been cancelled while its answer was made.
        with suppress(e.FolkmootError):
            await self.respond(request, answer)

    async def _may_run(self, request: Message) -> bool:
        """Tell the hub that a call is begun; False where it must not be, or not here."""
        if not self._begins or request.payload.get("method") != TOOLS_CALL:
            return True
        while True:
            resumes = self._resumes
            id_ = self._begun[request.id] = uuid4().hex
            try:
                await self.begin(id_, request)
            except e.NotServing:
                if self._serving:
                    # It is ours again since.
                    continue
                self._waiting[request.id] = request
            except e.ParticipantPaused:
                if self._resumes != resumes:
                    continue
                self._waiting[request.id] = request
            except e.RequestBegun:
                self._others[request.id] = request
            except e.RateLimited as error:
                await asyncio.sleep(error.data.get("retry_after", 1))
                continue
            except e.AnswerLost:
                # It may count as begun, and was not run.
                self._running.pop(request.id, None)
                self._interrupted(request)
            except (e.RequestNotOpen, e.RoomLeft):
                pass
            except e.FolkmootError as error:
                why = f"The call could not be begun: {error.message}"
                self.post(request, _error(BUSY, why))
            else:
                return True
            return False

    def _interrupted(self, request: Message) -> None:
        """A call was begun and not finished: run it again, or ask the author."""
        name = request.payload.get("params", {}).get("name")
        tool = self.tools.get(name) if isinstance(name, str) else None
        if tool is not None and tool.idempotent:
            self._start(request)
        elif self.spawn is not None and request.id not in self._running:
            self._running[request.id] = self.spawn(self._ask_author(request))

    async def _ask_author(self, request: Message) -> None:
        again: bool | None = False
        try:
            if self.on_interrupted is not None:
                decided = self.on_interrupted(request)
                again = await decided if inspect.isawaitable(decided) else decided
        except Exception:
            logger.exception("nothing was decided about an interrupted call")
        finally:
            self._running.pop(request.id, None)
        if again:
            self._start(request)
        elif again is not None:
            self.post(request, _error(BUSY, INTERRUPTED, data={"code": "interrupted"}))

    def listing(self) -> Answer:
        """The answer to `tools/list`."""
        return {"result": {"tools": [tool.listed for tool in self.tools.values()]}}

    async def _answer(self, request: Message) -> Answer:
        method = request.payload.get("method")
        if method == TOOLS_CALL:
            return await self._call(request)
        if method == TOOLS_LIST:
            return self.listing()
        if method == PING:
            return {"result": {}}
        return _error(METHOD_NOT_FOUND, f"There is no method {method} here.")

    async def _call(self, request: Message) -> Answer:
        params = request.payload.get("params", {})
        tool = self.tools.get(params.get("name"))
        if tool is None:
            return _error(e.INVALID_PARAMS, f"There is no tool {params.get('name')} here.")
        try:
            called = await tool.call(params.get("arguments"), Context(request, self.tell))
        except e.ArgumentInvalid as error:
            return _error(e.INVALID_PARAMS, error.message)
        except Exception:
            # Everyone in the room would read what went wrong, so only our own log does.
            logger.exception("the tool %s failed", tool.name)
            text = f"The tool {tool.name} failed."
            return {"result": {"content": [{"type": "text", "text": text}], "isError": True}}
        return {"result": called}


def _error(code: int, message: str, **more: Any) -> Answer:
    return {"error": {"code": code, "message": message, **more}}
