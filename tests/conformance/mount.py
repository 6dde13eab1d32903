"""Puts the fixtures on a hub that runs, beside what it serves already.

The only file here that knows how `/mcp` is made inside.
"""

from __future__ import annotations

from typing import Any

import msgspec

from folkmoot.app import Hub
from folkmoot.core import errors as e
from folkmoot.core.message import ErrorObject, Notification
from folkmoot.mcp.client.headers import marked_in
from folkmoot.mcp.eras.shapes import for_stateless
from folkmoot.mcp.server.heads import check_marked
from folkmoot.mcp.server.service import McpAnswer, McpRequest, McpService
from folkmoot.transports.mcp.resources import account_of
from tests.conformance.fixtures import Fixtures
from tests.conformance.fixtures.asked import Asked as FixtureAsked
from tests.conformance.fixtures.asked import Refused

# How the addresses of the fixtures' resources begin.
OURS = "test://"


def mount(hub: Hub) -> None:
    """Add the fixtures."""
    parts = hub.mcp._parts
    fixtures = Fixtures(parts.subscribers.notify_all)
    hub.mcp._server.service = Mounted(parts.service, fixtures, parts.service.server_info)
    let_listen(parts.service._methods["subscriptions/listen"].__self__)


def let_listen(listener: Any) -> None:
    """Agree to tell of the fixtures' resources too, of which the hub knows nothing."""
    watch = listener._watch

    async def watch_any(exchange: Any, subscriber: Any, uri: str) -> bool:
        return uri.startswith(OURS) or await watch(exchange, subscriber, uri)

    listener._watch = watch_any


class Mounted:
    """Answers what the fixtures know; the hub answers the rest."""

    def __init__(self, hub: McpService, fixtures: Fixtures, server_info: dict[str, Any]) -> None:
        self._hub = hub
        self._fixtures = fixtures
        self._server_info = server_info

    async def perform(self, asked: McpRequest) -> McpAnswer:
        """Answer one request."""
        method = asked.request.method
        call = self._fixtures.finds(method, asked.params)
        if call is None:
            return self._added(method, await self._hub.perform(asked))
        if method == "tools/call":
            self._check(asked)
        try:
            result = await call(as_fixtures_take_it(asked))
        except Refused as error:
            return McpAnswer(error=ErrorObject(error.code, error.message, error.data))
        return McpAnswer(for_stateless(method, result, self._server_info))

    def refusal(self, asked: McpRequest, error: e.FolkmootError) -> McpAnswer:
        """The answer to a request that cannot be done."""
        return self._hub.refusal(asked, error)

    def _check(self, asked: McpRequest) -> None:
        tool = self._fixtures.tools[asked.params["name"]]
        if tool.needs_account:
            account_of(asked.caller)
        if asked.repeated is not None:
            marked = dict(marked_in(tool.schema))
            check_marked(marked, asked.params.get("arguments"), asked.repeated)

    def _added(self, method: str, answer: McpAnswer) -> McpAnswer:
        """A list of the hub's with what is ours behind it."""
        if method in self._fixtures.lists and type(answer.result) is msgspec.Raw:
            member, ours = self._fixtures.lists[method]
            listed = msgspec.json.decode(answer.result)
            answer.result = {**listed, member: [*listed[member], *ours]}
        return answer


def as_fixtures_take_it(asked: McpRequest) -> FixtureAsked:
    """A request of the hub's as the fixtures take it."""

    async def tell(method: str, params: dict[str, Any]) -> None:
        asked.tell(Notification(method=method, params=params))

    def hang_up() -> None:
        stream = asked.reply.open()
        if stream is not None and stream.resumable and stream.reader is not None:
            stream.reader.leave()

    params = {**asked.params, "_meta": {"progressToken": asked.token}}
    method, level = asked.request.method, asked.level
    return FixtureAsked(method, params, asked.capabilities, level, tell, hang_up)
