"""Makes tapes: the real recorder, a clock that a test sets, and messages as plain JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from folkmoot.core import errors as e
from folkmoot.core.envelope import MessageContext, MessageDirection, MessageEnvelope
from folkmoot.core.message import decode_message
from folkmoot.core.ports import Carried
from folkmoot.core.session import ANONYMOUS, SessionContext, SessionId
from folkmoot.core.timing import TimingContext
from folkmoot.core.transport import TransportContext
from folkmoot.core.verdict import Block, Modify
from folkmoot.proxy.tape import TapeRecorder, TapeSide
from tests.proxy.tape.strategies import opened

START = 1_795_000_000.0
SERVER = TapeSide("stdio", "npx -y server-everything")
TO_SERVER = MessageDirection.CLIENT_TO_SERVER
TO_CLIENT = MessageDirection.SERVER_TO_CLIENT


class Studio:
    """A tape that is being recorded; `time` is the clock's."""

    def __init__(self, recorder: TapeRecorder, clock: StudioClock) -> None:
        self.recorder = recorder
        self._clock = clock
        self.session: SessionContext = ANONYMOUS
        self.transport = TransportContext.stdio(42)

    def wait(self, seconds: float) -> None:
        """Let time go by."""
        self._clock.time += seconds

    def say(self, direction: MessageDirection, members: dict[str, Any], **more: Any) -> None:
        """Record a message."""
        message = decode_message(json.dumps({"jsonrpc": "2.0", **members}).encode())
        timing = TimingContext(self._clock.monotonic(), self._clock.now())
        context = MessageContext(timing, direction, self.session, self.transport)
        self.recorder.note(Carried(MessageEnvelope(message, context), **more))

    def call(
        self,
        number: int | str,
        method: str,
        params: Any = None,
        *,
        result: Any = None,
        error: Any = None,
        took: float = 0.01,
        direction: MessageDirection = TO_SERVER,
    ) -> None:
        """Record a request and, a while later, its answer."""
        asked = {"id": number, "method": method}
        self.say(direction, asked if params is None else {**asked, "params": params})
        self.wait(took)
        said = {"result": result or {}} if error is None else {"error": error}
        self.say(direction.reverse(), {"id": number, **said})

    def tool(self, number: int, name: str, text: str, *, took: float = 0.01, failed: bool = False,
             **arguments: Any) -> None:  # fmt: skip
        """Record the call of a tool that answers with a text."""
        result: dict[str, Any] = {"content": [{"type": "text", "text": text}]}
        if failed:
            result["isError"] = True
        params = {"name": name, "arguments": arguments}
        self.call(number, "tools/call", params, result=result, took=took)


class StudioClock:
    def __init__(self) -> None:
        self.time = 0.0

    def now(self) -> float:
        return START + self.time

    def monotonic(self) -> float:
        return 100.0 + self.time


@contextmanager
def recording(path: Path, *, end: bool = True, **more: Any) -> Iterator[Studio]:
    """A tape that is recorded in the block, and then ended unless it is not to be."""
    clock = StudioClock()
    recorder = opened(path, clock=clock, program="folkmoot 0.1.0", **{"server": SERVER, **more})
    yield Studio(recorder, clock)
    if end:
        recorder.close()
    else:
        recorder.commit()


def handshake(studio: Studio, tools: tuple[str, ...] = ("echo", "add")) -> None:
    """Begin as every client of the handshake era does, and ask for the tools."""
    studio.call(
        0,
        "initialize",
        {"protocolVersion": "2025-11-25", "capabilities": {},
         "clientInfo": {"name": "example-client", "version": "1.0"}},
        result={"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                "serverInfo": {"name": "everything", "version": "2.1"}},
        took=0.213,
    )  # fmt: skip
    studio.session = SessionContext.with_id(SessionId("5f2a"))
    studio.say(TO_SERVER, {"method": "notifications/initialized"})
    listed = [{"name": name, "inputSchema": {"type": "object"}} for name in tools]
    studio.call(1, "tools/list", result={"tools": listed}, took=0.004)


def conversation(path: Path, **options: Any) -> Path:
    """A tape with a little of everything; twenty messages."""
    with recording(path, **options) as studio:
        handshake(studio)
        studio.tool(2, "echo", "Echo: hello", took=0.005, message="hello")
        slow = {"name": "slow", "arguments": {}, "_meta": {"progressToken": 7}}
        studio.say(TO_SERVER, {"id": 3, "method": "tools/call", "params": slow})
        studio.wait(0.5)
        progress = {"progressToken": 7, "progress": 1, "total": 2, "message": "half"}
        studio.say(TO_CLIENT, {"method": "notifications/progress", "params": progress})
        studio.call("s-1", "sampling/createMessage",
                    {"messages": [{"role": "user", "content": {"type": "text", "text": "Hi"}}]},
                    result={"role": "assistant", "content": {"type": "text", "text": "Ho"}},
                    direction=TO_CLIENT, took=0.1)  # fmt: skip
        studio.wait(0.9)
        studio.say(TO_CLIENT, {"id": 3, "result": {"content": [{"type": "text", "text": "done"}]}})
        studio.tool(4, "add", "a is no number", failed=True, took=0.002, a="x")
        studio.call(5, "tools/call", {"name": "boom"}, took=0.001,
                    error={"code": -32602, "message": "Unknown tool: boom"})  # fmt: skip
        stopped = e.BlockedByInterceptor("rm is not allowed here.")
        removing = {"name": "rm", "arguments": {"path": "/"}}
        deny = {"id": 6, "method": "tools/call", "params": removing}
        studio.say(TO_SERVER, deny, verdict=Block(stopped), by="deny")
        studio.say(TO_CLIENT, {"id": 6, "error": stopped.as_jsonrpc()})
        changed = decode_message(
            b'{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"?"}}'
        )
        notice = {"level": "info", "logger": "everything", "data": "ready"}
        studio.say(TO_CLIENT, {"method": "notifications/message", "params": notice},
                   at_server=changed, verdict=Modify(changed), by="scrub")  # fmt: skip
        studio.wait(1.0)
        studio.say(TO_SERVER, {"id": 7, "method": "ping"})
    return path
