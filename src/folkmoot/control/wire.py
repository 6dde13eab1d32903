"""What goes over the control socket, and how the socket is addressed."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from folkmoot.core.errors import ERRORS, CommandFailed, CommandInvalid, ControlError, FolkmootError

MAX_REQUEST = 64 * 1024
MAX_ANSWER = 1024 * 1024
MAX_ADDRESS = 103
"""The longest path every system takes as the address of a socket."""

DESCRIPTORS = Path("/proc/self/fd")

Progress: TypeAlias = Callable[[dict[str, Any]], None]
"""Tells the operator how far a command is; may be called from the loop alone."""

Command: TypeAlias = Callable[[dict[str, Any], Progress], Awaitable[Any]]
"""Carries out one command with its arguments and answers what JSON can say."""


class Request(msgspec.Struct, forbid_unknown_fields=True):
    """What an operator asks."""

    command: str
    arguments: dict[str, Any] = {}


class ErrorBody(msgspec.Struct):
    """What went wrong."""

    code: str
    message: str


class Answer(msgspec.Struct, omit_defaults=True):
    """One line of the answer; exactly one of its members is there."""

    progress: dict[str, Any] | None = None
    result: Any = msgspec.UNSET
    error: ErrorBody | None = None


def encode_line(answer: Request | Answer) -> bytes:
    """One line of JSON."""
    return msgspec.json.encode(answer) + b"\n"


def decode_request(line: bytes) -> Request:
    """The request in a line."""
    try:
        return msgspec.json.decode(line, type=Request)
    except UnicodeDecodeError as error:
        raise CommandInvalid("The request is not UTF-8.") from error
    except (msgspec.DecodeError, RecursionError) as error:
        raise CommandInvalid(f"The request cannot be understood: {error}.") from error


def decode_answer(line: bytes) -> Answer:
    """One line of the answer."""
    try:
        return msgspec.json.decode(line, type=Answer)
    except (msgspec.DecodeError, RecursionError) as error:
        raise CommandFailed("The hub's answer cannot be understood.") from error


def error_body(error: FolkmootError) -> ErrorBody:
    """What is told of an error."""
    return ErrorBody(error.code, error.message)


def raised_error(body: ErrorBody) -> FolkmootError:
    """The error that was told of, as the error it was."""
    return ERRORS.get(body.code, CommandFailed)(body.message)


@contextmanager
def socket_address(path: Path) -> Iterator[str]:
    """An address for the socket at a path, however long: through its folder if need be."""
    if len(os.fsencode(path)) <= MAX_ADDRESS:
        yield str(path)
        return
    if not DESCRIPTORS.is_dir():
        raise ControlError(
            f"{path}: is too long for a socket (at most {MAX_ADDRESS} bytes); "
            "use a data folder with a shorter path."
        )
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield str(DESCRIPTORS / str(folder) / path.name)
    finally:
        os.close(folder)
