"""Requests about something of a backend's that only the SDK can read: the same call, its words.

What the backend says meanwhile, and what it asks, goes through the SDK's own session.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import mcp_types as types
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from msgspec import UNSET
from pydantic import ValidationError

from folkmoot.core import strict
from folkmoot.core.errors import ArgumentInvalid, FolkmootError, MessageError
from folkmoot.core.message import ErrorObject, Response, is_message_id
from folkmoot.gateway.asking import CallExtras
from folkmoot.mcp.eras.table import Refusal
from folkmoot.mcp.wire import LEVEL_KEY, LOGGED, PROGRESS, members_of
from folkmoot.transports.mcp.beside import beside
from folkmoot.transports.mcp.entrance import capabilities_of
from folkmoot.transports.mcp.heads import OURS, RESERVED, TOKEN_KEY
from folkmoot.transports.mcp.line import MOST_SAID
from folkmoot.transports.mcp.opencalls import Stopped
from folkmoot.transports.mcp.passage import asked, is_wanted, told
from folkmoot.transports.mcp.rounds import QUESTION_SECONDS, Question, in_rounds
from folkmoot.transports.mcp.shapes import handshake_result, refused, stateless_result

if TYPE_CHECKING:
    from folkmoot.core.message import Notification
    from folkmoot.transports.mcp.backends import Backends
    from folkmoot.transports.mcp.entrance import Context
    from folkmoot.transports.mcp.exchange import Exchange
    from folkmoot.transports.mcp.opencalls import OpenCalls

logger = logging.getLogger("folkmoot.mcp")

NOTICES: Final[dict[str, type[Any]]] = {
    PROGRESS: types.ProgressNotification,
    LOGGED: types.LoggingMessageNotification,
}
QUESTIONS: Final[dict[str, tuple[type[Any], type[Any]]]] = {
    "elicitation/create": (types.ElicitRequest, types.ElicitResult),
    "sampling/createMessage": (types.CreateMessageRequest, types.CreateMessageResult),
    "roots/list": (types.ListRootsRequest, types.ListRootsResult),
}
"""What a client can be asked, and what it answers."""
CARRIED: Final = strict.Limits(message_bytes=64 * 1024 * 1024, nesting=256)
"""What a request may hold; how long it may be was seen to when it came."""


class Unusual:
    """Has requests of the SDK's answered by backends."""

    def __init__(
        self, backends: Backends, open_calls: OpenCalls, server_info: dict[str, Any]
    ) -> None:
        self._backends = backends
        self._open = open_calls
        self._server = server_info

    async def ask(
        self, ctx: Context, exchange: Exchange, params: dict[str, Any] | None = None
    ) -> dict[str, Any] | None:
        """The result of a request; None if it is about nothing of a backend's.

        The params are those of the request, unless others are given. Refusals are `MCPError`s.
        """
        method, message_id = ctx.method, ctx.request_id or 0
        given = dict(ctx.params or {}) if params is None else params
        meta = members_of(given.pop("_meta", None))
        try:
            check_carried({**given, "_meta": meta})
            settled = self._backends.settle(method, given, exchange)
            if settled is None:
                return None
            rest = {k: v for k, v in meta.items() if k not in OURS and not k.startswith(RESERVED)}
            if rest:
                settled["_meta"] = rest
            with self._open.open(exchange, message_id):
                response = await self._response(ctx, exchange, settled, meta)
        except Stopped:
            raise MCPError(code=types.INVALID_REQUEST, message="The session has ended.") from None
        except FolkmootError as error:
            response = refused(method, message_id, error)
        return result_of(response, method, self._server if exchange.session is None else None)

    async def _response(
        self, ctx: Context, exchange: Exchange, params: dict[str, Any], meta: dict[str, Any]
    ) -> Response:
        session = exchange.session
        token = meta.get(TOKEN_KEY)
        token = token if is_message_id(token) else None
        level = meta.get(LEVEL_KEY) if session is None else session.log_level
        capabilities = capabilities_of(ctx)
        async with telling(ctx, token, level) as tell:
            extras = CallExtras(
                capabilities=capabilities,
                log_level=level,
                tell=tell,
                progress=token is not None,
            )

            async def ask(given: dict[str, Any]) -> Response:
                return await self._backends.ask(
                    ctx.method, ctx.request_id or 0, given, exchange, ctx.protocol_version, extras
                )

            if session is None:
                return await ask(params)
            return await in_rounds(params, ask, partial(put, ctx), capabilities)


def check_carried(params: dict[str, Any]) -> None:
    """Refuse what the SDK reads and no other reader would: half a character, or no number."""
    try:
        carried = strict.decode(strict.encode(params), CARRIED)
    except (UnicodeEncodeError, RecursionError, MessageError):
        carried = None
    if carried != params:
        raise ArgumentInvalid("The params cannot be written as JSON.", field="arguments")


@asynccontextmanager
async def telling(ctx: Context, token: Any, level: Any) -> AsyncIterator[Any]:
    """Takes what a backend tells, and has the SDK say it; what is too much is dropped."""
    waiting: deque[Notification] = deque(maxlen=MOST_SAID)
    news, saying = asyncio.Event(), asyncio.Lock()

    def tell(notification: Notification) -> None:
        wanted = (
            token is not None
            if notification.method == PROGRESS
            else notification.method == LOGGED and is_wanted(notification, level)
        )
        if wanted:
            waiting.append(notification)
            news.set()

    async def say() -> None:
        while waiting:
            message = told(waiting.popleft())
            params = dict(members_of(message.get("params")))
            if message["method"] == PROGRESS:
                params[TOKEN_KEY] = token
            try:
                notice = NOTICES[message["method"]].model_validate({**message, "params": params})
            except ValidationError:
                continue
            await ctx.session.send_notification(notice, related_request_id=ctx.request_id)

    async def say_all() -> None:
        # One at a time, so that whoever ends waits for what is being said.
        async with saying:
            try:
                await say()
            except Exception as error:  # noqa: BLE001 - the stream has ended; the call has not
                logger.debug("a client was not notified", extra={"error": type(error).__name__})

    async def pump() -> None:
        while True:
            await news.wait()
            news.clear()
            await say_all()

    async with beside(pump()):
        yield tell
        await say_all()


async def put(ctx: Context, questions: Sequence[Question]) -> list[Response]:
    """Put questions to the client of a session, one after the other."""
    answers: list[Response] = []
    for place, question in enumerate(questions, 1):
        question_id = f"folkmoot-{ctx.request_id}-{place}"
        request_type, result_type = QUESTIONS[question.method]
        written = asked(question_id, question)
        if question.params.get("tools") is not None:
            result_type = types.CreateMessageResultWithTools
        try:
            request = request_type.model_validate(
                {"method": written["method"], "params": written["params"]}
            )
            answer = await ctx.session.send_request(
                request,
                result_type,
                request_read_timeout_seconds=QUESTION_SECONDS,
                metadata=ServerMessageMetadata(related_request_id=ctx.request_id),
            )
        except ValidationError:
            raise Refusal.INPUT_UNKNOWN.error() from None
        except MCPError as error:
            told_error = ErrorObject(error.error.code, error.error.message)
            answers.append(Response(id=question_id, error=told_error))
            break
        result = answer.model_dump(by_alias=True, mode="json", exclude_none=True)
        answers.append(Response(id=question_id, result=result))
    return answers


def result_of(response: Response, method: str, server: dict[str, Any] | None) -> dict[str, Any]:
    """What a response says, as the SDK takes it; `server` is ours in the stateless era."""
    if isinstance(response.error, ErrorObject):
        error = response.error
        data = None if error.data is UNSET else error.data
        raise MCPError(code=error.code, message=error.message, data=data)
    result = response.result
    if type(result) is not dict:
        raise MCPError(code=types.INTERNAL_ERROR, message="The backend's result is not an object.")
    shaped: dict[str, Any] = (
        handshake_result(method, result)
        if server is None
        else stateless_result(method, result, server)
    )
    return shaped
