"""A client of rooms on the `websockets` library, which knows of a hub only what anyone can see."""

from __future__ import annotations

import itertools
import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import urlencode

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from folkmoot.app import Hub
from folkmoot.core.ports import Interceptor
from tests.harness import Answer, ask
from tests.mcp_harness import settings
from tests.nodes import running

ROOM = "plaza"
PROTOCOL = "mcpx/v1"
# The code of a connection that ended without a close.
ABNORMAL = 1006

Message: TypeAlias = dict[str, Any]

_numbers = itertools.count(1)


def message(kind: str, payload: Any = None, **members: Any) -> Message:
    """A message with an id of its own, unless it is given one."""
    sent = {"protocol": PROTOCOL, "id": f"n-{next(_numbers)}", "kind": kind, **members}
    return sent if payload is None else {**sent, "payload": payload}


def anew(sent: Message) -> Message:
    """The same once more, under another id."""
    return {**sent, "id": f"n-{next(_numbers)}"}


def chat(text: str = "hello", **members: Any) -> Message:
    """Chat in its short form."""
    return message("chat.message", {"text": text}, **members)


def notice(text: str = "hello", **members: Any) -> Message:
    """Chat as a notification."""
    method = "notifications/chat/message"
    payload = {"jsonrpc": "2.0", "method": method, "params": {"text": text}}
    return message(f"mcp.notification.{method}", payload, **members)


def call(to: str, tool: str = "mow", arguments: Any = None, **members: Any) -> Message:
    """A request to call a tool of someone."""
    payload_id = members.pop("payload_id", next(_numbers))
    params = {"name": tool, "arguments": arguments or {}}
    payload = {"jsonrpc": "2.0", "id": payload_id, "method": "tools/call", "params": params}
    return message("mcp.request.tools/call", payload, to=[to], **members)


def say(text: str = "hello") -> Message:
    """Chat by the tool of the gateway."""
    return call("gateway", "chat.say", {"text": text})


def answer(asked: Message, **members: Any) -> Message:
    """The answer to a request as it was heard."""
    payload = {"jsonrpc": "2.0", "id": asked["payload"]["id"], "result": {"content": []}}
    kind = asked["kind"].replace("mcp.request", "mcp.response", 1)
    told = {"to": [asked["from"]], "correlation_id": [asked["id"]], **members}
    return message(kind, told.pop("payload", payload), **told)


def proposal(tool: str = "mow", arguments: Any = None, **members: Any) -> Message:
    """A proposal to call a tool."""
    payload = {"method": "tools/call", "params": {"name": tool, "arguments": arguments or {}}}
    return message("mcp.proposal.tools/call", payload, **members)


def fulfilment(proposed: Message, to: str, **members: Any) -> Message:
    """The request that fulfils a proposal."""
    payload = {**proposed["payload"], "jsonrpc": "2.0", "id": next(_numbers)}
    return message(
        "mcp.request.tools/call", payload, to=[to], correlation_id=[proposed["id"]], **members
    )


def grant(recipient: str, *capabilities: Any, **members: Any) -> Message:
    payload = {"recipient": recipient, "capabilities": list(capabilities)}
    return message("capability.grant", payload, **members)


class Closed(Exception):
    """The connection ended."""

    def __init__(self, error: ConnectionClosed) -> None:
        super().__init__(str(error))
        self.code = error.rcvd.code if error.rcvd else ABNORMAL
        self.reason = error.rcvd.reason if error.rcvd else ""


class Seat:
    """One connection in a room; every message with a `seq` that came on it is kept."""

    def __init__(self, socket: ClientConnection, welcome: Message) -> None:
        self.socket = socket
        self.welcome: Message = welcome["payload"]
        self.name: str = self.welcome["you"]["id"]
        self.heard: list[Message] = []
        self._read = 0

    @property
    def seqs(self) -> list[int]:
        """Of all that was heard."""
        return [one["seq"] for one in self.heard]

    async def send(self, sent: Message | str | bytes) -> None:
        """Send a message, or any text as a text message."""
        text = json.dumps(sent) if isinstance(sent, dict) else sent
        try:
            await self.socket.send(text, text=True)
        except ConnectionClosed as error:
            raise Closed(error) from None

    async def hear(self) -> Message:
        """The next message, whatever it is."""
        try:
            told: Message = json.loads(await self.socket.recv(decode=False))
        except ConnectionClosed as error:
            raise Closed(error) from None
        if "seq" in told:
            self.heard.append(told)
        return told

    async def until(self, wanted: Callable[[Message], bool]) -> Message:
        """The next message that is wanted; what comes before it is passed over."""
        while not wanted(told := await self.hear()):
            pass
        return told

    async def kind(self, kind: str) -> Message:
        """The next message of a kind."""
        return await self.until(lambda told: told["kind"] == kind)

    async def outcome(self, id_: str) -> Message:
        """What becomes of a message of ours: it comes back, or is refused."""

        def decides(told: Message) -> bool:
            refused = told["kind"] == "system.error" and told.get("correlation_id") == [id_]
            return refused or (told["id"] == id_ and told["from"] == self.name)

        return await self.until(decides)

    async def said(self, sent: Message) -> Message:
        """Say something; the message as everyone hears it. A refusal fails the test."""
        await self.send(sent)
        told = await self.outcome(sent["id"])
        assert told["kind"] != "system.error", told["payload"]
        return told

    async def refused(self, sent: Message) -> Message:
        """What the refusal of a message says; that it is accepted fails the test."""
        await self.send(sent)
        told = await self.outcome(sent["id"])
        assert told["kind"] == "system.error", told
        return told["payload"]

    async def news(self) -> list[Message]:
        """All that came since it was last asked, up to a word of our own that is left out."""
        mark = await self.said(chat("mark"))
        new, self._read = self.heard[self._read :], len(self.heard)
        return [one for one in new if one["id"] != mark["id"]]

    async def closed(self) -> int:
        """With which code the hub closes; what comes before is heard."""
        try:
            while True:
                await self.hear()
        except Closed as end:
            return end.code


def address(port: int, token: str = "", room: str = ROOM, **query: object) -> str:
    """Where a room is joined."""
    given = {"room": room, **({"token": token} if token else {}), **query}
    return f"ws://127.0.0.1:{port}/ws?{urlencode(given)}"


@asynccontextmanager
async def joined(port: int, token: str, room: str = ROOM, **query: object) -> AsyncIterator[Seat]:
    """Someone who has come in and read the welcome; a door that stays shut raises `Closed`."""
    # The token of an app is never in a URL.
    signed = {"authorization": f"Bearer {token}"} if token.startswith("at_") else {}
    url = address(port, "" if signed else token, room, **query)
    # Whoever does not read here is only not interested, so their client goes on reading.
    async with connect(
        url, max_size=None, max_queue=None, compression=None, additional_headers=signed
    ) as socket:
        seat = Seat(socket, {"payload": {"you": {"id": ""}}})
        yield Seat(socket, await seat.kind("system.welcome"))


async def turned_away(port: int, token: str = "", room: str = ROOM, **query: object) -> int:
    """The code with which someone is not let in."""
    try:
        async with joined(port, token, room, **query):
            raise AssertionError("someone was let in")
    except Closed as end:
        return end.code


async def rest(
    port: int, token: str, method: str, path: str, content: Mapping[str, Any] | None = None
) -> Answer:
    """One request to the REST interface."""
    headers = {"authorization": f"Bearer {token}", "content-type": "application/json"}
    body = json.dumps(content).encode() if content is not None else b""
    return await ask(port, f"/v1/rooms{path}", method=method, headers=headers, body=body)


class Square:
    """A running hub, used from outside alone."""

    def __init__(self, hub: Hub) -> None:
        self.hub = hub
        self.port = int(hub.base_url.rpartition(":")[2])
        self.tokens: dict[str, str] = {}

    async def people(self, *handles: str, **arguments: Any) -> list[str]:
        """New accounts; the token of each."""
        for handle in handles:
            self.tokens[handle] = (await self.hub.accounts.register(handle, **arguments)).token
        return [self.tokens[handle] for handle in handles]

    async def room(self, owner: str, name: str = ROOM, **spec: Any) -> None:
        """A new open room of someone's."""
        given = {"name": name, "access": "open", **spec}
        made = await rest(self.port, self.tokens[owner], "POST", "", given)
        assert made.status == 201, made

    def seat(self, handle: str, room: str = ROOM, **query: object) -> Any:
        """Someone who comes in, as a context."""
        return joined(self.port, self.tokens[handle], room, **query)

    @asynccontextmanager
    async def seats(self, *handles: str) -> AsyncIterator[list[Seat]]:
        """Several who come in, one after the other."""
        async with AsyncExitStack() as stack:
            yield [await stack.enter_async_context(self.seat(handle)) for handle in handles]

    async def rest(self, handle: str, method: str, path: str, content: Any = None) -> Answer:
        """A request of someone's to the REST interface."""
        return await rest(self.port, self.tokens[handle], method, path, content)

    async def history(self, handle: str, room: str = ROOM) -> list[Message]:
        """All that is kept of a room."""
        found: list[Message] = []
        while True:
            last = found[-1]["seq"] if found else 0
            page = await self.rest(handle, "GET", f"/{room}/messages?after={last}&limit=500")
            assert page.status == 200, page
            if not page.json()["messages"]:
                return found
            found += page.json()["messages"]


class Posting:
    """Messages by REST."""

    def __init__(self, there: Square, handle: str, room: str = ROOM) -> None:
        self._there = there
        self._handle = handle
        self._path = f"/{room}/messages"

    async def said(self, sent: Message) -> Message:
        answer = await self._there.rest(self._handle, "POST", self._path, sent)
        assert answer.status == 201, answer
        return answer.json()

    async def refused(self, sent: Message) -> Message:
        answer = await self._there.rest(self._handle, "POST", self._path, sent)
        assert 400 <= answer.status < 500, answer
        told: dict[str, Any] = answer.json()["error"]
        return {**told, "error": told["code"]}


@asynccontextmanager
async def square(
    folder: Path,
    interceptors: Sequence[Interceptor] = (),
    tokens: dict[str, str] | None = None,
    **values: object,
) -> AsyncIterator[Square]:
    """A hub, and nobody in it but those who had tokens before it was restarted."""
    async with running(settings(folder, **values), interceptors=interceptors) as hub:
        there = Square(hub)
        there.tokens |= tokens or {}
        yield there
