"""The floor of rooms: a broadcaster on the hub's WebSockets that looks at nothing it is sent.

`python -m benchmarks.rooms_floor` serves it and prints its port.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import uvloop

from benchmarks.mail_servers import Running, started
from folkmoot.transports.answers import Answers
from folkmoot.transports.guard import Hosts
from folkmoot.transports.limits import OPEN_FACTOR
from folkmoot.transports.listen import listen, make_room
from folkmoot.transports.server import HttpServer
from folkmoot.transports.websocket import (
    Audience,
    Handler,
    Refusal,
    UpgradeRequest,
    WebSocketConnection,
    WebSocketEndpoint,
    text_frames,
)
from folkmoot.web.pages import Pages

MOST_CONNECTIONS = 12_000


class Broadcaster:
    """Sends everyone whatever anyone says."""

    def __init__(self) -> None:
        self._audience = Audience()

    async def accept(self, _: UpgradeRequest) -> Callable[[WebSocketConnection], Handler] | Refusal:
        """Let everyone in."""
        return self._enter

    def _enter(self, link: WebSocketConnection) -> Handler:
        self._audience.add(link)
        return self

    def on_text(self, *messages: bytes) -> None:
        """Pass them on."""
        self._audience.send(*text_frames(messages))

    def on_close(self, code: int, reason: str) -> None:
        """Nothing to do: a closed link leaves by itself."""


async def serve() -> None:
    """Serve the floor for as long as the process runs."""
    make_room(MOST_CONNECTIONS // OPEN_FACTOR)
    answers = Answers(Pages(version="0", public_url="").error_page)
    app = WebSocketEndpoint(Broadcaster(), hosts=Hosts("127.0.0.1"), answers=answers)
    sockets = listen("127.0.0.1", 0)
    server = HttpServer(app, sockets, max_connections=MOST_CONNECTIONS, shutdown_seconds=1)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(server.serve())
        await server.listening()
        print(f"port {sockets[0].getsockname()[1]}", flush=True)


@contextmanager
def floor(core: int | None) -> Iterator[Running]:
    """The floor in a process of its own."""
    with started([sys.executable, "-m", "benchmarks.rooms_floor"], {}, core) as running:
        yield running


if __name__ == "__main__":
    uvloop.run(serve())
