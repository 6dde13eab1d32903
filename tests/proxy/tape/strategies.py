"""Hypothesis strategies for what a proxy carries, and a place to record it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from folkmoot.core import errors as e
from folkmoot.core.envelope import MessageContext, MessageDirection, MessageEnvelope
from folkmoot.core.message import ProtocolMessage, decode_message, message_from
from folkmoot.core.ports import Carried
from folkmoot.core.session import ProtocolVersion, SessionContext, SessionId, SessionState
from folkmoot.core.timing import TimingContext
from folkmoot.core.transport import (
    UNKNOWN,
    ConnectionInfo,
    FrameType,
    Headers,
    HttpMetadata,
    SocketAddress,
    SseMetadata,
    StdioMetadata,
    TlsInfo,
    TransportContext,
    WebSocketMetadata,
)
from folkmoot.core.verdict import Block, Delay, Mock, Modify
from folkmoot.proxy.tape import TapeRecorder, TapeSide
from tests.clocks import StillClock
from tests.core.strategies import IDS, JSON, OBJECTS, TEXT

MOMENTS = st.floats(min_value=0, max_value=2e9, allow_nan=False)
MAYBE_TEXT = st.none() | TEXT
NAMES = st.sampled_from(["tools/call", "tools/list", "notifications/cancelled", "ping", "x/é"])


@st.composite
def bodies(draw: st.DrawFn) -> dict[str, Any]:
    """The members of a request, a notification, or an answer."""
    which = draw(st.sampled_from(["request", "notification", "result", "error"]))
    body: dict[str, Any] = {"jsonrpc": "2.0"}
    if which != "notification":
        body["id"] = draw(IDS)
    if which in ("request", "notification"):
        body["method"] = draw(NAMES)
        if draw(st.booleans()):
            body["params"] = draw(OBJECTS)
    elif which == "result":
        body["result"] = draw(JSON)
    else:
        body["error"] = {"code": draw(st.integers(-40000, 40000)), "message": draw(TEXT)}
        if draw(st.booleans()):
            body["error"]["data"] = draw(JSON)
    if draw(st.booleans()):
        body |= {f"x-{name}": value for name, value in draw(OBJECTS).items()}
    return body


@st.composite
def messages(draw: st.DrawFn) -> ProtocolMessage:
    """A message that came as bytes, spelled in one of many ways, or that was made here."""
    body = draw(bodies())
    if draw(st.booleans()):
        return message_from(body)
    text = json.dumps(
        body,
        ensure_ascii=draw(st.booleans()),
        indent=draw(st.sampled_from([None, None, 0, 2, "\t"])),
        separators=draw(st.sampled_from([None, (",", ":"), (" ,\r\n", " : ")])),
    )
    around = st.text(" \t\r\n", max_size=3)
    return decode_message((draw(around) + text + draw(around)).encode())


sessions = st.builds(
    SessionContext,
    st.none() | st.builds(SessionId, TEXT),
    st.builds(ProtocolVersion, st.sampled_from(["2025-11-25", "2026-07-28", "draft"])),
    MAYBE_TEXT,
    st.sampled_from(SessionState),
)
pairs = st.lists(st.tuples(st.sampled_from(["accept", "x-a", "x-b"]), TEXT), max_size=3)
addresses = st.none() | st.builds(SocketAddress, TEXT, st.integers(0, 65535))
connections = st.none() | st.builds(
    ConnectionInfo,
    TEXT,
    addresses,
    addresses,
    st.none() | st.builds(TlsInfo, TEXT, MAYBE_TEXT, MAYBE_TEXT, MAYBE_TEXT, MAYBE_TEXT),
)
transports = st.just(UNKNOWN) | st.builds(
    TransportContext,
    st.none()
    | st.builds(StdioMetadata, st.integers(0, 2**31))
    | st.builds(
        HttpMetadata,
        st.builds(Headers.of, pairs),
        st.sampled_from(["GET", "POST"]),
        TEXT,
        st.none() | st.integers(100, 599),
    )
    | st.builds(SseMetadata, TEXT, MAYBE_TEXT, MAYBE_TEXT, st.none() | MOMENTS, MAYBE_TEXT)
    | st.builds(WebSocketMetadata, st.sampled_from(FrameType), st.booleans(), st.booleans()),
    connections,
)
timings = st.builds(
    TimingContext, MOMENTS, MOMENTS, st.none() | MOMENTS, st.none() | MOMENTS, st.none() | MOMENTS
)
contexts = st.builds(
    MessageContext, timings, st.sampled_from(MessageDirection), sessions, transports, OBJECTS
)
envelopes = st.builds(MessageEnvelope, messages(), contexts)
verdicts = st.sampled_from(
    [None, Block(e.BlockedByInterceptor("No.", why=[1])), Modify(None), Mock({}), Delay(1.0)]
)
carried = st.tuples(envelopes, st.none() | messages(), verdicts, TEXT).map(lambda x: Carried(*x))
conversations = st.lists(carried, max_size=2)
# Messages of which nothing is known but what they say.
plain = st.lists(
    messages().map(lambda message: Carried(MessageEnvelope.new(message, TimingContext(1.0, 2.0)))),
    max_size=3,
)


def opened(path: Path, **more: Any) -> TapeRecorder:
    """A tape that is written without being redacted, unless told otherwise."""
    side = TapeSide("stdio")
    made = {"clock": StillClock(), "client": side, "server": side, "program": "p", "redactor": None}
    return TapeRecorder.open(path, **{**made, **more})


def record(
    path: Path,
    said: Sequence[Carried],
    *,
    reason: str = "closed",
    sizes: list[int] | None = None,
    **more: Any,
) -> Path:
    """Record a conversation in a new file; `sizes` are those of the file after each message."""
    path.unlink(missing_ok=True)
    server = TapeSide("http", "https://mcp.example/mcp")
    recorder = opened(path, server=server, program="folkmoot 0", **more)
    for one in said:
        recorder.note(one)
        recorder.commit()
        if sizes is not None:
            sizes.append(path.stat().st_size)
    recorder.close(reason)
    return path
