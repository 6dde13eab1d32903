"""The ASGI application at `/mcp`: who asks is made out, interceptors see it, then it is served."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec import field

from folkmoot.accounts.model import read_change
from folkmoot.core import errors as e
from folkmoot.core.entity import Entity
from folkmoot.core.events import ACCOUNTS, CREDENTIALS, about
from folkmoot.core.strict import check_single
from folkmoot.mcp.server.direct import DirectServer
from folkmoot.mcp.server.responses import say
from folkmoot.mcp.server.resumable import StreamBudget
from folkmoot.operations.concealment import conceal_call
from folkmoot.taskgroups import background_tasks
from folkmoot.transports.address import FORWARDED_KEY
from folkmoot.transports.answers import JsonResponse, retry_after
from folkmoot.transports.bodies import body_at_once, read_body, replaying
from folkmoot.transports.limits import (
    DRAIN_SHARE,
    FORWARD_ATTEMPTS,
    IDLE_CHECKS,
    MAX_DECLARATION_BYTES,
    SESSION_CHECK_SECONDS,
)
from folkmoot.transports.mcp.admission import (
    answer_invalid,
    answer_stranger,
    read_message,
    reduce_declared,
    unauthorized,
)
from folkmoot.transports.mcp.arrivals import REWRITTEN_KEY, Arrivals
from folkmoot.transports.mcp.assembly import Parts
from folkmoot.transports.mcp.forwarding import MISDIRECTED, NOT_HERE, ForwardOutcome
from folkmoot.transports.mcp.homes import Homes, SessionElsewhere
from folkmoot.transports.mcp.session_counts import SessionCounts
from folkmoot.transports.mcp.sessions import SESSION_ENDED, McpSession, Sessions
from folkmoot.transports.mcp.stored_sessions import StoredSessions

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.responses import Response
    from starlette.types import Receive, Scope, Send

    from folkmoot.accounts import Accounts
    from folkmoot.core.message import Request
    from folkmoot.core.policy import Principal
    from folkmoot.core.ports import Bus, Clock, Event, Sealer, SessionHomes, Store
    from folkmoot.gateway.gateway import Gateway
    from folkmoot.gateway.rights import HubRights
    from folkmoot.gateway.task_calls import TaskCalls
    from folkmoot.mail import Mail
    from folkmoot.mcp.server.service import After
    from folkmoot.operations import ToolCatalogue
    from folkmoot.operations.call import Bind
    from folkmoot.pipeline import Pipeline
    from folkmoot.settings.model import McpSettings
    from folkmoot.transports.address import Addresses
    from folkmoot.transports.guard import Hosts
    from folkmoot.transports.mcp.arrivals import Exchange
    from folkmoot.transports.mcp.forwarding import Forwarding

Tap: TypeAlias = "Callable[[Exchange, bytes | None, Send, Serve, McpEndpoint], Awaitable[None]]"
"""Takes an authenticated request past the interceptors, and has what is left of it served."""
Serve: TypeAlias = "Callable[[Scope, bytes | None, Send], Awaitable[None]]"


class McpEndpoint(Entity, kw_only=True):
    """`/mcp` of one hub; it serves while `running()` is entered."""

    version: str
    catalogue: ToolCatalogue
    tools: Pipeline
    backends: Pipeline
    rights: HubRights
    gateway: Gateway
    task_calls: TaskCalls
    accounts: Accounts
    mail: Mail
    bus: Bus
    clock: Clock
    store: Store
    sealer: Sealer
    epoch: str
    hosts: Hosts
    addresses: Addresses
    public_url: str = ""
    challenges: bool = False
    """Whether a client without a token is asked to sign in when it connects."""
    drain_seconds: float = 0.0
    options: McpSettings
    sessions_per_account: int = 0
    session_homes: SessionHomes | None = None
    forwarding: Forwarding | None = None
    tap: Tap | None = None
    """What every request and answer passes, where there are interceptors or a tape."""
    answered: dict[str, int] = field(default_factory=lambda: {"stateless": 0, "handshake": 0})
    """How many requests of each era were answered."""
    _changes: int = 0
    """How often an account changed, or a credential ended, since the hub began."""
    _exchanges: set[Exchange] = set()
    _stopping: bool = False

    def __post_init__(self) -> None:
        options, homes = self.options, self.session_homes
        self.bus.listen(ACCOUNTS, self._account_changed)
        self.bus.listen(CREDENTIALS, self._credential_ended)
        self._parts = Parts(self)
        self._sessions = Sessions(
            self.clock,
            idle_seconds=options.session_idle_seconds,
            most=options.max_sessions,
            max_anonymous=options.max_anonymous_sessions,
            most_bytes=options.max_session_bytes,
            most_of_one=self.sessions_per_account,
            on_end=self._parts.end_session,
        )
        self._homes: Homes | None = None
        if homes is not None:
            drop, forget = self._sessions.drop, self._sessions.forget
            self._homes = Homes(homes, self.bus, self.clock, drop, forget)
        self._stored = StoredSessions(
            store=self.store,
            sealer=self.sealer,
            epoch=self.epoch,
            clock=self.clock,
            accounts=self.accounts,
            sessions=self._sessions,
            begun=self._parts.subscribers.meet,
            subscribed=self._parts.subscribed,
            homes=self._homes,
        )
        self._arrivals = Arrivals(
            accounts=self.accounts,
            sessions=self._sessions,
            hosts=self.hosts,
            addresses=self.addresses,
            names=options.names,
            public_url=self.public_url,
            stored=self._stored,
        )
        if homes is not None:
            close = partial(self._stored.close, by_client=False)
            counts = SessionCounts(homes, self.bus, self.clock, self._sessions, close)
            self._arrivals.counts = counts
        streams = None
        if options.resume_seconds:
            streams = StreamBudget(
                self._stored.boot_id,
                seconds=options.resume_seconds,
                most_bytes=options.max_stream_bytes,
            )
        self._server = DirectServer(self._parts.service, self, streams=streams)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Serve; on leaving, close every session and finish what follows deliveries."""
        async with self._parts.running(), self._server.running(), background_tasks() as background:
            background.run(self._end_idle_sessions())
            if self._arrivals.counts is not None:
                background.run(self._arrivals.counts.run())
            if self.forwarding is None:
                yield
            else:
                async with self.forwarding.running():
                    yield

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
            why = e.HubStopping("The hub is stopping, and the backend did not answer in time.")
            loop.call_later(DRAIN_SHARE * self.drain_seconds, self._parts.calls.give_up, why)
        self._stopping = True
        if self._homes is not None:
            self._homes.is_stopping = True
        if self._server.streams is not None:
            self._server.streams.abandon()
        if self.forwarding is not None:
            self.forwarding.stop()
        for exchange in tuple(self._exchanges):
            if not exchange.listens:
                exchange.caller.hub_stops = True
                exchange.caller.leaving.set()
        self._let_listeners_go()

    def _let_listeners_go(self) -> None:
        """End the streams of a hub that stops, once nothing else is to be answered."""
        if all(exchange.listens for exchange in self._exchanges):
            for exchange in self._exchanges:
                exchange.caller.leaving.set()

    async def __call__(
        self, scope: Scope, receive: Receive, send: Send, *, tapped: bool = False
    ) -> None:
        """Make out who sends a request, have it pass the tap, and serve what is left of it."""
        body, tap, changes = None, None if tapped else self.tap, self._changes
        try:
            if scope["method"] == "POST":
                # First of all: a body may take its time, and a token be void then.
                body = body_at_once(receive)
                if body is None:
                    body = await read_body(receive)
                if body is None:
                    return
            changes = self._changes
            exchange = await self._arrivals.exchange(scope)
        except (e.RequestError, e.TokenRefused) as error:
            await self._refused(error, scope, body)(scope, receive, send)
            return
        except SessionElsewhere as elsewhere:
            found = await self._seek(elsewhere, scope, body, receive, send, tapped=tapped)
            if found is None:
                return
            exchange = found
        try:
            if tap is None:
                await self._serve(exchange, changes, body, receive, send)
            else:
                serve = partial(self._serve_rest, exchange, changes, receive)
                await tap(exchange, body, send, serve, self)
        finally:
            if exchange.session is not None:
                self._sessions.leave(exchange.session)

    def _refused(self, error: e.FolkmootError, scope: Scope, body: bytes | None) -> Response:
        """The answer where it is not even known who asks."""
        if not isinstance(error, e.TokenRefused):
            return refused(error)
        asked = read_message(body or b"")
        base = self._arrivals.base_url(scope)
        return unauthorized(None if asked is None else asked.id, error, base)

    async def _seek(
        self,
        elsewhere: SessionElsewhere,
        scope: Scope,
        body: bytes | None,
        receive: Receive,
        send: Send,
        *,
        tapped: bool,
    ) -> Exchange | None:
        """Have the node of its session answer a request; what is left to serve here, if any.

        It is forwarded once, and before any interceptor saw it.
        """
        if FORWARDED_KEY in scope:
            await say(send, MISDIRECTED, headers=NOT_HERE)
            return None
        try:
            for _ in range(FORWARD_ATTEMPTS):
                if self.forwarding is None or self._homes is None or tapped:
                    break
                home = elsewhere.home
                outcome = await self.forwarding.forward(home, scope, body, receive, send)
                if outcome is ForwardOutcome.ANSWERED:
                    return None
                self._homes.forget(elsewhere.session_id)
                gone = home.process if outcome is ForwardOutcome.UNREACHABLE else ""
                try:
                    return await self._arrivals.exchange(scope, gone)
                except SessionElsewhere as still:
                    elsewhere = still
            raise e.SessionNotFound(SESSION_ENDED)
        except (e.RequestError, e.CarryError, e.TokenRefused) as error:
            await self._refused(error, scope, body)(scope, receive, send)
        return None

    async def _serve_rest(
        self,
        exchange: Exchange,
        changes: int,
        receive: Receive,
        scope: Scope,
        body: bytes | None,
        send: Send,
    ) -> None:
        """Serve a request after its interceptors, however long they held it.

        If an account was changed meanwhile, the session has ended or the request is another one,
        who asks is made out again.
        """
        ended = exchange.session is not None and exchange.session.ended
        if ended or self._changes != changes or REWRITTEN_KEY in scope:
            again = receive if body is None else replaying(body, receive)
            await self(scope, again, send, tapped=True)
            return
        exchange.scope = scope
        await self._serve(exchange, changes, body, receive, send)

    async def _serve(
        self, exchange: Exchange, changes: int, body: bytes | None, receive: Receive, send: Send
    ) -> None:
        if self._stopping:
            exchange.caller.hub_stops = True
            exchange.caller.leaving.set()
        self._exchanges.add(exchange)
        try:
            if self._changes != changes:
                # One of them may have been of this account, which was not among those rechecked.
                await self._recheck_exchange(exchange)
            refusal = None
            if exchange.token_invalid:
                refusal = answer_invalid(exchange, body, self.catalogue)
            elif exchange.credential is None:
                refusal = answer_stranger(exchange, body, self.catalogue, always=self.challenges)
            if refusal is None and body is not None:
                try:
                    # Of a short message nothing is too long, and it is read where it is served.
                    if len(body) > MAX_DECLARATION_BYTES:
                        body = reduce_declared(check_single(body))
                except e.MessageError as error:
                    refusal = refused(error)
            if refusal is not None:
                await refusal(exchange.scope, receive, send)
            else:
                self.answered["handshake" if exchange.handshake else "stateless"] += 1
                if exchange.subscribed:
                    await self._parts.resubscribe(exchange)
                await self._server.serve(exchange, body, receive, send)
        finally:
            caller = exchange.caller
            caller.has_left = True
            if caller.awaited is not None:
                caller.awaited.set()
            self._exchanges.discard(exchange)
            if self._stopping:
                self._let_listeners_go()

    def _account_changed(self, event: Event) -> None:
        """End the streams and the waiting of an account whose tokens are valid no more."""
        self._changes += 1
        changed = read_change(event)
        if not changed.ends_tokens:
            return
        for exchange in tuple(self._exchanges):
            account, session = exchange.caller.account, exchange.session
            # A stream may be older than what its session was bound to.
            bound_later = account is None and session is not None and session.owner == changed.id
            if bound_later or (account is not None and account.id == changed.id):
                end(exchange)

    def _credential_ended(self, event: Event) -> None:
        """End the streams and the waiting of those who came with a credential that ended."""
        self._changes += 1
        ended = about(event)
        for exchange in tuple(self._exchanges):
            session = exchange.session
            bound_later = session is not None and ended in (session.credential_id, session.token_id)
            if exchange.credential_id == ended or (exchange.credential is None and bound_later):
                end(exchange)

    async def _recheck_exchange(self, exchange: Exchange) -> None:
        if not await self._arrivals.is_valid(exchange):
            end(exchange)

    async def open_session(
        self, exchange: Exchange, version: str, capabilities: dict[str, Any]
    ) -> McpSession:
        """Open a session for the sender of this request."""
        caller = exchange.caller
        return await self._stored.open(
            exchange.shown_hash,
            exchange.credential_id,
            caller.principal,
            caller.address,
            version,
            capabilities,
        )

    async def session_changed(self, session: McpSession) -> None:
        """Store a session's choices, so that a restart keeps them."""
        await self._stored.keep(session)

    async def sign_in(self, session: McpSession, bind: Bind) -> bool:
        """Let a session become what a tool says; whether it did."""
        if not await self._stored.bind(session, bind.token_id, bind.account_id):
            return False
        self._parts.session_bound(session)
        return True

    async def end_session(self, session: McpSession) -> None:
        """End a session its client closes, with everything that belongs to it."""
        await self._stored.close(session, by_client=True)

    def deliver(self, exchange: Exchange, after: After) -> None:
        """Run what follows a delivered answer."""
        account = exchange.caller.account
        if account is not None:
            self._parts.deliveries.start(account.id, after)

    def session_listens(self, session: McpSession, *, missed: bool) -> None:
        """Tell a session what it has not heard of yet."""
        self._parts.session_listens(session, missed=missed)

    def principal(self, exchange: Exchange) -> Principal:
        """The caller as a principal of the policy."""
        return exchange.caller.principal

    def stopped(self, exchange: Exchange, request: Request, outcome: str) -> None:
        """Have a call that an interceptor stopped in the audit log, if it is someone's."""
        self._parts.note_stopped(exchange.caller.principal, conceal_call(request), outcome)

    async def _end_idle_sessions(self) -> None:
        """End idle sessions, as long as the hub runs."""
        while True:
            await asyncio.sleep(
                min(self.options.session_idle_seconds / IDLE_CHECKS, SESSION_CHECK_SECONDS)
            )
            while (session := self._sessions.next_idle()) is not None:
                await self._stored.close(session, by_client=False)


def end(exchange: Exchange) -> None:
    """End an exchange whose token is valid no more."""
    exchange.ending = exchange.refusal
    exchange.caller.leaving.set()


def refused(error: e.FolkmootError) -> JsonResponse:
    """The answer to a request that is refused before anyone reads its message."""
    told = {"jsonrpc": "2.0", "id": None, "error": error.as_jsonrpc()}
    return JsonResponse(told, error.http, retry_after(error))
