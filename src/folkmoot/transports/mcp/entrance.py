"""Where the SDK hands us a request it has accepted: from then on its client is known."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError

from folkmoot.core.errors import AuthenticationRequired
from folkmoot.transports.mcp.clients import Client, app_type
from folkmoot.transports.mcp.exchange import Exchange, exchange_of

if TYPE_CHECKING:
    from folkmoot.accounts import Account
    from folkmoot.core.errors import FolkmootError
    from folkmoot.transports.mcp.clients import KnownClients
    from folkmoot.transports.mcp.hearers import Hearers

Context: TypeAlias = ServerRequestContext[Any, Any]


class Entrance:
    """Remembers what the SDK knows of clients, so that the lane may trust them."""

    def __init__(self, clients: KnownClients, hearers: Hearers) -> None:
        self._clients = clients
        self._hearers = hearers

    def enter(self, ctx: Context) -> Exchange:
        """The exchange of a request or a notice that the SDK has accepted."""
        exchange = exchange_of(ctx.request)
        session = exchange.session
        if session is not None:
            # Every time: a session may be initialised again.
            session.client = client_of(ctx)
            session.version = ctx.protocol_version
            self._hearers.meet(exchange, ctx.session)
        elif exchange.claims and self._clients.known(exchange.claims) is None:
            self._clients.learn(exchange.claims, client_of(ctx))
        return exchange


def client_of(ctx: Context) -> Client:
    """The client of a request, as it declares itself."""
    capabilities = capabilities_of(ctx)
    return Client(capabilities, app_type(capabilities))


def capabilities_of(ctx: Context) -> dict[str, Any]:
    """What the client of a request can be asked for; what nobody asks for is not kept."""
    declared = ctx.session.client_capabilities
    if declared is None:
        return {}
    dumped: dict[str, Any] = declared.model_dump(
        by_alias=True, mode="json", exclude_none=True, exclude={"experimental"}
    )
    return dumped


def account_of(exchange: Exchange) -> Account:
    """Who asks, or the refusal of whoever is nobody."""
    if exchange.caller.account is None:
        raise refusal(AuthenticationRequired())
    return exchange.caller.account


def refusal(error: FolkmootError) -> MCPError:
    """One of our errors as the SDK's."""
    told = error.as_jsonrpc()
    return MCPError(code=told["code"], message=told["message"], data=told["data"])
