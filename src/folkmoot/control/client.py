"""The client of the control socket, for the command line: it blocks."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from folkmoot.control.wire import (
    MAX_ANSWER,
    Progress,
    Request,
    decode_answer,
    encode_line,
    raised_error,
    socket_address,
)
from folkmoot.core.errors import CommandFailed, HubNotRunning

CONNECT_TIMEOUT = 5.0


def call(
    control_socket: Path,
    command: str,
    arguments: dict[str, Any] | None = None,
    *,
    on_progress: Progress | None = None,
    timeout: float | None = None,
) -> Any:
    """Have the running hub carry out a command and answer its result, or raise its error.

    `timeout` is how long the hub may say nothing; a command such as `backup` may be quiet for long.
    """
    with connect(control_socket) as connection:
        connection.settimeout(timeout)
        try:
            connection.sendall(encode_line(Request(command, arguments or {})))
            with connection.makefile("rb") as lines:
                return read_result(lines, on_progress)
        except TimeoutError as error:
            raise CommandFailed(f"The hub did not answer for {timeout:g} seconds.") from error
        except OSError as error:
            raise CommandFailed("The hub hung up before it answered.") from error


def connect(control_socket: Path) -> socket.socket:
    """A connection to the hub that listens at a path."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.settimeout(CONNECT_TIMEOUT)
        with socket_address(control_socket) as address:
            connection.connect(address)
    except PermissionError as error:
        connection.close()
        raise HubNotRunning(f"{control_socket}: belongs to another user's hub.") from error
    except OSError as error:
        connection.close()
        raise HubNotRunning(f"No hub is running on {control_socket.parent}.") from error
    return connection


def read_result(lines: BinaryIO, on_progress: Progress | None) -> Any:
    """Read the answer to its end."""
    while (line := lines.readline(MAX_ANSWER + 1)).endswith(b"\n"):
        answer = decode_answer(line)
        if answer.error is not None:
            raise raised_error(answer.error)
        if answer.result is not msgspec.UNSET:
            return answer.result
        if on_progress is not None and answer.progress is not None:
            on_progress(answer.progress)
    raise CommandFailed("The hub hung up before it answered.")
