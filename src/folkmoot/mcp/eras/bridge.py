"""EraBridge: finds out which eras client and server speak, and bridges them if they differ."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from functools import partial
from typing import Final

from folkmoot.core.entity import Entity
from folkmoot.core.message import (
    MessageId,
    ProtocolMessage,
    Request,
    Response,
)
from folkmoot.core.session import ProtocolVersion
from folkmoot.mcp.eras.handshake_client import HandshakeClient
from folkmoot.mcp.eras.openings import HandshakeOpening, NothingToBridge, StatelessOpening
from folkmoot.mcp.eras.stateless_client import StatelessClient
from folkmoot.mcp.eras.steps import OwnIds, Step, ToClient, ToServer
from folkmoot.mcp.wire import INITIALIZE, speaks_stateless

_TOKEN: Final[Callable[[], str]] = partial(secrets.token_hex, 16)


class EraBridge(Entity, kw_only=True):
    """Between one client and one server; passes everything on until they prove to differ.

    Several clients of the stateless era may share it, under ids that differ. Say `one_client` where
    there is only one: then a server's question needs no proof of whom it belongs to. A server that
    is not `discoverable` answers `server/discover` itself, so that a client of both eras finds the
    one that the server speaks; other requests of the stateless era are bridged all the same. A
    client that is not `listening` from the start is told of changes once `listen` was called, or it
    has subscribed to something. One that is `transparent` from the start leaves both to their eras.
    With `native_tasks`, clients of the stateless era speak of tasks as the handshake era does, as
    the gateway does, so they pass.
    """

    one_client: bool = False
    discoverable: bool = True
    listening: bool = True
    transparent: bool = False
    """Whether both speak one era, so that this need not be asked any more."""
    native_tasks: bool = False
    token: Callable[[], str] = _TOKEN
    _part: HandshakeOpening | StatelessOpening | HandshakeClient | StatelessClient | None = None
    _server_version: str | None = None

    def __post_init__(self) -> None:
        self._ids = OwnIds(self.token()[:12])

    @property
    def server_version(self) -> ProtocolVersion | None:
        """The version that is spoken with the server, once that is known."""
        value = self._server_version
        return ProtocolVersion(value) if type(value) is str else None

    def server_id(self, message_id: MessageId) -> MessageId | None:
        """The id by which a handshake server knows a stateless client's request, if it has it."""
        part = self._part
        return part.server_id(message_id) if isinstance(part, StatelessClient) else None

    def from_client(self, message: ProtocolMessage) -> list[Step]:
        """The steps that follow a message of the client."""
        part = self._part
        if part is None:
            return self._open(message)
        return part.from_client(message) + self._settle()

    def from_server(self, message: ProtocolMessage, about: MessageId | None = None) -> list[Step]:
        """The steps that follow a message of the server; `about` is its request."""
        if self._part is None:
            late = isinstance(message, Response) and self._ids.made(message.id)
            return [] if late else [ToClient(message)]
        if isinstance(self._part, StatelessClient):
            return self._part.from_server(message, about)
        if isinstance(self._part, HandshakeClient):
            return self._part.from_server(message, about)
        return self._part.from_server(message) + self._settle()

    def listen(self) -> list[Step]:
        """The client now listens for unrequested messages, such as changed lists."""
        self.listening = True
        if isinstance(self._part, HandshakeOpening):
            self._part.listening = True
        return self._part.listen() if isinstance(self._part, HandshakeClient) else []

    def renew(self) -> list[Step]:
        """Listen for changes again: another may be told what the client is told now."""
        return self._part.renew() if isinstance(self._part, HandshakeClient) else []

    def presume_handshake(self) -> list[Step]:
        """Take a server that says nothing to a stateless client for one of the handshake era."""
        if not isinstance(self._part, StatelessOpening):
            return []
        return self._part.presume_handshake() + self._settle()

    def expire(self, now: float) -> list[Step]:
        """Give up the calls whose clients were asked something and have taken too long.

        To be said now and then: the time that a client has counts from when it is first said.
        """
        part = self._part
        return part.expire(now) if isinstance(part, HandshakeClient | StatelessClient) else []

    def _open(self, message: ProtocolMessage) -> list[Step]:
        """Recognise the client's era by its first message."""
        if self.transparent or not isinstance(message, Request):
            return [ToServer(message)]
        if message.method == INITIALIZE:
            self._part = HandshakeOpening(self._ids, message, listening=self.listening)
        elif speaks_stateless(message):
            self._part = StatelessOpening(
                self._ids,
                message,
                self.token,
                one_client=self.one_client,
                discoverable=self.discoverable,
                native_tasks=self.native_tasks,
            )
        else:
            return [ToServer(message)]
        return self._part.start()

    def _settle(self) -> list[Step]:
        """Let an opening that has come to its end give way, and hear what waited for it."""
        opening = self._part
        if not isinstance(opening, HandshakeOpening | StatelessOpening) or opening.outcome is None:
            return []
        self._server_version = opening.server_version
        if isinstance(opening.outcome, NothingToBridge):
            self._part = None
            self.transparent = opening.outcome is NothingToBridge.SAME
        else:
            self._part = opening.outcome
        steps: list[Step] = []
        for message in opening.held:
            steps += self.from_client(message)
        return steps
