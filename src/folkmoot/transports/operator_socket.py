"""The operator's way in: the application of a hub or a proxy, on a private Unix socket.

Whoever can open the socket is the operator. The listener says so in the scope of each request, and
nothing that a request brings can: the application asks `guard.is_operator`.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import stat
import struct
from functools import partial
from typing import TYPE_CHECKING, Final

import uvicorn
from uvicorn.server import ServerState

from folkmoot.core.errors import ControlError, DataFolderInUse, DataFolderUnwritable
from folkmoot.datafolder.sockets import socket_address
from folkmoot.transports.accept import Listener
from folkmoot.transports.away import TurnedAway
from folkmoot.transports.connections import Connections
from folkmoot.transports.guard import OPERATOR
from folkmoot.transports.protocol import HubProtocol
from folkmoot.transports.server import CANCEL_SECONDS

if TYPE_CHECKING:
    from collections.abc import Awaitable
    from pathlib import Path

    from starlette.types import ASGIApp, Receive, Scope, Send

logger = logging.getLogger("folkmoot.operator")

SOCKET_MODE: Final = 0o600
BACKLOG: Final = 16
MOST_CONNECTIONS: Final = 32
PEER_CREDENTIALS: Final = struct.Struct("3i")


class AsOperator:
    """An application whose requests are all the operator's."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """Pass the request on, and say whose it is."""
        return self._app({**scope, OPERATOR: True}, receive, send)


class OperatorSocket:
    """The socket, from `listen`, which raises what keeps it from listening, to `close`.

    A task group owns `serve`; `close` is called in the end as well, since a task that is cancelled
    before it began cleans up nothing.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._listener: socket.socket | None = None

    def listen(self) -> None:
        """Make the socket, private before anyone can connect to it.

        What a crashed hub left is replaced; the data folder's lock tells that it is no living one.
        """
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            with socket_address(self._path) as address:
                remove_stale(self._path, address)
                listener.bind(address)
            self._path.chmod(SOCKET_MODE)
            listener.listen(BACKLOG)
            listener.setblocking(False)  # noqa: FBT003
        except OSError as error:
            listener.close()
            raise DataFolderUnwritable(
                f"{self._path}: the control socket cannot be created: {error.strerror}."
            ) from error
        except BaseException:
            listener.close()
            raise
        self._listener = listener

    async def serve(self, app: ASGIApp) -> None:
        """Serve an application to the operator until cancelled; then end what is under way."""
        if self._listener is None:
            raise ControlError("The control socket does not listen yet.")
        config = uvicorn.Config(
            AsOperator(app),
            ws="none",
            lifespan="off",
            interface="asgi3",
            log_config=None,
            access_log=False,
            server_header=False,
            date_header=False,
            proxy_headers=False,
        )
        config.load()
        state, away = ServerState(), TurnedAway()
        house = Connections(MOST_CONNECTIONS, away)
        listener = Listener(
            self._listener,
            partial(HubProtocol, config, state, {}, house=house),
            most=BACKLOG,
            address_of=str,
            turned_away=away.count,
            admits=is_allowed,
        )
        try:
            await asyncio.Event().wait()
        finally:
            listener.close()
            away.tell()
            for task in (left := list(state.tasks)):
                task.cancel()
            if left:
                await asyncio.wait(left, timeout=CANCEL_SECONDS)
            for connection in list(state.connections):
                connection.transport.close()
            self.close()

    def close(self) -> None:
        """Stop listening and remove the socket; safe to call again."""
        if self._listener is not None:
            self._listener.close()
            self._listener = None
            self._path.unlink(missing_ok=True)


def remove_stale(path: Path, address: str) -> None:
    """Remove the socket a crashed hub left; refuse a living one and whatever is no socket."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        raise DataFolderUnwritable(f"{path}: is in the way of the control socket.")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(0)
        if probe.connect_ex(address) == 0:
            raise DataFolderInUse(f"{path}: another hub listens there.")
    path.unlink()


def is_allowed(connection: socket.socket) -> bool:
    """Whether the peer is our own user or root; where the system cannot tell, the mode must do."""
    option = getattr(socket, "SO_PEERCRED", None)
    if option is None:
        return True
    data = connection.getsockopt(socket.SOL_SOCKET, option, PEER_CREDENTIALS.size)
    _, uid, _ = PEER_CREDENTIALS.unpack(data)
    if uid in {0, os.geteuid()}:
        return True
    logger.warning("Another user tried to use the control socket.")
    return False
