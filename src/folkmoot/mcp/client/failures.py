"""What goes wrong on the way to an HTTP server, as one sentence and without a secret."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Final

import aiohttp

from folkmoot.core.errors import (
    CarryError,
    FolkmootError,
    ServerAnswerInvalid,
    ServerTimeout,
    ServerUnreachable,
    SessionNotFound,
)


def _certificate(error: Any) -> str:
    cause = error.certificate_error
    return f"its certificate is not trusted ({getattr(cause, 'verify_message', '') or cause})"


def _tls(error: Any) -> str:
    reason = getattr(error.os_error, "reason", None) or error.os_error.strerror or "unknown"
    return f"no TLS could be agreed on ({str(reason).lower().replace('_', ' ')})"


def _connector(error: Any) -> str:
    number = error.os_error.errno
    return os.strerror(number).lower() if number else "it does not answer"


_UNREACHABLE: Final[tuple[tuple[type[BaseException], str | Callable[[Any], str]], ...]] = (
    (aiohttp.ClientConnectorCertificateError, _certificate),
    (aiohttp.ClientSSLError, _tls),
    (aiohttp.ClientConnectorDNSError, "its name is not known"),
    (aiohttp.ClientConnectorError, _connector),
    (aiohttp.ConnectionTimeoutError, "it takes no connection in time"),
    (aiohttp.ServerDisconnectedError, "it broke the connection"),
    (aiohttp.ClientPayloadError, "its answer broke off"),
    (aiohttp.InvalidURL, "its address is not a URL"),
    (ValueError, "a header for it cannot be written"),
)
"""The first that fits says it."""

_BEFORE_SENDING: Final = (
    aiohttp.ClientConnectorError,
    aiohttp.ConnectionTimeoutError,
    aiohttp.InvalidURL,
    ValueError,
)
"""What goes wrong before anything of a request has left."""


def failure_of(where: str, error: BaseException) -> CarryError:
    """An error of the HTTP client as one of ours; `where` is an address that may be shown."""
    if isinstance(error, aiohttp.ServerTimeoutError) and not isinstance(
        error, aiohttp.ConnectionTimeoutError
    ):
        return ServerTimeout(f"The server at {where} did not answer in time.")
    if isinstance(error, aiohttp.ClientResponseError):
        return ServerAnswerInvalid(f"What the server at {where} answers is not HTTP.")
    words = next((words for kind, words in _UNREACHABLE if isinstance(error, kind)), None)
    if words is None:
        words = "the connection broke"
    elif not isinstance(words, str):
        words = words(error)
    failure = ServerUnreachable(f"The server at {where} cannot be reached: {words}.")
    failure.unsent = isinstance(error, _BEFORE_SENDING)
    return failure


_REFUSALS: Final[dict[int, str]] = {
    400: "The server refuses the request as malformed",
    401: "The server demands authorisation",
    403: "The server does not allow this",
    404: "The server has nothing at this address",
    405: "The server does not take messages at this address",
    406: "The server cannot answer in a form that is understood here",
    413: "The message is larger than the server accepts",
    415: "The server does not take JSON",
    429: "The server asks to be asked less often",
}
TRY_AGAIN: Final = frozenset({408, 425, 429})
SERVER_FAILED: Final = 500
NOT_FOUND: Final = 404


def may_recover(status: int) -> bool:
    """Whether asking the same again may bring another answer."""
    return status in TRY_AGAIN or status >= SERVER_FAILED


def refusal_of(status: int, *, in_session: bool = False) -> FolkmootError:
    """The error that the status of an answer stands for where its body says nothing better."""
    if status == NOT_FOUND and in_session:
        return SessionNotFound("The server no longer knows this session.", status=status)
    if status >= SERVER_FAILED:
        return ServerUnreachable(f"The server failed ({status}).", status=status)
    words = _REFUSALS.get(status, "The server does not answer the request")
    return ServerAnswerInvalid(f"{words} ({status}).", status=status)
