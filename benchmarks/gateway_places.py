"""Starts the hub with servers behind it, and the others that can stand in front of a server."""

from __future__ import annotations

import asyncio
import json
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from uuid import uuid4

import msgspec

from benchmarks.mail_load import VERSION
from benchmarks.mail_servers import hub
from benchmarks.proxy_load import Caller, Words, connected
from benchmarks.proxy_places import PAUSE_SECONDS, PLACE, START_SECONDS, Places
from folkmoot.app import Hub
from folkmoot.asks.machine import StoredAsk
from folkmoot.rows import insert
from folkmoot.settings import Settings

if TYPE_CHECKING:
    from benchmarks.mail_servers import Running
    from benchmarks.proxy_places import Cores
    from folkmoot.core.ports import Tx

CALLER = "ada"
CHUNK = 1_000
NAMESPACE = "peer"


class Behind(NamedTuple):
    """A server behind the hub: its address or its command."""

    url: str = ""
    command: Sequence[str] = ()

    def table(self, namespace: str, *, everyone: bool) -> str:
        """What the settings say of it."""
        place = ("url", self.url) if self.url else ("command", list(self.command))
        settled = {place[0]: place[1], "everyone": everyone}
        lines = [f"{name} = {json.dumps(value)}" for name, value in settled.items()]
        return "\n".join([f"[backends.{namespace}]", *lines, ""])


class Front(NamedTuple):
    """A hub that runs, and how its people ask there."""

    running: Running
    tokens: dict[str, str]

    def words(self, who: str = CALLER, tool: str = f"{NAMESPACE}_echo") -> Words:
        """What someone says to it."""
        return Words(f"/mcp?token={self.tokens[who]}", tool)


class GatewayPlaces(Places):
    """Everyone who was started, hubs among them."""

    def __init__(self, runner: asyncio.Runner, folder: Path, cores: Cores) -> None:
        super().__init__(runner, folder, cores)
        self._run = runner.run

    def hub(
        self,
        behind: Mapping[str, Behind],
        grants: Mapping[str, Iterable[str]] | None = None,
        *,
        everyone: bool = True,
        rules: str = "",
        asks: int = 0,
    ) -> Front:
        """A hub as it comes, with people who may use what is behind it, and with open asks."""
        folder = Path(tempfile.mkdtemp(dir=self._folder))
        people = list(dict.fromkeys((CALLER, *(grants or {}))))
        tokens = self._run(registered(folder, people, asks))
        tables = [each.table(name, everyone=everyone) for name, each in behind.items()]
        held = [f"{name} = {json.dumps(list(each))}" for name, each in (grants or {}).items()]
        (folder / "config.toml").write_text("\n".join([*tables, rules, "[grants]", *held, ""]))
        running = self._stack.enter_context(hub(folder, self._cores.measured))
        front = Front(running, tokens)
        wanted = behind if everyone else (NAMESPACE,)
        self._run(ready(running.port, front.words(people[-1], ""), wanted))
        return front

    def fastmcp(self, command: str, behind: Behind) -> Running:
        """FastMCP's proxy in front of a server."""
        target = behind.url
        if not target:
            program, *arguments = behind.command
            servers = {NAMESPACE: {"command": program, "args": arguments}}
            file = Path(tempfile.mkdtemp(dir=self._folder)) / "mcp.json"
            file.write_text(json.dumps({"mcpServers": servers}))
            target = str(file)
        how = ("--transport", "http", "--log-level", "ERROR", "--no-banner")
        return self.stranger(command, "run", target, *PLACE, *how)


async def registered(folder: Path, people: Iterable[str], asks: int = 0) -> dict[str, str]:
    """People of a hub, and their tokens; the first is asked so many times."""
    values = {"port": 0, "data": str(folder), "rate_limits": "off"}
    async with Hub(msgspec.convert(values, Settings)).running() as here:
        made = {name: await here.accounts.register(name) for name in people}
        who = made[next(iter(made))].account.id
        for start in range(0, asks, CHUNK):
            await here.store.write(partial(opened, who, range(start, min(start + CHUNK, asks))))
        return {name: each.token for name, each in made.items()}


async def opened(who: str, numbers: range, tx: Tx) -> None:
    """Asks that are open."""
    now = time.time()
    for number in numbers:
        ask = StoredAsk(
            id=str(uuid4()), asker_id=who, credential_id="", client="bench", decider_id=who,
            tool=f"shell:{number}", bound=b'{"arguments":{}}', why="", at=now, until=now + 86_400,
        )  # fmt: skip
        await insert(tx, "asks", msgspec.structs.asdict(ask))


async def ready(port: int, words: Words, namespaces: Iterable[str]) -> None:
    """Wait until the hub lists what is behind it."""
    names = [f'"{namespace}_echo"'.encode() for namespace in namespaces]
    until = time.monotonic() + START_SECONDS
    caller = await connected(port)
    while not all(map((await listed(caller, words)).count, names)):
        if time.monotonic() > until:
            raise TimeoutError("the servers behind a hub were not reached")
        await asyncio.sleep(PAUSE_SECONDS)
    caller.close()


async def listed(caller: Caller, words: Words) -> bytes:
    """The list of tools."""
    return await caller.ask(words.asking(version=VERSION))
