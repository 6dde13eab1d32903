"""What tests of `/mcp` share: a hub, and people who use it through the SDK's own client."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import msgspec
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

from folkmoot.app import Hub
from folkmoot.core import errors as e
from folkmoot.core.ports import Clock
from folkmoot.settings import Settings
from tests.amounts import few
from tests.harness import Answer, ask
from tests.nodes import running

# The eras of MCP, and the mode of the SDK's client for each.
ERAS = {"handshake": "legacy", "stateless": "2026-07-28"}

# What a client of either era says of the forms it uses.
BOTH = {"content-type": "application/json", "accept": "application/json, text/event-stream"}

# What whoever comes with a wrong or dead token is told.
INVALID = e.TokenInvalid.sentence

both_eras = pytest.mark.parametrize("era", ERAS)

# For what happens behind MCP, alike in both: the long tests repeat it in the handshake era.
one_era = pytest.mark.parametrize("era", few(sorted(ERAS, reverse=True)))


def settings(folder: Path, **values: object) -> Settings:
    """The settings of a hub that counts nothing, unless told."""
    return msgspec.convert(
        {"port": 0, "data": str(folder), "rate_limits": "off", **values}, Settings
    )


@asynccontextmanager
async def meeting(
    folder: Path, era: str = "handshake", clock: Clock | None = None, **values: object
) -> AsyncIterator[Meeting]:
    """A hub and the people who come to it; everyone leaves before it stops."""
    async with running(settings(folder, **values), clock) as hub:
        there = Meeting(hub, era)
        try:
            yield there
        finally:
            await there.everyone_leaves()


class Meeting:
    """A running hub."""

    def __init__(self, hub: Hub, era: str) -> None:
        self.hub = hub
        self.era = era
        self.url = f"{hub.base_url}/mcp"
        self.port = int(hub.base_url.rpartition(":")[2])
        self._people: list[Person] = []

    async def everyone_leaves(self) -> None:
        """Close every connection that is still open."""
        for person in self._people:
            await person.leave()

    async def stranger(self, query: str = "", **options: Any) -> Person:
        """Someone without an account."""
        return await self.enter(f"{self.url}{query}", **options)

    async def person(self, handle: str, **arguments: Any) -> Person:
        """Someone who has an account and comes with their token."""
        made = await self.hub.accounts.register(handle, also=self.hub.mail.welcome, **arguments)
        person = await self.returning(made.token)
        person.recovery_code = made.recovery_code
        return person

    async def people(self, *handles: str) -> list[Person]:
        """Several people who have accounts."""
        return [await self.person(handle) for handle in handles]

    async def returning(self, token: str, query: str = "", **options: Any) -> Person:
        """Someone with a token, in the URL; that of an app is in the header."""
        if token.startswith("at_"):
            options["headers"] = {"authorization": f"Bearer {token}"}
            person = await self.enter(f"{self.url}?{query.lstrip('&')}", **options)
        else:
            person = await self.enter(f"{self.url}?token={token}{query}", **options)
        person.token = token
        return person

    async def enter(self, url: str, *, headers: Any = None, **options: Any) -> Person:
        """Someone who connects with the SDK's client."""
        person = Person()
        self._people.append(person)
        await person.come(url, ERAS.get(self.era, self.era), headers, options)
        return person

    async def post(
        self, message: Any, *, query: str = "", headers: dict[str, str] | None = None
    ) -> Answer:
        """One POST on a connection of its own, without any client library."""
        body = message if isinstance(message, bytes) else json.dumps(message).encode()
        return await self.ask("POST", query=query, headers=headers, body=body)

    async def ask(
        self,
        method: str,
        *,
        query: str = "",
        headers: dict[str, str] | None = None,
        body: bytes = b"",
    ) -> Answer:
        """One request to `/mcp` without any client library."""
        named = {**BOTH, **(headers or {})}
        async with httpx2.AsyncClient(verify=False, timeout=90) as http:
            answer = await http.request(
                method, f"{self.url}{query}", headers=named, content=body or None
            )
            return Answer(answer.status_code, dict(answer.headers), answer.content)


class NoSchemas(dict[str, Any]):
    """The output schemas of the hub's own tools, which have none.

    Whoever does not know that lists all tools after their first call, which takes longer.
    """

    def __contains__(self, name: object) -> bool:
        return True


class Person:
    """Someone at an MCP client."""

    token = ""
    recovery_code = ""

    client: Client

    def __init__(self) -> None:
        self._leaving = asyncio.Event()
        self._stay: asyncio.Task[None] | None = None

    async def come(self, url: str, mode: str, headers: Any, options: dict[str, Any]) -> None:
        """Connect. A client lives in a task of its own, so that people may leave in any order."""
        here: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        async def stay() -> None:
            try:
                async with AsyncExitStack() as stack:
                    # Without certificates, which take longer to load than most tests to run.
                    http = httpx2.AsyncClient(headers=headers, verify=False, timeout=90)
                    await stack.enter_async_context(http)
                    transport = streamable_http_client(url, http_client=http)
                    client = Client(transport, mode=mode, **options)
                    self.client = await stack.enter_async_context(client)
                    self.client.session._tool_output_schemas = NoSchemas()
                    here.set_result(None)
                    await self._leaving.wait()
            except Exception as error:
                if here.done():
                    raise
                here.set_exception(error)

        self._stay = asyncio.create_task(stay())
        await here

    async def call(self, tool: str, /, **arguments: Any) -> Any:
        """What a tool answers; an error fails the test."""
        payload, is_error = await self.result(tool, arguments)
        assert not is_error, payload
        return payload

    async def refused(self, tool: str, /, **arguments: Any) -> str:
        """The sentence of a tool's error; an answer fails the test."""
        try:
            payload, is_error = await self.result(tool, arguments)
        except MCPError as error:
            # What the stateless era answers 401.
            assert error.error.data == {"code": "token_invalid"}, error  # noqa: PT017
            return error.error.message
        assert is_error, payload
        return payload["error"]

    async def result(self, tool: str, arguments: dict[str, Any] | None) -> tuple[Any, bool]:
        """The one JSON object of a result, and whether it is an error."""
        result = await self.client.call_tool(tool, arguments)
        assert len(result.content) == 1
        block = result.content[0]
        assert block.type == "text"
        payload = json.loads(block.text)
        assert result.structured_content in (None, payload)
        assert isinstance(payload, dict)
        return payload, result.is_error

    async def leave(self) -> None:
        """Close the connection."""
        self._leaving.set()
        if self._stay is not None:
            await self._stay


async def until(ask: Callable[[], Any], wanted: Any = None) -> None:
    """Wait until something holds that nothing announces, or is as wanted, however long it takes."""
    while True:
        found = await answer if inspect.isawaitable(answer := ask()) else answer
        if found if wanted is None else found == wanted:
            return
        await asyncio.sleep(0.005)


async def call_tool(
    port: int, token: str, tool: str, /, *, source: str = "", **given: Any
) -> Answer:
    """Call a tool in the stateless era, on a connection of its own."""
    message, headers = modern("tools/call", name=tool, arguments=given)
    signed = {"authorization": f"Bearer {token}"} if token else {}
    body, headers = json.dumps(message).encode(), {**BOTH, **headers, **signed}
    return await ask(port, "/mcp", method="POST", headers=headers, body=body, source=source)


def payload(answer: Answer) -> Any:
    """What a tool answered."""
    return json.loads(sse_json(answer)["result"]["content"][0]["text"])


def rpc(method: str, params: dict[str, Any] | None = None, id_: int | str = 1) -> dict[str, Any]:
    """A JSON-RPC request."""
    return {"jsonrpc": "2.0", "id": id_, "method": method, "params": params or {}}


MODERN = "2026-07-28"
META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


def modern(method: str, **params: Any) -> tuple[dict[str, Any], dict[str, str]]:
    """A request of the stateless era with the headers that belong to it."""
    headers = {"mcp-protocol-version": MODERN, "mcp-method": method}
    if "name" in params:
        headers["mcp-name"] = params["name"]
    return rpc(method, {**params, "_meta": META}), headers


INITIALIZE = rpc(
    "initialize",
    {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
)


def sse_json(answer: Answer) -> Any:
    """The first message of an answer, in either form."""
    if answer.headers.get("content-type", "").startswith("application/json"):
        return answer.json()
    lines = [line for line in answer.text.splitlines() if line.startswith("data: {")]
    return json.loads(lines[0].removeprefix("data: "))
