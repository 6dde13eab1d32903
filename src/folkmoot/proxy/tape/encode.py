"""Encodes messages as lines; bytes without secrets are copied as they are."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec

from folkmoot.core.message import encode_message
from folkmoot.core.timing import TimingContext
from folkmoot.core.transport import Headers
from folkmoot.core.verdict import Block
from folkmoot.proxy.redaction.placeholders import RedactedPlace
from folkmoot.proxy.tape.lines import HttpPart, SessionPart, SsePart, TransportPart
from folkmoot.proxy.tape.model import session_part, transport_part

if TYPE_CHECKING:
    from collections.abc import Callable

    from folkmoot.core.envelope import MessageContext
    from folkmoot.core.message import ProtocolMessage, Request
    from folkmoot.core.transport import TransportContext
    from folkmoot.core.verdict import Verdict
    from folkmoot.proxy.ports import Carried
    from folkmoot.proxy.redaction import TapeRedactor
    from folkmoot.proxy.redaction.text import Secrets

P = TypeVar("P", bound=msgspec.Struct)
Places = tuple[RedactedPlace, ...]


def masked_session(part: SessionPart, redactor: TapeRedactor) -> tuple[SessionPart, Places]:
    """A session whose id opens nothing."""
    return _masked(part, "session", {"id": redactor.session_id, "correlation": redactor.text})


def masked_transport(part: TransportPart, redactor: TapeRedactor) -> tuple[TransportPart, Places]:
    """A transport without the headers, addresses and ids that would open something."""
    if isinstance(part, HttpPart):
        headers = redactor.headers(Headers(part.headers)).pairs
        places = tuple(
            RedactedPlace(f"$.headers.{name}", "header", "transport")
            for (name, before), (_, after) in zip(part.headers, headers, strict=True)
            if before != after
        )
        part = msgspec.structs.replace(part, headers=headers)
        part, in_uri = _masked(part, "transport", {"uri": redactor.uri})
        return part, places + in_uri
    if isinstance(part, SsePart):
        names = ("stream_id", "event_id", "event_type", "last_event_id")
        return _masked(part, "transport", dict.fromkeys(names, redactor.text))
    return part, ()


def within(part: str, places: Places) -> Places:
    """The same places, told of another part of the line."""
    return tuple(msgspec.structs.replace(place, part=part) for place in places)


def _masked(part: P, of: str, how: dict[str, Callable[[str], str]]) -> tuple[P, Places]:
    changes: dict[str, Any] = {}
    for name, mask in how.items():
        value = getattr(part, name)
        if value is not None and (masked := mask(value)) != value:
            changes[name] = masked
    if not changes:
        return part, ()
    places = tuple(RedactedPlace(f"$.{name}", "context", of) for name in changes)
    return msgspec.structs.replace(part, **changes), places


MOST_HEADS: Final = 2048
"""For how many pairs of session and transport the encoded form is kept; then it begins anew."""
LONGEST_HEAD: Final = 4096
"""A longer form is made anew each time: clients could fill the memory with theirs."""

_NUMBERED: Final = re.compile(r"(?:[0-9]+/)?(?:client|server):[0-9]+").fullmatch
CORRELATION: Final = (RedactedPlace("$.correlation", "context", "session"),)

OPENING, CLOSING, LF, CR = b"{}\n\r"


class _Timing(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """The timing without the moments that have not come."""

    created_at: float
    system_time: float
    processing_started: float | None = None
    processing_completed: float | None = None
    sent_at: float | None = None


class _LineHead(msgspec.Struct, frozen=True, gc=False):
    """The part of a line that is the same for all messages of a connection."""

    session: bytes
    """Everything up to what ties a request and its answer, the last member of the session."""
    tie: bytes
    """The name of that member, and what must stand before it."""
    rest: bytes
    ending: bytes
    """How a line ends that nothing else was left out of."""
    places: tuple[RedactedPlace, ...]
    secrets: Secrets
    """What is to be found in messages as well, however long ago it was first seen."""


def _unencodable(value: Any) -> str:
    """What stands for an extension that is no JSON; its repr might tell a secret."""
    return f"<{type(value).__name__}>"


_encode = msgspec.json.Encoder(enc_hook=_unencodable).encode


class LineEncoder:
    """Makes lines of messages."""

    def __init__(self, redactor: TapeRedactor | None) -> None:
        self._redactor = redactor
        self._heads: dict[tuple[str | None, str, int, int, TransportContext], _LineHead] = {}

    def encode(
        self, seq: int, carried: Carried, asked: Request | None
    ) -> tuple[bytes, bytes | None]:
        """The line of a message, and the message itself if something had to be left out of it.

        `asked` is the request it answers.
        """
        context = carried.envelope.context
        head = self._head(context)
        tie, tied = self._tie(head, context.session.correlation_id)
        raw, found = self._message(carried.envelope.message, asked)
        parts = [
            b'{"type":"message","seq":%d' % seq,
            head.session,
            tie,
            head.rest,
            _timing(context.timing),
            _member(b"message", raw),
        ]
        places = tied + found
        if carried.at_server is not None or carried.verdict is not None or context.extensions:
            places += self._others(parts, carried, asked)
        parts.append(_ending(head.places + places) if places else head.ending)
        return b"".join(parts), raw if found else None

    def _others(
        self, parts: list[bytes], carried: Carried, asked: Request | None
    ) -> tuple[RedactedPlace, ...]:
        """The members that few messages have."""
        places: tuple[RedactedPlace, ...] = ()
        if carried.at_server is not None:
            raw, found = self._message(carried.at_server, asked)
            parts.append(_member(b"at_server", raw))
            places += within("at_server", found)
        if carried.envelope.context.extensions:
            value = carried.envelope.context.extensions
            extensions, found = self._value("extensions", value)
            parts.append(b',"extensions":' + _encode(extensions))
            places += found
        if carried.verdict is not None:
            verdict, found = self._verdict(carried.verdict, carried.by)
            parts.append(verdict)
            places += found
        return places

    def _message(
        self, message: ProtocolMessage, asked: Request | None
    ) -> tuple[bytes, tuple[RedactedPlace, ...]]:
        if self._redactor is not None:
            redacted, places = self._redactor.message(message, answering=asked)
            if redacted is not None:
                return redacted, places
        return encode_message(message), ()

    def _value(self, part: str, value: Any) -> tuple[Any, tuple[RedactedPlace, ...]]:
        if self._redactor is None:
            return value, ()
        # What is redacted is what would be written, whatever it was made from.
        plain = msgspec.json.decode(_encode(value))
        redacted, places = self._redactor.value(plain)
        return redacted, within(part, places)

    def _verdict(self, verdict: Verdict, by: str) -> tuple[bytes, tuple[RedactedPlace, ...]]:
        told: dict[str, Any] = {"verdict": type(verdict).__name__.lower(), "by": by}
        places: tuple[RedactedPlace, ...] = ()
        if isinstance(verdict, Block):
            told["error"], places = self._value("error", verdict.error.as_jsonrpc())
        return b"," + _encode(told)[1:-1], places

    def _head(self, context: MessageContext) -> _LineHead:
        """The encoded session, transport and direction, made once for each that are the same."""
        session = context.session
        key = (
            None if session.session_id is None else session.session_id.value,
            session.protocol_version.value,
            id(session.state),
            id(context.direction),
            context.transport,
        )
        head = self._heads.get(key)
        if head is None:
            head = self._made(context)
            if len(head.rest) <= LONGEST_HEAD:
                if len(self._heads) >= MOST_HEADS:
                    self._heads.clear()
                self._heads[key] = head
        elif self._redactor is not None and head.secrets:
            self._redactor.recall(head.secrets)
        return head

    def _made(self, context: MessageContext) -> _LineHead:
        session = msgspec.structs.replace(session_part(context.session), correlation=None)
        transport = transport_part(context.transport)
        places: tuple[RedactedPlace, ...] = ()
        secrets: Secrets = ()
        if self._redactor is not None:
            with self._redactor.noticing() as noticed:
                session, in_session = masked_session(session, self._redactor)
                transport, in_transport = masked_transport(transport, self._redactor)
            places, secrets = in_session + in_transport, tuple(noticed)
        direction, said = _encode(context.direction), _encode(session)[:-1]
        return _LineHead(
            b',"direction":%b,"session":%b' % (direction, said),
            b'"correlation":' if said == b"{" else b',"correlation":',
            b'},"transport":%b' % _encode(transport),
            _ending(places),
            places,
            secrets,
        )

    def _tie(
        self, head: _LineHead, correlation: str | None
    ) -> tuple[bytes, tuple[RedactedPlace, ...]]:
        """The members that tie a request and its answer."""
        if correlation is None:
            return b"", ()
        places: tuple[RedactedPlace, ...] = ()
        if self._redactor is not None and not _is_number(correlation, self._redactor.known):
            masked = self._redactor.text(correlation)
            if masked != correlation:
                correlation, places = masked, CORRELATION
        return head.tie + _encode(correlation), places


def _is_number(correlation: str, known: tuple[str, ...]) -> bool:
    """Whether a tie is made of a side and numbers, none of which is a secret that was met."""
    if _NUMBERED(correlation) is None:
        return False
    return not any(map(correlation.__contains__, known))


def _ending(places: tuple[RedactedPlace, ...]) -> bytes:
    return b',"redacted":%b}\n' % _encode(places) if places else b"}\n"


def _timing(timing: TimingContext) -> bytes:
    moments = (timing.processing_started, timing.processing_completed, timing.sent_at)
    if None not in moments:
        return b',"timing":' + _encode(timing)
    return b',"timing":' + _encode(
        _Timing(
            timing.created_at,
            timing.system_time,
            timing.processing_started,
            timing.processing_completed,
            timing.sent_at,
        )
    )


def _member(name: bytes, raw: bytes) -> bytes:
    """A message as a member of a line, or as text where its bytes cannot stand there.

    Outside of strings line ends are mere white space, and inside of them JSON has none.
    """
    if raw[0] == OPENING and raw[-1] == CLOSING and LF not in raw and CR not in raw:
        return b',"%b":%b' % (name, raw)
    flat = raw.strip().replace(b"\n", b" ").replace(b"\r", b" ")
    text_name = b"text" if name == b"message" else name + b"_text"
    return b',"%b":%b,"%b":%b' % (name, flat, text_name, _encode(raw.decode()))
