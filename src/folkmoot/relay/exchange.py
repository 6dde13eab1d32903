"""One HTTP exchange with the server: a client's request, and all that comes back to it."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

import msgspec

from folkmoot.core.errors import CarryError, FolkmootError, MessageError, TapeUnwritable
from folkmoot.core.message import Request, encode_message
from folkmoot.core.strict import Limits
from folkmoot.core.transport import Headers
from folkmoot.core.verdict import Block
from folkmoot.mcp.client.target import HttpTarget
from folkmoot.mcp.wire import ACCEPT_BOTH, SESSION_HEADER, VERSION_HEADER
from folkmoot.relay.contexts import Contexts, mirrored
from folkmoot.relay.conversation import Talks
from folkmoot.relay.era_switch import EraSwitch
from folkmoot.relay.replies import Answering, Replies, settle
from folkmoot.relay.steps import TO_SERVER, Envelope, Steps, answer_of

if TYPE_CHECKING:
    from starlette.types import Scope, Send

    from folkmoot.core.message import ProtocolMessage

logger = logging.getLogger("folkmoot.proxy")

BACK: Final = ("authorization", SESSION_HEADER, VERSION_HEADER)
"""What a message of ours to the server takes over from the request whose stream it concerns."""
OUR_HEADERS: Final = (
    ("content-type", "application/json"),
    ("accept", ACCEPT_BOTH),
)


class Server(msgspec.Struct, frozen=True):
    """The server, and what every exchange with it passes."""

    target: HttpTarget
    steps: Steps
    talks: Talks
    limits: Limits
    eras: EraSwitch | None
    contexts: Contexts


class Exchange:
    """One exchange, from the client's request to the end of the answer."""

    def __init__(
        self,
        server: Server,
        scope: Scope,
        headers: Headers,
        message: ProtocolMessage | None,
        send: Send,
    ) -> None:
        self._server = server
        self._steps = server.steps
        query: bytes = scope["query_string"]
        target = server.target
        self._url = target.with_query(query.decode("latin-1")) if query else target.url
        self._method: str = scope["method"]
        self._headers = headers
        self._message = message
        self._send = send
        self._talk = server.talks.of(headers)
        self._transport = server.contexts.of_request(scope, headers)
        self._replies = Replies(
            self._talk,
            self._steps,
            server.limits,
            self._transport,
            server.contexts,
            # Of its own, since a method of ours would tie us and the replies into a knot that only
            # the collector of garbage undoes.
            Telling(server.target, headers),
        )
        self._answering = Answering(self._replies, server.limits.message_bytes, send)

    async def run(self) -> bool:
        """Do it; whether it turned out that another must do it, and the client knows nothing."""
        try:
            if self._message is None:
                return await self._ask(None)
            talk = self._talk
            envelope = talk.envelope(self._message, TO_SERVER, self._transport)
            passed = await self._steps.carry(envelope, talk.conversation)
            self._steps.commit()
            if passed.onward is not None:
                if passed.onward.message is not self._message:
                    before, self._message = self._message, passed.onward.message
                    self._headers = mirrored(self._headers, self._message, before)
                return await self._ask(encode_message(self._message))
            await settle(self._send, passed.back)
        except (CarryError, MessageError, TapeUnwritable) as error:
            await self.fail(error)
        return False

    async def _ask(self, body: bytes | None) -> bool:
        server, eras = self._server, self._server.eras
        async with server.target.ask(self._method, self._headers, body, url=self._url) as answer:
            self._replies.connection = answer.came_over
            if eras is not None and eras.in_doubt(self._message):
                whole = await self._answering.kept(answer)
                if await eras.was_refused(self._headers, answer.status, whole):
                    return True
            server.talks.heard(self._talk, self._method, answer.status, answer.headers)
            await self._answering.relay(answer)
        return False

    async def fail(self, error: FolkmootError) -> None:
        """Tell the client that there is no answer, in whatever form is left."""
        message = self._message
        waiting = message.id if isinstance(message, Request) else None
        if waiting is not None:
            self._talk.conversation.close(TO_SERVER, waiting)
        await self._answering.fail(answer_of(Block(error), waiting), error.http)


class Telling:
    """Answers requests of the server's in the client's place."""

    def __init__(self, target: HttpTarget, headers: Headers) -> None:
        self._target = target
        self._headers = headers

    async def __call__(self, answer: Envelope) -> None:
        """Send the server an answer."""
        told = [pair for pair in self._headers if pair[0] in BACK]
        headers = Headers((*told, *OUR_HEADERS))
        try:
            async with self._target.ask("POST", headers, encode_message(answer.message)):
                pass
        except CarryError as error:
            # What the client itself waits for may still come.
            logger.warning("a message was not carried", extra={"error": error.message})
