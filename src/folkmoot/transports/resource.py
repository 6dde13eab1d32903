"""One address of the REST interface: finds the operation, asks who it is for, and answers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from msgspec import Raw
from msgspec.structs import asdict
from starlette.datastructures import Headers
from starlette.responses import Response

from folkmoot.core import errors as e
from folkmoot.core import strict
from folkmoot.core.entity import Entity
from folkmoot.core.events import about
from folkmoot.core.policy import Principal, PrincipalType
from folkmoot.core.scopes import OPERATE
from folkmoot.core.scopes import scope as scope_of
from folkmoot.core.strict import Limits
from folkmoot.operations.arguments import truncated, unknown_names
from folkmoot.operations.call import (
    Caller,
    EventStream,
    FileAnswer,
    run_until,
)
from folkmoot.operations.routes import NAMED, NO_CONTENT
from folkmoot.rooms.spec import ROOM_NAME as ROOM
from folkmoot.transports.answers import FileResponse, JsonResponse, refused
from folkmoot.transports.bodies import read_body
from folkmoot.transports.connections import sign_in
from folkmoot.transports.credentials import is_direct
from folkmoot.transports.event_streams import STOPPING, EventResponse, progressing, wants_events
from folkmoot.transports.guard import SAFE_METHODS, foreign_origin, is_operator
from folkmoot.transports.operations import arguments_left
from folkmoot.transports.parameters import WHOLE, check_media_type, read_query

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

    from folkmoot.core.ports import Admitted, Event
    from folkmoot.gateway.operations import HubPolicy
    from folkmoot.operations.call import OperationResult
    from folkmoot.operations.dispatch import Dispatcher
    from folkmoot.operations.routes import Endpoint
    from folkmoot.rooms.rooms import Rooms
    from folkmoot.transports.address import Addresses
    from folkmoot.transports.browsers import BrowserCookies
    from folkmoot.transports.guard import Hosts
    from folkmoot.transports.operations import Operations

OPERATOR: Final = Principal("", "operator", PrincipalType.GATEWAY)
"""Whoever asks by the hub's own socket."""
BODY: Final = Limits(message_bytes=256 * 1024, nesting=16)
"""How much a body may ask of us; what is said in a room has the limits of rooms instead."""


class WaitingCallers(Entity):
    """Callers that wait for an event, so that a stopping hub can release them."""

    _callers: dict[int, Caller] = {}
    _lasting: set[int] = set()
    """Those that a change of their account does not end."""
    _stopping: bool = False

    def account_changed(self, event: Event) -> None:
        """An account changed: what it waits for is answered now, and refused if it may not wait."""
        self._end(about(event))

    def credential_ended(self, event: Event) -> None:
        """A credential ended: what its account waits for is answered now, or refused."""
        self._end(event.data["account"])

    def _end(self, account_id: str) -> None:
        for number, caller in self._callers.items():
            who = None if caller.visitor is None else caller.visitor.principal.account_id
            if who == account_id and number not in self._lasting:
                caller.leaving.set()

    def stop(self) -> None:
        """End all waiting, from now on too."""
        self._stopping = True
        for caller in self._callers.values():
            caller.leaving.set()

    @asynccontextmanager
    async def watched(
        self, caller: Caller, receive: Receive, *, follows: bool = True
    ) -> AsyncIterator[None]:
        """While a call is answered, tell it when nobody waits for the answer any more.

        It `follows` the caller's account, unless it sees to that itself.
        """
        self._callers[id(caller)] = caller
        if not follows:
            self._lasting.add(id(caller))
        if self._stopping:
            caller.leaving.set()
        watching = asyncio.ensure_future(_gone(receive, caller.leaving))
        try:
            yield
        finally:
            del self._callers[id(caller)]
            self._lasting.discard(id(caller))
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)


async def _gone(receive: Receive, leaving: asyncio.Event) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    leaving.set()


class Resource(Entity):
    """The ASGI application of one path."""

    endpoints: Mapping[str, Endpoint]
    rooms: Rooms
    hub: Operations
    policy: HubPolicy
    dispatcher: Dispatcher
    hosts: Hosts
    addresses: Addresses
    waiting: WaitingCallers
    browsers: BrowserCookies
    public_url: str = ""

    def __post_init__(self) -> None:
        self.public_url = self.public_url.rstrip("/")
        self._may_be_direct = not self.public_url and not self.addresses.believes_proxies
        self._endpoints = dict(self.endpoints)
        if "GET" in self.endpoints:
            self._endpoints["HEAD"] = self.endpoints["GET"]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        try:
            response = await self._answer(scope, receive)
        except e.FolkmootError as error:
            response = refused(error, whole=is_operator(scope))
        if response is not None:
            await response(scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive) -> ASGIApp | None:
        endpoint = self._endpoints.get(scope["method"])
        if endpoint is None:
            allowed = ", ".join(sorted(self._endpoints))
            raise e.MethodNotAllowed(f"This address answers only to {allowed}.", allow=allowed)
        # The guard lets pages of other origins look; here a look is what was said in a room.
        looks = scope["method"] in SAFE_METHODS and not is_operator(scope)
        foreign = foreign_origin(self.hosts, scope) if looks else None
        if foreign is not None:
            raise foreign
        # Before anyone is authenticated: a body may take its time, and a token be void then.
        raw = await read_body(receive)
        if raw is None:
            return None
        token, query = read_query(scope, endpoint.query)
        row, dispatcher = endpoint.row, self.dispatcher
        on_socket = is_operator(scope)
        # A rule that holds messages must not hold the one that releases them: no interceptors.
        operated = on_socket and row.who == "operator"
        changes = 0 if operated else self.rooms.changes
        caller, confirm = await self._caller(scope, endpoint, "" if operated else token)
        if endpoint.body:
            check_media_type(scope)
        given = read_arguments(endpoint, scope, query, raw)

        async def perform(admitted: Admitted) -> OperationResult:
            if row.local and not on_socket:
                sentence = "Only an operator may do this, on the hub's own socket."
                raise e.CapabilityDenied(sentence, attempted_kind=row.kind)
            left = given
            if admitted.ruling is not None:
                left = rewritten(endpoint, given, arguments_left(admitted, row.name))
                if self.rooms.changes != changes:
                    await confirm()
            try:
                if not row.is_waiting(left):
                    return await dispatcher.perform(row, left, caller)
                async with self.waiting.watched(caller, receive):
                    # Again: a change of the account is noticed only from here on.
                    await confirm()
                    done = await dispatcher.perform(row, left, caller)
                    await confirm()
                    self.policy.check(caller.principal, row.name, left)
                    return done
            except e.ArgumentInvalid as error:
                if left == given:
                    raise
                why = f"An interceptor produced invalid arguments: {error.message}"
                raise e.RewriteRefused(why) from None

        if operated or not row.judged:
            work = dispatcher.perform(row, given, caller)
        else:
            work = self.hub.ask(caller.principal, row.name, {**given}, perform)
        if row.progress is None:
            done = await work
        elif wants_events(scope):
            return await progressing(work, caller, self.waiting, receive)
        else:
            async with self.waiting.watched(caller, receive):
                found = await run_until(caller.leaving, work)
            if found is None:
                raise e.HubStopping(STOPPING)
            done = found
        if isinstance(done.payload, EventStream):
            return EventResponse(done.payload, caller, self.waiting)
        if isinstance(done.payload, FileAnswer):
            return FileResponse(done.payload, endpoint.route.media)
        payload, cookie = done.payload, {}
        if done.bind is not None:
            cookie = await self.browsers.sign_in(scope, done.bind, caller)
            if not cookie:
                if done.bind.otherwise is None:
                    raise e.TokenInvalid
                payload = done.bind.otherwise
        elif done.signs_out:
            cookie = self.browsers.sign_out(scope)
        response = answered(endpoint, payload)
        response.headers.update(cookie)
        return response

    async def _caller(
        self, scope: Scope, endpoint: Endpoint, token: str
    ) -> tuple[Caller, Callable[[], Awaitable[None]]]:
        """The caller, and a check that refuses them if they lost access while waiting."""
        caller = Caller(
            address=self.addresses.of(scope),
            base_url=self.public_url or _base_url(scope),
            is_direct=partial(is_direct, scope) if self._may_be_direct else None,
            operator=is_operator(scope),
        )
        if caller.operator:
            caller.principal = OPERATOR
        if caller.operator and (endpoint.public or not token):
            return caller, nothing_to_confirm
        if endpoint.public:
            caller.binds = self.browsers.is_page(scope)
            secret = self.browsers.quietly(scope, token)
            caller.session = await self.browsers.identity(secret)
            if secret and caller.session is None:
                with suppress(e.FolkmootError):
                    caller.visitor = await self.rooms.authenticate_browser(secret)
            return caller, nothing_to_confirm
        secret = "" if caller.operator else self.browsers.secret(scope, token)
        if not token and not secret:
            raise e.AuthenticationRequired
        rooms = self.rooms
        authenticate = (
            partial(rooms.authenticate_browser, secret)
            if secret
            else partial(rooms.authenticate, token)
        )
        visitor = caller.visitor = await authenticate()
        caller.account, caller.credential_id = visitor.account, visitor.credential_id
        caller.principal = visitor.principal
        if endpoint.row.who == "operator":
            caller.operator = scope_of(visitor.principal.scope).has(OPERATE)
        sign_in(scope, visitor.principal.account_id)

        async def confirm() -> None:
            if not secret and visitor.account is not None:
                await rooms.check_still(visitor)
            elif (await authenticate()).principal.account_id != visitor.principal.account_id:
                raise e.TokenInvalid

        return caller, confirm


async def nothing_to_confirm() -> None:
    """For an operation that works without an account."""


def read_arguments(
    endpoint: Endpoint, scope: Scope, query: dict[str, Any], raw: bytes
) -> dict[str, Any]:
    """The arguments of a request from path, query and body."""
    route, given = endpoint.route, dict(query)
    if endpoint.in_room and ROOM.fullmatch(scope["path_params"]["room"]) is None:
        raise e.RoomNotFound("There is no such room.")
    if route.body:
        given[route.body] = Raw(raw)
    elif raw:
        body = strict.decode_object(raw, BODY)
        elsewhere = endpoint.not_given | {each.name for each in endpoint.query}
        if unknown := [name for name in body if name in elsewhere or not endpoint.body]:
            raise e.ArgumentInvalid(unknown_names("", unknown), field=truncated(unknown[0]))
        given |= body
    elif endpoint.body:
        strict.decode_object(raw, BODY)
    for header, name in route.headers.items():
        if value := Headers(scope=scope).get(header):
            given[name] = value
    return {**given, **named_in(endpoint, scope), **route.fixed}


def named_in(endpoint: Endpoint, scope: Scope) -> dict[str, Any]:
    """The arguments in the path; an invalid number is refused like any other value."""
    named: dict[str, Any] = dict(scope["path_params"])
    for each in endpoint.path_parameters:
        if each.schema["type"] == "integer" and WHOLE.fullmatch(named[each.name]):
            named[each.name] = int(named[each.name])
    return named


def rewritten(endpoint: Endpoint, given: dict[str, Any], left: dict[str, Any]) -> dict[str, Any]:
    """The arguments that interceptors left; which room it is about they cannot change."""
    named = NAMED.findall(endpoint.path) if endpoint.in_room else ()
    if any(given[name] != left.get(name) for name in named):
        raise e.RewriteRefused("An interceptor tried to change which room it is about.")
    return left


def _base_url(scope: Scope) -> str:
    host = next((value for name, value in scope["headers"] if name == b"host"), b"")
    return f"{scope['scheme']}://{host.decode('latin-1')}"


def answered(endpoint: Endpoint, content: Any) -> Response:
    """The response of an operation that succeeded."""
    route = endpoint.route
    if route.status == NO_CONTENT:
        return Response(status_code=NO_CONTENT, headers={"cache-control": "no-store"})
    headers = {}
    if route.location:
        members = content if isinstance(content, dict) else asdict(content)
        headers["location"] = route.location.format_map(members)
    return JsonResponse(content, route.status, headers)
