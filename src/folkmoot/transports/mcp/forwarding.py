"""Requests in sessions of other nodes: forwarded there over HTTP, and accepted here.

The node that has a session answers as if its client had asked it directly, streams included, and
the answer is passed on as it comes. A client that leaves ends the exchange at both nodes. While one
goes on, its node is asked now and then whether it is there.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from enum import Enum
from hmac import compare_digest
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from msgspec import field
from starlette.requests import ClientDisconnect

from folkmoot.cluster.forwarding import ForwardedRequest, Marks, decode, digest_of, encode
from folkmoot.core import errors as e
from folkmoot.core.entity import Entity
from folkmoot.mcp.client.connection import HttpFailure, head_of
from folkmoot.mcp.client.pool import HttpConnections
from folkmoot.mcp.client.target import usual_tls
from folkmoot.mcp.client.url import HttpUrl
from folkmoot.mcp.server.responses import leave_with, say
from folkmoot.mcp.wire import EVENT_STREAM
from folkmoot.taskgroups import Interruptible, background_tasks
from folkmoot.transports.address import FORWARDED_KEY
from folkmoot.transports.answers import JsonResponse, retry_after
from folkmoot.transports.bodies import read_body, replaying
from folkmoot.transports.connections import FORWARD_PATH, METERED, PEER, take_turn, trust
from folkmoot.transports.credentials import CALLER
from folkmoot.transports.guard import OPERATOR_KEY
from folkmoot.transports.limits import (
    BODY_RETRY_SECONDS,
    FORWARD_BODY_SECONDS,
    FORWARD_CONNECT_SECONDS,
    FORWARD_PROBE_SECONDS,
    MAX_FORWARDED,
    MAX_FORWARDED_HEAD_BYTES,
    MAX_NODES_REACHED,
    OWN_ADDRESS_ATTEMPTS,
    OWN_ADDRESS_SECONDS,
)

if TYPE_CHECKING:
    import ssl

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from folkmoot.core.ports import Clock, NodeHome
    from folkmoot.mcp.client.connection import HttpAnswer
    from folkmoot.transports.address import Addresses

logger = logging.getLogger("folkmoot.mcp")

PATH: Final = FORWARD_PATH
FORWARDED_TO: Final = "/mcp"
MARK_HEADER: Final = "folkmoot-mark"
MARK_NAME: Final = MARK_HEADER.encode()
PROOF_HEADER: Final = "folkmoot-proof"
"""In the answer of a node that has accepted the request."""
PROOF_NAME: Final = PROOF_HEADER.encode()
ELSEWHERE: Final = "folkmoot-elsewhere"
"""In the answer of a node that does not have the session."""
NOT_HERE: Final = ((ELSEWHERE.encode(), b"1"),)
OF_THE_CONNECTION: Final = frozenset({PEER, CALLER, METERED, OPERATOR_KEY, "state"})
"""Members of a scope that are about the connection between the nodes."""
OF_THE_HOP: Final = frozenset(
    {
        "connection",
        "keep-alive",
        "transfer-encoding",
        "date",
        "server",
        "vary",
        "x-request-id",
        PROOF_HEADER,
    }
)
"""Headers of an answer that each node writes itself."""
CORS: Final = "access-control-"
MISDIRECTED: Final = 421
NO_CONTENT: Final = 204
UNAVAILABLE: Final = 503
PROBE: Final = encode(ForwardedRequest(""))
"""Asks whether a node is there."""
PROBE_DIGEST: Final = digest_of(PROBE)
REDIRECTS: Final = range(300, 400)
SERVER_ERRORS: Final = range(500, 600)
UNANSWERED: Final = (
    "The node that has this session did not answer. The request may have been done; look before "
    "you send it again."
)


NodeService: TypeAlias = Callable[[bytes, "Receive", "Send"], Awaitable[None]]
"""Answers what another node asks, whose body it is given."""


class ForwardOutcome(Enum):
    """What became of a request that was forwarded."""

    ANSWERED = "answered"
    ELSEWHERE = "elsewhere"
    """The node does not have the session."""
    UNREACHABLE = "unreachable"
    """The node has not done it, or it may be done twice."""


class Passage(Entity):
    """One request on its way to another node."""

    home: NodeHome
    listens: bool
    """Whether it is the stream of a session."""
    carrying: Interruptible = field(default_factory=Interruptible)
    begun: bool = False
    """Whether its client has a part of the answer."""
    ends_well: bool = False
    """Whether the answer may end anywhere, as a stream of events may."""


class Forwarding(Entity):
    """Forwards requests to other nodes, and takes theirs, while `running` is entered."""

    marks: Marks
    clock: Clock
    addresses: Addresses
    body_bytes: int
    total_bytes: int
    tls: ssl.SSLContext | None = None
    _nodes: dict[str, HttpConnections] = {}
    _passages: set[Passage] = set()
    _accepted: int = 0
    _held: int = 0
    _stopping: bool = False
    _closed: bool = False
    services: dict[str, NodeService] = {}
    """What other nodes may ask of this one beside `/mcp`, by path."""
    forwarded: int = 0
    refused: int = 0
    """How many were refused whose mark, or body, was not a node's."""
    answers_at_own: bool | None = None
    """Whether this node was found where the others look for it; None before it was looked."""

    def __post_init__(self) -> None:
        self._most_bytes = self.body_bytes + MAX_FORWARDED_HEAD_BYTES
        self.total_bytes = max(self.total_bytes, self._most_bytes)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Watch the nodes that answer; on leaving, close the connections to them."""
        async with background_tasks() as background:
            background.run(self._watch())
            yield
        self._closed = True
        for connections in self._nodes.values():
            connections.close()
        self._nodes.clear()

    def stop(self) -> None:
        """End the streams of sessions elsewhere; their clients open them at another node."""
        self._stopping = True
        for passage in tuple(self._passages):
            if passage.listens:
                passage.carrying.stop(HttpFailure("the hub stops"))

    async def forward(
        self, home: NodeHome, scope: Scope, body: bytes | None, receive: Receive, send: Send
    ) -> ForwardOutcome:
        """Have another node answer a request."""
        self._check_room()
        method: str = scope["method"]
        client, server = scope.get("client"), scope.get("server")
        written = encode(
            ForwardedRequest(
                method,
                scope["path"],
                scope["query_string"],
                tuple((name, value) for name, value in scope["headers"]),
                scope["scheme"],
                None if client is None else (client[0], client[1]),
                None if server is None else (server[0], server[1]),
                body or b"",
                self.addresses.of(scope),
                scope.get(CALLER, ""),
            )
        )
        self.forwarded += 1
        passage = Passage(home, listens=method == "GET")
        self._passages.add(passage)
        watch = None
        try:
            with passage.carrying:
                if body is not None or passage.listens:
                    left = ClientDisconnect()
                    watch = asyncio.create_task(
                        leave_with(receive, lambda: passage.carrying.stop(left))
                    )
                return await self._carry(passage, written, send)
        except HttpFailure as error:
            return await self._failed(passage, error, method, send)
        finally:
            self._passages.discard(passage)
            if watch is not None:
                watch.cancel()

    @asynccontextmanager
    async def asking(self, home: NodeHome, path: str, body: bytes) -> AsyncIterator[HttpAnswer]:
        """Ask a service of another node; its answer, while entered.

        An `HttpFailure` says that there is none, or that the node has gone meanwhile.
        """
        if self._closed:
            raise HttpFailure("the hub stops", unsent=True)
        self._check_room()
        written = encode(ForwardedRequest("POST", path, body=body))
        if len(written) > self._most_bytes:
            why = f"A request to another node may have at most {self._most_bytes:,} bytes."
            raise e.BodyTooLarge(why, limit=self._most_bytes)
        self.forwarded += 1
        passage = Passage(home, listens=False)
        self._passages.add(passage)
        try:
            with passage.carrying:
                answer = await self._ask(home, written)
                try:
                    yield answer
                finally:
                    answer.close()
        finally:
            self._passages.discard(passage)

    def _check_room(self) -> None:
        if len(self._passages) >= MAX_FORWARDED:
            raise e.HubFull(
                "Too many requests wait for other nodes; try again in a moment.",
                retry_after=BODY_RETRY_SECONDS,
            )

    async def _carry(self, passage: Passage, written: bytes, send: Send) -> ForwardOutcome:
        answer = await self._ask(passage.home, written)
        try:
            headers = answer.headers
            if answer.status == MISDIRECTED and headers.get(ELSEWHERE):
                return ForwardOutcome.ELSEWHERE
            told = [
                (name.encode("latin-1"), value.encode("latin-1"))
                for name, value in headers
                if name not in OF_THE_HOP and not name.startswith(CORS)
            ]
            passage.begun = True
            passage.ends_well = answer.content_type == EVENT_STREAM
            start = {"type": "http.response.start", "status": answer.status, "headers": told}
            await send(start)
            while part := await answer.read():
                await send({"type": "http.response.body", "body": part, "more_body": True})
            await send({"type": "http.response.body"})
        finally:
            answer.close()
        return ForwardOutcome.ANSWERED

    async def _failed(
        self, passage: Passage, error: HttpFailure, method: str, send: Send
    ) -> ForwardOutcome:
        """What comes of a request whose answer did not come, or not to its end."""
        where = {"node": passage.home.address, "error": error.words}
        logger.info("another node did not answer", extra=where)
        if passage.begun:
            if not passage.ends_well:
                raise ClientDisconnect
            await send({"type": "http.response.body"})
            return ForwardOutcome.ANSWERED
        if self._stopping:
            raise e.HubStopping("The hub is stopping; try again in a moment.")
        if error.unsent or method != "POST":
            return ForwardOutcome.UNREACHABLE
        raise e.ServerUnreachable(UNANSWERED)

    async def _ask(self, home: NodeHome, written: bytes) -> HttpAnswer:
        """What a node answers; that it is not the process that was meant, it need not prove."""
        url = HttpUrl.parse(home.address)._replace(path=PATH, query="")
        connections = self._nodes.get(home.address)
        if connections is None:
            if len(self._nodes) >= MAX_NODES_REACHED:
                oldest = next(iter(self._nodes))
                self._nodes.pop(oldest).close()
            connections = self._nodes[home.address] = HttpConnections(
                url,
                tls=(self.tls or usual_tls()) if url.scheme == "https" else None,
                seconds=FORWARD_CONNECT_SECONDS,
                describe=None,
            )
        mark = self.marks.make(home.process, written, self.clock.now())
        headers = ((MARK_HEADER, mark), ("content-type", "application/msgpack"))
        head = head_of("POST", url, headers, written)
        answer = await connections.ask("POST", head, written, None)
        status, told = answer.status, answer.headers
        if not self.marks.is_proven(mark, told.get(PROOF_HEADER) or "") and not (
            status == MISDIRECTED and told.get(ELSEWHERE)
        ):
            answer.close()
            # A proxy between the nodes may answer so when it has passed the request on.
            unsent = status not in REDIRECTS and status not in SERVER_ERRORS
            raise HttpFailure("something else answers there", unsent=unsent)
        return answer

    async def _watch(self) -> None:
        """Ask the nodes that are to answer whether they are there."""
        while True:
            await asyncio.sleep(FORWARD_PROBE_SECONDS)
            homes = {passage.home for passage in self._passages}
            if homes:
                await asyncio.gather(*map(self._probe, homes))

    async def _probe(self, home: NodeHome) -> None:
        if not await self._answers(home):
            for passage in tuple(self._passages):
                if passage.home == home:
                    passage.carrying.stop(HttpFailure("it is gone"))

    async def _answers(self, home: NodeHome) -> bool:
        try:
            async with asyncio.timeout(FORWARD_PROBE_SECONDS):
                answer = await self._ask(home, PROBE)
        except (HttpFailure, TimeoutError):
            return False
        answer.close()
        # One that has too much to do is there as well.
        return answer.status in {NO_CONTENT, UNAVAILABLE}

    async def watch_own(self, home: NodeHome) -> None:
        """Look now and then whether this node is where the others look for it."""
        while True:
            await self.check_own(home)
            await asyncio.sleep(OWN_ADDRESS_SECONDS)

    async def check_own(self, home: NodeHome) -> None:
        """Warn if this node is not where the others look for it, and was before."""
        where = {"address": home.address}
        for attempt in range(OWN_ADDRESS_ATTEMPTS):
            if attempt:
                await asyncio.sleep(FORWARD_PROBE_SECONDS)
            answers = await self._answers(home)
            if (connections := self._nodes.pop(home.address, None)) is not None:
                connections.close()
            if answers:
                if self.answers_at_own is False:
                    logger.info("this node answers at its cluster.address again", extra=where)
                self.answers_at_own = True
                return
        if self.answers_at_own is not False:
            logger.warning(
                "this node does not answer at its cluster.address: others may not reach it",
                extra=where,
            )
        self.answers_at_own = False

    def receiver(self, app: ASGIApp) -> ASGIApp:
        """The application, which also takes what other nodes forward."""

        async def receive_forwarded(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] != "http" or scope["path"] != PATH:
                await app(scope, receive, send)
                return
            try:
                await self._accept(app, scope, receive, send)
            except e.RequestError as error:
                answer = JsonResponse(error.as_http(), error.http, retry_after(error))
                await answer(scope, receive, self._proving(scope, send))

        return receive_forwarded

    def _proving(self, scope: Scope, send: Send) -> Send:
        """Sends an answer that proves that its request was accepted."""
        proof = self.marks.prove(dict(scope["headers"])[MARK_NAME]).encode()

        async def prove(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message["headers"], (PROOF_NAME, proof)]}
            await send(message)

        return prove

    async def _accept(self, app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
        headers = dict(scope["headers"])
        mark, length = headers.get(MARK_NAME, b""), headers.get(b"content-length", b"")
        claim = self.marks.check(mark, self.clock.now()) if mark else None
        if claim is None or scope["method"] != "POST" or not length.isdigit():
            # To whoever is no node there is nothing here.
            self.refused += bool(mark)
            await app(scope, receive, send)
            return
        if not claim.for_us:
            await say(send, MISDIRECTED, headers=NOT_HERE)
            return
        size = int(length)
        if size > self._most_bytes:
            why = f"A forwarded request may have at most {self._most_bytes:,} bytes."
            raise e.BodyTooLarge(why, limit=self._most_bytes)
        full = self._accepted >= MAX_FORWARDED or self._held + size > self.total_bytes
        if full and claim.digest != PROBE_DIGEST:
            raise e.HubFull(
                "The node answers as many requests of other nodes as it can; try again in a "
                "moment.",
                retry_after=BODY_RETRY_SECONDS,
            )
        trust(scope)
        self._accepted += 1
        self._held += size
        try:
            try:
                async with asyncio.timeout(FORWARD_BODY_SECONDS):
                    written = await read_body(receive)
            except TimeoutError:
                why = "The rest of a forwarded request did not arrive in time."
                raise e.BodyTimeout(why) from None
            if written is not None:
                await self._serve(app, claim.digest, written, scope, receive, send)
        finally:
            self._accepted -= 1
            self._held -= size

    async def _serve(
        self,
        app: ASGIApp,
        digest: bytes,
        written: bytes,
        scope: Scope,
        receive: Receive,
        send: Send,
    ) -> None:
        request = decode(written) if compare_digest(digest_of(written), digest) else None
        if request is not None and not request.method:
            await say(self._proving(scope, send), NO_CONTENT)
            return
        service = None if request is None else self.services.get(request.path)
        if request is not None and service is not None:
            await service(request.body, receive, self._proving(scope, send))
            return
        if request is None or request.path != FORWARDED_TO:
            self.refused += 1
            await app(scope, receive, send)
            return
        original: dict[str, Any] = {
            name: value for name, value in scope.items() if name not in OF_THE_CONNECTION
        }
        original |= {
            "method": request.method,
            "path": request.path,
            "raw_path": request.path.encode(),
            "query_string": request.query,
            "headers": list(request.headers),
            "scheme": request.scheme,
            "client": request.client,
            "server": request.server,
            FORWARDED_KEY: request.address,
        }
        # Until here it was one of the node's, which has all of them read soon.
        await take_turn(scope, request.caller or request.address)
        await app(original, replaying(request.body, receive), self._proving(scope, send))
