"""Who may use what of a server behind the hub, from the outside."""

from __future__ import annotations

from typing import Any

import pytest

from tests.faults.backends import operator
from tests.mcp_harness import both_eras, until
from tests.peers.gateway import backend, fronted, token_of
from tests.peers.sdk_server import Notebook, notebook_http
from tests.peers.servers import Place
from tests.transports.mcp.gateway_support import Wire, payload, wired

pytestmark = pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")

CALLS = "mcp.request.tools/call:notes:"
LONG = "note_" + "very_" * 16 + "long"


async def said_to(wire: Wire, name: str) -> list[Any]:
    """What is answered to the call of a tool, by itself and inside another."""
    told = []
    for params in (
        {"name": name, "arguments": {}},
        {"name": "folkmoot_call_tool", "arguments": {"name": name, "arguments": {}}},
        {"name": "folkmoot/call_tool", "arguments": {"name": name}},
    ):
        answer = await wire.ask("tools/call", params)
        refused = answer.get("result", {})
        told.append(payload(refused) if refused.get("isError") else answer)
    return told


@both_eras
@pytest.mark.requirement(
    "gateway.rights-by-effective-kind",
    "wire-name.resolved-first",
    "wire-name.resolved-inside-call-tool",
    "wire-name.shortened",
)
async def test_a_denied_tool_is_not_listed_and_is_refused_in_every_spelling(era, tmp_path):
    book = Notebook()
    async with notebook_http(book) as url:
        spec = backend("notes", Place("http", url=url), everyone=False)
        async with fronted(tmp_path, spec, era=era) as there:
            wire = await wired(there, await token_of(there, "ann"))
            patterns = [f"{CALLS}*", f"!{CALLS}note_*"]
            await operator(there.hub, "folkmoot/grant", handle="ann", patterns=patterns)
            learn = {"name": "notes_learn", "arguments": {"name": LONG}}
            assert (await wire.ask("tools/call", learn))["result"]["content"]
            names = await until_known(there.hub, f"notes:{LONG}")
            assert len(names[1]) <= 64
            for query in ("", "?names=canonical", "?tools=all"):
                listed = (await wire.ask("tools/list", query=query))["result"]["tools"]
                shown = {tool["_meta"]["folkmoot/name"] for tool in listed}
                assert "notes:add" in shown
                assert not [name for name in shown if name.startswith("notes:note_")]
            find = {"name": "folkmoot_find_tool", "arguments": {"query": "note headers long"}}
            found = payload((await wire.ask("tools/call", find))["result"])
            assert not [each for each in found["tools"] if "note_" in each["name"][6:]]
            for name in ("notes_note_headers", "notes:note_headers", *names):
                for told in await said_to(wire, name):
                    assert told["code"] == "capability_denied", (name, told)
                    assert told["attempted_kind"].startswith(f"{CALLS}note_")
            for name in ("NOTES_NOTE_HEADERS", "notes/note_headers", "notes__note_headers"):
                for told in await said_to(wire, name):
                    assert "noted" not in str(told)
            assert book.headers == []


async def until_known(hub: Any, canonical: str) -> list[str]:
    """Both spellings of a tool, once the hub has read of it."""
    await until(lambda: canonical in hub.behind.gateway.catalogue.tools)
    return [canonical, hub.behind.gateway.catalogue.names.spell(canonical, "safe")]
