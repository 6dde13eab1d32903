"""picows as a parser: bytes in, frames out, and no connection of its own.

picows offers no parser apart from its connections, and what is used here is not documented, so all
of it is in this file; `tests/test_dependencies.py` tells what another version does otherwise. What
picows believes to be its connection leads nowhere: who is answered, when the connection ends and
how much waits for it is decided by the link.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

from picows import WSAutoPingStrategy, WSListener
from picows import picows as implementation

from folkmoot.core.entity import Entity
from folkmoot.transports.limits import READ_BUFFER_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable

    from picows import WSUpgradeRequest


_HANDSHAKE: Final = (
    b"GET / HTTP/1.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
)
"""The real handshake was made before; this one only brings picows to the frames."""


class _Socket:
    """Takes options and has none."""

    __slots__ = ()

    def setsockopt(self, *_: object) -> None: ...

    def getsockopt(self, *_: object) -> int:
        return 0

    def fileno(self) -> int:
        return -1


class _Nowhere(Entity):
    """A transport that keeps nothing but the close with which picows ends a broken stream."""

    on_write: Callable[[bytes], None]

    def get_extra_info(self, name: str) -> object:
        """Claims to be encrypted, which keeps picows from writing past it to the socket."""
        return _INFO.get(name)

    def write(self, data: bytes) -> None:
        """Pass on what picows would send."""
        self.on_write(bytes(data))

    def get_write_buffer_size(self) -> int:
        return 0

    def close(self) -> None:
        """Nothing to close."""


class _Quiet:
    """Says nothing: whatever picows has to tell of is somebody else's mistake."""

    __slots__ = ()

    def isEnabledFor(self, _: int) -> bool:  # noqa: N802 - the name is that of logging
        return False

    def log(self, *_: object) -> None:
        """Nothing."""

    debug = info = warning = error = log

    def exception(self, text: str, *_: object) -> None:
        """Log an unexpected error with its traceback."""
        logger.error(text, exc_info=True)  # noqa: LOG014 - picows calls this where it caught one


logger = logging.getLogger("folkmoot.websocket")

_INFO: Final[dict[str, object]] = {"socket": _Socket(), "ssl_object": True}
_QUIET: Final = _Quiet()
_NO_PING_SECONDS: Final = 0


class FrameParser:
    """A parser of a client's frames, ready for the first one; the listener is called for each.

    `on_broken` gets the close frame that picows would send when it can read no further.
    """

    __slots__ = ("_protocol",)

    def __init__(
        self, listener: WSListener, on_broken: Callable[[bytes], None], max_frame_bytes: int
    ) -> None:
        opened = False

        def factory(_: WSUpgradeRequest) -> WSListener:
            return listener

        def written(data: bytes) -> None:
            if opened:
                on_broken(data)

        self._protocol: Any = implementation.WSProtocol(  # type: ignore[attr-defined]
            None,  # host and port, which only clients have
            None,  # path, likewise
            False,  # noqa: FBT003 - the side of the server
            factory,
            _QUIET,
            False,  # noqa: FBT003 - the link sees to errors of its own
            None,  # no time limit for a handshake that is at hand
            False,  # noqa: FBT003 - no pings of its own
            _NO_PING_SECONDS,
            _NO_PING_SECONDS,
            WSAutoPingStrategy.PING_WHEN_IDLE,
            False,  # noqa: FBT003 - no pongs either
            max_frame_bytes,
            None,  # no further headers
            READ_BUFFER_BYTES,
        )
        self._protocol.connection_made(_Nowhere(written))
        self.feed(_HANDSHAKE)
        opened = True

    def room(self, pending: int) -> tuple[int, int]:
        """How many bytes to feed next at most, and the size of the buffer, some of it `pending`.

        picows doubles its buffer, and never shrinks it, when more than nine tenths are full: filled
        up to there, it grows for frames that need it, not for clients that are fast.
        """
        free = len(self._protocol.get_buffer(-1))
        size = pending + free
        fit = size * 9 // 10 - pending
        return (fit if fit > size // 4 else free), size

    def feed(self, data: bytes) -> None:
        """Parse bytes that there was room for."""
        count = len(data)
        self._protocol.get_buffer(-1)[:count] = data
        self._protocol.buffer_updated(count)
