"""One WebSocket connection to a hub: its socket, its handshake, its end, and when to try again."""

from __future__ import annotations

import asyncio
import logging
import os
import random
import socket
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from ssl import SSLCertVerificationError, SSLContext, SSLError
from typing import Final, cast

from msgspec import Struct
from picows import (
    WSCloseCode,
    WSError,
    WSFrame,
    WSHandshakeError,
    WSListener,
    WSMsgType,
    WSParsedURL,
    WSTransport,
    ws_connect,
)

from folkmoot.client.limits import CLOSE_SECONDS, IDLE_SECONDS, MAX_MESSAGE, OPEN_SECONDS
from folkmoot.core import errors as e
from folkmoot.core.entity import Entity

ABNORMAL: Final = 1006
TRY_AGAIN: Final = frozenset((408, 425, 429, 500, 502, 503, 504))
"""HTTP answers after which another attempt makes sense."""

# picows tells its log of the headers it sends, which hold the token, so it gets one that is deaf.
_DEAF: Final = logging.Logger("folkmoot.client", logging.CRITICAL + 1)  # noqa: LOG001


class Closed(Struct, frozen=True):
    """How a connection ended."""

    code: int = ABNORMAL
    reason: str = ""
    failure: BaseException | None = None
    """What went wrong here while a message was taken, if that was why."""


class Link(WSListener):
    """A connection. `on_text` gets every whole message, in order, until it is muted."""

    def __init__(self, on_text: Callable[[bytes], None]) -> None:
        self._on_text: Callable[[bytes], None] | None = on_text
        self._transport: WSTransport | None = None
        self._parts: bytearray | None = None
        self._ended = Closed()
        self._paused = False
        self.closed: asyncio.Future[Closed] = asyncio.get_running_loop().create_future()

    def send(self, data: bytes) -> None:
        """Send a message; one that is sent after the end goes nowhere."""
        if self._transport is not None and not self.closed.done():
            self._transport.send(WSMsgType.TEXT, data)

    def pause(self) -> None:
        """Read nothing more for now, and so let the hub wait, for as long as it will."""
        if not self._paused and self._transport is not None and not self.closed.done():
            self._paused = True
            self._transport.underlying_transport.pause_reading()

    def resume(self) -> None:
        """Read on."""
        if self._paused and self._transport is not None and not self.closed.done():
            self._paused = False
            self._transport.underlying_transport.resume_reading()

    def mute(self) -> None:
        """Hear nothing more of it."""
        self._on_text = None

    def drop(self) -> None:
        """End it at once, without a word."""
        self.mute()
        if self._transport is not None:
            self._transport.disconnect(graceful=False)

    async def close(self) -> None:
        """Say goodbye, and end it."""
        self.mute()
        if self._transport is None or self.closed.done():
            return
        self.resume()
        self._transport.send_close(WSCloseCode.OK)
        try:
            async with asyncio.timeout(CLOSE_SECONDS):
                await asyncio.shield(self.closed)
        except TimeoutError:
            pass
        finally:
            self._transport.disconnect(graceful=False)

    def on_ws_connected(self, transport: WSTransport) -> None:
        self._transport = transport

    def on_ws_disconnected(self, transport: WSTransport) -> None:  # noqa: ARG002
        self._parts = None
        if not self.closed.done():
            self.closed.set_result(self._ended)

    def on_ws_frame(self, transport: WSTransport, frame: WSFrame) -> None:
        """Take one frame; what goes wrong with it ends the connection and is told to its owner."""
        try:
            self._receive_frame(transport, frame)
        except Exception as error:  # noqa: BLE001 - told to whoever waits for the end
            self._ended = Closed(failure=error)
            self.drop()

    def _receive_frame(self, transport: WSTransport, frame: WSFrame) -> None:
        kind = frame.msg_type
        if kind == WSMsgType.CLOSE:
            payload = frame.get_payload_as_bytes()
            code = int.from_bytes(payload[:2]) if len(payload) > 1 else ABNORMAL
            if self._ended.failure is None:
                self._ended = Closed(code, payload[2:].decode(errors="replace"))
            transport.send_close(WSCloseCode.OK)
            transport.disconnect()
        elif kind in (WSMsgType.TEXT, WSMsgType.CONTINUATION):
            self._receive_part(frame.get_payload_as_bytes(), whole=frame.fin)
        elif kind == WSMsgType.BINARY:
            raise e.AnswerInvalid("The hub sent bytes where text belongs.")

    def _receive_part(self, payload: bytes, *, whole: bool) -> None:
        if self._on_text is None:
            return
        if self._parts is None and whole:
            self._on_text(payload)
            return
        parts = self._parts = (self._parts or bytearray()) + payload
        if len(parts) > MAX_MESSAGE:
            raise e.AnswerInvalid("The hub sent a message that is larger than any may be.")
        if whole:
            self._parts = None
            self._on_text(bytes(parts))


async def connect(
    url: str, token: str, ssl: SSLContext | None, on_text: Callable[[bytes], None]
) -> Link:
    """Open a connection. After `HubUnreachable` another attempt may fare better."""
    where, dialled = url.partition("?")[0], Dialled()
    try:
        async with asyncio.timeout(OPEN_SECONDS):
            _, opened = await ws_connect(
                partial(Link, on_text),
                url,
                ssl_context=ssl,
                extra_headers={"Authorization": f"Bearer {token}"},
                websocket_handshake_timeout=OPEN_SECONDS,
                logger_name=_DEAF,
                enable_auto_ping=True,
                auto_ping_idle_timeout=IDLE_SECONDS,
                auto_ping_reply_timeout=IDLE_SECONDS,
                max_frame_size=MAX_MESSAGE,
                # Another place has not earned the token.
                max_redirects=0,
                socket_factory=dialled.dial,
                # Its sockets are readers of the loop, and uvloop calls a reader once more, and
                # never again, when a connection is reset: a reset behind a message goes unnoticed.
                use_aiofastnet=False,
            )
    except WSHandshakeError as error:
        dialled.hang_up()
        raise _refused(where, error) from None
    except SSLCertVerificationError as error:
        dialled.hang_up()
        raise e.HubUnreachable(f"{where}: {error.verify_message}.") from None
    except (OSError, SSLError, TimeoutError, WSError) as error:
        dialled.hang_up()
        words = getattr(error, "strerror", None) or "it does not answer"
        raise e.HubUnreachable(f"{where}: no hub can be reached there ({words}).") from None
    except BaseException:
        dialled.hang_up()
        raise
    # picows is content when the other side goes away in the middle of the handshake.
    link = cast("Link | None", opened)
    if link is None:
        dialled.hang_up()
        raise e.HubUnreachable(f"{where}: no hub can be reached there (it hung up).")
    return link


def _refused(where: str, error: WSHandshakeError) -> e.FolkmootError:
    response = getattr(error, "response", None)
    status = int(response.status) if response is not None else 0
    if not status or status in TRY_AGAIN:
        return e.HubUnreachable(f"{where}: the hub takes no connections now.", status=status)
    return e.AnswerInvalid(
        f"{where}: what answers there ({status}) is not the rooms of a hub.", status=status
    )


class Dialled(Entity):
    """The socket of an attempt: picows leaves it open when the attempt is given up."""

    _socket: socket.socket | None = None
    _inode: int = -1

    async def dial(self, place: WSParsedURL) -> socket.socket:
        """Connect to the first address of a host that answers."""
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(place.host, place.port, type=socket.SOCK_STREAM)
        problem = OSError("it has no address")
        for family, kind, protocol, _, address in found:
            attempt = socket.socket(family, kind, protocol)
            attempt.settimeout(0)
            try:
                await loop.sock_connect(attempt, address)
            except OSError as error:
                attempt.close()
                problem = error
            except BaseException:
                attempt.close()
                raise
            else:
                self._socket = attempt
                self._inode = os.fstat(attempt.fileno()).st_ino
                return attempt
        raise problem

    def hang_up(self) -> None:
        """End the connection; its reader notices and closes it."""
        if self._socket is None:
            return
        if self._is_open():
            with suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)
            # As long as the loop has it, that is left to the loop.
            self._socket.close()
        else:
            # Where a connection is reset as it is made, uvloop closes the descriptor and leaves
            # the socket. That would close it again, and with it what has the number by then.
            self._socket.detach()

    def _is_open(self) -> bool:
        try:
            return self._socket is not None and (
                os.fstat(self._socket.fileno()).st_ino == self._inode
            )
        except OSError:
            return False


class Backoff(Struct, frozen=True):
    """Each attempt waits twice as long as the one before, up to a bound, less a random part.

    The random part keeps a thousand clients of a restarted hub from coming back all at once.
    """

    first: float = 0.25
    """Seconds before the first attempt, at most."""
    most: float = 30.0
    """Seconds before any attempt, at most."""
    steady: float = 5.0
    """A connection that held this long counts as a good one: the next wait is short again."""

    def delay(self, attempt: int) -> float:
        """Seconds to wait before an attempt; the first is number 0."""
        longest = min(self.most, self.first * 2.0 ** min(attempt, 64))
        return longest * random.uniform(0.5, 1.0)  # noqa: S311 - spreads load, keeps no secret
