"""The names of MCP are spelled in one file."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import folkmoot
from folkmoot.mcp import wire

SOURCE = Path(folkmoot.__file__).parent
# Files that spell a name themselves, and why.
ELSEWHERE = {
    "bus/nats_client.py": "a ping there is a command of NATS",
    "core/kindcheck.py": "core imports nothing but itself",
    "core/transport.py": "a ping there is a frame of a WebSocket",
}
NAMES = frozenset(
    value.lower()
    for name, value in vars(wire).items()
    if name.isupper() and type(value) is str and ("/" in value or value.startswith("mcp-"))
) - {wire.JSON} | {wire.INITIALIZE, wire.PING, wire.EVENT_ID_HEADER}
# What a module has in it that spells one of them.
QUOTED = re.compile("[\"'](?:" + "|".join(map(re.escape, NAMES)) + ")", re.IGNORECASE)


def spelled_in(text: str) -> set[str]:
    """The names of MCP that a module spells as a value; prose may speak of them."""
    found = set()
    for node in ast.walk(ast.parse(text)) if QUOTED.search(text) else ():
        if not isinstance(node, ast.Constant) or not isinstance(node.value, str | bytes):
            continue
        value = node.value.decode("latin-1") if isinstance(node.value, bytes) else node.value
        if value.lower() in NAMES or value.startswith(wire.PROTOCOL_KEYS):
            found.add(value)
    return found


def test_no_other_file_spells_a_name_of_mcp():
    seen = spelled_in(
        'A = "tools/call"\nB = (b"mcp-session-id",)\nC = {"Mcp-Name": 1}\n"""ping me"""'
    )
    assert seen == {"tools/call", "mcp-session-id", "Mcp-Name"}
    spelled = {}
    for path in sorted(SOURCE.rglob("*.py")):
        where = path.relative_to(SOURCE)
        parents = {str(each) for each in (where, *where.parents)}
        if where == Path("mcp/wire.py") or parents & ELSEWHERE.keys():
            continue
        if names := spelled_in(path.read_text()):
            spelled[str(where)] = sorted(names)
    assert spelled == {}, "use the names of folkmoot.mcp.wire"
