"""Where WebSockets are opened: the ASGI application of a path."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias
from urllib.parse import parse_qs

from msgspec import field

from folkmoot.core import errors as e
from folkmoot.core.entity import Entity
from folkmoot.telemetry.logs import REQUEST
from folkmoot.transports.guard import foreign_origin
from folkmoot.transports.limits import MAX_QUERY_PARAMETERS
from folkmoot.transports.websocket.frames import OFFER, answer_to, read_key
from folkmoot.transports.websocket.limits import LinkLimits
from folkmoot.transports.websocket.link import WebSocketConnection
from folkmoot.transports.websocket.pulse import Pulse
from folkmoot.transports.websocket.reader import Unfinished

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from folkmoot.transports.answers import Answers
    from folkmoot.transports.guard import Hosts
    from folkmoot.transports.protocol import HubProtocol

EXTENSION = "folkmoot.websocket"
"""The ASGI extension under which a request for a WebSocket carries its `protocol`."""


class UpgradeRequest(NamedTuple):
    """A request that opens a WebSocket."""

    scope: Scope
    query: dict[str, list[str]]


class Refusal(NamedTuple):
    """Nobody is let in, and told why after the handshake: web pages see a close, not a status."""

    code: int
    reason: str = ""


class Handler(Protocol):
    """Receives the messages of a connection."""

    def on_text(self, *messages: bytes) -> None:
        """Whole text messages came, of valid UTF-8; an error raised here closes the link."""

    def on_close(self, code: int, reason: str) -> None:
        """The link is no longer open; called once, and nothing is called after it."""


Entrance: TypeAlias = Callable[[WebSocketConnection], Handler]
"""Takes a link that is open now and answers whose it is; it may send at once."""


class Door(Protocol):
    """Decides who may connect."""

    async def accept(self, request: UpgradeRequest) -> Entrance | Refusal:
        """Let a request in, or refuse it; an error raised here is answered with its HTTP status."""


class WebSocketEndpoint(Entity):
    """One path where WebSockets open, and its links."""

    door: Door
    hosts: Hosts
    answers: Answers
    limits: LinkLimits = field(default_factory=LinkLimits)
    _links: set[WebSocketConnection] = set()
    opened: int = 0
    closed: Counter[int] = field(default_factory=Counter)
    """How many of them ended, by close code."""

    def __post_init__(self) -> None:
        self._pulse = Pulse(self.limits.ping_seconds, self.limits.pong_seconds)
        most = max(self.limits.max_unfinished_bytes, 2 * self.limits.max_message_bytes)
        self._unfinished = Unfinished(most)

    @property
    def open_links(self) -> int:
        """The number of connections, closing ones included."""
        return len(self._links)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Open a WebSocket, or answer why not."""
        extension = scope.pop("extensions", {}).get(EXTENSION, {})
        protocol: HubProtocol | None = extension.get("protocol")
        try:
            if protocol is None:
                raise e.UpgradeRequired("This address is for WebSockets.")
            key = read_key(scope)
            if (foreign := foreign_origin(self.hosts, scope)) is not None:
                raise foreign
        except e.FolkmootError as error:
            offer = OFFER if isinstance(error, e.UpgradeRequired) else None
            await self.answers.error(scope, error, offer)(scope, receive, send)
            return
        outcome = await self.door.accept(UpgradeRequest(scope, _query_of(scope)))
        request = REQUEST.get()
        answer = answer_to(key, "" if request is None else request.id)

        def opened(link: WebSocketConnection) -> None:
            self._enter(link, outcome)

        protocol.switch(answer, self.limits, self._unfinished, opened, self._left)

    def _enter(self, link: WebSocketConnection, outcome: Entrance | Refusal) -> None:
        self._links.add(link)
        self.opened += 1
        if isinstance(outcome, Refusal):
            link.close(outcome.code, outcome.reason)
        else:
            self._pulse.watch(link)
            link.attach(outcome)

    def _left(self, link: WebSocketConnection) -> None:
        self._links.discard(link)
        self._pulse.forget(link)
        self.closed[link.code] += 1


def _query_of(scope: Scope) -> dict[str, list[str]]:
    try:
        return parse_qs(
            scope["query_string"].decode("latin-1"),
            keep_blank_values=True,
            max_num_fields=MAX_QUERY_PARAMETERS,
        )
    except ValueError:
        raise e.QueryInvalid("The URL has too many query parameters.") from None
