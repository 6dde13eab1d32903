"""Verdict: what an interceptor decides about a message."""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import msgspec

from folkmoot.core import errors as e
from folkmoot.core.message import ErrorObject


class Continue(msgspec.Struct, frozen=True, gc=False):
    """Let the message go on as it is."""


class Modify(msgspec.Struct, frozen=True, gc=False):
    """Let this message go on in its place; the context stays."""

    message: Any


class Block(msgspec.Struct, frozen=True):
    """Stop the message; whoever waits for an answer to it gets this error."""

    error: e.FolkmootError


class Mock(msgspec.Struct, frozen=True, gc=False):
    """Answer the request here; it is not passed on."""

    result: Any = msgspec.UNSET
    error: ErrorObject | msgspec.UnsetType = msgspec.UNSET


class Delay(msgspec.Struct, frozen=True, gc=False):
    """Let the message go on, later."""

    seconds: float


class Hold(msgspec.Struct, frozen=True, gc=False):
    """Keep the message until someone decides, or for so many seconds; then it is dropped."""

    reason: str = ""
    seconds: float | None = None
    method: str = ""
    tool: str = ""
    """What a response answers, as far as whoever holds it knows."""


Verdict: TypeAlias = Continue | Modify | Block | Mock | Delay | Hold

CONTINUE: Final = Continue()
