"""The ASGI application at `/mcp`: who asks is made out, then the lane or the SDK answers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings

from folkmoot.core.errors import FolkmootError, HubStopping, MessageError, RequestError
from folkmoot.core.strict import check_single
from folkmoot.transports.answers import JsonResponse, retry_after
from folkmoot.transports.bodies import read_body, replaying
from folkmoot.transports.mcp.arrivals import SESSION_ID, Arrivals
from folkmoot.transports.mcp.assembly import Parts
from folkmoot.transports.mcp.declared import reduce_declared
from folkmoot.transports.mcp.exchange import (
    ASKING,
    REWRITTEN,
    REWRITTEN_KEY,
    SCOPE_KEY,
    TOKEN_INVALID,
    Exchange,
)
from folkmoot.transports.mcp.invalid_token import answer_invalid
from folkmoot.transports.mcp.quiet import quieten
from folkmoot.transports.mcp.sessions import Session, Sessions

if TYPE_CHECKING:
    from starlette.types import Message, Receive, Scope, Send

    from folkmoot.accounts import Accounts
    from folkmoot.core.message import Request
    from folkmoot.core.ports import Bus, Clock
    from folkmoot.gateway.gateway import Gateway
    from folkmoot.gateway.rights import HubRights
    from folkmoot.mail import Mail
    from folkmoot.pipeline import Pipeline
    from folkmoot.settings.model import McpSettings
    from folkmoot.tools import Catalogue
    from folkmoot.transports.guard import Hosts
    from folkmoot.transports.mcp.address import Addresses

BAD_REQUEST = 400
NOT_FOUND = 404

DRAINED = 0.8
"""How much of the time that a hub takes to stop calls to backends have."""
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
        rights: HubRights,
        gateway: Gateway | None = None,
        accounts: Accounts,
        mail: Mail,
        bus: Bus,
        clock: Clock,
        hosts: Hosts,
        addresses: Addresses,
        public_url: str = "",
        max_body_bytes: int,
        drain_seconds: float = 0.0,
        options: McpSettings,
        sessions_per_account: int = 0,
    ) -> None:
        self._drain_seconds = drain_seconds
        self._catalogue = catalogue
        self._changes = 0
        """How often an account changed since the hub began."""
        accounts.watch(self._recheck)
        self._parts = Parts(
            version=version,
            catalogue=catalogue,
            pipeline=pipeline,
            accounts=accounts,
            mail=mail,
            bus=bus,
            clock=clock,
            gateway=gateway,
            rights=rights,
            options=options,
        )
        self._sessions = Sessions(
            clock,
            idle_seconds=options.session_idle_seconds,
            most=options.max_sessions,
            most_nobodys=options.max_anonymous_sessions,
            most_bytes=options.max_session_bytes,
            most_of_one=sessions_per_account,
            on_end=self._parts.end_session,
        )
        self._arrivals = Arrivals(
            accounts=accounts,
            sessions=self._sessions,
            hosts=hosts,
            addresses=addresses,
            names=options.names,
            public_url=public_url,
            find=self._parts.lists.find,
            bound=self._parts.session_bound,
            end=self._end,
        )
        self._exchanges: set[Exchange] = set()
        self.answered = {"lane": 0, "sdk": 0}
        """How many requests were answered by each way."""
        self._stopping = False
        self._manager = StreamableHTTPSessionManager(
            self._parts.server.sdk,
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
            self._parts.running(),
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

    async def in_session(self, scope: Scope, token: str) -> str:
        """The id of the account that the session of a request is bound to; empty for none."""
        return await self._arrivals.in_session(scope, token)

    def stop(self) -> None:
        """End what only waits: calls that wait for new mail, and then the streams.

        A client whose stream ends tries to open it again at once, and may give up all of its calls
        when it finds nobody; by then they are answered.
        """
        if not self._stopping:
            # What backends have not answered by then is answered while the connections are there.
            loop = asyncio.get_running_loop()
            why = HubStopping("The hub is stopping, and the backend did not answer in time.")
            loop.call_later(DRAINED * self._drain_seconds, self._parts.open_calls.give_up, why)
        self._stopping = True
        for exchange in self._exchanges:
            if not exchange.listens:
                exchange.caller.leaving.set()
        self._let_listeners_go()

    def _let_listeners_go(self) -> None:
        """End the streams of a hub that stops, once nothing else is to be answered."""
        if self._stopping and all(exchange.listens for exchange in self._exchanges):
            for exchange in self._exchanges:
                exchange.caller.leaving.set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        body = None
        try:
            if scope["method"] == "POST":
                # First of all: a body may take its time, and a token be void then.
                body = await read_body(receive)
                if body is None:
                    return
            changes = self._changes
            exchange = await self._arrivals.exchange(scope)
        except RequestError as error:
            await refused(error)(scope, receive, send)
            return
        if self._stopping:
            exchange.caller.leaving.set()
        self._exchanges.add(exchange)
        try:
            if self._changes != changes:
                # One of them may have been of this account, which was not among those rechecked.
                await self._recheck_exchange(exchange)
            refusal = None
            if exchange.token_invalid:
                refusal = answer_invalid(exchange, body, self._catalogue)
            if refusal is None and body is not None:
                try:
                    body = reduce_declared(check_single(body))
                except MessageError as error:
                    refusal = refused(error)
            if refusal is not None:
                await refusal(scope, receive, send)
            else:
                await self._answer(exchange, body, receive, send)
        finally:
            exchange.caller.leaving.set()
            self._exchanges.discard(exchange)
            self._let_listeners_go()
            if exchange.session is not None:
                self._sessions.leave(exchange.session)

    async def _recheck(self, account_id: str) -> None:
        """End the streams and the waiting of an account whose token is valid no more."""
        self._changes += 1
        for exchange in tuple(self._exchanges):
            account, session = exchange.caller.account, exchange.session
            # A stream may be older than what its session was bound to.
            bound_later = account is None and session is not None and session.bound
            if bound_later or (account is not None and account.id == account_id):
                await self._recheck_exchange(exchange)

    async def _recheck_exchange(self, exchange: Exchange) -> None:
        if not await self._arrivals.is_valid(exchange):
            exchange.caller.leaving.set()

    async def _answer(
        self, exchange: Exchange, body: bytes | None, receive: Receive, send: Send
    ) -> None:
        lane = self._parts.lane if body is not None else None
        if lane is not None and await lane.answer(exchange, body or b"", receive, send):
            self.answered["lane"] += 1
            return
        self.answered["sdk"] += 1
        answer = exchange.answering(receive, send, self._parts.deliveries)
        method = exchange.scope["method"]
        open_body = False

        async def watched(message: Message) -> None:
            nonlocal open_body
            if message["type"] == "http.response.start":
                self._note(exchange, method, message)
            open_body = message.get("more_body", message["type"] == "http.response.start")
            await answer(message)

        session = exchange.session if method == "GET" else None
        if body is not None:
            receive = replaying(body, receive)
        elif method == "GET":
            receive = exchange.listening(receive)
        if session is not None:
            session.streams += 1
        asking = ASKING.set(exchange.caller.account)
        invalid = TOKEN_INVALID.set(exchange.token_invalid)
        rewritten = REWRITTEN.set(REWRITTEN_KEY in exchange.scope)
        try:
            await self._manager.handle_request(
                {**exchange.scope, SCOPE_KEY: exchange}, receive, watched
            )
            if open_body and method == "GET":
                # The SDK leaves a stream that we ended as if its client had gone.
                await answer({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            ASKING.reset(asking)
            TOKEN_INVALID.reset(invalid)
            REWRITTEN.reset(rewritten)
            if session is not None:
                session.streams -= 1

    async def stopped(self, scope: Scope, request: Request, outcome: str) -> None:
        """Have a call that was stopped before it came here in the audit log, if it is someone's."""
        try:
            exchange = await self._arrivals.exchange(scope)
        except FolkmootError:
            return
        if exchange.session is not None:
            self._sessions.leave(exchange.session)
        self._parts.note_stopped(exchange.caller.account, request, outcome)

    async def _end_idle_sessions(self) -> None:
        """End sessions that nobody uses, for as long as the hub runs."""
        while True:
            await asyncio.sleep(min(self._idle_seconds / LOOKS_WHILE_IDLE, MOST_BETWEEN_LOOKS))
            while (session := self._sessions.next_idle()) is not None:
                await self._end(session)

    async def _end(self, session: Session) -> None:
        self._sessions.drop(session)
        await self._manager.handle_request(
            {**ENDING, "headers": [(SESSION_ID, session.id.encode())]},
            hear_nothing,
            say_nothing,
        )

    def _note(self, exchange: Exchange, method: str, message: Message) -> None:
        """See from the head of a response whether a session was opened or has ended."""
        status, session = message["status"], exchange.session
        if session is None:
            session_id = dict(message.get("headers", ())).get(SESSION_ID)
            if session_id is not None and status < BAD_REQUEST:
                account = exchange.caller.account
                owner = {"user_id": account.id} if account else {"address": exchange.caller.address}
                self._sessions.open(session_id.decode("latin-1"), exchange.mark, **owner)
        elif status == NOT_FOUND or (method == "DELETE" and status < BAD_REQUEST):
            self._sessions.drop(session)


async def hear_nothing() -> Message:
    """The client's end of a request that no client sent."""
    return {"type": "http.disconnect"}


async def say_nothing(_: Message) -> None:
    """Where the answer to such a request goes."""


def refused(error: FolkmootError) -> JsonResponse:
    """The answer to a request that is refused before anyone reads its message."""
    told = {"jsonrpc": "2.0", "id": None, "error": error.as_jsonrpc()}
    return JsonResponse(told, error.http, retry_after(error))
