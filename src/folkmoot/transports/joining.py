"""Has the head of an answer leave with the first part of its body: one packet instead of two."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import asyncio

HEAD: Final = "folkmoot.head"
"""The member of a request's scope that is the `Joining` of its answer."""
CONTINUE: Final = b"HTTP/1.1 100 "
LENGTH: Final = b"\r\ncontent-length: "
MOST_JOINED: Final = 65_536
"""A longer part is not copied to be joined with anything."""


class Joining:
    """The connection as uvicorn sees it while it writes one answer.

    ASGI has a server keep a head until the first part of the body comes. A head that announces no
    length is that of a stream, whose first part may be long in coming: it leaves at once.
    """

    __slots__ = ("_begun", "_head", "_transport", "lines")

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._begun = False
        self._head = b""
        self.lines = b""
        """What is put at the end of the head, each line with its end."""

    def write(self, data: bytes) -> None:
        """Take the head, or a part of the body."""
        if self._begun:
            if self._head and len(data) <= MOST_JOINED:
                data, self._head = self._head + data, b""
            self.flush()
            self._transport.write(data)
        elif data.startswith(CONTINUE):
            self._transport.write(data)
        else:
            self._begun = True
            if self.lines:
                data = data[:-2] + self.lines + data[-2:]
            if LENGTH in data:
                self._head = data
            else:
                self._transport.write(data)

    def flush(self) -> None:
        """Let the head leave by itself, if it has not left."""
        if self._head:
            head, self._head = self._head, b""
            self._transport.write(head)

    def is_closing(self) -> bool:
        """Whether nothing can be written any more."""
        return self._transport.is_closing()

    def close(self) -> None:
        """Close the connection behind what was taken."""
        self.flush()
        self._transport.close()
