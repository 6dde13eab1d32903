"""The parts of the endpoint, and how they are connected."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING

from folkmoot.core import errors as e
from folkmoot.core.events import ACCOUNTS, CREDENTIALS, TASKS, about
from folkmoot.core.message import Request
from folkmoot.gateway.operations import HubPolicy
from folkmoot.gateway.requests import ASKS
from folkmoot.mcp.wire import HANDSHAKE_VERSION, SUBSCRIBE, TOOLS_CALL
from folkmoot.transports.mcp.backend_changes import ListChanges, Watches
from folkmoot.transports.mcp.calls import BackendCalls, RunningCalls
from folkmoot.transports.mcp.listening import SubscriptionListener
from folkmoot.transports.mcp.lists import Lists, server_info
from folkmoot.transports.mcp.notices import INBOX, Notices
from folkmoot.transports.mcp.resources import Resources
from folkmoot.transports.mcp.service import Deliveries, HubService
from folkmoot.transports.mcp.subscribers import LISTS, RIGHTS, TASK, Subscribers
from folkmoot.transports.mcp.tasks import TASK_METHODS, TaskRequests

if TYPE_CHECKING:
    from folkmoot.core.policy import Principal
    from folkmoot.core.ports import Event
    from folkmoot.transports.mcp.arrivals import Exchange
    from folkmoot.transports.mcp.endpoint import McpEndpoint
    from folkmoot.transports.mcp.sessions import McpSession


class Parts:
    """The parts of one endpoint; they work while `running()` is entered."""

    def __init__(self, endpoint: McpEndpoint) -> None:
        bus, accounts, gateway = endpoint.bus, endpoint.accounts, endpoint.gateway
        catalogue, rights = endpoint.catalogue, endpoint.rights
        info = server_info(endpoint.version)
        self.calls = calls = RunningCalls(endpoint.tools, endpoint.backends, endpoint.clock, rights)
        bus.listen(ACCOUNTS, calls.account_changed)
        bus.listen(CREDENTIALS, calls.credential_ended)
        self._gateway = gateway
        self._own = catalogue
        self.deliveries = Deliveries()
        self.lists = Lists(catalogue, rights, gateway, info)
        self._policy = policy = HubPolicy(rights)
        self._notices = Notices(bus, accounts, self._may_hear)
        self._tasks = TaskRequests(gateway, endpoint.task_calls, policy, calls)
        bus.listen(TASKS, self._task_changed)
        self.subscribers = Subscribers(accounts, rights, self._may_hear, self._tasks.notice)
        backends = BackendCalls(gateway, rights, calls)
        self._watches = Watches(gateway, self.subscribers)
        self._resources = resources = Resources(
            policy=policy,
            mail=endpoint.mail,
            deliveries=self.deliveries,
            notices=self._notices,
            subscribers=self.subscribers,
            backends=backends,
            watches=self._watches,
            session_changed=endpoint.session_changed,
        )
        self.service = HubService(
            server_info=info,
            catalogue=catalogue,
            calls=calls,
            deliveries=self.deliveries,
            policy=policy,
            lists=self.lists,
            resources=resources,
            listener=SubscriptionListener(
                policy, self.subscribers, self._notices, resources, self._tasks
            ),
            backends=backends,
            tasks=self._tasks,
            sign_in=endpoint.sign_in,
        )
        self._changes = ListChanges(bus, self.subscribers, self._renew)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Have the parts work; on leaving, what follows deliveries is finished."""
        async with AsyncExitStack() as stack:
            for part in (
                self.deliveries,
                self._notices,
                self.subscribers,
                self._watches,
                self._resources.resubscriptions,
                self._changes,
            ):
                await stack.enter_async_context(part.running())
            yield

    def session_bound(self, session: McpSession) -> None:
        """Notify a session that it now has an account, and so other lists."""
        subscriber = self.subscribers.of(session)
        if subscriber is not None:
            self.subscribers.notify(subscriber, RIGHTS)

    def session_listens(self, session: McpSession, *, missed: bool) -> None:
        """Send a session its pending notifications; all kinds if it may have missed some."""
        subscriber = self.subscribers.of(session)
        if subscriber is not None:
            for what in (*LISTS, *self.subscribed(session)) if missed else ():
                subscriber.mark(what)
            self.subscribers.go_on(subscriber)

    def end_session(self, session: McpSession) -> None:
        """End all that belongs to a session which has ended."""
        self._notices.unsubscribe(session)
        self._resources.resubscriptions.forget(session)
        subscriber = self.subscribers.part(session)
        if subscriber is not None:
            self._resources.unwatch(subscriber)

    def subscribed(self, session: McpSession) -> tuple[str, ...]:
        """What a session has subscribed to."""
        return self._resources.subscribed(session)

    async def resubscribe(self, exchange: Exchange) -> None:
        """Restore the subscriptions of an adopted session."""
        await self._resources.resubscriptions.begin(exchange, INBOX)

    def note_stopped(self, principal: Principal, request: Request, outcome: str) -> None:
        """Have a call that a rule stopped in the audit log, under its canonical name."""
        params = request.params
        if not isinstance(params, dict):
            return
        if request.method in TASK_METHODS:
            self._gateway.audit.stopped(principal, request, outcome)
        if request.method not in ASKS:
            return
        catalogue, given = self._gateway.catalogue, dict(params)
        name, uri = params.get("name"), params.get("uri")
        own = (
            self._own.find(name) if request.method == TOOLS_CALL and isinstance(name, str) else None
        )
        if own is not None:
            given["name"] = own.name
        elif isinstance(name, str):
            entry = catalogue.tool(name) if request.method == TOOLS_CALL else catalogue.prompt(name)
            given["name"] = name if entry is None else entry.canonical
        elif isinstance(uri, str):
            given["uri"] = catalogue.canonical_uri(uri) or uri
        called = Request(id=request.id, method=request.method, params=given)
        self._gateway.audit.stopped(principal, called, outcome, own=own is not None)

    def _renew(self) -> None:
        self._watches.renew()
        self._resources.resubscriptions.renew()

    def _task_changed(self, event: Event) -> None:
        """Tell the owner's sessions of a task of their era."""
        if not event.data["stateless"]:
            for subscriber in self.subscribers.sessions_of(about(event)):
                if subscriber.session.version == HANDSHAKE_VERSION:
                    self.subscribers.notify(subscriber, TASK + event.data["id"])

    def _may_hear(self, principal: Principal, what: str) -> bool:
        """Whether someone may hear of a resource: their mailbox, or one they may watch."""
        if what.startswith(TASK):
            return self._tasks.may_hear(principal, what.removeprefix(TASK))
        if what == INBOX:
            try:
                self._policy.check_request(principal, SUBSCRIBE, {"uri": what})
            except e.CapabilityDenied:
                return False
            return True
        uri = self._gateway.catalogue.canonical_uri(what)
        if uri is None:
            return False
        request = Request(id=0, method=SUBSCRIBE, params={"uri": uri})
        return self._policy.permits_request(principal, request)
