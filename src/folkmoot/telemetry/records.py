"""Log records that are made often, and audit lines that wait to learn how their call ended."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import Any, Final

from msgspec import Struct

AUDIT_TRAIL: Final = "folkmoot/audit-trail"
"""Where the `AuditTrail` of a request stands: in its scope, and among an envelope's extensions."""
WITHHELD: Final = "withheld"
"""The outcome of a call whose answer a rule kept back."""

_EMPTY: Final = vars(logging.makeLogRecord({}))


class RequestInfo(Struct, eq=False):
    """The HTTP request that is being answered, and the credential that was shown in it."""

    id: str
    account_id: str | None = None
    credential_id: str = ""


REQUEST: Final[ContextVar[RequestInfo | None]] = ContextVar("folkmoot_request", default=None)
"""The request in which something is done. What outlives the request may still see it, so only what
is done for the account that showed the credential is told to be done with it."""


def request_fields(account_id: str) -> dict[str, str]:
    """What an audit line says of the request that an account made, if it is in one."""
    info = REQUEST.get()
    if info is None or info.account_id != account_id:
        return {}
    return {"request": info.id, "credential_id": info.credential_id}


class PlainRecord(logging.LogRecord):
    """A record that does not tell where in the program, and in which thread, it was made.

    To find that out costs more than the rest, and nobody asks for it.
    """

    def __init__(self, name: str, level: int, message: str, values: Mapping[str, Any]) -> None:
        """As the library makes one, without what it looks up."""
        vars(self).update(_EMPTY)
        self.name = name
        self.levelno = level
        self.levelname = logging.getLevelName(level)
        self.msg = message
        self.created = time.time()
        self.msecs = self.created % 1 * 1000
        self.values = values
        vars(self).update(values)


class AuditTrail:
    """The audit line of one request: kept back until it is known whether its answer passes the
    rules. Where several calls are made for one request, the last one's answer is the request's.
    """

    def __init__(self) -> None:
        self._write: Callable[[str | None], None] | None = None
        self._ended = False

    def add(self, write: Callable[[str | None], None]) -> None:
        """Take a line; `write` is called once, with another outcome where the line is not true."""
        self._release(None)
        self._write = write
        if self._ended:
            self._release(None)

    def withhold(self) -> bool:
        """The answer was kept back; whether there was a line to say so."""
        return self._release(WITHHELD)

    def deliver(self) -> None:
        """The answer passed."""
        self._release(None)

    def end(self) -> None:
        """The request has ended: nothing is waited for any more."""
        self._ended = True
        self._release(None)

    def _release(self, outcome: str | None) -> bool:
        write, self._write = self._write, None
        if write is None:
            return False
        write(outcome)
        return True
