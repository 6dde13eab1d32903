"""Passage: one plain POST about something of a backend's, from its params to its answer.

No object model stands in between: what the client sent is read once, and what the backend said is
written once.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from msgspec import UNSET, Struct, structs, to_builtins

from folkmoot.core.errors import EraNotBridged, FolkmootError, HubStopping
from folkmoot.core.message import ErrorObject, Response
from folkmoot.gateway.asking import CallExtras
from folkmoot.mcp.server.stateless import status_of
from folkmoot.mcp.wire import LEVELS, LOGGED, PROGRESS, cancellation, members_of
from folkmoot.tools.patience import unless
from folkmoot.transports.mcp.attending import Attending
from folkmoot.transports.mcp.heads import STATELESS
from folkmoot.transports.mcp.line import Line, Weight
from folkmoot.transports.mcp.opencalls import Stopped
from folkmoot.transports.mcp.plain import CallTool, Complete
from folkmoot.transports.mcp.rounds import QUESTION_SECONDS, Question, in_rounds
from folkmoot.transports.mcp.shapes import refused, wire_answer

if TYPE_CHECKING:
    from starlette.types import Receive, Send

    from folkmoot.core.message import Notification
    from folkmoot.transports.mcp.attending import Attended
    from folkmoot.transports.mcp.backends import Backends
    from folkmoot.transports.mcp.exchange import Exchange
    from folkmoot.transports.mcp.heads import Said
    from folkmoot.transports.mcp.opencalls import OpenCalls
    from folkmoot.transports.mcp.plain import Asking

logger = logging.getLogger("folkmoot.mcp")


class Passenger(Struct, kw_only=True):
    """One request on its way."""

    exchange: Exchange
    request: Asking
    params: dict[str, Any]
    """With canonical names."""
    said: Said
    capabilities: dict[str, Any]
    """What its client can be asked for."""

    @property
    def method(self) -> str:
        """What is asked."""
        return self.request.METHOD

    @property
    def level(self) -> str | None:
        """From which level on its client wants to hear log messages."""
        session = self.exchange.session
        return self.said.level if session is None else session.log_level

    @property
    def version(self) -> str:
        """The version of MCP that its client speaks."""
        session = self.exchange.session
        return STATELESS if session is None else session.version


class Passage:
    """Carries plain requests to backends, in both eras."""

    def __init__(
        self, backends: Backends, open_calls: OpenCalls, server_info: dict[str, Any]
    ) -> None:
        self._backends = backends
        self._open = open_calls
        self._server = server_info
        self._tasks: asyncio.TaskGroup | None = None
        self._attending = Attending()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Own whoever writes streams or watches clients; on leaving, they are let end."""
        async with asyncio.TaskGroup() as tasks:
            self._tasks = tasks
            yield

    def settle(self, request: Asking, exchange: Exchange) -> dict[str, Any] | None:
        """The params of a request with canonical names; None if it is about nothing of a backend's.

        Raises the refusal of what may not be known.
        """
        return self._backends.settle(request.METHOD, params_of(request), exchange)

    def mirrors(self, name: str) -> bool:
        """Whether a tool wants some of its arguments repeated in headers."""
        entry = self._backends.gateway.catalogue.tool(name)
        return entry is not None and entry.mirrored

    async def refuse(
        self, exchange: Exchange, request: Asking, error: FolkmootError, send: Send
    ) -> None:
        """Answer a request with why it is not passed on."""
        line = Line(exchange, send, self._group())
        await self._answer(line, exchange, request, refused(request.METHOD, request.id, error))

    async def carry(self, passenger: Passenger, receive: Receive, send: Send) -> None:
        """Have a request answered, and say meanwhile what its backend says."""
        exchange, request = passenger.exchange, passenger.request
        line = Line(exchange, send, self._group())
        attended: Attended | None = None
        try:
            with self._open.open(exchange, request.id) as call:
                leaves = receive if exchange.session is None else None
                attended = self._attending.begin(line, call, leaves)
                response = await self._response(passenger, line)
        except Stopped:
            # In a session the client has said so, and waits for the end of the stream; without
            # one it has left.
            if exchange.session is not None:
                await line.end()
            else:
                line.abandon()
            return
        except FolkmootError as error:
            response = refused(request.METHOD, request.id, error)
        except BaseException:
            line.abandon()
            raise
        finally:
            if attended is not None:
                self._attending.end(attended)
        await self._answer(line, exchange, request, response)

    def _group(self) -> asyncio.TaskGroup:
        if self._tasks is None:
            raise RuntimeError("the passage is not running")
        return self._tasks

    async def _response(self, passenger: Passenger, line: Line) -> Response:
        extras = CallExtras(
            capabilities=passenger.capabilities,
            log_level=passenger.level,
            tell=partial(tell, line, passenger.said.token, passenger.level),
            progress=passenger.said.token is not None,
        )
        exchange, request = passenger.exchange, passenger.request

        def ask(params: dict[str, Any]) -> Awaitable[Response]:
            return self._backends.ask(
                request.METHOD, request.id, params, exchange, passenger.version, extras
            )

        if exchange.session is None:
            return await ask(passenger.params)
        put = partial(self._put, exchange, line)
        return await in_rounds(passenger.params, ask, put, passenger.capabilities)

    async def _put(
        self, exchange: Exchange, line: Line, questions: Sequence[Question]
    ) -> list[Response]:
        """Put questions to the client of a session, in the stream of the call they belong to."""
        session = exchange.session
        if session is None:
            raise EraNotBridged("Clients of the stateless era cannot be asked anything.")
        async with AsyncExitStack() as stack:
            waiting: dict[str, asyncio.Future[Response]] = {}
            for question in questions:
                opened = self._open.question(session)
                question_id, answer = await stack.enter_async_context(opened)
                waiting[question_id] = answer
                line.say(asked(question_id, question), Weight.QUESTION)
            try:
                async with asyncio.timeout(QUESTION_SECONDS):
                    answers = await unless(exchange.caller.leaving, all_of(waiting.values()))
            except TimeoutError:
                for question_id, answer in waiting.items():
                    if not answer.done() or answer.cancelled():
                        notice = cancellation(question_id, "It took too long.")
                        line.say(told(notice), Weight.QUESTION)
                raise EraNotBridged("The client did not answer what it was asked.") from None
        if answers is None:
            raise HubStopping("The hub is stopping.")
        return answers

    async def _answer(
        self, line: Line, exchange: Exchange, request: Asking, response: Response
    ) -> None:
        server = self._server if exchange.session is None else None
        message = wire_answer(request.id, request.METHOD, response, server)
        await line.answer(message, status_of(response))


def params_of(request: Asking) -> dict[str, Any]:
    """The params of a plain request, without its `_meta`."""
    params = request.params
    if isinstance(request, Complete):
        named: dict[str, Any] = to_builtins(structs.replace(request.params, meta=UNSET))
        return named
    told: dict[str, Any]
    if isinstance(request, CallTool):
        told = {"name": request.params.name, "arguments": request.params.arguments}
        if request.params.arguments is None:
            del told["arguments"]
        if request.params.responses is UNSET and request.params.state is UNSET:
            return told
    told = to_builtins(structs.replace(params, meta=UNSET))
    return {name: value for name, value in told.items() if value is not None}


def tell(
    line: Line, token: str | int | None, level: str | None, notification: Notification
) -> None:
    """Say in a call's stream what its backend tells, as far as its client wants to hear it."""
    if notification.method == PROGRESS:
        if token is not None:
            message = told(notification)
            message["params"] = {**members_of(message.get("params")), "progressToken": token}
            line.say(message, Weight.PROGRESS)
    elif notification.method == LOGGED and is_wanted(notification, level):
        line.say(told(notification), Weight.LOG)


def is_wanted(notification: Notification, level: str | None) -> bool:
    """Whether a log message is as important as someone wants to hear."""
    given = members_of(notification.params).get("level")
    if level is None or given not in LEVELS:
        return False
    return LEVELS.index(given) >= LEVELS.index(level)


def told(notification: Notification) -> dict[str, Any]:
    """A notification as it is written."""
    message: dict[str, Any] = {"jsonrpc": "2.0", "method": notification.method}
    if notification.params is not UNSET:
        message["params"] = notification.params
    return message


def asked(question_id: str, question: Question) -> dict[str, Any]:
    """A question as it is written; one that leads to a page is known by an id there too."""
    params = question.params
    if question.method == "elicitation/create" and params.get("mode") == "url":
        params = {"elicitationId": question_id, **params}
    return {"jsonrpc": "2.0", "id": question_id, "method": question.method, "params": params}


async def all_of(waiting: Any) -> list[Response]:
    """Every answer, in order; the first error is enough."""
    answers: list[Response] = []
    for each in waiting:
        answer = await each
        answers.append(answer)
        if isinstance(answer.error, ErrorObject):
            break
    return answers
