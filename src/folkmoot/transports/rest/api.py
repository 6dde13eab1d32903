"""The REST interface as the hub mounts it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec
from msgspec import Raw
from starlette.convertors import Convertor, register_url_convertor
from starlette.middleware.cors import CORSMiddleware
from starlette.routing import Route

from folkmoot.core.events import ACCOUNTS, CREDENTIALS
from folkmoot.transports.rest.model import Services
from folkmoot.transports.rest.openapi import document
from folkmoot.transports.rest.resource import Resource, Waiting
from folkmoot.transports.rest.table import OPERATIONS

if TYPE_CHECKING:
    from folkmoot.accounts import Accounts
    from folkmoot.core.ports import Bus
    from folkmoot.gateway.operations import HubPolicy
    from folkmoot.operations.dispatch import Dispatcher
    from folkmoot.ratelimits import RateLimits
    from folkmoot.rooms.rooms import Rooms
    from folkmoot.transports.guard import Hosts
    from folkmoot.transports.mcp.address import Addresses
    from folkmoot.transports.operations import Operations
    from folkmoot.transports.rest.model import Operation

EXPOSED = ("location", "retry-after", "www-authenticate", "x-request-id")
"""What pages of other origins may read of an answer's head."""


class MessageId(Convertor[str]):
    """The id of a message in a path: senders choose it, and may choose a slash."""

    regex = "(?s:.+)"

    def convert(self, value: str) -> str:
        """As it stands in the path."""
        return value

    def to_string(self, value: str) -> str:
        """As it is written there."""
        return value


register_url_convertor("message_id", MessageId())


class RestApi:
    """`/v1` of one hub."""

    def __init__(
        self,
        *,
        version: str,
        accounts: Accounts,
        rooms: Rooms,
        hub: Operations,
        policy: HubPolicy,
        dispatcher: Dispatcher,
        limits: RateLimits,
        hosts: Hosts,
        addresses: Addresses,
        public_url: str = "",
        allowed_origins: Sequence[str] = (),
        bus: Bus,
    ) -> None:
        described = msgspec.json.encode(document(version=version, url=public_url))
        self._services = Services(
            accounts=accounts,
            rooms=rooms,
            dispatcher=dispatcher,
            policy=policy,
            limits=limits,
            document=Raw(described),
        )
        self._hub = hub
        self._public_url = public_url
        self._hosts = hosts
        self._addresses = addresses
        self._origins = tuple(allowed_origins)
        self._waiting = Waiting()
        bus.listen(ACCOUNTS, self._waiting.account_changed)
        bus.listen(CREDENTIALS, self._waiting.credential_ended)

    def routes(self) -> list[Route]:
        """Where the operations are served: one route for each path of the table."""
        paths: dict[str, dict[str, Operation]] = {}
        for operation in OPERATIONS:
            paths.setdefault(operation.path, {})[operation.method] = operation
        return [self._route(path, operations) for path, operations in paths.items()]

    def stop(self) -> None:
        """End what only waits."""
        self._waiting.stop()

    def _route(self, path: str, operations: dict[str, Operation]) -> Route:
        resource = Resource(
            operations,
            services=self._services,
            hub=self._hub,
            hosts=self._hosts,
            addresses=self._addresses,
            waiting=self._waiting,
            public_url=self._public_url,
        )
        path = path.replace("{id}", "{id:message_id}")
        if not self._origins:
            return Route(path, resource)
        told = CORSMiddleware(
            resource,
            allow_origins=self._origins,
            allow_methods=tuple(operations),
            allow_headers=("*",),
            expose_headers=EXPOSED,
        )
        return Route(path, told)
