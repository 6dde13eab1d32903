"""Scripts: who says what, and what the bridge sends because of it."""

from __future__ import annotations

from itertools import chain, count
from typing import Any

from folkmoot.core.message import ProtocolMessage, members, message_from
from folkmoot.mcp.eras import EraBridge, Step, ToServer

VERSION = "io.modelcontextprotocol/protocolVersion"
CLIENT = "io.modelcontextprotocol/clientInfo"
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
LEVEL = "io.modelcontextprotocol/logLevel"
SERVER = "io.modelcontextprotocol/serverInfo"
SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"

ADA = {"name": "ada", "version": "1"}
BOX = {"name": "box", "version": "2"}
OFFERED: dict[str, Any] = {"elicitation": {"form": {}, "url": {}}, "roots": {}, "sampling": {}}
# What every request of a stateless client carries here.
META: dict[str, Any] = {VERSION: "2026-07-28", CLIENT: ADA, CAPABILITIES: OFFERED}
# The capabilities of the servers here.
TOLD: dict[str, Any] = {
    "tools": {"listChanged": True},
    "resources": {"subscribe": True, "listChanged": True},
    "logging": {},
}

Line = tuple[str, dict[str, Any]]


def bridge(*, one_client: bool = True, **options: bool) -> EraBridge:
    """A bridge whose own ids are `folkmoot-t-1` and so on, and whose states are `s1` and so on."""
    tokens = chain(("t",), (f"s{number}" for number in count(1)))
    return EraBridge(one_client=one_client, token=lambda: next(tokens), **options)


def ours(number: int) -> str:
    """An id that the bridge made."""
    return f"folkmoot-t-{number}"


def request(message_id: str | int, method: str, **params: Any) -> dict[str, Any]:
    """A request, with params if there are any."""
    return {"id": message_id, "method": method} | ({"params": params} if params else {})


def notice(method: str, **params: Any) -> dict[str, Any]:
    """A notification."""
    return {"method": method} | ({"params": params} if params else {})


def result(message_id: str | int, **members: Any) -> dict[str, Any]:
    return {"id": message_id, "result": members}


def error(message_id: str | int, code: int, message: str = "no", **data: Any) -> dict[str, Any]:
    return {"id": message_id, "error": {"code": code, "message": message} | data}


def client(message: dict[str, Any]) -> Line:
    """The client says something."""
    return "client says", message


def server(message: dict[str, Any]) -> Line:
    """The server says something."""
    return "server says", message


def to_client(message: dict[str, Any]) -> Line:
    """The bridge sends something to the client."""
    return "to client", message


def to_server(message: dict[str, Any]) -> Line:
    """The bridge sends something to the server."""
    return "to server", message


def passed(message: dict[str, Any]) -> tuple[Line, Line]:
    """The client says something, and the server is sent just that."""
    return client(message), to_server(message)


def returned(message: dict[str, Any]) -> tuple[Line, Line]:
    """The server says something, and the client is sent just that."""
    return server(message), to_client(message)


def message(value: dict[str, Any]) -> ProtocolMessage:
    """What a script has, as a message."""
    return message_from({"jsonrpc": "2.0", **value})


def refused(message_id: int | str, sentence: str, **data: Any) -> Line:
    """The client is told that this cannot be bridged."""
    return to_client(error(message_id, -32000, sentence, data={"code": "era_not_bridged"} | data))


def too_many(message_id: int | str, sentence: str = "Too many requests are open.") -> Line:
    """The client is told that it has asked for too much."""
    return to_client(error(message_id, -32000, sentence, data={"code": "too_many_in_flight"}))


def play(machine: EraBridge, *lines: Line) -> None:
    """Have everything said in order, and nothing be sent but what the script says."""
    sent: list[Line] = []
    for who, what in lines:
        if who.startswith("to "):
            assert sent, f"nothing is sent where the script has {who}: {what}"
            assert sent.pop(0) == (who, what)
            continue
        assert not sent, f"the script does not have {sent}"
        sent = said(machine, who, what)
    assert not sent, f"the script does not have {sent}"


def said(machine: EraBridge, who: str, what: dict[str, Any]) -> list[Line]:
    """What the bridge sends because someone said something."""
    hear = machine.from_client if who == "client says" else machine.from_server
    return shown(hear(message(what)))


def shown(steps: list[Step]) -> list[Line]:
    """Steps, as a script has them."""
    lines = []
    for step in steps:
        value = members(step.message)
        del value["jsonrpc"]
        lines.append(("to server" if isinstance(step, ToServer) else "to client", value))
    return lines
