"""The operator's way in: a private Unix socket with the operations of a hub or of a proxy."""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import socket
import stat
import struct
from typing import TYPE_CHECKING, Final

from starlette.routing import Router

from folkmoot.core import errors as e
from folkmoot.core.entity import Entity
from folkmoot.datafolder.proxies import socket_address
from folkmoot.operations.dispatch import Dispatcher
from folkmoot.operations.routes import endpoints
from folkmoot.operations.table import OPERATOR
from folkmoot.transports.accept import Listener, TurnedAway
from folkmoot.transports.answers import refused
from folkmoot.transports.connections import OpenConnections
from folkmoot.transports.event_streams import STOPPING
from folkmoot.transports.guard import OPERATOR_KEY
from folkmoot.transports.limits import MAX_OPERATOR_CONNECTIONS, OPERATOR_BACKLOG
from folkmoot.transports.protocol import HubProtocols
from folkmoot.transports.routes import operator_routes

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterable
    from pathlib import Path

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from folkmoot.operations import Operation, Services


def operator_app(services: Services, rows: Iterable[Operation] = OPERATOR) -> ASGIApp:
    """The operations whose services there are; all requests must be the operator's."""
    served = tuple(endpoints(row for row in rows if services.has(row)))
    routes = operator_routes(served, Dispatcher(services))
    return Outermost(Router(routes, redirect_slashes=False, default=not_found))


async def not_found(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer a request that no route takes."""
    error = e.NotFound("There is nothing at this address.")
    await refused(error)(scope, receive, send)


class Outermost(Entity):
    """Answers what fails unforeseen, and what a stop cuts short; in a hub, `Observe` does."""

    app: ASGIApp

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        begun = False

        async def answer(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            await self.app(scope, receive, answer)
        except asyncio.CancelledError:
            # Only a stopping server cancels a request, and nobody waits for the task but it.
            if not begun:
                await refused(e.HubStopping(STOPPING))(scope, receive, answer)
        except Exception:
            mark = secrets.token_hex(8)
            logger.exception("request failed", extra={"id": mark})
            if not begun:
                sentence = "The hub failed to answer. Its log has the details under this id."
                await refused(e.InternalError(sentence, id=mark), whole=True)(
                    scope, receive, answer
                )


logger = logging.getLogger("folkmoot.operator")

SOCKET_MODE: Final = 0o600
PEER_CREDENTIALS: Final = struct.Struct("3i")


class AsOperator(Entity):
    """An application whose requests are all the operator's."""

    app: ASGIApp

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """Pass the request on, and say whose it is."""
        return self.app({**scope, OPERATOR_KEY: True}, receive, send)


class OperatorSocket(Entity):
    """The socket, from `listen`, which raises what keeps it from listening, to `close`.

    A task group owns `serve`; `close` is called in the end as well, since a task that is cancelled
    before it began cleans up nothing.
    """

    path: Path
    _listener: socket.socket | None = None

    def listen(self) -> None:
        """Make the socket, private before anyone can connect to it.

        What a crashed hub left is replaced; the data folder's lock tells that it is no living one.
        """
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            with socket_address(self.path) as address:
                remove_stale(self.path, address)
                listener.bind(address)
            self.path.chmod(SOCKET_MODE)
            listener.listen(OPERATOR_BACKLOG)
            listener.setblocking(False)  # noqa: FBT003
        except OSError as error:
            listener.close()
            raise e.DataFolderUnwritable(
                f"{self.path}: the control socket cannot be created: {error.strerror}."
            ) from error
        except BaseException:
            listener.close()
            raise
        self._listener = listener

    async def serve(self, app: ASGIApp) -> None:
        """Serve an application to the operator until cancelled; then end what is under way."""
        if self._listener is None:
            raise e.ControlError("The control socket does not listen yet.")
        away = TurnedAway()
        open_connections = OpenConnections(MAX_OPERATOR_CONNECTIONS, away)
        protocols = HubProtocols(AsOperator(app), open_connections)
        listener = Listener(
            self._listener,
            protocols,
            most=OPERATOR_BACKLOG,
            address_of=str,
            turned_away=away.count,
            admits=is_allowed,
        )
        try:
            await asyncio.Event().wait()
        finally:
            listener.close()
            away.log()
            await protocols.cancel()
            for transport in protocols.transports():
                transport.close()
            self.close()

    def close(self) -> None:
        """Stop listening and remove the socket; safe to call again."""
        if self._listener is not None:
            self._listener.close()
            self._listener = None
            self.path.unlink(missing_ok=True)


def remove_stale(path: Path, address: str) -> None:
    """Remove the socket a crashed hub left; refuse a living one and whatever is no socket."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        raise e.DataFolderUnwritable(f"{path}: is in the way of the control socket.")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(0)
        if probe.connect_ex(address) == 0:
            raise e.DataFolderInUse(f"{path}: another hub listens there.")
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
