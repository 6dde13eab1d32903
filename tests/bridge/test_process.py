"""Two people on two bridges and a hub, each in a process of their own, through the SDK's client."""

from __future__ import annotations

import json
import os
import re
import secrets
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from folkmoot.bridge.crypto import decode
from folkmoot.bridge.keys import KeyStore
from folkmoot.cli.client import HubClient
from tests.harness import run
from tests.mcp_harness import ERAS
from tests.process import Process, environment

PART = 1 << 22
REGION = re.compile(r"([0-9a-f]+)-([0-9a-f]+) (r...) \S+ \S+ \S+ *(.*)")


def memory(pid: int) -> Iterator[bytes]:
    """All that a process can read of its own, part by part; parts overlap a little."""
    with Path(f"/proc/{pid}/maps").open() as maps, Path(f"/proc/{pid}/mem").open("rb", 0) as mem:
        for line in maps:
            found = REGION.match(line)
            if found is None or found[4] in ("[vvar]", "[vsyscall]", "[vvar_vclock]"):
                continue
            place, end = int(found[1], 16), int(found[2], 16)
            while place < end:
                mem.seek(place)
                with suppress(OSError):
                    yield mem.read(min(PART, end - place))
                place += PART - 4096 if end - place > PART else PART


def found_in(parts: Iterator[bytes], wanted: dict[str, bytes]) -> set[str]:
    """Which of these occur."""
    seen: set[str] = set()
    for part in parts:
        seen |= {name for name, text in wanted.items() if text in part}
    return seen


def readable_memory() -> bool:
    # A hub keeps its memory from its own user; the system's administrator still reads it.
    if os.geteuid() != 0:
        return False
    try:
        return bool(next(memory(os.getpid())))
    except (OSError, StopIteration):
        return False


class Home:
    """Someone's folder, with their credentials in it."""

    def __init__(self, folder: Path, hub: str, handle: str) -> None:
        folder.mkdir()
        made = HubClient(hub).call("msg/register", {"handle": handle})
        login = {"hub": hub, "handle": handle, "token": made["token"]}
        file = folder / "credentials.json"
        file.touch(0o600)
        file.write_text(json.dumps({"accounts": [login]}))
        self.hub, self.handle, self.folder = hub, handle, folder
        self.env = environment(
            FOLKMOOT_CREDENTIALS=str(file), XDG_STATE_HOME=str(folder), HOME=str(folder)
        )

    def client(self, era: str, errors: Any) -> Client:
        """The SDK's client, which starts the bridge."""
        command = StdioServerParameters(
            command=sys.executable, args=["-m", "folkmoot", "bridge"], env=self.env
        )
        return Client(stdio_client(command, errlog=errors), mode=ERAS[era])

    def private_key(self) -> bytes:
        keys = KeyStore(self.folder / "device-keys.json").find(self.hub, self.handle)
        return decode(keys.current.written())


async def call(client: Client, tool: str, **arguments: Any) -> Any:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result
    block = result.content[0]
    assert block.type == "text"
    return json.loads(block.text)


@pytest.mark.requirement("bridge.e2e")
@pytest.mark.skipif(not readable_memory(), reason="looks into the hub's memory through /proc")
def test_two_people_on_bridges_write_and_the_hub_never_has_their_words(tmp_path):
    words = {name: f"the {name} of {secrets.token_hex(12)}" for name in ("question", "answer")}
    tapes = tmp_path / "hub" / "tapes"
    settings = {
        "FOLKMOOT_RATE_LIMITS": "off",
        "FOLKMOOT_LOG_LEVEL": "debug",
        "FOLKMOOT_RECORD_FOLDER": str(tapes),
    }
    with (
        Process(tmp_path / "hub", **settings) as hub,
        (tmp_path / "errors").open("w+") as errors,
    ):
        url = f"http://127.0.0.1:{hub.port}"
        ada, bob = (Home(tmp_path / name, url, f"{name}_of_old") for name in ("ada", "bob"))

        async def main() -> None:
            async with (
                bob.client("handshake", errors) as reader,
                ada.client("stateless", errors) as writer,
            ):
                sent = await call(writer, "msg_send", to=f"@{bob.handle}", body=words["question"])
                assert sent["bridge"]["mode"] == "e2e"
                [got] = (await call(reader, "msg_inbox", wait=5))["messages"]
                assert got["body"] == words["question"]
                assert got["bridge"] == {
                    "mode": "e2e", "verified": False, "key": "pinned", "bound": True,
                }  # fmt: skip
                await call(reader, "msg_reply", message_id=got["id"], body=words["answer"])
                page = await call(writer, "msg_thread", thread_id=sent["thread_id"])
                assert [it["body"] for it in page["messages"]] == [
                    words["answer"],
                    words["question"],
                ]
                assert (await call(reader, "msg_digest"))["total_unread"] == 0
                for client in (reader, writer):
                    refused = await client.call_tool("msg_send", {"to": "nobody", "body": "x"})
                    assert refused.is_error
                    assert refused.content[0].text == '{"error":"User not found."}'  # type: ignore[union-attr]

        run(main())
        wanted = {
            **{name: text.encode() for name, text in words.items()},
            **{f"{it.handle}'s key": it.private_key() for it in (ada, bob)},
            "a handle, so that something is found": ada.handle.encode(),
        }
        assert found_in(memory(hub.child.pid), wanted) == {"a handle, so that something is found"}
        said = hub.stop()
        stored = [file.read_bytes() for file in (tmp_path / "hub").rglob("*") if file.is_file()]
        assert found_in(iter([said.encode(), *stored]), wanted) == {
            "a handle, so that something is found"
        }
        recorded = [tape.read_bytes() for tape in tapes.glob("*.jsonl")]
        assert found_in(iter(recorded), {"call": b"msg_send"}) == {"call"}
        errors.seek(0)
        told = errors.read()
        assert told.count("made a device key") == 2
        assert "Traceback" not in told
        assert not any(text in told for text in words.values())
