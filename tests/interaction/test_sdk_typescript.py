"""The official TypeScript SDK exchanges mail with a hub, in each era it speaks."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.node import node_or_skip
from tests.process import Process, ran

SCRIPTS = Path(__file__).parent / "typescript"

# The clients of the script, and the era in which each must end up.
CLIENTS = {
    "v1": "handshake",
    "v2-handshake": "handshake",
    "v2-stateless": "stateless",
    "v2-auto": "stateless",
}


def played(name: str, client: str, folder: Path) -> Any:
    """What a script tells that plays one of its clients at a new hub."""
    node = node_or_skip()
    # A module finds its packages by where it lies.
    script = shutil.copy(SCRIPTS / name, folder)
    (folder / "node_modules").symlink_to(node.modules)
    with Process(folder / "hub") as hub:
        done = ran(node.binary, script, f"http://127.0.0.1:{hub.port}/mcp", client, timeout=60)
        assert done.returncode == 0, done.stderr
        hub.stop()
    return json.loads(done.stdout)


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.requirement("mcp.both-eras", "notice.both-eras")
@pytest.mark.parametrize("client", CLIENTS)
def test_the_typescript_sdk_registers_sends_reads_and_is_notified(client, tmp_path):
    told = played("mail.mjs", client, tmp_path)
    assert told["era"] == CLIENTS[client]
    assert told["server"] == "folkmoot"
    assert told["refused"] == {"isError": True, "error": "Authentication required."}
    assert {"msg_register", "msg_send", "msg_inbox"} <= set(told["tools"])
    assert not [
        tool
        for tool in told["tools"]
        if not tool.startswith(("ask_", "msg_", "room_", "folkmoot_"))
    ]
    assert told["notice"] == "mmp://mailboxes/inbox"
    assert told["digest"]["recent_senders"] == ["alice"]
    assert told["received"] == [["alice", "Grüße from TypeScript ✓"]]
    assert told["replied"] is False
    assert told["answered"] == [["bob", "Received"]]
    assert told["unknown"] == {"isError": True, "error": "User not found."}


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("client", ["v2-stateless", "v2-auto"])
def test_the_typescript_sdk_connects_with_a_dead_token_and_can_recover(client, tmp_path):
    told = played("dead_token.mjs", client, tmp_path)
    assert told["instructions"].startswith("Authentication required. The token is not valid")
    assert (told["tools"], told["lists"]) == (["msg_register", "msg_recover"], told["strangers"])
    assert "The token is not valid" in told["error"]
    assert told["handle"] == "alice"
