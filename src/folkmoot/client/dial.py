"""The socket under a connection, which must not outlive an attempt that is given up."""

from __future__ import annotations

import asyncio
import os
import socket
from contextlib import suppress

from picows import WSParsedURL


class Dialled:
    """The socket of an attempt: picows leaves it open when the attempt is given up."""

    def __init__(self) -> None:
        self._socket: socket.socket | None = None
        self._inode = -1

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
        """End it: whoever reads from it notices, and closes it."""
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
