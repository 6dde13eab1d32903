"""Encodes messages as lines; bytes without secrets are copied as they are."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec

from folkmoot.core.envelope import MessageDirection
from folkmoot.core.message import encode_message
from folkmoot.core.transport import Headers
from folkmoot.core.verdict import Block
from folkmoot.proxy.redaction.placeholders import RedactedPlace
from folkmoot.proxy.tape.lines import HttpPart, SessionPart, SsePart, TransportPart
from folkmoot.proxy.tape.model import session_part, transport_part

if TYPE_CHECKING:
    from collections.abc import Callable

    from folkmoot.core.message import ProtocolMessage, Request
    from folkmoot.core.ports import Carried
    from folkmoot.core.session import SessionContext
    from folkmoot.core.transport import TransportContext
    from folkmoot.core.verdict import Verdict
    from folkmoot.proxy.redaction import TapeRedactor
    from folkmoot.proxy.redaction.text import Secrets

P = TypeVar("P", bound=msgspec.Struct)
Places = tuple[RedactedPlace, ...]
NOWHERE: Final[Places] = ()


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


MOST_PARTS: Final = 2048
"""Of how many sessions, and of how many transports, the encoded form is kept; then it begins anew.
"""
LONGEST_PART: Final = 4096
"""A longer form is made anew each time: clients could fill the memory with theirs."""

_NUMBERED: Final = re.compile(r"(?:[0-9]+/)?(?:client|server):[0-9]+").fullmatch
CORRELATION: Final = (RedactedPlace("$.correlation", "context", "session"),)

OPENING, CLOSING, LF, CR = b"{}\n\r"


class _EncodedPart(msgspec.Struct, frozen=True, gc=False):
    """A session or a transport as it stands on the line of every message of it."""

    said: bytes
    places: bytes
    """Where something was left out, as members of an array."""
    secrets: Secrets
    """What is to be found in messages as well, however long ago it was first seen."""


class _LineHead(msgspec.Struct, gc=False):
    """What the lines of a session over a transport have in common."""

    session: bytes
    tie: bytes
    """What stands before that which ties a request and its answer."""
    transport: bytes
    places: bytes
    secrets: Secrets
    held: tuple[object, ...]
    """What is known by its identity, and so must not be forgotten before the head is."""


def _unencodable(value: Any) -> str:
    """What stands for an extension that is no JSON; its repr might tell a secret."""
    return f"<{type(value).__name__}>"


_encode = msgspec.json.Encoder(enc_hook=_unencodable).encode
_DIRECTIONS: Final = {
    direction: b',"direction":%b' % _encode(direction) for direction in MessageDirection
}


class LineEncoder:
    """Makes lines of messages."""

    def __init__(self, redactor: TapeRedactor | None) -> None:
        self._redactor = redactor
        self._texts: Any = None if redactor is None else redactor.texts
        self._sessions: dict[tuple[str | None, str, int], _EncodedPart] = {}
        self._transports: dict[TransportContext, _EncodedPart] = {}
        self._heads: dict[tuple[int, int, int, int], _LineHead] = {}

    def encode(
        self, seq: int, carried: Carried, asked: Request | None
    ) -> tuple[bytes, bytes | None]:
        """The line of a message, and the message itself if something had to be left out of it.

        `asked` is the request it answers.
        """
        context = carried.envelope.context
        session = context.session
        head = self._heads.get(
            (
                id(context.transport),
                id(session.session_id),
                id(session.protocol_version),
                id(session.state),
            )
        )
        if head is None:
            head = self._head(session, context.transport)
        elif head.secrets:
            self._texts.recall(head.secrets)
        message, redactor, tie = carried.envelope.message, self._redactor, b""
        raw = message.raw or encode_message(message)
        places = found = NOWHERE
        suspected = redactor is not None and redactor.suspects(message, raw, asked)
        if suspected:
            raw, places = self._message(message, asked)
            found = places
        correlation = session.correlation_id
        if correlation is not None:
            # One of a side and a number tells a secret only if the message does, whose id it is.
            if not suspected and _NUMBERED(correlation) is not None:
                tie = head.tie + correlation.encode() + b'"'
            else:
                tie, tied = self._tie(head, correlation)
                places += tied
        others = b""
        if carried.at_server is not None or carried.verdict is not None or context.extensions:
            others, more = self._others(carried, asked)
            places += more
        told = _joined(head.places, _members(places)) if places else head.places
        flat = raw[0] == OPENING and raw[-1] == CLOSING and LF not in raw and CR not in raw
        line = b"".join(
            (
                b'{"type":"message","seq":%d' % seq,
                _DIRECTIONS[context.direction],
                head.session,
                tie,
                head.transport,
                _encode(context.timing),
                b',"message":' if flat else b"",
                raw if flat else _member(b"message", raw),
                others,
                b',"redacted":[' if told else b"",
                told,
                b"]}\n" if told else b"}\n",
            )
        )
        return line, raw if found else None

    def _others(self, carried: Carried, asked: Request | None) -> tuple[bytes, Places]:
        """The members that few messages have."""
        members = b""
        places: Places = ()
        if carried.at_server is not None:
            raw, found = self._message(carried.at_server, asked)
            members += _member(b"at_server", raw)
            places += within("at_server", found)
        if carried.envelope.context.extensions:
            value = carried.envelope.context.extensions
            extensions, found = self._value("extensions", value)
            members += b',"extensions":' + _encode(extensions)
            places += found
        if carried.verdict is not None:
            verdict, found = self._verdict(carried.verdict, carried.by)
            members += verdict
            places += found
        return members, places

    def _message(self, message: ProtocolMessage, asked: Request | None) -> tuple[bytes, Places]:
        if self._redactor is not None:
            redacted, places = self._redactor.message(message, answering=asked)
            if redacted is not None:
                return redacted, places
        return encode_message(message), ()

    def _value(self, part: str, value: Any) -> tuple[Any, Places]:
        if self._redactor is None:
            return value, ()
        # What is redacted is what would be written, whatever it was made from.
        plain = msgspec.json.decode(_encode(value))
        redacted, places = self._redactor.value(plain)
        return redacted, within(part, places)

    def _verdict(self, verdict: Verdict, by: str) -> tuple[bytes, Places]:
        told: dict[str, Any] = {"verdict": type(verdict).__name__.lower(), "by": by}
        places: Places = ()
        if isinstance(verdict, Block):
            told["error"], places = self._value("error", verdict.error.as_jsonrpc())
        return b"," + _encode(told)[1:-1], places

    def _head(self, session: SessionContext, transport: TransportContext) -> _LineHead:
        """The head of lines, kept if it may be used again."""
        # What was never seen, such as an event of a stream, may not come again.
        again = transport in self._transports
        said, over = self._session(session), self._transport(transport)
        held = (transport, session.session_id, session.protocol_version, session.state)
        head = _LineHead(
            said.said,
            b'"correlation":"' if said.said[-1] == OPENING else b',"correlation":"',
            over.said,
            _joined(said.places, over.places),
            said.secrets + over.secrets,
            held,
        )
        if again and len(said.said) <= LONGEST_PART:
            if len(self._heads) >= MOST_PARTS:
                self._heads.clear()
            first, second, third, fourth = map(id, held)
            self._heads[first, second, third, fourth] = head
        return head

    def _session(self, session: SessionContext) -> _EncodedPart:
        """The encoded session but for its last brace, made once for each."""
        key = (
            None if session.session_id is None else session.session_id.value,
            session.protocol_version.value,
            id(session.state),
        )
        known = self._sessions.get(key)
        if known is None:
            part = msgspec.structs.replace(session_part(session), correlation=None)
            known = self._encoded(part, masked_session, b',"session":%b')
            known = msgspec.structs.replace(known, said=known.said[:-1])
            _keep(self._sessions, key, known)
        elif self._redactor is not None and known.secrets:
            self._redactor.recall(known.secrets)
        return known

    def _transport(self, transport: TransportContext) -> _EncodedPart:
        """The encoded transport, made once for each."""
        known = self._transports.get(transport)
        if known is None:
            form = b'},"transport":%b,"timing":'
            known = self._encoded(transport_part(transport), masked_transport, form)
            _keep(self._transports, transport, known)
        elif self._redactor is not None and known.secrets:
            self._redactor.recall(known.secrets)
        return known

    def _encoded(
        self, part: P, mask: Callable[[P, TapeRedactor], tuple[P, Places]], form: bytes = b"%b"
    ) -> _EncodedPart:
        places: Places = ()
        secrets: Secrets = ()
        if self._redactor is not None:
            with self._redactor.noticing() as noticed:
                part, places = mask(part, self._redactor)
            secrets = tuple(noticed)
        return _EncodedPart(form % _encode(part), _members(places), secrets)

    def _tie(self, head: _LineHead, correlation: str) -> tuple[bytes, Places]:
        """The last member of the session, which ties a request and its answer."""
        places = NOWHERE
        if self._redactor is not None:
            masked = self._redactor.text(correlation)
            if masked != correlation:
                correlation, places = masked, CORRELATION
        return head.tie[:-1] + _encode(correlation), places


K = TypeVar("K")


def _keep(parts: dict[K, _EncodedPart], key: K, part: _EncodedPart) -> None:
    if len(part.said) <= LONGEST_PART:
        if len(parts) >= MOST_PARTS:
            parts.clear()
        parts[key] = part


def _joined(some: bytes, others: bytes) -> bytes:
    """The members of two arrays as those of one."""
    return some + b"," + others if some and others else some or others


def _members(places: Places) -> bytes:
    """Places as members of an array."""
    return _encode(places)[1:-1]


def _member(name: bytes, raw: bytes) -> bytes:
    """A message as a member of a line, or as text where its bytes cannot stand there.

    Outside of strings line ends are mere white space, and inside of them JSON has none.
    """
    if raw[0] == OPENING and raw[-1] == CLOSING and LF not in raw and CR not in raw:
        return b',"%b":%b' % (name, raw)
    flat = raw.strip().replace(b"\n", b" ").replace(b"\r", b" ")
    text_name = b"text" if name == b"message" else name + b"_text"
    return b',"%b":%b,"%b":%b' % (name, flat, text_name, _encode(raw.decode()))
