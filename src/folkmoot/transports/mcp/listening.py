"""`subscriptions/listen`: a stream of the stateless era that tells of changes and nothing else."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

import mcp_types as types
from mcp.server.subscriptions import SUBSCRIPTION_ID_META_KEY
from mcp.shared.exceptions import MCPError

from folkmoot.core.errors import FolkmootError
from folkmoot.mcp.wire import REFUSED_KEY, SUBSCRIBE
from folkmoot.transports.mcp.beside import beside
from folkmoot.transports.mcp.entrance import account_of, refusal
from folkmoot.transports.mcp.hearers import LIST_CHANGED, StreamHearer
from folkmoot.transports.mcp.notices import INBOX, URGENT
from folkmoot.transports.mcp.resources import no_such_resource
from folkmoot.transports.mcp.watches import MOST_WATCHED

if TYPE_CHECKING:
    from folkmoot.gateway.operations import HubPolicy
    from folkmoot.transports.mcp.backends import Backends
    from folkmoot.transports.mcp.entrance import Context, Entrance
    from folkmoot.transports.mcp.exchange import Exchange
    from folkmoot.transports.mcp.hearers import Hearers
    from folkmoot.transports.mcp.notices import Notices
    from folkmoot.transports.mcp.watches import Watches

CHANGED: Final[dict[str, type[Any]]] = {
    LIST_CHANGED["tools"]: types.ToolListChangedNotification,
    LIST_CHANGED["prompts"]: types.PromptListChangedNotification,
    LIST_CHANGED["resources"]: types.ResourceListChangedNotification,
}


class Listener:
    """Serves the streams; each ends when its client leaves, its token is void or the hub stops."""

    def __init__(
        self,
        entrance: Entrance,
        policy: HubPolicy,
        hearers: Hearers,
        notices: Notices,
        backends: Backends | None,
        watches: Watches | None,
    ) -> None:
        self._entrance = entrance
        self._policy = policy
        self._hearers = hearers
        self._notices = notices
        self._backends = backends
        self._watches = watches

    async def listen(
        self, ctx: Context, params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        """One stream."""
        exchange, wanted = self._entrance.enter(ctx), params.notifications
        leaving = exchange.caller.leaving
        meta: dict[str, Any] = {SUBSCRIPTION_ID_META_KEY: ctx.request_id}
        lists = {
            LIST_CHANGED["tools"]: wanted.tools_list_changed,
            LIST_CHANGED["prompts"]: wanted.prompts_list_changed,
            LIST_CHANGED["resources"]: wanted.resources_list_changed,
        }
        # What is named beyond what may be watched is not even looked at: there may be thousands.
        uris = list(dict.fromkeys(wanted.resource_subscriptions or ()))[: MOST_WATCHED + 1]
        account = exchange.caller.account if INBOX not in uris else account_of(exchange)
        if INBOX in uris:
            self._check_inbox(exchange)
        chosen = frozenset(method for method, is_wanted in lists.items() if is_wanted)
        hearer = StreamHearer(account.id if account is not None else "", exchange.holder, chosen)
        self._hearers.join(hearer, account)
        try:
            async with self._inbox(exchange, hearer, uris):
                refused = await self._watch_all(exchange, hearer, uris)
                honoured = [uri for uri in uris if uri not in refused]
                said = {**meta, REFUSED_KEY: refused} if refused else meta
                await self._acknowledge(ctx, wanted, honoured, said)
                while not leaving.is_set() and not hearer.ended:
                    for what in await hearer.heard(leaving):
                        await self._tell(ctx, hearer, what, meta)
        finally:
            self._hearers.leave(hearer)
            if self._watches is not None:
                self._watches.remove_all(hearer)
        return types.SubscriptionsListenResult(_meta=meta)

    def _check_inbox(self, exchange: Exchange) -> None:
        """Refuse someone who is denied to hear of their mailbox."""
        try:
            self._policy.check_request(exchange.caller.account, SUBSCRIBE, {"uri": INBOX})
        except FolkmootError as error:
            raise refusal(error) from None

    async def _tell(
        self, ctx: Context, hearer: StreamHearer, what: str, meta: dict[str, Any]
    ) -> None:
        due = await self._hearers.due(hearer, what)
        if due is None:
            hearer.end()
        for each in due or ():
            if not hearer.ended:
                if each == INBOX and hearer.urgent:
                    hearer.urgent, meta = False, {**meta, **URGENT}
                notice = notice_of(each, meta)
                await ctx.session.send_notification(notice, related_request_id=ctx.request_id)

    async def _acknowledge(
        self,
        ctx: Context,
        wanted: types.SubscriptionFilter,
        honoured: list[str],
        meta: dict[str, Any],
    ) -> None:
        told = types.SubscriptionFilter(
            tools_list_changed=wanted.tools_list_changed or None,
            prompts_list_changed=wanted.prompts_list_changed or None,
            resources_list_changed=wanted.resources_list_changed or None,
            resource_subscriptions=honoured or None,
        )
        acknowledged = types.SubscriptionsAcknowledgedNotification(
            params=types.SubscriptionsAcknowledgedNotificationParams(notifications=told, _meta=meta)
        )
        await ctx.session.send_notification(acknowledged, related_request_id=ctx.request_id)

    @asynccontextmanager
    async def _inbox(
        self, exchange: Exchange, hearer: StreamHearer, uris: list[str]
    ) -> AsyncIterator[None]:
        """Have the stream told of new mail, if it asked for that; it ends with its token."""
        if INBOX not in uris:
            yield
            return
        account = account_of(exchange)
        async with self._notices.listening(account.id, exchange.holder) as listening:

            async def follow() -> None:
                while (notice := await listening.next(exchange.caller.leaving)) is not None:
                    hearer.urgent = hearer.urgent or notice.urgent
                    hearer.mark(INBOX)
                hearer.end()

            async with beside(follow()):
                yield

    async def _watch_all(
        self, exchange: Exchange, hearer: StreamHearer, uris: list[str]
    ) -> dict[str, Any]:
        """Tell the stream of resources from now on; why that is not done for some of them."""
        refused: dict[str, Any] = {}
        for uri in uris:
            try:
                if uri != INBOX:
                    await self._watch(exchange, hearer, uri)
            except FolkmootError as error:
                refused[uri] = error.as_jsonrpc()
            except MCPError as error:
                refused[uri] = error.error.model_dump(exclude_none=True)
        return refused

    async def _watch(self, exchange: Exchange, hearer: StreamHearer, uri: str) -> None:
        settled = None
        if self._backends is not None and exchange.caller.account is not None:
            settled = self._backends.settle(SUBSCRIBE, {"uri": uri}, exchange)
        if settled is None or self._backends is None or self._watches is None:
            raise no_such_resource(uri)
        self._backends.check(SUBSCRIBE, settled, exchange)
        await self._watches.add(hearer, settled["uri"], uri)


def notice_of(what: str, meta: dict[str, Any]) -> Any:
    """A change as the SDK says it."""
    if what in CHANGED:
        return CHANGED[what](params=types.NotificationParams(_meta=meta))
    return types.ResourceUpdatedNotification(
        params=types.ResourceUpdatedNotificationParams(uri=what, _meta=meta)
    )
