"""The ASGI application at `/mcp`: makes out who asks, then lets the SDK answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from starlette.datastructures import Headers

from folkmoot.accounts import Account, hash_token
from folkmoot.core.errors import RequestError
from folkmoot.tools.model import Caller
from folkmoot.transports.answers import JsonResponse
from folkmoot.transports.guard import foreign_origin
from folkmoot.transports.mcp.calls import Calls
from folkmoot.transports.mcp.clients import KnownClients
from folkmoot.transports.mcp.credentials import mark_of, read_query, read_token
from folkmoot.transports.mcp.deliveries import Deliveries
from folkmoot.transports.mcp.exchange import SCOPE_KEY, Exchange
from folkmoot.transports.mcp.lane import Lane
from folkmoot.transports.mcp.notices import Notices
from folkmoot.transports.mcp.plain import read_body
from folkmoot.transports.mcp.quiet import quieten
from folkmoot.transports.mcp.server import McpServer
from folkmoot.transports.mcp.sessions import Session, Sessions

if TYPE_CHECKING:
    from starlette.types import Message, Receive, Scope, Send

    from folkmoot.accounts import Accounts
    from folkmoot.core.ports import Bus, Clock
    from folkmoot.mail import Mail
    from folkmoot.names import NameStyle
    from folkmoot.pipeline import Pipeline
    from folkmoot.settings.model import McpSettings
    from folkmoot.tools import Catalogue
    from folkmoot.transports.guard import Hosts
    from folkmoot.transports.mcp.address import Addresses

SESSION_ID = "mcp-session-id"
PROTOCOL_VERSION = "mcp-protocol-version"
BAD_REQUEST = 400
NOT_FOUND = 404

LOOKS_WHILE_IDLE = 4
MOST_BETWEEN_LOOKS = 30.0
"""Seconds after which we look for idle sessions at the latest."""
ENDING: Scope = {
    "type": "http",
    "http_version": "1.1",
    "method": "DELETE",
    "scheme": "http",
    "path": "/mcp",
    "query_string": b"",
}
"""The request that ends a session, as its own client would send it."""


class McpEndpoint:
    """`/mcp` of one hub; it serves while `running()` is entered."""

    def __init__(
        self,
        *,
        version: str,
        catalogue: Catalogue,
        pipeline: Pipeline,
        accounts: Accounts,
        mail: Mail,
        bus: Bus,
        clock: Clock,
        hosts: Hosts,
        addresses: Addresses,
        public_url: str = "",
        max_body_bytes: int,
        options: McpSettings,
    ) -> None:
        self._accounts = accounts
        self._hosts = hosts
        self._addresses = addresses
        self._names: NameStyle = options.names
        self._public_url = public_url.rstrip("/")
        self._deliveries = Deliveries()
        self._notices = Notices(bus, accounts)
        self._sessions = Sessions(
            clock,
            idle_seconds=options.session_idle_seconds,
            most=options.max_sessions,
            most_nobodys=options.max_anonymous_sessions,
            on_end=self._notices.unsubscribe,
        )
        self._exchanges: set[Exchange] = set()
        self.answered = {"lane": 0, "sdk": 0}
        """How many requests were answered by each way."""
        self._stopping = False
        calls, clients = Calls(pipeline, clock), KnownClients()
        server = McpServer(
            version=version,
            catalogue=catalogue,
            calls=calls,
            mail=mail,
            notices=self._notices,
            deliveries=self._deliveries,
            clients=clients,
        )
        self._lane: Lane | None = None
        if options.fast_lane:
            self._lane = Lane(
                catalogue=catalogue,
                calls=calls,
                clients=clients,
                deliveries=self._deliveries,
                server_info=server.sdk.server_info_stamp,
                lists=not options.conformance_fixtures,
            )
        if options.conformance_fixtures:
            # Only then: they are for tests, and take time to import.
            from folkmoot.transports.mcp.conformance import mount

            mount(server.sdk)
        self._manager = StreamableHTTPSessionManager(
            server.sdk,
            # The hub's own guard has looked at Host and Origin, and knows more spellings of them.
            security_settings=TransportSecuritySettings(enable_dns_rebinding_protection=False),
            max_request_body_size=max_body_bytes,
            max_sessions=options.max_sessions,
            # Idle sessions are ended here: the SDK does not see what the lane answers.
            session_idle_timeout=None,
        )
        self._idle_seconds = options.session_idle_seconds

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Serve; on leaving, close every session and finish what follows deliveries."""
        quieten()
        failure: BaseException | None = None
        async with (
            self._deliveries.running(),
            self._notices.running(),
            self._manager.run(),
            asyncio.TaskGroup() as tasks,
        ):
            ending = tasks.create_task(self._end_idle_sessions())
            try:
                yield
            except BaseException as error:  # noqa: BLE001 - raised again, out of the groups
                failure = error
            ending.cancel()
        if failure is not None:
            raise failure

    @property
    def open_sessions(self) -> int:
        """How many sessions of the handshake era are open."""
        return len(self._sessions)

    def stop(self) -> None:
        """End what only waits: streams, and calls that wait for new mail."""
        self._stopping = True
        for exchange in self._exchanges:
            exchange.caller.leaving.set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        try:
            exchange = await self._exchange(scope)
        except RequestError as error:
            body = {"jsonrpc": "2.0", "id": None, "error": error.as_jsonrpc()}
            await JsonResponse(body, error.http)(scope, receive, send)
            return
        if self._stopping:
            exchange.caller.leaving.set()
        self._exchanges.add(exchange)
        try:
            await self._answer(exchange, scope, receive, send)
        finally:
            exchange.caller.leaving.set()
            self._exchanges.discard(exchange)
            if exchange.session is not None:
                self._sessions.leave(exchange.session)

    async def _exchange(self, scope: Scope) -> Exchange:
        if (foreign := foreign_origin(self._hosts, scope)) is not None:
            raise foreign
        query = read_query(scope)
        token = read_token(scope, query)
        headers = Headers(scope=scope)
        mark, session_id = mark_of(token), headers.get(SESSION_ID)
        session = None
        if session_id is not None and is_handshake_era(headers):
            session = self._sessions.enter(session_id, mark)
        holder = mark or (session.holder if session is not None else "")
        address = self._addresses.of(scope)
        try:
            account = await self._account(token, holder)
            if session_id is None and is_handshake_era(headers):
                await self._make_room(address, account)
        except BaseException:
            if session is not None:
                self._sessions.leave(session)
            raise
        exchange = Exchange(
            caller=Caller(
                account=account,
                address=address,
                base_url=self._public_url or f"{scope['scheme']}://{headers.get('host', '')}",
            ),
            scope=scope,
            mark=mark,
            holder=holder if account is not None else "",
            session=session,
            names=query.names or self._names,
            all_tools=query.all_tools,
        )

        async def confirm() -> bool:
            now = await self._account(token, holder)
            return now is not None and account is not None and now.id == account.id

        def on_token(_: Account, fresh: str) -> None:
            if session is not None and not session.mark:
                session.bound = hash_token(fresh) or ""

        exchange.caller.confirm = confirm
        exchange.caller.on_token = on_token
        return exchange

    async def _make_room(self, address: str, account: Account | None) -> None:
        """Let whoever has an account, or has none at this address, open one more session."""
        if account is None:
            self._sessions.check_room(address)
        elif (session := self._sessions.in_excess(account.id)) is not None:
            await self._end(session)

    async def _account(self, token: str, holder: str) -> Account | None:
        if token:
            return await self._accounts.authenticate(token)
        return await self._accounts.authenticate_hash(holder) if holder else None

    async def _answer(self, exchange: Exchange, scope: Scope, receive: Receive, send: Send) -> None:
        async def watch(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._note(exchange, scope["method"], message)
            await send(message)

        stream = scope["method"] == "GET"
        receive, answer = exchange.wrap(receive, watch, self._deliveries, stream=stream)
        if scope["method"] == "POST":
            body, receive = await read_body(receive)
            if body is None:
                return
            await exchange.confirm()
            if self._lane is not None and await self._lane.answer(exchange, body, answer):
                self.answered["lane"] += 1
                return
        self.answered["sdk"] += 1
        await self._manager.handle_request({**scope, SCOPE_KEY: exchange}, receive, answer)

    async def _end_idle_sessions(self) -> None:
        """End sessions that nobody uses, for as long as the hub runs."""
        while True:
            await asyncio.sleep(min(self._idle_seconds / LOOKS_WHILE_IDLE, MOST_BETWEEN_LOOKS))
            while (session := self._sessions.next_idle()) is not None:
                await self._end(session)

    async def _end(self, session: Session) -> None:
        self._sessions.drop(session)
        await self._manager.handle_request(
            {**ENDING, "headers": [(SESSION_ID.encode(), session.id.encode())]},
            hear_nothing,
            say_nothing,
        )

    def _note(self, exchange: Exchange, method: str, message: Message) -> None:
        """See from the head of a response whether a session was opened or has ended."""
        status, session = message["status"], exchange.session
        if session is None:
            session_id = Headers(raw=message.get("headers", [])).get(SESSION_ID)
            if session_id is not None and status < BAD_REQUEST:
                account = exchange.caller.account
                owner = {"user_id": account.id} if account else {"address": exchange.caller.address}
                self._sessions.open(session_id, exchange.mark, **owner)
        elif status == NOT_FOUND or (method == "DELETE" and status < BAD_REQUEST):
            self._sessions.drop(session)


async def hear_nothing() -> Message:
    """The client's end of a request that no client sent."""
    return {"type": "http.disconnect"}


async def say_nothing(_: Message) -> None:
    """Where the answer to such a request goes."""


def is_handshake_era(headers: Headers) -> bool:
    """Whether a request belongs to the eras that know sessions."""
    version = headers.get(PROTOCOL_VERSION)
    return version is None or version in HANDSHAKE_PROTOCOL_VERSIONS
