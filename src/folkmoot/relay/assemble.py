"""A proxy put together from what someone chose: its server, its tape, its interceptors."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import msgspec

from folkmoot.bus import MemoryBus
from folkmoot.core.events import HELD
from folkmoot.core.transport import Headers
from folkmoot.proxy.chain import Chain
from folkmoot.proxy.held import Change, HeldMessages, HeldView, read_change
from folkmoot.proxy.plugins import load_plugins
from folkmoot.proxy.rules import Rules
from folkmoot.proxy.tape import Side, TapeRecorder
from folkmoot.relay.deciding_room import DecidingRoom
from folkmoot.relay.proxy import Proxy, ProxyOptions, Upstream
from folkmoot.relay.recording import Recording, Rotation
from folkmoot.relay.steps import Steps
from folkmoot.taskgroups import aside

if TYPE_CHECKING:
    from folkmoot.core.errors import TapeUnwritable
    from folkmoot.core.ports import Clock, Event, Interceptor

ServerTransport: TypeAlias = Literal["auto", "http", "sse"]


class Server(msgspec.Struct, frozen=True):
    """The server: a command, or an address."""

    command: tuple[str, ...] = ()
    url: str = ""
    transport: ServerTransport = "auto"
    headers: tuple[tuple[str, str], ...] = ()

    def side(self) -> Side:
        """The server as a tape names it."""
        if self.command:
            return Side("stdio", " ".join(self.command))
        from folkmoot.mcp.client.target import HttpTarget

        return Side("http" if self.transport != "sse" else "sse", HttpTarget(self.url).shown)

    @asynccontextmanager
    async def upstream(self, clock: Clock, options: ProxyOptions) -> AsyncIterator[Upstream]:
        """The way to it, while entered."""
        limits = options.limits
        # An HTTP client takes its time to import, which a command need not wait for.
        if self.command:
            from folkmoot.mcp.client.stdio import StdioLink

            yield Upstream(partial(StdioLink, self.command, clock, limits=limits))
            return
        from folkmoot.mcp.client.connect import detect
        from folkmoot.mcp.client.http import HttpLink
        from folkmoot.mcp.client.oldsse import OldSseLink
        from folkmoot.mcp.client.target import HttpTarget

        async with HttpTarget(self.url, headers=Headers(self.headers)) as target:
            kind = self.transport
            if kind == "auto":
                kind = "sse" if await detect(target) == "oldsse" else "http"
            more: dict[str, Any] = {"limits": limits, "extra": options.headers}
            if kind == "sse":
                yield Upstream(partial(OldSseLink, target, clock, **more), told=True)
            else:
                yield Upstream(partial(HttpLink, target, clock, **more), target, told=True)


class DecisionPlace(msgspec.Struct, frozen=True):
    """A room of a hub in which held messages are decided about, and who the proxy is in it."""

    hub: str
    room: str
    token: str

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
    server: Server,
    clock: Clock,
    *,
    client: Side,
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
        failed: asyncio.Future[TapeUnwritable] = asyncio.get_running_loop().create_future()
        recorder = None
        if recording.wanted:
            recorder = recording.begin(clock, client, server.side(), failed)
            stack.enter_context(closing(recorder))
        upstream = await stack.enter_async_context(server.upstream(clock, options))
        steps = Steps(Chain(interceptors, held), recorder, clock)
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
    beside = await stack.enter_async_context(aside())
    # A web server takes its time to import, which a proxy without rules need not wait for.
    from folkmoot.relay.proxy_operator import ProxyOperator

    operator = ProxyOperator(held, clock)
    stack.callback(operator.close)
    beside.run(operator.serve())
    if rules is not None:
        interceptors += rules.interceptors
        beside.run(rules.watch())
    if wanted.room is not None:
        place = wanted.room
        beside.run(DecidingRoom(held, place.hub, room=place.room, token=place.token).run())
    return [*interceptors, *plugins]
