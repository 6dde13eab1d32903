"""Resources of `/mcp` as the SDK asks for them: the hub's own, and those of backends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import mcp_types as types
import msgspec
from mcp.shared.exceptions import MCPError

from folkmoot.core.errors import FolkmootError
from folkmoot.gateway.asking import READ
from folkmoot.mcp.wire import SUBSCRIBE
from folkmoot.tools.app_tools import APP_TYPE, INBOX_APP, inbox_page
from folkmoot.transports.mcp.entrance import account_of, client_of, refusal
from folkmoot.transports.mcp.notices import INBOX, URGENT

if TYPE_CHECKING:
    from folkmoot.gateway.operations import HubPolicy
    from folkmoot.mail import Mail
    from folkmoot.transports.mcp.backends import Backends
    from folkmoot.transports.mcp.deliveries import Deliveries
    from folkmoot.transports.mcp.entrance import Context, Entrance
    from folkmoot.transports.mcp.exchange import Exchange
    from folkmoot.transports.mcp.hearers import Hearers
    from folkmoot.transports.mcp.notices import Notice, Notices
    from folkmoot.transports.mcp.unusual import Unusual
    from folkmoot.transports.mcp.watches import Watches


OWN: Final = (INBOX, INBOX_APP)


class Resources:
    """Reads them, and has sessions told of their changes."""

    def __init__(
        self,
        *,
        entrance: Entrance,
        policy: HubPolicy,
        mail: Mail,
        deliveries: Deliveries,
        notices: Notices,
        hearers: Hearers,
        backends: Backends | None,
        unusual: Unusual | None,
        watches: Watches | None,
    ) -> None:
        self._entrance = entrance
        self._policy = policy
        self._mail = mail
        self._deliveries = deliveries
        self._notices = notices
        self._hearers = hearers
        self._backends = backends
        self._unusual = unusual
        self._watches = watches

    async def read(self, ctx: Context, params: types.ReadResourceRequestParams) -> Any:
        """The digest of the caller's mailbox, the app's page, or what a backend has."""
        exchange, uri = self._entrance.enter(ctx), str(params.uri)
        self._check(READ, exchange, uri)
        if uri == INBOX:
            account = account_of(exchange)
            await self._deliveries.settled(account.id)
            digest = await self._mail.digest(account)
            text, mime = msgspec.json.encode(digest).decode(), "application/json"
        elif uri == INBOX_APP:
            text, mime = inbox_page(), client_of(ctx).app_type or APP_TYPE
        else:
            result = await self._unusual.ask(ctx, exchange) if self._unusual is not None else None
            if result is None:
                raise no_such_resource(uri)
            return result
        contents = types.TextResourceContents(uri=uri, mime_type=mime, text=text)
        return types.ReadResourceResult(contents=[contents])

    async def subscribe(
        self, ctx: Context, params: types.SubscribeRequestParams
    ) -> types.EmptyResult:
        """Tell this session of changes from now on."""
        exchange, uri = self._entrance.enter(ctx), str(params.uri)
        if uri != INBOX:
            await self._watch(ctx, exchange, uri)
            return types.EmptyResult()
        self._check(SUBSCRIBE, exchange, uri)
        account = account_of(exchange)
        if exchange.session is not None:
            voice = ctx.session

            async def notify(notice: Notice) -> None:
                await voice.send_notification(inbox_changed(notice))

            await self._notices.subscribe(exchange.session, account.id, exchange.holder, notify)
        return types.EmptyResult()

    async def unsubscribe(
        self, ctx: Context, params: types.UnsubscribeRequestParams
    ) -> types.EmptyResult:
        """Tell this session no more."""
        exchange, uri = self._entrance.enter(ctx), str(params.uri)
        session = exchange.session
        if uri != INBOX:
            canonical = self._canonical(exchange, uri)
            hearer = self._hearers.of(session) if session is not None else None
            if hearer is not None and self._watches is not None:
                self._watches.remove(hearer, canonical)
        elif session is not None:
            self._notices.unsubscribe(session)
        return types.EmptyResult()

    def _check(self, method: str, exchange: Exchange, uri: str) -> None:
        """Refuse a resource of the hub's own that is denied."""
        if uri in OWN:
            try:
                self._policy.check_request(exchange.caller.account, method, {"uri": uri})
            except FolkmootError as error:
                raise refusal(error) from None

    async def _watch(self, ctx: Context, exchange: Exchange, uri: str) -> None:
        canonical = self._canonical(exchange, uri)
        hearer = self._hearers.meet(exchange, ctx.session)
        if self._backends is None or self._watches is None or hearer is None:
            raise no_such_resource(uri)
        try:
            self._backends.check(SUBSCRIBE, {"uri": canonical}, exchange)
            await self._watches.add(hearer, canonical, uri)
        except FolkmootError as error:
            raise refusal(error) from None
        if hearer.session.ended:
            self._watches.remove_all(hearer)

    def _canonical(self, exchange: Exchange, uri: str) -> str:
        settled = None
        if self._backends is not None:
            try:
                settled = self._backends.settle(SUBSCRIBE, {"uri": uri}, exchange)
            except FolkmootError as error:
                raise refusal(error) from None
        if settled is None:
            raise no_such_resource(uri)
        canonical: str = settled["uri"]
        return canonical


def inbox_changed(notice: Notice) -> types.ResourceUpdatedNotification:
    """A change of a mailbox as the SDK says it."""
    meta: Any = {"_meta": URGENT} if notice.urgent else {}
    return types.ResourceUpdatedNotification(
        params=types.ResourceUpdatedNotificationParams(uri=INBOX, **meta)
    )


def no_such_resource(uri: str) -> MCPError:
    """The refusal of a resource that is not here."""
    return MCPError(code=types.INVALID_PARAMS, message="Resource not found", data={"uri": uri})
