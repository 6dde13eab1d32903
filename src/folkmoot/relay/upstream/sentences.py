"""Why a server behind the hub did not answer, told to whoever asked."""

from __future__ import annotations

import re
from typing import Final

from folkmoot.core.errors import (
    BackendBusy,
    BackendFailed,
    BackendTimeout,
    BackendUnavailable,
    FolkmootError,
    GatewayError,
    ServerTimeout,
    TooManyInFlight,
)
from folkmoot.relay.upstream.waiting import Late, Unanswered

TOO_MANY_REQUESTS: Final = 429
_OUR_ADDRESS: Final = re.compile(r" at https?://\S+")
_ADDRESS: Final = re.compile(r"https?://[^\s,]+")
IN_DOUBT: Final = "What was asked may or may not have been done."


def named(namespace: str, what: str) -> str:
    """A sentence about a backend."""
    return for_callers(f"The backend {namespace} {what}")


def for_callers(why: str) -> str:
    """A reason without addresses: where a server is, and what is secret in that, is not theirs."""
    return _ADDRESS.sub("another address", _OUR_ADDRESS.sub("", why))


def given_up(namespace: str, error: Exception, *, repeatable: bool) -> GatewayError:
    """What a caller is told; `repeatable` says that it does not matter whether it was done."""
    if isinstance(error, Late):
        return BackendTimeout(
            named(namespace, f"did not answer within {error.seconds:.3g} seconds. {IN_DOUBT}")
        )
    if isinstance(error, Unanswered):
        return _unanswered(namespace, error, repeatable=repeatable)
    if isinstance(error, GatewayError):
        if error.message.startswith(named(namespace, "")):
            return error
        verb = "is not available" if isinstance(error, BackendUnavailable) else "cannot do this"
        return type(error)(named(namespace, f"{verb}: {error.message}"), **error.data)
    message = error.message if isinstance(error, FolkmootError) else "Something went wrong."
    return BackendUnavailable(named(namespace, f"is not available: {message}"))


def _unanswered(namespace: str, error: Unanswered, *, repeatable: bool) -> GatewayError:
    why = error.why
    if isinstance(why, TooManyInFlight) or why.data.get("status") == TOO_MANY_REQUESTS:
        return BackendBusy(named(namespace, f"has too much to do: {why.message}"))
    if isinstance(why, ServerTimeout):
        return BackendTimeout(named(namespace, f"did not answer: {why.message} {IN_DOUBT}"))
    if not error.begun:
        return BackendUnavailable(named(namespace, f"is not available: {why.message}"))
    doubt = "" if repeatable else f" {IN_DOUBT}"
    return BackendFailed(named(namespace, f"did not answer: {why.message}{doubt}"))
