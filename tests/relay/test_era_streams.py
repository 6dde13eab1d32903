"""Two calls at once, between the eras over HTTP: each hears what was said during it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.harness import reached
from tests.mcp.client.places import Asked, Place, Shaking, event, told
from tests.mcp.server.played import modern as stateless
from tests.mcp_harness import INITIALIZE, rpc
from tests.mcp_harness import MODERN as STATELESS
from tests.relay.standing import Standing, before

SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
LEVEL = "io.modelcontextprotocol/logLevel"
CHANGED = "notifications/tools/list_changed"
GIVEN = {"action": "accept", "content": {"yes": True}}
NAMES = ("ada", "bob")


def answer(id_: Any, **result: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id_, "result": result}


def question(name: str) -> dict[str, Any]:
    """What a server wants to know during someone's call."""
    form = {"type": "object", "properties": {}}
    params = {"message": f"Sure, {name}?", "requestedSchema": form}
    return {"method": "elicitation/create", "params": params}


def log(name: str) -> dict[str, Any]:
    return told("notifications/message", level="error", data=name)


class Server:
    """A server of one era whose two calls are open at once before it says a word."""

    def __init__(self) -> None:
        self.both = asyncio.Event()
        self.calls = 0
        self.changed = asyncio.Event()
        self.listened = asyncio.Event()
        self.shaking = Shaking(self.handshake, {"logging": {}}, (400, "Bad Request: no session"))

    async def meet(self) -> None:
        """Wait until both calls are here."""
        self.calls += 1
        if self.calls == len(NAMES):
            self.both.set()
        await self.both.wait()

    async def stateless(self, asked: Asked) -> None:
        message = asked.message
        method, id_, params = message["method"], message.get("id"), message.get("params", {})
        if asked.headers.get("mcp-protocol-version") != STATELESS:
            await asked.error(-32022, "No.", 400, data={"supported": [STATELESS]})
        elif method == "server/discover":
            offered = {"tools": {"listChanged": True}, "logging": {}}
            found = {"supportedVersions": [STATELESS], "capabilities": offered}
            await asked.result({"resultType": "complete", **found})
        elif method == "subscriptions/listen":
            meta, wanted = {SUBSCRIPTION: id_}, params["notifications"]
            agreed = {"notifications": wanted, "_meta": meta}
            begun = told("notifications/subscriptions/acknowledged", **agreed)
            await asked.events(event(begun), end=False)
            self.listened.set()
            await self.changed.wait()
            await asked.part(event(told(CHANGED, _meta=meta)))
        elif "inputResponses" in params:
            await asked.result({"resultType": "complete", "content": [], "got": params["name"]})
        else:
            await self.meet()
            wish = {"inputRequests": {"q": question(params["name"])}, "requestState": "s"}
            asks = answer(id_, resultType="input_required", **wish)
            await asked.events(event(log(params["name"])), event(asks))

    async def handshake(self, asked: Asked) -> None:
        if asked.message["method"] != "tools/call":
            await asked.result({})
            return
        await self.meet()
        name = asked.message["params"]["name"]
        asks = {"jsonrpc": "2.0", "id": f"q-{name}", **question(name)}
        await asked.events(event(log(name)), event(asks), end=False)
        await reached(lambda: bool(self.given(name)))
        done = answer(asked.message["id"], content=[], got=[name, *self.given(name)])
        await asked.part(event(done))
        await asked.end()

    def given(self, name: str) -> list[Any]:
        """What was answered to the question of someone's call."""
        replies = [each for each in self.shaking.told if each.get("id") == f"q-{name}"]
        return [each["result"] for each in replies]


async def opened(proxy: Standing, capabilities: dict[str, Any]) -> dict[str, str]:
    """The headers of a session over which hands were shaken."""
    hello = INITIALIZE["params"] | {"capabilities": capabilities}
    named = (await proxy.post(INITIALIZE | {"params": hello})).headers["mcp-session-id"]
    session = {"mcp_session_id": named, "mcp_protocol_version": "2025-11-25"}
    assert (await proxy.post(told("notifications/initialized"), **session)).status_code == 202
    return session


@pytest.mark.requirement("mcp.eras-own-stream", "mcp.eras-listening")
async def test_a_handshake_client_hears_each_call_in_its_own_stream():
    async def call(proxy: Standing, session: dict[str, str], name: str, id_: int) -> None:
        asking = rpc("tools/call", {"name": name}, id_)
        async with proxy.stream("POST", asking, **session) as stream:
            assert (await stream.message())[1]["params"]["data"] == name
            asked = (await stream.message())[1]
            assert asked["params"] == question(name)["params"]
            assert (await proxy.post(answer(asked["id"], **GIVEN), **session)).status_code == 202
            assert (await stream.message())[1] == answer(id_, content=[], got=name)

    server = Server()
    async with Place(server.stateless).open() as place, before(place.url) as proxy:
        session = await opened(proxy, {"elicitation": {}})
        assert not server.listened.is_set()
        async with proxy.stream("GET", **session) as changes:
            await server.listened.wait()
            async with asyncio.TaskGroup() as tasks:
                for id_, name in enumerate(NAMES, 1):
                    tasks.create_task(call(proxy, session, name, id_))
            server.changed.set()
            assert (await changes.message())[1] == told(CHANGED)


@pytest.mark.requirement("mcp.eras-own-stream")
async def test_stateless_clients_that_share_a_handshake_server_hear_each_its_own_call():
    meta = {CAPABILITIES: {"elicitation": {}}, LEVEL: "info"}

    async def call(proxy: Standing, name: str) -> None:
        message, headers = stateless("tools/call", 1, name=name)
        message["params"]["_meta"] |= meta
        async with proxy.stream("POST", message, **headers) as stream:
            assert (await stream.message())[1]["params"]["data"] == name
            wish = (await stream.message())[1]["result"]
        assert wish["inputRequests"] == {"1": question(name)}
        message["params"] |= {"requestState": wish["requestState"], "inputResponses": {"1": GIVEN}}
        assert (await proxy.post(message, **headers)).json()["result"]["got"] == [name, GIVEN]

    async with Server().shaking.place.open() as place, before(place.url) as proxy:
        await asyncio.gather(*(call(proxy, name) for name in NAMES))
