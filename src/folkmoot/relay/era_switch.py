"""Which eras a Streamable HTTP server speaks, found out when a client's era is in doubt.

Exchanges are forwarded as they are where both sides speak one era. A client of the other era is
led to the front, which carries its messages one by one and has them bridged.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from msgspec import UNSET, field

from folkmoot.core import errors as e
from folkmoot.core.entity import Entity
from folkmoot.core.message import Request, Response, encode_message
from folkmoot.core.session import Era
from folkmoot.core.transport import Headers, HttpMetadata
from folkmoot.mcp import wire
from folkmoot.mcp.client.connect import (
    DISCOVERY,
    DISCOVERY_HEADERS,
    HANDSHAKE,
    Note,
    end_session,
    read_response,
    unnoted,
)
from folkmoot.mcp.client.weblink import SAYS
from folkmoot.mcp.eras.openings import Evidence, answer_to_discover
from folkmoot.mcp.framing import EventReader
from folkmoot.mcp.wire import EVENT_STREAM, speaks_stateless

if TYPE_CHECKING:
    from collections.abc import Container, Iterable

    from folkmoot.core.message import ProtocolMessage
    from folkmoot.mcp.client.connection import HttpAnswer
    from folkmoot.mcp.client.target import HttpTarget

OTHER_TROUBLE: Final = frozenset({401, 403, 407, 408, 429})
"""Statuses that say nothing about eras; neither do those from 500 on."""
SERVER_TROUBLE: Final = 500
MOST_PROBED: Final = 1024 * 1024
PROBE_SECONDS: Final = 10.0
"""How long a server may take to answer a question of ours, for which other clients wait."""
REFUSED: Final = 400


class EraSwitch(Entity):
    """Says which messages must be bridged; `bridged` are the sessions that are already."""

    target: HttpTarget
    bridged: Container[str]
    discoverable: bool = False
    """Whether `server/discover` is answered in the place of a server that does not know it."""
    note: Note = unnoted
    _only: Era | None = None
    """The one era the server speaks; None while it may speak both."""
    _known: set[Era] = set()
    _probing: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def leads_away(self, message: ProtocolMessage | None, headers: Headers) -> bool:
        """Whether a message is for the front, by its session or by its era."""
        if (headers.get(wire.SESSION_HEADER) or "") in self.bridged:
            return True
        era = opening_era(message)
        if (
            isinstance(message, Request)
            and message.method == wire.DISCOVER
            and not self.discoverable
        ):
            return False
        if era is Era.STATELESS and era not in self._known and self._only is None:
            await self._probe(headers)
        return era is not None and self._only is not None and self._only is not era

    def in_doubt(self, message: ProtocolMessage | None) -> bool:
        """Whether the answer to a message will show something new: it opens a session."""
        return opening_era(message) is Era.HANDSHAKE and Era.HANDSHAKE not in self._known

    async def was_refused(self, headers: Headers, status: int, answer: bytes) -> bool:
        """See from the answer to `initialize` whether the server only speaks the other era."""
        if status < REFUSED and not is_error(answer):
            self._known.add(Era.HANDSHAKE)
            return False
        if trouble(status):
            return False
        await self._probe(headers)
        if Era.STATELESS in self._known:
            # The client's own words may be at fault: what one says wrong is no evidence for all.
            await self._try_handshake(headers)
        return self._only is Era.STATELESS

    async def _probe(self, headers: Headers) -> None:
        """Ask the server itself, once, with the client's authorization."""
        async with self._probing:
            if Era.STATELESS in self._known or self._only is not None:
                return
            try:
                asked = own(headers, DISCOVERY_HEADERS.items())
                asking = self.target.ask("POST", asked, encode_message(DISCOVERY))
                async with asyncio.timeout(PROBE_SECONDS), asking as answer:
                    if trouble(answer.status):
                        return
                    said = await heard(answer)
                    self._noted(DISCOVERY, asked, answer, said)
            except (e.CarryError, TimeoutError):
                return
            if shows_stateless(said):
                self._known.add(Era.STATELESS)
            else:
                self._only = Era.HANDSHAKE

    async def _try_handshake(self, headers: Headers) -> None:
        """Shake hands with the server ourselves, once, and leave nothing behind."""
        async with self._probing:
            if Era.HANDSHAKE in self._known or self._only is not None:
                return
            try:
                asked = own(headers, SAYS.items())
                asking = self.target.ask("POST", asked, encode_message(HANDSHAKE))
                async with asyncio.timeout(PROBE_SECONDS), asking as answer:
                    if trouble(answer.status):
                        return
                    said = await heard(answer)
                    self._noted(HANDSHAKE, asked, answer, said)
                    if answer.status < REFUSED and not is_error(said):
                        self._known.add(Era.HANDSHAKE)
                        await end_session(self.target, answer, own(headers))
                        return
            except (e.CarryError, TimeoutError):
                return
            self._only = Era.STATELESS

    def _noted(self, asked: Request, headers: Headers, answer: HttpAnswer, said: bytes) -> None:
        place = self.target.shown
        self.note(asked, HttpMetadata(headers, "POST", place))
        if (found := response_in(said)) is not None:
            self.note(found, HttpMetadata(answer.headers, "POST", place, answer.status))


def own(headers: Headers, said: Iterable[tuple[str, str]] = ()) -> Headers:
    """The headers of a question of ours, with the client's authorization."""
    return Headers((*said, *(pair for pair in headers if pair[0] == "authorization")))


async def heard(answer: HttpAnswer) -> bytes:
    """The whole answer to a question of ours, however it is cut; of a stream the part that has it.

    A stream may go on for ever.
    """
    said, events = bytearray(), EventReader(MOST_PROBED)
    async for chunk in answer.chunks():
        said += chunk[: MOST_PROBED - len(said)]
        if len(said) == MOST_PROBED:
            break
        read = events.feed(chunk) if answer.content_type == EVENT_STREAM else ()
        if any(read_response(event.data) for event in read):
            break
    return bytes(said)


def opening_era(message: ProtocolMessage | None) -> Era | None:
    """The era of a message that belongs to no session yet."""
    if not isinstance(message, Request):
        return None
    if speaks_stateless(message):
        return Era.STATELESS
    return Era.HANDSHAKE if message.method == wire.INITIALIZE else None


def trouble(status: int) -> bool:
    """Whether a status says nothing about eras."""
    return status in OTHER_TROUBLE or status >= SERVER_TROUBLE


def is_error(raw: bytes) -> bool:
    """Whether an answer is a JSON-RPC error."""
    answer = read_response(raw)
    return answer is not None and answer.error is not UNSET


def shows_stateless(raw: bytes) -> bool:
    """Whether the answer to `server/discover`, plain or as an event, is that of such a server."""
    answer = response_in(raw)
    return answer is not None and answer_to_discover(answer) is Evidence.STATELESS


def response_in(raw: bytes) -> Response | None:
    """The response in an answer, plain or as an event."""
    events = (event.data for event in EventReader(MOST_PROBED).feed(raw))
    found = (read_response(part) for part in (raw, *events))
    return next((each for each in found if each is not None), None)
