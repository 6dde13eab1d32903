"""The stateless era: every request for itself, all clients on one carrier.

Clients choose their ids without knowing of each other, so the server gets others, and each answer
goes back under the id its client chose.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from msgspec import field

from folkmoot.core import errors as e
from folkmoot.core.entity import Entity
from folkmoot.core.message import (
    ErrorObject,
    Notification,
    Request,
    Response,
    encode_message,
    is_message_id,
)
from folkmoot.core.session import FIRST_STATELESS, ProtocolVersion, SessionContext
from folkmoot.mcp import wire
from folkmoot.mcp.carrier import ABOUT
from folkmoot.mcp.client.headers import Mirror
from folkmoot.mcp.server.fronts import (
    ANSWERED_SUBSCRIPTION,
    ASKED_TOKEN,
    ID,
    SUBSCRIPTION,
    TOLD_TOKEN,
    Front,
    FrontCarrier,
    Path,
    UnansweredRequest,
    found,
    renamed,
)
from folkmoot.mcp.server.heads import check_marked, check_repeated
from folkmoot.mcp.server.responses import answer, refuse, say
from folkmoot.mcp.server.streams import OK, Stream
from folkmoot.mcp.wire import EVENT_STREAM, params_of, refusal

if TYPE_CHECKING:
    from starlette.types import Receive, Send

    from folkmoot.core.envelope import MessageEnvelope
    from folkmoot.core.message import MessageId, ProtocolMessage
    from folkmoot.core.ports import Clock
    from folkmoot.core.strict import Limits
    from folkmoot.core.transport import TransportContext
    from folkmoot.mcp.server.heads import CarriedHead as Head

logger = logging.getLogger("folkmoot.proxy")

MOST_CARRIERS: Final = 256
"""Conversations with the server, one for all clients that say the same of themselves."""
MOST_OPEN: Final = 4096
MOST_UNSENT: Final = 8 * 1024 * 1024
"""A client that lets more than this wait is cut off: the others must not wait for it."""
ACCEPTED: Final = 202
NEEDED: Final = frozenset((wire.VERSION_KEY,))

STATUS: Final = {
    -32700: 400,
    -32600: 400,
    -32602: 400,
    -32020: 400,
    -32021: 400,
    -32022: 400,
    -32601: 404,
}
"""The HTTP status of an answer that is an error, as the specification has it; others are 200."""


Who: TypeAlias = tuple[tuple[str, str], ...]
"""What clients say that share a conversation."""


class StatelessCarrier(FrontCarrier):
    """Every client of the stateless era as the relay sees them: one client with many requests."""

    shared = True

    def __init__(self, clock: Clock, limits: Limits, context: TransportContext) -> None:
        super().__init__(clock, limits, context)
        self.session = SessionContext(protocol_version=ProtocolVersion(FIRST_STATELESS))
        self._last = 0
        self._unplaced = False
        self.mirror = Mirror()
        """Knows which arguments of the server's tools headers must repeat."""

    @property
    def attended(self) -> bool:
        """Whether a client waits for something."""
        return bool(self._open)

    def ask(self, request: Request, stream: Stream) -> Request:
        """The request as the server gets it, under an id nobody else has."""
        if len(self._open) >= MOST_OPEN:
            raise e.TooManyInFlight("Too many requests are open at once.")
        self._last += 1
        named = self._last
        token = found(request, ASKED_TOKEN)
        changes: dict[Path, Any] = {ID: named}
        if is_message_id(token):
            changes[ASKED_TOKEN] = named
        told = token if ASKED_TOKEN in changes else None
        self._open[named] = UnansweredRequest(
            request.id, stream, told, request.method == wire.TOOLS_LIST
        )
        return renamed(request, changes)

    def forget(self, named: MessageId) -> None:
        """A client has left: its request, if it has no answer yet, is cancelled."""
        if self._open.pop(named, None) is not None and not self.over:
            self.say(Notification(method=wire.CANCELLED, params={"requestId": named}))

    async def send_envelope(self, envelope: MessageEnvelope[ProtocolMessage]) -> None:
        """Say a message in the stream of the request it belongs to."""
        self.check_way(envelope)
        self.check_open()
        message = envelope.message
        if isinstance(message, Response):
            self._answer(message, envelope.context.transport)
        elif isinstance(message, Request):
            error = e.Misrouted("Clients of the stateless era cannot be asked anything.")
            self.say(refusal(message.id, error))
        else:
            about = envelope.context.extensions.get(ABOUT)
            self._tell(message, envelope.context.transport, about)

    def _answer(self, response: Response, said: TransportContext) -> None:
        call = None if response.id is None else self._open.pop(response.id, None)
        if call is None:
            return
        if call.lists:
            self.mirror.learn(response.result)
        changes: dict[Path, Any] = {ID: call.id}
        if found(response, ANSWERED_SUBSCRIPTION) == response.id:
            changes[ANSWERED_SUBSCRIPTION] = call.id
        raw = encode_message(renamed(response, changes))
        call.stream.put(raw, said, last=True, status=status_of(response))

    def _tell(self, message: Notification, said: TransportContext, about: MessageId | None) -> None:
        """Send a notification in the stream of its request; there is no other stream."""
        late = False
        for path in (TOLD_TOKEN, SUBSCRIPTION):
            named = found(message, path)
            call = self._open.get(named) if is_message_id(named) else None
            if call is not None:
                known = call.token if path == TOLD_TOKEN else call.id
                self._put(named, call, renamed(message, {path: known}), said)
                return
            # What names a request that is over is not about another, whose client it must not tell.
            late = late or named is not None
        if about in self._open and not late:
            self._put(about, self._open[about], message, said)
        elif len(self._open) == 1 and not late:
            [(named, call)] = self._open.items()
            self._put(named, call, message, said)
        elif not self._unplaced:
            self._unplaced = True
            logger.warning("a notification belongs to no request, and was dropped")

    def _put(
        self,
        named: MessageId,
        call: UnansweredRequest,
        message: Notification,
        said: TransportContext,
    ) -> None:
        stream = call.stream
        if stream.unsent > MOST_UNSENT and stream.reader is not None:
            logger.warning("a client that does not read is cut off")
            stream.end()
            stream.reader.leave()
            self.forget(named)
        elif stream.events:
            stream.put(encode_message(message), said)


class StatelessFront(Entity):
    """Serves the requests of the stateless era; the conversation with the server is begun again
    when it has ended.

    A server may take whoever began a conversation for everyone in it. So clients that say something
    else in the headers that `apart` names do not share one.
    """

    front: Front[Any]
    clock: Clock
    limits: Limits
    apart: Sequence[str] = ()
    _carriers: OrderedDict[Who, StatelessCarrier] = field(default_factory=OrderedDict)

    def __post_init__(self) -> None:
        self._apart = frozenset(self.apart)

    async def post(
        self, head: Head, message: ProtocolMessage, receive: Receive, send: Send
    ) -> None:
        """Serve one request."""
        if isinstance(message, Request):
            try:
                await self._ask(head, message, receive, send)
            except e.FolkmootError as error:
                await refuse(send, error, message.id)
            return
        if isinstance(message, Response):
            raise e.InvalidResponse("Clients of the stateless era are asked nothing.")
        # Whoever cancels closes the request; an id alone may be anybody's.
        if message.method != wire.CANCELLED:
            await self._carried(head).take(message, head.transport)
        await say(send, ACCEPTED)

    async def _ask(self, head: Head, request: Request, receive: Receive, send: Send) -> None:
        if request.method == wire.INITIALIZE:
            # It would make the conversation one of the other era for everybody in it.
            raise e.VersionUnsupported(
                "Without sessions there is nothing to initialize.",
                supported=[FIRST_STATELESS],
                requested=head.version.value,
            )
        listens = request.method == wire.LISTEN
        if listens and not head.events:
            raise e.NotAcceptable(f"Who listens must accept {EVENT_STREAM}.")
        params = params_of(request)
        check_repeated(head, request.method, params, NEEDED)
        carrier = self._carried(head)
        name = params.get("name")
        if request.method == wire.TOOLS_CALL and type(name) is str:
            # A tool that was never listed is not known here, and its headers are not checked.
            check_marked(carrier.mirror.marked(name), params.get("arguments"), head.headers)
        plain = head.json and not (listens and head.events)
        stream = Stream(plain=plain, events=head.events)
        reader = stream.attach()
        asked = carrier.ask(request, stream)
        try:
            with self.front.watching(receive, reader):
                await carrier.take(asked, head.transport)
                await answer(send, stream, reader)
        finally:
            carrier.forget(asked.id)

    def _carried(self, head: Head) -> StatelessCarrier:
        who = tuple(pair for pair in head.headers if pair[0] in self._apart)
        known = self._carriers.get(who)
        if known is not None and not known.over:
            self._carriers.move_to_end(who)
            return known
        self._make_room()
        carrier = StatelessCarrier(self.clock, self.limits, head.transport)
        self.front.begin(carrier, lambda: self._forget(who, carrier))
        self._carriers[who] = carrier
        return carrier

    def _make_room(self) -> None:
        """End the conversation that was unused for longest, if there are too many."""
        if len(self._carriers) < MOST_CARRIERS:
            return
        unused = (who for who, each in self._carriers.items() if not each.attended)
        first = next(unused, None)
        if first is None:
            raise e.TooManyInFlight("Too many clients are served at once.")
        self._carriers.pop(first).end()

    def _forget(self, who: Who, carrier: StatelessCarrier) -> None:
        if self._carriers.get(who) is carrier:
            del self._carriers[who]


def status_of(response: Response) -> int:
    """The HTTP status of an answer that leaves as JSON."""
    error = response.error
    return STATUS.get(error.code, OK) if isinstance(error, ErrorObject) else OK
