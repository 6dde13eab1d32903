"""`subscriptions/listen`: a stream of the stateless era that tells of changes and nothing else."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from folkmoot.core import errors as e
from folkmoot.core.entity import Entity
from folkmoot.mcp import wire
from folkmoot.mcp.server.service import McpAnswer
from folkmoot.mcp.server.streams import Weight
from folkmoot.taskgroups import background_tasks
from folkmoot.transports.limits import MAX_RESOURCES_WATCHED
from folkmoot.transports.mcp.notices import INBOX, URGENT
from folkmoot.transports.mcp.resources import account_of
from folkmoot.transports.mcp.subscribers import TASK, StreamSubscriber
from folkmoot.transports.mcp.tasks import read_task_ids

if TYPE_CHECKING:
    from folkmoot.gateway.operations import HubPolicy
    from folkmoot.mcp.server.service import McpRequest
    from folkmoot.transports.mcp.arrivals import Exchange
    from folkmoot.transports.mcp.notices import Notices
    from folkmoot.transports.mcp.resources import Resources
    from folkmoot.transports.mcp.subscribers import Subscribers
    from folkmoot.transports.mcp.tasks import TaskRequests


class SubscriptionListener(Entity):
    """Serves the streams; each ends when its client leaves, its token is void or the hub stops."""

    policy: HubPolicy
    subscribers: Subscribers
    notices: Notices
    resources: Resources
    tasks: TaskRequests

    async def listen(self, asked: McpRequest) -> McpAnswer:
        """One stream."""
        exchange: Exchange = asked.caller
        lists, uris = read_filter(asked.params.get("notifications"))
        task_ids = read_task_ids(asked)
        leaving = exchange.leaving
        meta: dict[str, Any] = {wire.SUBSCRIPTION_KEY: asked.request.id}
        account = exchange.caller.account if INBOX not in uris else account_of(exchange)
        if INBOX in uris:
            self.policy.check_request(exchange.caller.principal, wire.SUBSCRIBE, {"uri": INBOX})
        subscriber = StreamSubscriber(
            account.id if account is not None else "", exchange.credential_id, lists
        )
        self.subscribers.join(subscriber, exchange.caller.principal)
        try:
            async with (
                self._inbox(exchange, subscriber, uris),
                self.tasks.watching(
                    exchange.caller.principal, task_ids, lambda each: subscriber.mark(TASK + each)
                ) as told_of,
            ):
                refused = await self._watch_all(exchange, subscriber, uris)
                honoured = [uri for uri in uris if uri not in refused]
                said = {**meta, wire.REFUSED_KEY: refused} if refused else meta
                granted = acknowledgement(lists, honoured, said, told_of)
                asked.reply.say(granted, Weight.QUESTION)
                while not leaving.is_set() and not subscriber.ended:
                    for what in await subscriber.wait(leaving):
                        await self._send(asked, subscriber, what, meta)
        finally:
            self.subscribers.leave(subscriber)
            self.resources.unwatch(subscriber)
        return McpAnswer({"_meta": meta})

    async def _send(
        self, asked: McpRequest, subscriber: StreamSubscriber, what: str, meta: dict[str, Any]
    ) -> None:
        due = await self.subscribers.due(subscriber, what)
        if due is None:
            subscriber.end()
        for each in due or ():
            if not subscriber.ended:
                if each == INBOX and subscriber.urgent:
                    subscriber.urgent, meta = False, {**meta, **URGENT}
                message = await self.subscribers.message(subscriber, each, meta)
                if message is not None:
                    asked.reply.say(message, Weight.QUESTION)
                    await asked.reply.flushed()

    @asynccontextmanager
    async def _inbox(
        self, exchange: Exchange, subscriber: StreamSubscriber, uris: list[str]
    ) -> AsyncIterator[None]:
        """Have the stream told of new mail, if it asked for that; it ends with its token."""
        if INBOX not in uris:
            yield
            return
        account = account_of(exchange)
        async with self.notices.listening(account.id, exchange.credential_id) as listening:

            async def follow() -> None:
                while (notice := await listening.next(exchange.leaving)) is not None:
                    subscriber.urgent = subscriber.urgent or notice.urgent
                    subscriber.mark(INBOX)
                subscriber.end()

            async with background_tasks() as background:
                background.run(follow())
                yield

    async def _watch_all(
        self, exchange: Exchange, subscriber: StreamSubscriber, uris: list[str]
    ) -> dict[str, Any]:
        """Tell the stream of resources from now on; why that is not done for some of them."""
        refused: dict[str, Any] = {}
        for uri in uris:
            try:
                if uri != INBOX and not await self._watch(exchange, subscriber, uri):
                    refused[uri] = {"code": wire.INVALID_PARAMS, "message": "Resource not found"}
            except e.FolkmootError as error:
                refused[uri] = error.as_jsonrpc()
        return refused

    async def _watch(self, exchange: Exchange, subscriber: StreamSubscriber, uri: str) -> bool:
        """Whether the stream is told of a resource from now on."""
        if exchange.caller.account is None:
            return False
        return await self.resources.watch(exchange, subscriber, uri)


def read_filter(wanted: Any) -> tuple[frozenset[str], list[str]]:
    """The lists and the resources that a stream wants to hear of."""
    if type(wanted) is not dict:
        raise e.ParamsInvalid("notifications must be an object.")
    lists = set()
    for method, (_, name) in wire.CHANGES.items():
        chosen = wanted.get(name)
        if chosen is not None and type(chosen) is not bool:
            raise e.ParamsInvalid(f"{name} must be true or false.")
        if chosen:
            lists.add(method)
    uris = wanted.get(wire.URIS)
    if uris is None:
        uris = []
    if type(uris) is not list or any(type(uri) is not str for uri in uris):
        raise e.ParamsInvalid(f"{wire.URIS} must be an array of strings.")
    # What is named beyond what may be watched is not even looked at: there may be thousands.
    return frozenset(lists), list(dict.fromkeys(uris))[: MAX_RESOURCES_WATCHED + 1]


def acknowledgement(
    lists: frozenset[str], uris: list[str], meta: dict[str, Any], task_ids: list[str]
) -> dict[str, Any]:
    """What a stream is told first: which of its wishes are granted."""
    granted: dict[str, Any] = {
        name: True for method, (_, name) in wire.CHANGES.items() if method in lists
    }
    if uris:
        granted[wire.URIS] = uris
    if task_ids:
        granted[wire.TASK_IDS] = task_ids
    return {
        "jsonrpc": "2.0",
        "method": wire.ACKNOWLEDGED,
        "params": {"notifications": granted, "_meta": meta},
    }
