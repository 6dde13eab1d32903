"""What people see of tapes: one of them in a list, and messages and calls of one."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

Shape: TypeAlias = Literal["request", "response", "notification", "too_long"]


class TapeRow(Struct, frozen=True, kw_only=True):
    """One tape."""

    name: str
    place: str
    """Where it is: empty for the hub's own folder, else the short name of a place of proxies."""
    path: str
    bytes: int
    modified_at: float
    started: str
    ended: str | None
    """None while it is being recorded, or if its recorder was killed."""
    recording: bool
    """Whether it is being recorded now."""
    messages: int | None
    """So far, where `ended` is None; None where the whole tape must be read to know."""
    client: str
    server: str
    compressed: bool
    redaction_key: str
    """The id of the key that secrets were replaced with; empty where nothing was left out."""


class TapeMessage(Struct, frozen=True, kw_only=True):
    """One message in a timeline."""

    offset: int
    """Where its line begins."""
    bytes: int
    seq: int | None = None
    time: float | None = None
    """Seconds since the epoch."""
    direction: str = "unknown"
    shape: Shape
    method: str = ""
    name: str = ""
    """The tool, prompt or resource."""
    summary: str = ""
    failed: bool = False
    request: int | None = None
    """Of an answer: the number of its request."""
    seconds: float | None = None
    """Of an answer: how long it took."""
    verdict: str = ""
    by: str = ""
    redacted: int = 0


class TapeCall(Struct, frozen=True):
    """A request."""

    seq: int
    offset: int
    time: float
    from_client: bool
    method: str
    name: str
    asked: str = ""
    """Equal for equal parameters, where calls are to be compared."""


class TapeAnswer(Struct, frozen=True):
    """The answer to a request, which may have been on an earlier page."""

    request: int
    seconds: float
    outcome: str
    said: str = ""
    """Equal for equal answers, where calls are to be compared."""
