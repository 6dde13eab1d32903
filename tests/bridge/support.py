"""What tests of the bridge share: a hub that may lie, and people who reach it through bridges."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import AsyncExitStack
from itertools import count
from pathlib import Path
from typing import Any

import httpx2
from starlette.requests import Request as HttpRequest
from starlette.responses import Response as HttpResponse

from folkmoot.app import Hub
from folkmoot.bridge.calls import canonical
from folkmoot.bridge.serve import (
    Bridge,
    BridgeAccount,
    BridgeFiles,
    open_bridge,
)
from folkmoot.clock import SystemClock
from folkmoot.core.envelope import MessageContext, MessageDirection, MessageEnvelope
from folkmoot.core.message import (
    Request,
    Response,
    decode_message,
    encode_message,
)
from folkmoot.core.session import ANONYMOUS
from folkmoot.core.timing import TimingContext
from folkmoot.core.verdict import Block, Mock
from folkmoot.proxy.chain import Chain
from folkmoot.proxy.sessions import ProxySession
from folkmoot.relay.conversation import ProxyConversation
from tests.mcp_harness import META

# What a hub makes of a tool's answer: the tool, its arguments and the answer, to the answer.
Lie = Callable[[str, dict[str, Any], dict[str, Any]], dict[str, Any] | None]


class Town:
    """A hub, whose answers may be changed on their way, and what it was told."""

    def __init__(self, hub: Hub, folder: Path) -> None:
        self.hub = hub
        self.folder = folder
        self.url = ""
        self.lie: Lie | None = None
        # What every call is answered with, if it is anything.
        self.result: Any = None
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self._stack = AsyncExitStack()

    async def person(self, handle: str, **options: Any) -> Desk:
        """Someone new, at a bridge of their own."""
        made = await self.hub.accounts.register(handle, also=self.hub.mail.welcome)
        return await self.desk(BridgeAccount(self.url, handle, made.token), handle, **options)

    async def people(self, *handles: str) -> list[Desk]:
        """Several people, each of whom has been at their bridge once."""
        desks = [await self.person(handle) for handle in handles]
        for desk in desks:
            await desk.bridge.device.ready()
        return desks

    async def desk(self, account: BridgeAccount, place: str, **options: Any) -> Desk:
        """A bridge on a computer, which is a folder."""
        folder = self.folder / place
        places = BridgeFiles(folder / "keys.json", folder / "bridge.db", **options)
        desk = Desk(account, places)
        running = open_bridge(account, places, SystemClock(), desk.said.append)
        desk.bridge = await self._stack.enter_async_context(running)
        desk.chain = Chain(desk.bridge.interceptors)
        return desk

    async def close(self) -> None:
        await self._stack.aclose()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """The hub's `/mcp`, as it is or as it lies."""
        request = HttpRequest(scope, receive)
        body = await request.body()
        params = json.loads(body)["params"]
        tool, arguments = canonical(params.get("name", "")), params.get("arguments") or {}
        self.calls.append((tool, arguments))
        headers = {k: v for k, v in request.headers.items() if k not in ("host", "content-length")}
        async with httpx2.AsyncClient(timeout=None) as client:
            answer = await client.post(f"{self.hub.base_url}/mcp", content=body, headers=headers)
            content, status = answer.content, answer.status_code
        if self.result is not None and tool:
            content = json.dumps({**json.loads(content), "result": self.result}).encode()
        elif self.lie is not None and tool:
            content = self._changed(tool, arguments, content)
        await HttpResponse(content, status, media_type="application/json")(scope, receive, send)

    def _changed(self, tool: str, arguments: dict[str, Any], content: bytes) -> bytes:
        assert self.lie is not None
        answer = json.loads(content)
        block = answer["result"]["content"][0]
        made = self.lie(tool, arguments, json.loads(block["text"]))
        if made is not None:
            block["text"] = json.dumps(made)
            answer["result"]["isError"] = "error" in made
        return json.dumps(answer).encode()


class Desk:
    """Someone with a client and a bridge, which is asked as the relay asks it."""

    bridge: Bridge
    chain: Chain
    _ids = count(1)

    def __init__(self, account: BridgeAccount, places: BridgeFiles) -> None:
        self.account = account
        self.places = places
        self.said: list[str] = []
        self.hands_over = True
        self._conversation = ProxyConversation(ProxySession(account.handle, ANONYMOUS, 0.0, 0.0))
        self._passed: MessageEnvelope[Any] | None = None

    async def call(self, tool: str, /, **arguments: Any) -> Any:
        """What a tool answers through the bridge; an error of the hub's fails the test."""
        is_error, payload = await self._called(tool, arguments)
        assert not is_error, payload
        return payload

    async def refused(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        """What a call that is refused is answered: a result of the specification's shape."""
        is_error, payload = await self._called(tool, arguments)
        assert (is_error, type(payload["error"])) == (True, str), payload
        return dict(payload)

    async def _called(self, tool: str, arguments: dict[str, Any]) -> tuple[bool, Any]:
        result = await self.request("tools/call", name=tool, arguments=arguments)
        [block] = result["content"]
        assert block["type"] == "text"
        return result.get("isError", False), json.loads(block["text"])

    async def request(self, method: str, **params: Any) -> Any:
        request = Request(id=next(self._ids), method=method, params={**params, "_meta": META})
        sent = await self.pass_through(request, MessageDirection.CLIENT_TO_SERVER)
        if isinstance(sent, Response):
            return sent.result
        came = decode_message(await self._post(encode_message(sent), sent))
        answer = await self.pass_through(came, MessageDirection.SERVER_TO_CLIENT)
        if self.hands_over:
            assert self._passed is not None
            self.bridge.marker.handed(self._passed)
        assert not answer.error, answer.error
        return answer.result

    async def pass_through(self, message: Any, direction: MessageDirection) -> Any:
        """A message as the interceptors leave it, or their answer to it; raises what stops it."""
        context = MessageContext(TimingContext(0.0, 0.0), direction)
        ruling = await self.chain.run(self._conversation.enter(MessageEnvelope(message, context)))
        if isinstance(ruling.verdict, Block):
            raise ruling.verdict.error
        if isinstance(ruling.verdict, Mock):
            return Response(id=message.id, result=ruling.verdict.result)
        self._passed = ruling.envelope
        return ruling.envelope.message

    async def _post(self, body: bytes, request: Any) -> bytes:
        headers = {
            "authorization": f"Bearer {self.account.token}",
            "content-type": "application/json",
            "accept": "application/json, text/event-stream",
            "mcp-protocol-version": "2026-07-28",
            "mcp-method": request.method,
        }
        if "name" in request.params:
            headers["mcp-name"] = request.params["name"]
        async with httpx2.AsyncClient(timeout=None) as client:
            url = f"{self.account.hub}/mcp"
            return (await client.post(url, content=body, headers=headers)).content


def in_pages(change: Callable[[list[Any]], list[Any]]) -> Lie:
    """A lie about the messages of every page."""

    def lie(tool: str, _: dict[str, Any], answer: dict[str, Any]) -> dict[str, Any] | None:
        if "messages" not in answer:
            return None
        return {**answer, "messages": change(answer["messages"])}

    return lie


def in_messages(change: Callable[[dict[str, Any]], dict[str, Any]]) -> Lie:
    """A lie about every message that is shown."""
    return in_pages(lambda messages: [change(dict(message)) for message in messages])
