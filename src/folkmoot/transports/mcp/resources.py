"""Resources of `/mcp`: the hub's own, and who is told of changes of any."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from folkmoot.core import errors as e
from folkmoot.core.entity import Entity
from folkmoot.core.message import ErrorObject
from folkmoot.mcp.server.service import McpAnswer, method_unknown
from folkmoot.mcp.wire import INVALID_PARAMS, RESOURCES_READ, SUBSCRIBE
from folkmoot.operations.inbox_app import APP_META, APP_TYPE, INBOX_APP, inbox_page
from folkmoot.transports.mcp.admission import text_in
from folkmoot.transports.mcp.lists import app_type
from folkmoot.transports.mcp.notices import INBOX, Resubscriptions

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from folkmoot.accounts import Account
    from folkmoot.gateway.operations import HubPolicy
    from folkmoot.mail import Mail
    from folkmoot.mcp.server.service import McpRequest
    from folkmoot.transports.mcp.arrivals import Exchange
    from folkmoot.transports.mcp.backend_changes import Watches
    from folkmoot.transports.mcp.calls import BackendCalls
    from folkmoot.transports.mcp.notices import Notice, Notices
    from folkmoot.transports.mcp.service import Deliveries
    from folkmoot.transports.mcp.sessions import McpSession
    from folkmoot.transports.mcp.subscribers import Subscriber, Subscribers


OWN: Final = (INBOX, INBOX_APP)


class Resources(Entity, kw_only=True):
    """Reads the hub's own, and has sessions told of changes."""

    policy: HubPolicy
    mail: Mail
    deliveries: Deliveries
    notices: Notices
    subscribers: Subscribers
    backends: BackendCalls
    watches: Watches
    session_changed: Callable[[McpSession], Awaitable[None]]

    def __post_init__(self) -> None:
        self.resubscriptions = Resubscriptions(self._subscribe)

    async def read(self, asked: McpRequest, uri: str) -> McpAnswer | None:
        """The digest of the caller's mailbox, or the app's page; None for what is not ours."""
        if uri not in OWN:
            return None
        self.policy.check_request(asked.caller.caller.principal, RESOURCES_READ, {"uri": uri})
        content: dict[str, Any] = {"uri": uri}
        if uri == INBOX:
            account = account_of(asked.caller)
            await self.deliveries.settled(account.id)
            digest = await self.mail.digest(account)
            content |= {
                "mimeType": "application/json",
                "text": msgspec.json.encode(digest).decode(),
            }
        else:
            mime = app_type(asked.capabilities) or APP_TYPE
            content |= {"mimeType": mime, "text": inbox_page(), "_meta": APP_META}
        return McpAnswer({"contents": [content]})

    async def subscribe(self, asked: McpRequest) -> McpAnswer:
        """Tell this session of changes from now on."""
        exchange: Exchange = asked.caller
        session = exchange.session
        if session is None:
            return method_unknown(asked.request.method)
        uri = text_in(asked.params, "uri")
        before = self.subscribed(session)
        answer = await self._subscribe(exchange, uri)
        if self.subscribed(session) != before:
            await self.session_changed(session)
        return answer

    async def _subscribe(self, exchange: Exchange, uri: str) -> McpAnswer:
        session = exchange.session
        subscriber = None if session is None else self.subscribers.of(session)
        if session is None or subscriber is None:
            return self.unknown(uri)
        if uri != INBOX:
            if not await self.watch(exchange, subscriber, uri):
                return self.unknown(uri)
            if session.ended:
                self.unwatch(subscriber)
            return McpAnswer({})
        self.policy.check_request(exchange.caller.principal, SUBSCRIBE, {"uri": uri})
        account = account_of(exchange)

        async def notify(notice: Notice) -> None:
            subscriber = self.subscribers.of(session)
            if subscriber is not None and subscriber.wants(INBOX):
                subscriber.urgent = subscriber.urgent or notice.urgent
                self.subscribers.notify(subscriber, INBOX)

        await self.notices.subscribe(session, account.id, exchange.credential_id, notify)
        return McpAnswer({})

    async def unsubscribe(self, asked: McpRequest) -> McpAnswer:
        """Tell this session no more."""
        exchange: Exchange = asked.caller
        session = exchange.session
        if session is None:
            return method_unknown(asked.request.method)
        uri = text_in(asked.params, "uri")
        before = self.subscribed(session)
        self.resubscriptions.discard(session, uri)
        answer = self._unsubscribe(session, uri)
        if self.subscribed(session) != before:
            await self.session_changed(session)
        return answer

    def subscribed(self, session: McpSession) -> tuple[str, ...]:
        """The URIs that a session has subscribed to, or will be again."""
        uris = [INBOX] if self.notices.follows(session) else []
        subscriber = self.subscribers.of(session)
        if subscriber is not None:
            uris += self.watches.shown(subscriber)
        return tuple(dict.fromkeys((*uris, *self.resubscriptions.of(session))))

    def _unsubscribe(self, session: McpSession, uri: str) -> McpAnswer:
        if uri == INBOX:
            self.notices.unsubscribe(session)
            return McpAnswer({})
        canonical = self._canonical(uri)
        if canonical is None:
            return self.unknown(uri)
        subscriber = self.subscribers.of(session)
        if subscriber is not None:
            self.watches.remove(subscriber, canonical)
        return McpAnswer({})

    def unknown(self, uri: str) -> McpAnswer:
        """The refusal of a resource that is not here."""
        return McpAnswer(error=ErrorObject(INVALID_PARAMS, "Resource not found", {"uri": uri}))

    async def watch(self, exchange: Exchange, subscriber: Subscriber, uri: str) -> bool:
        """Tell someone of a backend's resource from now on; False if there can be none such."""
        canonical = self._canonical(uri)
        if canonical is None:
            return False
        self.backends.check(SUBSCRIBE, {"uri": canonical}, exchange)
        await self.watches.add(subscriber, canonical, uri)
        return True

    def unwatch(self, subscriber: Subscriber) -> None:
        """Tell someone of no backend's resource any more."""
        self.watches.remove_all(subscriber)

    def _canonical(self, uri: str) -> str | None:
        return self.backends.gateway.catalogue.canonical_uri(uri)


def account_of(exchange: Exchange) -> Account:
    """The account of the caller; a stranger is refused."""
    if exchange.caller.account is None:
        raise e.AuthenticationRequired
    return exchange.caller.account
