"""One address of the REST interface: finds the operation, asks who it is for, and answers."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from starlette.responses import Response

from folkmoot.core.errors import (
    AuthenticationRequired,
    FolkmootError,
    MethodNotAllowed,
    QuotaExceeded,
    RequestError,
    RoomNotFound,
    TokenInvalid,
)
from folkmoot.core.events import about
from folkmoot.core.policy import NOBODY
from folkmoot.rooms.spec import ROOM_NAME
from folkmoot.transports.answers import JsonResponse, challenge
from folkmoot.transports.bodies import read_body
from folkmoot.transports.connections import sign_in
from folkmoot.transports.guard import SAFE_METHODS, foreign_origin
from folkmoot.transports.operations import arguments_left
from folkmoot.transports.operators import is_direct
from folkmoot.transports.rest.model import Call
from folkmoot.transports.rest.reading import check_media_type, read_query

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from folkmoot.core.ports import Admitted, Event
    from folkmoot.rooms.model import Visitor
    from folkmoot.transports.guard import Hosts
    from folkmoot.transports.mcp.address import Addresses
    from folkmoot.transports.operations import Operations
    from folkmoot.transports.rest.model import Answered, Operation, Services

logger = logging.getLogger("folkmoot.rest")

NO_VISITOR: Any = None
"""In place of the visitor of an operation that needs no token."""
NO_CONTENT: Final = 204
UNAUTHORIZED: Final = 401
FAILED: Final = 500


class Waiting:
    """The calls that wait for something to happen, so that a stopping hub can end them."""

    def __init__(self) -> None:
        self._calls: set[Call] = set()
        self._stopping = False

    def account_changed(self, event: Event) -> None:
        """An account changed: what it waits for is answered now, and refused if it may not wait."""
        account_id = about(event)
        for call in self._calls:
            if call.visitor.principal.account_id == account_id:
                call.leaving.set()

    def credential_ended(self, event: Event) -> None:
        """A credential ended: what its account waits for is answered now, or refused."""
        for call in self._calls:
            if call.visitor.principal.account_id == event.data["account"]:
                call.leaving.set()

    def stop(self) -> None:
        """End all waiting, from now on too."""
        self._stopping = True
        for call in self._calls:
            call.leaving.set()

    @asynccontextmanager
    async def watched(self, call: Call, receive: Receive) -> AsyncIterator[None]:
        """While a call is answered, tell it when nobody waits for the answer any more."""
        self._calls.add(call)
        if self._stopping:
            call.leaving.set()
        watching = asyncio.ensure_future(_gone(receive, call.leaving))
        try:
            yield
        finally:
            self._calls.discard(call)
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)


async def _gone(receive: Receive, leaving: asyncio.Event) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    leaving.set()


class Resource:
    """The ASGI application of one path."""

    def __init__(
        self,
        operations: Mapping[str, Operation],
        *,
        services: Services,
        hub: Operations,
        hosts: Hosts,
        addresses: Addresses,
        waiting: Waiting,
        public_url: str = "",
    ) -> None:
        self._public_url = public_url.rstrip("/")
        self._may_be_direct = not public_url and not addresses.believes_proxies
        self._operations = dict(operations)
        if "GET" in operations:
            self._operations["HEAD"] = operations["GET"]
        self._services = services
        self._hub = hub
        self._hosts = hosts
        self._addresses = addresses
        self._waiting = waiting

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        try:
            response = await self._answer(scope, receive)
        except FolkmootError as error:
            response = refused(error)
        if response is not None:
            await response(scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive) -> Response | None:
        operation = self._operations.get(scope["method"])
        if operation is None:
            allowed = ", ".join(sorted(self._operations))
            raise MethodNotAllowed(f"This address answers only to {allowed}.", allow=allowed)
        # The guard lets pages of other origins look; here a look is what was said in a room.
        foreign = foreign_origin(self._hosts, scope) if scope["method"] in SAFE_METHODS else None
        if foreign is not None:
            raise foreign
        # Before anyone is authenticated: a body may take its time, and a token be void then.
        raw = await read_body(receive)
        if raw is None:
            return None
        token, query = read_query(scope, operation.query)
        visitor, principal, changes = NO_VISITOR, NOBODY, self._services.rooms.changes
        if not operation.public:
            if not token:
                raise AuthenticationRequired
            visitor = await self._services.rooms.authenticate(token)
            principal = visitor.principal
            sign_in(scope, principal.account_id)
        named = scope["path_params"]
        call = Call(
            services=self._services,
            visitor=visitor,
            room=_room(named["name"]) if operation.in_room else "",
            id=named["id"] if operation.of_proposal else "",
            named=dict(named) if operation.row is not None or operation.of_credential else {},
            fixed=operation.fixed,
            query=query,
            raw=raw,
            address=self._addresses.of(scope),
            base_url=self._public_url or _base_url(scope),
            is_direct=partial(is_direct, scope) if self._may_be_direct else None,
        )
        if operation.body is not None:
            check_media_type(scope)
        if operation.is_message:
            # The room has it enter as the operation that the message is.
            return answered(operation, await operation.handler(call))

        async def perform(admitted: Admitted) -> Answered:
            left = call
            if admitted.ruling is not None:
                left = call.rewritten(operation, arguments_left(admitted, operation.name))
                if self._services.rooms.changes != changes and not operation.public:
                    await self._confirm(visitor, token)
            if not left.query.get("wait"):
                return await operation.handler(left)
            return await self._waited(operation, left, token, receive)

        done = await self._hub.ask(principal, operation.name, call.arguments, perform)
        return answered(operation, done)

    async def _waited(
        self, operation: Operation, call: Call, token: str, receive: Receive
    ) -> Answered:
        """Do what may wait for something to happen."""
        async with self._waiting.watched(call, receive):
            # Again: a change of the account is noticed only from here on.
            await self._confirm(call.visitor, token)
            done = await operation.handler(call)
            await self._confirm(call.visitor, token)
            policy = self._services.policy
            policy.check(call.visitor.principal, operation.name, call.arguments)
        return done

    async def _confirm(self, visitor: Visitor, token: str) -> None:
        """Refuse someone whose token was taken from them while they waited."""
        now = await self._services.rooms.authenticate(token)
        if now.principal.account_id != visitor.principal.account_id:
            raise TokenInvalid


def _base_url(scope: Scope) -> str:
    host = next((value for name, value in scope["headers"] if name == b"host"), b"")
    return f"{scope['scheme']}://{host.decode('latin-1')}"


def _room(name: str) -> str:
    if ROOM_NAME.fullmatch(name) is None:
        raise RoomNotFound("There is no such room.")
    return name


def answered(operation: Operation, done: Answered) -> Response:
    """The response of an operation that succeeded."""
    reply = operation.reply
    if reply.status == NO_CONTENT:
        return Response(status_code=NO_CONTENT, headers={"cache-control": "no-store"})
    return JsonResponse(done.content, reply.status, done.headers)


def refused(error: FolkmootError) -> Response:
    """The response for one of our errors."""
    told = error.as_http()
    headers = {}
    if error.http == UNAUTHORIZED:
        headers["www-authenticate"] = challenge(error)
    if "retry_after" in error.data:
        headers["retry-after"] = str(error.data["retry_after"])
    if isinstance(error, MethodNotAllowed):
        headers["allow"] = told["error"].pop("allow")
    if error.http >= FAILED and not isinstance(error, RequestError | QuotaExceeded):
        # Its own sentence may name files; what its kind means is enough for a stranger.
        logger.warning("a request failed", extra={"error": error.message, "code": error.code})
        told = {"error": {"code": error.code, "message": (type(error).__doc__ or "").strip()}}
    return JsonResponse(told, error.http, headers)
