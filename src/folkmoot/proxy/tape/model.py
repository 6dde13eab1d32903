"""A tape in memory: the messages in their order, and which answers belong to which requests."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec

from folkmoot.core.envelope import MessageContext, MessageEnvelope
from folkmoot.core.errors import MessageError
from folkmoot.core.message import ProtocolMessage, decode_message
from folkmoot.core.strict import Limits
from folkmoot.proxy.redaction.places import RedactedPlace
from folkmoot.proxy.tape.contexts import session_from, transport_from
from folkmoot.proxy.tape.lines import (
    CorrelationLine,
    EndLine,
    Header,
    MessageLine,
)

TAPE_LIMITS = Limits(message_bytes=256 * 1024 * 1024, nesting=512)
"""What one message of a tape may ask: more than any proxy lets pass."""


class Entry(msgspec.Struct, frozen=True):
    """One message of a tape, as its client sent or got it."""

    seq: int
    envelope: MessageEnvelope[ProtocolMessage]
    at_server: ProtocolMessage | None = None
    """As the server got or sent it, where an interceptor made it another."""
    verdict: str | None = None
    by: str = ""
    error: dict[str, Any] | None = None
    redacted: tuple[RedactedPlace, ...] = ()

    @property
    def message(self) -> ProtocolMessage:
        """What was said."""
        return self.envelope.message

    @property
    def context(self) -> MessageContext:
        """What is known about it."""
        return self.envelope.context


class Tape(msgspec.Struct, dict=True):
    """A recorded conversation."""

    header: Header
    entries: list[Entry]
    correlations: list[CorrelationLine]
    end: EndLine | None = None
    """Missing while the tape is written, and where its writer was killed."""
    cut: bool = False
    """Whether the last line is incomplete, and was left out."""
    path: Path | None = None

    @cached_property
    def _by_seq(self) -> dict[int, Entry]:
        return {entry.seq: entry for entry in self.entries}

    @cached_property
    def _by_request(self) -> dict[int, CorrelationLine]:
        return {line.request: line for line in self.correlations}

    @cached_property
    def _by_response(self) -> dict[int, CorrelationLine]:
        return {line.response: line for line in self.correlations}

    def entry(self, seq: int) -> Entry | None:
        """The message of a number, if the tape has it."""
        return self._by_seq.get(seq)

    def correlation_of(self, entry: Entry) -> CorrelationLine | None:
        """What ties a request to its answer, asked for either of them."""
        return self._by_request.get(entry.seq) or self._by_response.get(entry.seq)

    def request_of(self, entry: Entry) -> Entry | None:
        """The request that a message answers."""
        line = self._by_response.get(entry.seq)
        return None if line is None else self._by_seq.get(line.request)

    def answer_to(self, entry: Entry) -> Entry | None:
        """The answer that a request got."""
        line = self._by_request.get(entry.seq)
        return None if line is None else self._by_seq.get(line.response)


def entry_of(line: MessageLine) -> Entry:
    """The message of a line. Raises `MessageError` if it holds none."""
    message = _message(line.message, line.text)
    context = MessageContext(
        line.timing,
        line.direction,
        session_from(line.session),
        transport_from(line.transport),
        line.extensions,
    )
    at_server = None
    if line.at_server is not msgspec.UNSET:
        at_server = _message(line.at_server, line.at_server_text)
    envelope = MessageEnvelope(message, context)
    return Entry(line.seq, envelope, at_server, line.verdict, line.by, line.error, line.redacted)


def _message(raw: msgspec.Raw, text: str | None) -> ProtocolMessage:
    message = decode_message(bytes(raw), TAPE_LIMITS)
    if text is None:
        return message
    came = decode_message(text.encode(), TAPE_LIMITS)
    if came != message:
        raise MessageError("The message and its text say different things.")
    return came
