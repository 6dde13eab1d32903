"""What the console shows in pictures: a room with proposals, servers that are used, and tapes."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

from folkmoot.cli.client import HubClient
from folkmoot.proxy.redaction import TapeRedactor
from folkmoot.proxy.tape import TapeSide
from tests.browser.console import Operated
from tests.browser.harness import Person
from tests.cli import small_backend
from tests.proxy.tape.studio import handshake, recording


def tool(name: str, description: str, *fields: str, **hints: bool) -> dict[str, Any]:
    """A tool of a server, all of whose fields are text."""
    properties = {field: {"type": "string"} for field in fields}
    schema = {"type": "object", "properties": properties, "required": list(fields)}
    return {
        "name": name,
        "description": description,
        "inputSchema": schema,
        "annotations": {f"{hint}Hint": value for hint, value in hints.items()},
    }


SERVER = TapeSide("stdio", "charts-server --stdio")
SERVERS = {
    "charts": [
        tool("tides", "High and low water of a day.", "port", "day", readOnly=True),
        tool("route", "The way between two ports, and how long it takes.", "start", "end",
             readOnly=True),
        tool("depth", "How deep the water is at a place.", "place", readOnly=True),
    ],
    "boats": [
        tool("list", "The boats, and where each is.", "port", readOnly=True),
        tool("book", "Books a boat for a day.", "boat", "day", destructive=False),
        tool("cancel", "Cancels a booking. It cannot be brought back.", "booking",
             destructive=True),
    ],
}  # fmt: skip
CHANGED = tool("list", "The boats, where each is, and who booked them.", "port", readOnly=True)
SAID = (
    ("grace", "Morning. The **north pier** is closed until noon."),
    ("tides", "High water at six. Wind from the west, four to five."),
    ("ada", "Then we leave at five. @grace, is the lamp aboard?"),
    ("grace", "It is, and so is the rope:\n\n- 40 m of it\n- dry"),
)


def harbour(here: Operated, ada: Person, folder: Path) -> None:
    """A room in which something waits for a decision, and servers, one of which changed."""
    people = {"ada": ada, **{name: Person(here.url, name) for name in ("grace", "tides")}}
    for name, tools in SERVERS.items():
        file = folder / f"{name}.json"
        told = {"serverInfo": {"name": f"{name}-server"}}
        file.write_text(json.dumps({"tools": tools, **told}))
        program = folder / f"{name}-server"
        program.write_text(
            f"#!/bin/sh\nexec {sys.executable} -SE {small_backend.__file__} {file}\n"
        )
        program.chmod(0o755)
        text = json.dumps({"mcpServers": {name: {"command": program.name, "args": ["--stdio"]}}})
        here.ask("folkmoot/server_add", text=text)
    while any(it["state"] != "up" for it in here.ask("folkmoot/servers")["backends"]):
        time.sleep(0.1)
    for name in people:
        here.ask("folkmoot/grant", handle=name, patterns=["boats", "charts"])
    for number in range(12):
        ada.call("charts:tides", port="Aldermouth", day=f"May {number}")
        people["tides"].call("boats:list", port="Aldermouth")
    for room in ("harbour", "fleet"):
        ada.call("room/create", name=room)
        for name in ("grace", "tides"):
            people[name].call("room/join", room=room)
    for name, text in SAID:
        people[name].call("room/say", room="harbour", text=text, format="markdown")
    for room, called, given, reason in (
        ("harbour", "cancel", {"booking": "Lark-118"}, "We take the Heron: she has a lamp."),
        ("fleet", "book", {"boat": "Heron", "day": "Friday"}, "The Lark has no lamp."),
    ):
        more = {"reason": reason, "expires_in": 1800}
        people["tides"].propose(room, f"boats:{called}", given, "boats", **more)
    coding = here.ask("folkmoot/create_token_for", handle="grace", label="Claude Code", scope="ask")
    HubClient(here.url, coding["token"]).call(
        "ask/create",
        {
            "tool": "Bash",
            "arguments": {"command": "make deploy", "timeout": 600},
            "why": "The tests pass, and the page of the tides is from last week.",
            "to": "ada",
        },
    )
    changed = {"tools": [CHANGED, *SERVERS["boats"][1:]], "serverInfo": {"name": "boats-server"}}
    (folder / "boats.json").write_text(json.dumps(changed))
    here.ask("folkmoot/server_restart", namespace="boats")


def tapes(folder: Path) -> None:
    """Two recorded conversations: how long calls take goes up and down."""
    for name, slower in (("monday.jsonl", 1.0), ("tuesday.jsonl", 1.6)):
        with recording(folder / name, redactor=TapeRedactor(bytes(32)), server=SERVER) as studio:
            handshake(studio, ("tides", "route", "book"))
            for number in range(2, 90):
                called = ("tides", "tides", "route", "book")[number % 4]
                took = (0.02 + 0.013 * (number * 7 % 11)) * (4 if called == "route" else 1)
                failed = number % 29 == 0
                minutes = 50 if slower > 1 and number % 13 == 0 else 40
                text = "No such port." if failed else f"High water at {number % 12}:{minutes}."
                port = ("Aldermouth", "Skerry", "Holm")[number % 3]
                studio.tool(number, called, text, took=took * slower, failed=failed, port=port)
                studio.wait(1.7)
