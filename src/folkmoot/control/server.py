"""The server of the control socket, which runs in the hub's loop."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import socket
import stat
import struct
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from folkmoot.control.wire import (
    MAX_ANSWER,
    MAX_REQUEST,
    Answer,
    Command,
    ErrorBody,
    decode_request,
    encode_line,
    error_body,
    socket_address,
)
from folkmoot.core.errors import (
    CommandFailed,
    CommandInvalid,
    ControlError,
    DataFolderInUse,
    DataFolderUnwritable,
    FolkmootError,
    UnknownCommand,
)

LOG = logging.getLogger(__name__)

SOCKET_MODE = 0o600
BACKLOG = 16
REFUSAL_SECONDS = 1.0
PEER_CREDENTIALS = struct.Struct("3i")
EXHAUSTED = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
EXHAUSTED_SECONDS = 0.5

HUNG_UP = (OSError, RuntimeError)
"""What writing to someone who is gone raises; a transport that is closed raises the latter."""


class ControlServer:
    """Listens at a path and carries out the commands of a table.

    Call `listen` first, which raises what keeps it from listening; a task group owns `serve`; and
    `close` in the end, since a task that is cancelled before it began cleans up nothing.
    """

    def __init__(
        self,
        path: Path,
        commands: Mapping[str, Command],
        *,
        max_connections: int = 8,
        idle_timeout: float = 10.0,
    ) -> None:
        self._path = path
        self._commands = commands
        self._max_connections = max_connections
        self._idle_timeout = idle_timeout
        self._listener: socket.socket | None = None
        self._connections = 0

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
            listener.settimeout(0)
        except OSError as error:
            listener.close()
            raise DataFolderUnwritable(
                f"{self._path}: the control socket cannot be created: {error.strerror}."
            ) from error
        except BaseException:
            listener.close()
            raise
        self._listener = listener

    async def serve(self) -> None:
        """Take connections until cancelled; then stop what is under way and remove the socket."""
        if self._listener is None:
            raise ControlError("The control socket does not listen yet.")
        try:
            async with asyncio.TaskGroup() as connections:
                while True:
                    connection = await accept(self._listener)
                    if self._connections >= 2 * self._max_connections:
                        connection.close()
                    elif is_allowed(connection):
                        connections.create_task(self._serve_connection(connection))
                    else:
                        LOG.warning("Another user tried to use the control socket.")
                        connection.close()
        finally:
            self.close()

    def close(self) -> None:
        """Stop listening and remove the socket; safe to call again."""
        if self._listener is not None:
            self._listener.close()
            self._listener = None
            self._path.unlink(missing_ok=True)

    async def _serve_connection(self, connection: socket.socket) -> None:
        self._connections += 1
        try:
            reader, writer = await asyncio.open_unix_connection(sock=connection, limit=MAX_REQUEST)
            try:
                await self._serve_request(reader, writer)
            finally:
                writer.close()
        except OSError:
            connection.close()  # The operator hung up.
        except Exception:
            # The hub shares our task group: nothing an operator does may end it.
            LOG.exception("A control connection failed.")
            connection.close()
        finally:
            self._connections -= 1

    async def _serve_request(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        try:
            line = await self._read_line(reader)
        except FolkmootError as error:
            await refuse(reader, writer, error)
            return
        if not line:
            return
        async with asyncio.TaskGroup() as tasks:
            work = tasks.create_task(self._answer(line, writer))
            hangup = tasks.create_task(wait_for_hangup(reader))
            await asyncio.wait({work, hangup}, return_when=asyncio.FIRST_COMPLETED)
            work.cancel()
            hangup.cancel()

    async def _read_line(self, reader: asyncio.StreamReader) -> bytes:
        if self._connections > self._max_connections:
            raise CommandFailed("The hub is busy with other commands.")
        try:
            async with asyncio.timeout(self._idle_timeout):
                return await reader.readline()
        except TimeoutError as error:
            raise CommandInvalid("No request came in time.") from error
        except ValueError as error:
            raise CommandInvalid(f"A request has at most {MAX_REQUEST:,} bytes.") from error

    def _find(self, name: str) -> Command:
        command = self._commands.get(name)
        if command is None:
            known = ", ".join(sorted(self._commands))
            raise UnknownCommand(f"The hub has no such command; it has {known}.")
        return command

    async def _answer(self, line: bytes, writer: asyncio.StreamWriter) -> None:
        def tell(progress: dict[str, Any]) -> None:
            # Progress that the operator is too slow to read is of no use to them any more.
            transport = writer.transport
            if not transport.is_closing() and transport.get_write_buffer_size() < MAX_REQUEST:
                writer.write(encode_line(Answer(progress=progress)))

        try:
            request = decode_request(line)
            command = self._find(request.command)
            answer = Answer(result=await command(request.arguments, tell))
        except FolkmootError as error:
            answer = Answer(error=error_body(error))
        except Exception:
            LOG.exception("A control command failed.")
            answer = Answer(error=ErrorBody(CommandFailed.code, "The hub failed; see its log."))
        await send(writer, answer)


async def accept(listener: socket.socket) -> socket.socket:
    """The next connection. A system that has nothing left to make it from may have it later."""
    loop = asyncio.get_running_loop()
    while True:
        try:
            connection, _ = await loop.sock_accept(listener)
        except OSError as error:
            if error.errno not in EXHAUSTED:
                raise
            LOG.warning("The control socket takes no connections: %s.", error.strerror)
            await asyncio.sleep(EXHAUSTED_SECONDS)
        else:
            return connection


async def wait_for_hangup(reader: asyncio.StreamReader) -> None:
    """Return when the operator is gone, or says more than a request."""
    with suppress(OSError):
        await reader.read(1)


async def refuse(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, error: FolkmootError
) -> None:
    """Answer a request that was not read, and read it after all: else the answer would be lost."""
    await send(writer, Answer(error=error_body(error)))
    with suppress(*HUNG_UP, TimeoutError):
        writer.write_eof()
        async with asyncio.timeout(REFUSAL_SECONDS):
            while await reader.read(MAX_REQUEST):
                pass


async def send(writer: asyncio.StreamWriter, answer: Answer) -> None:
    """Send one line and see it on its way."""
    try:
        line = encode_line(answer)
    except (TypeError, ValueError, msgspec.MsgspecError):
        LOG.exception("A control command answered what JSON cannot say.")
        line = encode_line(
            Answer(error=ErrorBody(CommandFailed.code, "The hub failed; see its log."))
        )
    if len(line) > MAX_ANSWER:
        line = encode_line(Answer(error=ErrorBody(CommandFailed.code, "The answer is too long.")))
    with suppress(*HUNG_UP):
        writer.write(line)
        await writer.drain()


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
    return uid in {0, os.geteuid()}
