"""`/v1` as the hub mounts it: mail, people, accounts and rooms for programs.

Each path of the table of operations is a `Resource`, so nothing is served that the table does not
say.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import field
from starlette.convertors import Convertor, register_url_convertor
from starlette.middleware.cors import CORSMiddleware
from starlette.routing import Route

from folkmoot.core.entity import Entity
from folkmoot.core.events import ACCOUNTS, CREDENTIALS
from folkmoot.operations.routes import ENDPOINTS
from folkmoot.transports.address import Addresses
from folkmoot.transports.resource import Resource, WaitingCallers

if TYPE_CHECKING:
    from folkmoot.core.ports import Bus
    from folkmoot.gateway.operations import HubPolicy
    from folkmoot.operations.dispatch import Dispatcher
    from folkmoot.operations.routes import Endpoint
    from folkmoot.rooms.rooms import Rooms
    from folkmoot.transports.browsers import BrowserCookies
    from folkmoot.transports.guard import Hosts
    from folkmoot.transports.operations import Operations

EXPOSED = ("location", "retry-after", "www-authenticate", "x-request-id")
"""What pages of other origins may read of an answer's head."""


class MessageId(Convertor[str]):
    """The id of a message in a path: senders choose it, and may choose a slash."""

    regex = "(?s:.+)"

    def convert(self, value: str) -> str:
        """The value as in the path."""
        return value

    def to_string(self, value: str) -> str:
        """The value as written into a path."""
        return value


register_url_convertor("message_id", MessageId())


def operator_routes(served: Iterable[Endpoint], dispatcher: Dispatcher) -> list[Route]:
    """Routes for the operator alone, without a hub: nothing there asks for rooms or policy."""
    absent: Any = None
    routes = Routes(
        rooms=absent,
        hub=absent,
        policy=absent,
        dispatcher=dispatcher,
        hosts=absent,
        addresses=Addresses(),
        browsers=absent,
        bus=None,
        endpoints=tuple(served),
    )
    return routes.routes()


class Routes(Entity, kw_only=True):
    """The routes of one hub."""

    rooms: Rooms
    hub: Operations
    policy: HubPolicy
    dispatcher: Dispatcher
    hosts: Hosts
    addresses: Addresses
    browsers: BrowserCookies
    public_url: str = ""
    allowed_origins: Sequence[str] = ()
    bus: Bus | None
    endpoints: Sequence[Endpoint] = ENDPOINTS
    _waiting: WaitingCallers = field(default_factory=WaitingCallers)

    def __post_init__(self) -> None:
        self._origins = tuple(self.allowed_origins)
        if self.bus is not None:
            self.bus.listen(ACCOUNTS, self._waiting.account_changed)
            self.bus.listen(CREDENTIALS, self._waiting.credential_ended)

    def routes(self) -> list[Route]:
        """Where the operations are served: one route for each path of the table."""
        paths: dict[str, dict[str, Endpoint]] = {}
        for endpoint in self.endpoints:
            paths.setdefault(endpoint.path, {})[endpoint.method] = endpoint
        # What ends in a name comes last: a name that may have slashes would take the others' end.
        ordered = sorted(paths.items(), key=lambda item: item[0].endswith("}"))
        return [self._route(path, endpoints) for path, endpoints in ordered]

    def stop(self) -> None:
        """End requests that only wait."""
        self._waiting.stop()

    def _route(self, path: str, endpoints: dict[str, Endpoint]) -> Route:
        resource = Resource(
            endpoints,
            rooms=self.rooms,
            hub=self.hub,
            policy=self.policy,
            dispatcher=self.dispatcher,
            hosts=self.hosts,
            addresses=self.addresses,
            waiting=self._waiting,
            browsers=self.browsers,
            public_url=self.public_url,
        )
        path = path.replace("{proposal}", "{proposal:message_id}")
        if not self._origins:
            return Route(path, resource)
        told = CORSMiddleware(
            resource,
            allow_origins=self._origins,
            allow_methods=tuple(endpoints),
            allow_headers=("*",),
            expose_headers=EXPOSED,
        )
        return Route(path, told)
