"""Tapes written as scripts: who said what, one second after the other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from folkmoot.clock import SystemClock
from folkmoot.core.envelope import MessageContext, MessageDirection, MessageEnvelope
from folkmoot.core.message import ProtocolMessage, message_from
from folkmoot.core.ports import Carried
from folkmoot.core.session import SessionContext, SessionId
from folkmoot.core.timing import TimingContext
from folkmoot.core.transport import UNKNOWN, TransportContext
from folkmoot.proxy.tape import Header, Tape, TapeEntry, TapeSide
from tests.proxy.tape.strategies import opened

SIDES = {
    "client": MessageDirection.CLIENT_TO_SERVER,
    "server": MessageDirection.SERVER_TO_CLIENT,
}
INFO = {"name": "test", "version": "1"}
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": INFO}
WELCOME = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": INFO}


class Said:
    """One line of a script."""

    def __init__(self, side: str, value: dict[str, Any], **about: Any) -> None:
        self.side, self.value, self.about = side, value, about


def asks(
    id_: int | str, method: str, params: Any = None, *, side: str = "client", **about: Any
) -> Said:
    """A request, of the client unless told."""
    value = {"jsonrpc": "2.0", "id": id_, "method": method}
    return Said(side, value if params is None else {**value, "params": params}, **about)


def answers(id_: int | str, result: Any, *, side: str = "server", **about: Any) -> Said:
    """A result, of the server unless told."""
    return Said(side, {"jsonrpc": "2.0", "id": id_, "result": result}, **about)


def fails(id_: int | str, code: int = -32000, message: str = "no", **about: Any) -> Said:
    """An error of the server."""
    error = {"code": code, "message": message}
    return Said("server", {"jsonrpc": "2.0", "id": id_, "error": error}, **about)


def tells(method: str, params: Any = None, *, side: str = "server", **about: Any) -> Said:
    """A notification, of the server unless told."""
    value = {"jsonrpc": "2.0", "method": method}
    return Said(side, value if params is None else {**value, "params": params}, **about)


def calls(id_: int | str, tool: str, _meta: Any = None, **arguments: Any) -> Said:
    meta = {} if _meta is None else {"_meta": _meta}
    return asks(id_, "tools/call", {"name": tool, "arguments": arguments, **meta})


def text(words: str) -> dict[str, Any]:
    """The result of a tool that says something."""
    return {"content": [{"type": "text", "text": words}]}


HANDSHAKE = (
    asks(0, "initialize", HELLO),
    answers(0, WELCOME),
    tells("notifications/initialized", side="client"),
)


def message(said: Said) -> ProtocolMessage:
    return message_from(said.value)


def tape(*script: Said) -> Tape:
    """A tape on which each line was said a second after the one before."""
    entries = []
    for number, said in enumerate(script, 1):
        session, changed = said.about.get("session"), said.about.get("at_server")
        context = MessageContext(
            TimingContext(float(number), float(number)),
            SIDES[said.side],
            SessionContext(session and SessionId(session)),
            said.about.get("transport", TransportContext.stdio(1)),
        )
        envelope = MessageEnvelope(message(said), context)
        entry = TapeEntry(number, envelope, changed and message(changed), said.about.get("verdict"))
        entries.append(entry)
    side = TapeSide("stdio")
    return Tape(Header(1, "t", "2026-01-01T00:00:00Z", "test", side, side), entries, [])


class Ticking(SystemClock):
    """A clock that tells no millisecond twice: a tape begins at one."""

    latest = 0.0

    def now(self) -> float:
        Ticking.latest = max(super().now(), Ticking.latest + 0.001)
        return Ticking.latest


def record(path: Path, *script: Said) -> Path:
    """The same in a file, as a recorder writes it."""
    recorder = opened(path, clock=Ticking())
    for entry in tape(*script).entries:
        recorder.note(Carried(entry.envelope))
    recorder.commit()
    recorder.close()
    return path


# What an interceptor said came over no transport.
MADE = {"transport": UNKNOWN}
