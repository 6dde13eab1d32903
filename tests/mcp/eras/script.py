"""Scripts: who says what, and what the bridge sends because of it."""

from __future__ import annotations

from itertools import count
from typing import Any

from folkmoot.core.message import members, message_from
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
META: dict[str, Any] = {VERSION: "2026-07-28", CLIENT: ADA, CAPABILITIES: OFFERED}
"""What every request of a stateless client carries here."""
TOLD: dict[str, Any] = {
    "tools": {"listChanged": True},
    "resources": {"subscribe": True, "listChanged": True},
    "logging": {},
}
"""The capabilities of the servers here."""

Line = tuple[str, dict[str, Any]]


def bridge(*, one_client: bool = True, native_tasks: bool = False) -> EraBridge:
    """A bridge whose own ids are `folkmoot-t-1` and so on, and whose states are `s1` and so on."""
    states = count()
    return EraBridge(
        one_client=one_client,
        native_tasks=native_tasks,
        token=lambda: f"s{n}" if (n := next(states)) else "t",
    )


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
    """A result."""
    return {"id": message_id, "result": members}


def error(message_id: str | int, code: int, message: str = "no", **data: Any) -> dict[str, Any]:
    """An error."""
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
    message = message_from({"jsonrpc": "2.0", **what})
    hear = machine.from_client if who == "client says" else machine.from_server
    return shown(hear(message))


def shown(steps: list[Step]) -> list[Line]:
    """Steps, as a script has them."""
    lines = []
    for step in steps:
        value = members(step.message)
        del value["jsonrpc"]
        lines.append(("to server" if isinstance(step, ToServer) else "to client", value))
    return lines
