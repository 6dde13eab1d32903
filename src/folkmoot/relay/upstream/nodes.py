"""Servers that one node links for all: how nodes ask that node, and how it answers them."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import aclosing, asynccontextmanager
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec
from msgspec import field
from starlette.requests import ClientDisconnect

from folkmoot.core import errors as e
from folkmoot.core.entity import Entity
from folkmoot.core.message import Notification, Response, decode_message, encode_message
from folkmoot.gateway.model import BackendState
from folkmoot.gateway.pins import offload
from folkmoot.mcp.client.connection import HttpFailure
from folkmoot.mcp.server.responses import leave_with, say
from folkmoot.mcp.wire import URIS
from folkmoot.relay.upstream.connecting import LIMITS
from folkmoot.relay.upstream.node_messages import (
    AGREED,
    CHANGED,
    DONE,
    FAILURE,
    INVENTORY,
    MESSAGE,
    NOT_LINKED,
    STATE,
    TASK,
    Frames,
    LinkState,
    NodeCall,
    NodeFailure,
    NodeRequest,
    NotLinkedThere,
    decode_call,
    encode_json,
    framed,
    frames_of,
)
from folkmoot.relay.upstream.requests import Heard, Late, Listen, Unanswered
from folkmoot.taskgroups import Interruptible, background_tasks, waited

if TYPE_CHECKING:
    from starlette.types import Receive, Send

    from folkmoot.core.ports import BackendHomes, NodeHome
    from folkmoot.gateway.model import Inventory, UpstreamRequest
    from folkmoot.mcp.client.connection import HttpAnswer
    from folkmoot.relay.upstream.single import SingleBackend
    from folkmoot.relay.upstream.watching import Spot
    from folkmoot.transports.mcp.forwarding import Forwarding

PATH: Final = "/backends"
HEADERS: Final = ((b"content-type", b"application/octet-stream"),)
OK: Final = 200
UNAVAILABLE: Final = 503
BAD_REQUEST: Final = 400
MOST_TOLD: Final = 256
"""What a server says during a call and another node has not taken yet; more is dropped."""
LOOK_SECONDS: Final = 1.0
"""How often it is looked which node links a server."""

Put: TypeAlias = Callable[[bytes], Awaitable[None]]
FindBackend: TypeAlias = Callable[[str], "SingleBackend | None"]
Restart: TypeAlias = Callable[[str], Coroutine[Any, Any, None]]


class BackendNodes(Entity):
    """The other nodes of a hub, as far as servers go that one of them links."""

    homes: BackendHomes
    forwarding: Forwarding
    leaving: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once this node is to link nothing for others any more."""

    def serve(self, find: FindBackend, restart: Restart) -> None:
        """Answer other nodes from now on."""
        self.forwarding.services[PATH] = LinkService(find, restart)

    @asynccontextmanager
    async def asking(self, home: NodeHome, call: NodeCall) -> AsyncIterator[Frames]:
        """Ask the node that links a server; the frames of its answer, while entered.

        Raises `NotLinkedThere` and `GatewayError` as it says, and `HttpFailure` if it is gone.
        """
        body = encode_json(call)
        async with self.forwarding.asking(home, PATH, body) as answer:
            _check(answer)
            async with aclosing(frames_of(answer)) as frames:
                yield frames

    async def request(self, home: NodeHome, namespace: str, wanted: UpstreamRequest) -> Response:
        """The answer of a server that another node links."""
        call = NodeCall(what="request", namespace=namespace, request=NodeRequest.of(wanted))
        async with self.asking(home, call) as frames:
            async for frame in frames:
                message = decode_message(frame.body, LIMITS)
                if type(message) is Response:
                    return message
                if type(message) is Notification and wanted.tell is not None:
                    wanted.tell(message)
        raise HttpFailure("its answer ended early")

    async def restart(self, home: NodeHome, namespace: str) -> None:
        """Have the node that links a server link it anew."""
        async with self.asking(home, NodeCall(what="restart", namespace=namespace)) as frames:
            async for _ in frames:
                return


def _check(answer: HttpAnswer) -> None:
    """Raise unless a node has begun to answer."""
    if answer.status == UNAVAILABLE:
        raise e.HubFull("The node that links it has too much to do; try again in a moment.")
    if answer.status != OK:
        # Another process than the one that was meant, or one that knows nothing of this.
        raise NotLinkedThere("It is not linked there.")


class NodeListener(Entity):
    """Listens for changes of one resource or task at the node that links its server."""

    nodes: BackendNodes
    home: NodeHome
    namespace: str
    spot: Spot
    tasks: asyncio.TaskGroup

    def __post_init__(self) -> None:
        self._call = NodeCall(
            what="watch",
            namespace=self.namespace,
            person=self.spot.person,
            named=self.spot.named,
            member=self.spot.member,
        )

    async def listen(self, notifications: dict[str, Any], heard: Heard, seconds: float) -> Listen:
        """Hear of changes from when the server has agreed; see `BackendConversation.listen`."""

        def close(_: Listen) -> None:
            listening.cancel()

        listen = Listen(0, heard, close)
        listening = self.tasks.create_task(self._follow(listen, notifications))
        try:
            async with asyncio.timeout(seconds):
                await listen.agreed
        except BaseException as error:
            listen.close()
            if isinstance(error, TimeoutError):
                raise Late(seconds) from None
            raise
        return listen

    async def _follow(self, listen: Listen, notifications: dict[str, Any]) -> None:
        lost: Exception = Unanswered(e.TransportClosed("It ended."), begun=False, gone=True)
        try:
            async with self.nodes.asking(self.home, self._call) as frames:
                async for frame in frames:
                    if frame.kind == AGREED and not listen.agreed.done():
                        listen.agreed.set_result(notifications)
                    elif frame.kind == CHANGED:
                        listen.hear(Notification(method=""))
        except e.GatewayError as error:
            lost = error
        except (HttpFailure, NotLinkedThere, e.HubFull):
            pass
        finally:
            listen.end(lost)


class LinkService(Entity):
    """Answers other nodes for the servers that this one links."""

    find: FindBackend
    restart: Restart

    async def __call__(self, body: bytes, receive: Receive, send: Send) -> None:
        """Answer one call, until it is done or the other node has left."""
        try:
            call = decode_call(body)
        except msgspec.DecodeError:
            await say(send, BAD_REQUEST)
            return
        await send({"type": "http.response.start", "status": OK, "headers": list(HEADERS)})

        async def put(frame: bytes) -> None:
            await send({"type": "http.response.body", "body": frame, "more_body": True})

        answering = Interruptible()
        left = ClientDisconnect()
        try:
            with answering:
                async with background_tasks() as background:
                    background.run(leave_with(receive, lambda: answering.stop(left)))
                    await self._answer(call, put)
        except ClientDisconnect:
            return
        await send({"type": "http.response.body"})

    async def _answer(self, call: NodeCall, put: Put) -> None:
        backend = self.find(call.namespace)
        if backend is None or not (backend.is_here or (backend.is_home and call.what == "follow")):
            await put(_failure(NodeFailure(NOT_LINKED, "It is not linked here.")))
            return
        try:
            if call.what == "follow":
                await _tell_followers(backend, put)
            elif call.what == "watch":
                await _tell_changes(backend, call, put)
            elif call.what == "restart":
                await self.restart(call.namespace)
                await put(framed(DONE))
            elif call.request is not None:
                await _pass_on(backend, call.request, put)
        except e.GatewayError as error:
            await put(_failure(NodeFailure(error.code, error.message, error.data)))


def _failure(failure: NodeFailure) -> bytes:
    return framed(FAILURE, encode_json(failure))


async def _tell_followers(backend: SingleBackend, put: Put) -> None:
    """Tell another node how a server is and what it lists, for as long as it is linked here."""
    told: LinkState | None = None
    listed = None
    with backend.followed() as tasks:
        while backend.is_home:
            state, inventory = LinkState(backend.state.value, backend.why), backend.delivered
            if state != told:
                if state.state == BackendState.UP.value:
                    # Whoever took its lists out while it was away puts them in again.
                    listed = None
                told = state
                await put(framed(STATE, encode_json(state)))
            elif inventory is not None and inventory is not listed:
                listed = inventory
                lists = await offload(size_of(inventory), encode_json, inventory)
                await put(framed(INVENTORY, lists))
            elif tasks:
                await put(framed(TASK, encode_json(tasks.popleft())))
            else:
                await backend.health.changed(LOOK_SECONDS)


def size_of(inventory: Inventory) -> int:
    """How many entries an inventory has."""
    return sum(map(len, (inventory.tools, inventory.resources, inventory.prompts)))


async def _tell_changes(backend: SingleBackend, call: NodeCall, put: Put) -> None:
    changed = asyncio.Event()
    watch = backend.watch if call.member == URIS else backend.watch_task
    stop = await watch(call.named, changed.set, call.person)
    try:
        await put(framed(AGREED))
        while backend.is_here:
            if await waited(changed, LOOK_SECONDS):
                changed.clear()
                await put(framed(CHANGED))
    finally:
        stop()


async def _pass_on(backend: SingleBackend, request: NodeRequest, put: Put) -> None:
    """Ask the server, and tell what it says meanwhile."""
    wanted = request.wanted()
    if not request.tells:
        response = await backend.request_here(wanted)
        await put(framed(MESSAGE, encode_message(response)))
        return
    told: deque[Notification] = deque()
    news = asyncio.Event()

    def tell(notice: Notification) -> None:
        if len(told) < MOST_TOLD:
            told.append(notice)
            news.set()

    finished = asyncio.Event()
    async with background_tasks() as background:
        telling = background.run(_tell_notices(told, news, finished, put))
        response = await backend.request_here(msgspec.structs.replace(wanted, tell=tell))
        finished.set()
        news.set()
        await asyncio.wait([telling])
    await put(framed(MESSAGE, encode_message(response)))


async def _tell_notices(
    told: deque[Notification], news: asyncio.Event, finished: asyncio.Event, put: Put
) -> None:
    while told or not finished.is_set():
        await news.wait()
        news.clear()
        while told:
            await put(framed(MESSAGE, encode_message(told.popleft())))
