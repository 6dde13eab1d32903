"""Two calls at once, between the eras over HTTP: each hears what was said during it."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from tests.mcp.client.places import EVENTS, Asked, Place, event
from tests.relay.listening import STATELESS, stateless
from tests.relay.standing import Reading, Standing, before

SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
LEVEL = "io.modelcontextprotocol/logLevel"
CHANGED = "notifications/tools/list_changed"
GIVEN = {"action": "accept", "content": {"yes": True}}
NAMES = ("ada", "bob")


def rpc(method: str, id_: Any = None, **params: Any) -> dict[str, Any]:
    """A request, or a notification where it has no id."""
    message = {"jsonrpc": "2.0", "method": method, "params": params}
    return message if id_ is None else message | {"id": id_}


def answer(id_: Any, **result: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id_, "result": result}


def question(name: str) -> dict[str, Any]:
    """What a server wants to know during someone's call."""
    form = {"type": "object", "properties": {}}
    params = {"message": f"Sure, {name}?", "requestedSchema": form}
    return {"method": "elicitation/create", "params": params}


def log(name: str) -> dict[str, Any]:
    return rpc("notifications/message", level="error", data=name)


class Server:
    """A server of one era whose two calls are open at once before it says a word."""

    def __init__(self) -> None:
        self.both = asyncio.Event()
        self.calls = 0
        self.changed = asyncio.Event()
        self.listened = asyncio.Event()
        self.answers: dict[str, asyncio.Future[Any]] = {}

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
            refused = {"code": -32022, "message": "No.", "data": {"supported": [STATELESS]}}
            await asked.say_json({"jsonrpc": "2.0", "id": id_, "error": refused}, 400)
        elif method == "server/discover":
            offered = {"tools": {"listChanged": True}, "logging": {}}
            found = {"supportedVersions": [STATELESS], "capabilities": offered}
            await asked.result({"resultType": "complete", **found})
        elif method == "subscriptions/listen":
            await asked.head(200, EVENTS)
            meta, wanted = {SUBSCRIPTION: id_}, params["notifications"]
            told = rpc("notifications/subscriptions/acknowledged", notifications=wanted, _meta=meta)
            await asked.part(event(told))
            self.listened.set()
            await self.changed.wait()
            await asked.part(event(rpc(CHANGED, _meta=meta)))
        elif "inputResponses" in params:
            await asked.result({"resultType": "complete", "content": [], "got": params["name"]})
        else:
            await self.meet()
            await asked.head(200, EVENTS)
            await asked.part(event(log(params["name"])))
            wish = {"inputRequests": {"q": question(params["name"])}, "requestState": "s"}
            await asked.part(event(answer(id_, resultType="input_required", **wish)))
            await asked.end()

    async def handshake(self, asked: Asked) -> None:
        if asked.method != "POST":
            await asked.say(405)
            return
        message = asked.message
        method, id_, params = message.get("method"), message.get("id"), message.get("params", {})
        if method == "initialize":
            told = {"protocolVersion": "2025-11-25", "capabilities": {"logging": {}}}
            server = {"name": "played", "version": "1"}
            await asked.result({**told, "serverInfo": server}, mcp_session_id="one")
        elif "mcp-session-id" not in asked.headers:
            refused = {"code": -32000, "message": "Bad Request: no session"}
            await asked.say_json({"jsonrpc": "2.0", "id": id_, "error": refused}, 400)
        elif method is None:
            self.answers[id_].set_result(message["result"])
            await asked.say(202)
        elif method != "tools/call":
            await (asked.say(202) if id_ is None else asked.result({}))
        else:
            await self.meet()
            name = params["name"]
            got = self.answers[f"q-{name}"] = asyncio.get_running_loop().create_future()
            await asked.head(200, EVENTS)
            await asked.part(event(log(name)))
            await asked.part(event({"jsonrpc": "2.0", "id": f"q-{name}", **question(name)}))
            await asked.part(event(answer(id_, content=[], got=[name, await got])))
            await asked.end()


async def heard(reading: Reading) -> dict[str, Any]:
    """The next message of a stream, whose first event may only tell its id."""
    while not (data := (await reading.next()).data):
        pass
    told: dict[str, Any] = json.loads(data)
    return told


async def opened(proxy: Standing, capabilities: dict[str, Any]) -> dict[str, str]:
    """The headers of a session over which hands were shaken."""
    client = {"name": "test", "version": "1"}
    hello = {"protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": client}
    met = await proxy.post(rpc("initialize", 0, **hello))
    session = {
        "mcp_session_id": met.headers["mcp-session-id"],
        "mcp_protocol_version": "2025-11-25",
    }
    assert (await proxy.post(rpc("notifications/initialized"), **session)).status_code == 202
    return session


@pytest.mark.requirement("mcp.eras-own-stream", "mcp.eras-listening")
async def test_a_handshake_client_hears_each_call_in_its_own_stream() -> None:
    async def call(proxy: Standing, session: dict[str, str], name: str, id_: int) -> None:
        async with proxy.stream("POST", rpc("tools/call", id_, name=name), **session) as stream:
            assert (await heard(stream))["params"]["data"] == name
            asked = await heard(stream)
            assert asked["params"] == question(name)["params"]
            assert (await proxy.post(answer(asked["id"], **GIVEN), **session)).status_code == 202
            assert await heard(stream) == answer(id_, content=[], got=name)

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
            assert await heard(changes) == rpc(CHANGED)


@pytest.mark.requirement("mcp.eras-questions")
async def test_a_handshake_client_is_not_asked_over_http_for_what_it_does_not_offer() -> None:
    server = Server()
    server.both.set()
    async with Place(server.stateless).open() as place, before(place.url) as proxy:
        session = await opened(proxy, {"sampling": {}})
        async with proxy.stream("POST", rpc("tools/call", 1, name="ada"), **session) as stream:
            assert (await heard(stream))["params"]["data"] == "ada"
            refused = (await heard(stream))["error"]
        unable = "The server needs an input that this client does not offer: elicitation/create."
        assert refused["message"] == unable
        assert refused["data"]["needs"] == "elicitation"


@pytest.mark.requirement("mcp.eras-own-stream")
async def test_stateless_clients_that_share_a_handshake_server_hear_each_its_own_call() -> None:
    meta = {CAPABILITIES: {"elicitation": {}}, LEVEL: "info"}

    async def call(proxy: Standing, name: str) -> None:
        message, headers = stateless("tools/call", 1, name=name)
        message["params"]["_meta"] |= meta
        async with proxy.stream("POST", message, **headers) as stream:
            assert (await heard(stream))["params"]["data"] == name
            wish = (await heard(stream))["result"]
        assert wish["inputRequests"] == {"1": question(name)}
        message["params"] |= {"requestState": wish["requestState"], "inputResponses": {"1": GIVEN}}
        answered = await proxy.post(message, **headers)
        assert answered.json()["result"]["got"] == [name, GIVEN]

    async with Place(Server().handshake).open() as place, before(place.url) as proxy:
        await asyncio.gather(*(call(proxy, name) for name in NAMES))
