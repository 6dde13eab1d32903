"""A proxy in front of one server, put together from its server, its tape and its interceptors.

It serves on standard input and output, or on a port.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import shlex
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import (
    AbstractAsyncContextManager,
    AsyncExitStack,
    asynccontextmanager,
    contextmanager,
)
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import msgspec
from msgspec import field

from folkmoot import __version__
from folkmoot.bus import MemoryBus
from folkmoot.core import errors as e
from folkmoot.core.entity import Entity
from folkmoot.core.events import HELD
from folkmoot.core.strict import Limits
from folkmoot.core.transport import Headers
from folkmoot.mcp.carrier import PROXY_LIMITS, Carrier, Connect
from folkmoot.mcp.server.stdio import StdioFront
from folkmoot.proxy.chain import Chain
from folkmoot.proxy.held import Change, HeldMessages, HeldView, read_change
from folkmoot.proxy.plugins import load_plugins
from folkmoot.proxy.rules import Rules
from folkmoot.proxy.sessions import SessionLimits, SessionManager
from folkmoot.proxy.tape import TapeRecorder, TapeSide
from folkmoot.relay.pump import carry
from folkmoot.relay.recording import Recording, Rotation
from folkmoot.relay.steps import Steps
from folkmoot.settings.fields import masked_arguments
from folkmoot.taskgroups import background_tasks
from folkmoot.telemetry.redaction import clean

if TYPE_CHECKING:
    from folkmoot.core.ports import Clock, Event, Interceptor
    from folkmoot.mcp.client.connect import Note
    from folkmoot.mcp.client.target import HttpTarget


START_SECONDS: Final = 300.0
"""A command such as `npx` may have to download its server first."""
LONGEST_COMMAND: Final = 200


class Upstream(msgspec.Struct, frozen=True):
    """The server: how a conversation with it is begun, and its address if it is Streamable HTTP."""

    connect: Connect
    target: HttpTarget | None = None
    told: bool = False
    """Whether the server is told what clients on HTTP say of themselves, such as who they are."""


class ProxyOptions(msgspec.Struct, frozen=True):
    """What can be chosen for a proxy."""

    limits: Limits = PROXY_LIMITS
    sessions: SessionLimits = SessionLimits()
    eras: bool = True
    """Whether a client and a server of different eras are helped to understand each other."""
    discoverable: bool = False
    """Whether `server/discover` is answered in the place of a server that does not know it."""
    headers: tuple[str, ...] = ()
    """Headers of clients that are passed on besides the usual ones."""
    start_seconds: float = START_SECONDS
    """How long a command may take from its first request until it says anything."""
    notify: Callable[[str], None] = lambda _: None
    """Told when a command is waited for that was just started."""
    allowed_hosts: tuple[str, ...] = ()
    allowed_origins: tuple[str, ...] = ()


class Proxy(Entity):
    """One proxy; it carries while one of its two ways of serving runs."""

    upstream: Upstream
    steps: Steps
    options: ProxyOptions = field(default_factory=ProxyOptions)
    failed: asyncio.Future[e.TapeUnwritable] | None = None

    def __post_init__(self) -> None:
        self.sessions = SessionManager(self.steps.clock, self.options.sessions)

    async def ended(self) -> None:
        """Wait for a tape that cannot be written, which ends a proxy that listens: it is raised."""
        if self.failed is None:
            await asyncio.Event().wait()
        else:
            raise await self.failed

    async def serve_stdio(self) -> None:
        """Carry the one conversation on standard input and output, until its client leaves.

        Raises `ServerUnreachable` when the server leaves before.
        """
        front = StdioFront(self.steps.clock, limits=self.options.limits)
        await front.open()
        if await self._carry(front):
            raise e.ServerUnreachable("The server has ended.")

    async def carry(self, client: Carrier) -> None:
        """Carry one conversation, until it ends."""
        await self._carry(client)

    async def _carry(self, client: Carrier) -> bool:
        named = client.session.session_id
        key = secrets.token_hex(16) if named is None else named.value
        return await carry(
            client,
            self.upstream.connect,
            self.steps,
            self.sessions,
            key=key,
            eras=self.options.eras,
            discoverable=self.options.discoverable,
        )

    def listening(self, host: str, port: int) -> AbstractAsyncContextManager[str]:
        """Serve HTTP at `/mcp`, and HTTP+SSE at `/sse`, while entered; the address it has."""
        # An HTTP server takes half a second to import, which standard input need not wait for.
        from folkmoot.relay.http_server import listening

        return listening(self, host, port)


class ProxyOperator:
    """The operator's way into a running proxy: what it holds, and how it is, on its own socket.

    It listens from the start; a task group owns `serve`, and `close` comes last.
    """

    def __init__(self, held: HeldMessages, clock: Clock) -> None:
        # A web server takes its time to import, which a proxy without rules need not wait for.
        from folkmoot.datafolder.proxies import proxy_socket
        from folkmoot.operations import Services
        from folkmoot.operations.operator.hub import HubStatus
        from folkmoot.transports.operator_socket import OperatorSocket, operator_app

        def status() -> HubStatus:
            return HubStatus(os.getpid(), __version__, clock.monotonic() - started, "")

        started = clock.monotonic()
        self._app = operator_app(Services(held=held, status=status))
        self._socket = OperatorSocket(proxy_socket())
        self._socket.listen()

    async def serve(self) -> None:
        """Answer the operator until cancelled."""
        await self._socket.serve(self._app)

    def close(self) -> None:
        """Remove the socket; safe to call again."""
        self._socket.close()


ServerTransport: TypeAlias = Literal["auto", "http", "sse"]


class ProxiedServer(msgspec.Struct, frozen=True):
    """The server: a command, or an address."""

    command: tuple[str, ...] = ()
    url: str = ""
    transport: ServerTransport = "auto"
    headers: tuple[tuple[str, str], ...] = ()

    def side(self) -> TapeSide:
        """The server as a tape names it."""
        if self.command:
            return TapeSide("stdio", " ".join(self.command))
        from folkmoot.mcp.client.target import HttpTarget

        return TapeSide("http" if self.transport != "sse" else "sse", HttpTarget(self.url).shown)

    @asynccontextmanager
    async def upstream(
        self, clock: Clock, options: ProxyOptions, note: Note | None = None
    ) -> AsyncIterator[Upstream]:
        """The way to it, while entered; `note` is told what is asked to find out what it is."""
        limits = options.limits
        # An HTTP client takes its time to import, which a command need not wait for.
        if self.command:
            from folkmoot.mcp.client.stdio import Starting, StdioLink

            shown = clean(shlex.join(masked_arguments(self.command)), LONGEST_COMMAND)
            starting = Starting(
                options.start_seconds,
                lambda: options.notify(f"Waiting for {shown}. Its first start may download it."),
                lambda waited: options.notify(f"The server answered after {waited:.0f} s."),
            )
            yield Upstream(
                partial(StdioLink, self.command, clock, limits=limits, starting=starting)
            )
            return
        from folkmoot.mcp.client.connect import detect, unnoted
        from folkmoot.mcp.client.http import HttpLink
        from folkmoot.mcp.client.oldsse import OldSseLink
        from folkmoot.mcp.client.target import HttpTarget

        async with HttpTarget(self.url, headers=Headers(self.headers)) as target:
            kind = self.transport
            if kind == "auto":
                kind = await detect(target, note or unnoted)
            more: dict[str, Any] = {"limits": limits, "extra": options.headers}
            if kind == "sse":
                yield Upstream(partial(OldSseLink, target, clock, **more), told=True)
            else:
                yield Upstream(partial(HttpLink, target, clock, **more), target, told=True)


class DecisionPlace(msgspec.Struct, frozen=True):
    """A room of a hub in which held messages are decided about, and who the proxy is in it."""

    hub: str
    room: str
    token: str | Callable[[], str]

    def __repr__(self) -> str:
        return f"DecisionPlace({self.room!r} at {self.hub})"


class Interception(msgspec.Struct, frozen=True):
    """What sees messages on their way: a file of rules, and interceptors written in Python."""

    rules: Path | None = None
    plugins: tuple[str, ...] = ()
    room: DecisionPlace | None = None

    @property
    def wanted(self) -> bool:
        """Whether anything sees messages."""
        return self.rules is not None or bool(self.plugins)


@asynccontextmanager
async def assembled(
    server: ProxiedServer,
    clock: Clock,
    *,
    client: TapeSide,
    recording: Recording | None = None,
    interception: Interception | None = None,
    options: ProxyOptions | None = None,
    on_held: Callable[[Change, HeldView], object] | None = None,
) -> AsyncIterator[Proxy]:
    """The proxy, while entered; what was begun is ended in order.

    `on_held` is called for each message that is held, and for what becomes of it.
    """
    recording, interception = recording or Recording(), interception or Interception()
    options = options or ProxyOptions()
    async with AsyncExitStack() as stack:
        held = HeldMessages(clock, MemoryBus())
        if on_held is not None:
            held.bus.listen(HELD, partial(tell, on_held))
        interceptors = await intercepting(interception, held, clock, stack)
        failed: asyncio.Future[e.TapeUnwritable] = asyncio.get_running_loop().create_future()
        recorder = None
        if recording.wanted:
            recorder = recording.begin(clock, client, server.side(), failed)
            stack.enter_context(closing(recorder))
        steps = Steps(Chain(interceptors, held), recorder, clock)
        upstream = await stack.enter_async_context(server.upstream(clock, options, steps.note_own))
        yield Proxy(upstream, steps, options, failed)


def tell(on_held: Callable[[Change, HeldView], object], event: Event) -> None:
    """Tell someone what has become of a held message."""
    changed = read_change(event)
    on_held(changed.change, changed.view)


@contextmanager
def closing(recorder: TapeRecorder | Rotation) -> Iterator[None]:
    """End the tape; where something failed before any message came, no empty one is left."""
    try:
        yield
    except BaseException:
        recorder.discard()
        raise
    recorder.close()


async def intercepting(
    wanted: Interception, held: HeldMessages, clock: Clock, stack: AsyncExitStack
) -> list[Interceptor]:
    """The interceptors, and beside them what follows their file and lets people decide."""
    interceptors: list[Interceptor] = []
    if not wanted.wanted:
        return interceptors
    rules = None if wanted.rules is None else Rules.load(wanted.rules, clock=clock)
    plugins = load_plugins(wanted.plugins)
    background = await stack.enter_async_context(background_tasks())
    operator = ProxyOperator(held, clock)
    stack.callback(operator.close)
    background.run(operator.serve())
    if rules is not None:
        interceptors += rules.interceptors
        background.run(rules.watch())
    if wanted.room is not None:
        from folkmoot.relay.deciding_room import DecidingRoom

        place = wanted.room
        background.run(DecidingRoom(held, place.hub, room=place.room, token=place.token).run())
    return [*interceptors, *plugins]
