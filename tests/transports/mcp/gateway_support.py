"""What tests of `/mcp` before backends share: a backend in this process, and a hub that has it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeAlias

import httpx2
import pytest

from folkmoot.core import errors as e
from folkmoot.core.message import Notification, Response
from folkmoot.gateway.model import BackendState, Inventory, UpstreamRequest
from folkmoot.settings import GatewaySpec
from folkmoot.settings.backends import BackendSpec
from tests.harness import Answer
from tests.mcp_harness import INITIALIZE, META, MODERN, Meeting, Person, meeting, rpc
from tests.nodes import nodes_of

Doing: TypeAlias = Callable[[UpstreamRequest], Awaitable[Any]]
Headers: TypeAlias = dict[str, str] | None

stateless = pytest.mark.parametrize("era", ["stateless"])
handshake = pytest.mark.parametrize("era", ["handshake"])

PLAIN_TOOL = {
    "description": "Answers with what it was given.",
    "inputSchema": {
        "type": "object",
        "properties": {"text": {"type": "string", "description": "Anything."}},
        "additionalProperties": True,
    },
}


def text(said: str, **more: Any) -> dict[str, Any]:
    """The result of a tool."""
    return {"content": [{"type": "text", "text": said}], **more}


def form(message: str, **properties: Any) -> dict[str, Any]:
    """What a server asks its caller."""
    schema = {"type": "object", "properties": properties}
    params = {"mode": "form", "message": message, "requestedSchema": schema}
    return {"method": "elicitation/create", "params": params}


def wish(state: str | None = "s", **asked: Any) -> dict[str, Any]:
    """The result of a tool that wants to be told something first."""
    told = {"resultType": "input_required", "inputRequests": asked}
    return told if state is None else {**told, "requestState": state}


async def echo(wanted: UpstreamRequest) -> Any:
    """Say what was given."""
    return text(json.dumps(wanted.params.get("arguments", {})), structuredContent={"echoed": True})


async def anything(wanted: UpstreamRequest) -> Any:
    """A result that is valid for every method."""
    whole: dict[str, Any] = {"contents": [], "messages": [], "completion": {"values": []}}
    return {**await echo(wanted), **whole}


def progress(done: float, total: float = 3) -> Notification:
    """What a server says of its progress."""
    params = {"progressToken": "theirs", "progress": done, "total": total, "message": f"at {done}"}
    return Notification(method="notifications/progress", params=params)


def log(level: str, data: str) -> Notification:
    """A server's log message."""
    return Notification(method="notifications/message", params={"level": level, "data": data})


class Talker:
    """A tool that says something, waits, says more and answers."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.go_on = asyncio.Event()
        self.answered = 0

    async def __call__(self, wanted: UpstreamRequest) -> Any:
        if "inputResponses" not in wanted.params:
            self.say(wanted, progress(1))
            self.begun.set()
            await self.go_on.wait()
            self.say(wanted, progress(2), log("info", "nearly"))
            if wanted.params.get("arguments", {}).get("ask"):
                return wish(None, who=form("Who?"))
        self.answered += 1
        given = wanted.params.get("inputResponses", {}).get("who", {}).get("content", {})
        return text(f"done {given.get('name', '')}".strip())

    def say(self, wanted: UpstreamRequest, *notices: Notification) -> None:
        """Tell the caller, who may not listen."""
        for notice in notices:
            if wanted.tell is not None:
                wanted.tell(notice)


class Demo:
    """A backend in this process. `tools` says what each of its tools does, by its own name."""

    def __init__(self, namespace: str = "demo", **tools: Doing) -> None:
        self.spec = BackendSpec(
            name=namespace, namespace=namespace, command=("x",), new_tools="list"
        )
        self.state = BackendState.UP
        self.why = ""
        self.tools: dict[str, Doing] = {"echo": echo, **tools}
        self.asked: list[UpstreamRequest] = []
        self.cancelled: list[UpstreamRequest] = []
        self.watched: dict[str, list[Callable[[], None]]] = {}
        # What it lists beside its tools.
        self.listed: dict[str, Any] = {}
        # What it makes of anything but a tool call.
        self.other: Doing = anything

    def inventory(self, **more: Any) -> Inventory:
        """What it lists."""
        listed = tuple({"name": name, **PLAIN_TOOL} for name in self.tools)
        return Inventory(tools=listed, **{**self.listed, **more})

    async def request(self, wanted: UpstreamRequest) -> Response:
        self.asked.append(wanted)
        if self.state is not BackendState.UP:
            raise e.BackendUnavailable(f"{self.spec.namespace} is down: {self.why}")
        doing = self.other
        if wanted.method == "tools/call":
            doing = self.tools[wanted.params["name"]]
        try:
            result = await doing(wanted)
        except asyncio.CancelledError:
            self.cancelled.append(wanted)
            raise
        return result if isinstance(result, Response) else Response(id="theirs", result=result)

    async def watch(
        self, uri: str, changed: Callable[[], None], person: str = ""
    ) -> Callable[[], None]:
        if uri.endswith("/still"):
            raise e.BackendUnavailable("It tells of no changes.")
        self.watched.setdefault(uri, []).append(changed)

        def stop() -> None:
            self.watched[uri].remove(changed)
            if not self.watched[uri]:
                del self.watched[uri]

        return stop

    async def watch_task(
        self, own: str, changed: Callable[[], None], person: str
    ) -> Callable[[], None]:
        assert person
        return await self.watch(own, changed, person)

    def change(self, uri: str) -> None:
        """A resource or a task of its changes."""
        for changed in tuple(self.watched.get(uri, ())):
            changed()


@asynccontextmanager
async def fronted(
    folder: Path,
    era: str,
    *backends: Demo,
    everyone: bool = True,
    listed: dict[str, Any] | None = None,
    **values: object,
) -> AsyncIterator[Meeting]:
    """A hub with these backends, which everyone may use, or nobody until it is granted."""
    async with meeting(folder, era, **values) as there:
        for node in nodes_of(there.hub):
            gateway = node.behind.gateway
            for each in backends:
                gateway.attach(each)
                await gateway.arrived(each.spec.namespace, each.inventory(**(listed or {})))
        await settle(there, everyone=everyone)
        for node in nodes_of(there.hub):
            # Now, while nobody listens: whoever came soon would hear of what was there before.
            changes = node.mcp._parts._changes
            if changes._timer is not None:
                changes._timer.cancel()
                changes._notify()
        yield there


async def settle(there: Meeting, *, everyone: bool = False, **grants: tuple[str, ...]) -> None:
    """Let people use the backends: everyone, or each as it is granted to their handle."""
    for node in nodes_of(there.hub):
        behind = node.behind
        specs = {
            each: BackendSpec(name=each, namespace=each, command=("x",), everyone=everyone)
            for each in behind.gateway.backends
        }
        await behind.rights.configure(GatewaySpec(backends=specs, grants=dict(grants)))


class Wire:
    """Plain HTTP as one account, in one era; what comes back is read event by event."""

    def __init__(self, there: Meeting, token: str, session: str = "") -> None:
        self.there = there
        self.http = httpx2.AsyncClient(verify=False, timeout=30)
        self.token = token
        self.session = session

    def headers(self, message: dict[str, Any]) -> dict[str, str]:
        named = {
            "content-type": "application/json",
            "accept": "application/json, text/event-stream",
            **({"authorization": f"Bearer {self.token}"} if self.token else {}),
        }
        if self.session:
            return {**named, "mcp-session-id": self.session}
        named |= {"mcp-protocol-version": MODERN, "mcp-method": message.get("method", "")}
        params = message.get("params", {})
        name = params.get("name") or params.get("uri") or params.get("taskId")
        return {**named, "mcp-name": name} if name else named

    def message(
        self, method: str, params: dict[str, Any], id_: int | str, meta: dict[str, Any] | None
    ) -> dict[str, Any]:
        told = {**({} if self.session else META), **(meta or {})}
        given = {**params, "_meta": told} if told else params
        return {"jsonrpc": "2.0", "id": id_, "method": method, "params": given}

    async def post(
        self, message: dict[str, Any], query: str = "", headers: Headers = None
    ) -> Answer:
        """One POST, read to its end."""
        answer = await self.http.post(
            self.there.url + query,
            content=json.dumps(message).encode(),
            headers={**self.headers(message), **(headers or {})},
        )
        return Answer(answer.status_code, dict(answer.headers), answer.content)

    async def ask(
        self,
        method: str,
        params: dict[str, Any] | None = None,
        *,
        id_: int | str = 1,
        meta: dict[str, Any] | None = None,
        query: str = "",
        headers: Headers = None,
    ) -> Any:
        """The last message that answers a request."""
        message = self.message(method, params or {}, id_, meta)
        return messages(await self.post(message, query, headers))[-1]

    @asynccontextmanager
    async def streamed(
        self, message: dict[str, Any], query: str = ""
    ) -> AsyncIterator[AsyncIterator[Any]]:
        """The messages of a stream as they come."""
        async with self.http.stream(
            "POST",
            self.there.url + query,
            content=json.dumps(message).encode(),
            headers=self.headers(message),
        ) as response:
            yield read_events(response)

    async def reply(self, question: Any, result: Any) -> int:
        """The status of the answer to what was asked back."""
        told = {"jsonrpc": "2.0", "id": question["id"], "result": result}
        return (await self.post(told)).status

    async def end(self) -> int:
        """End the session; the status of the answer."""
        answer = await self.http.delete(self.there.url, headers=self.headers({}))
        return answer.status_code

    async def leave(self) -> None:
        """Close the connections; the meeting does it for everyone."""
        await self.http.aclose()


async def read_events(response: httpx2.Response) -> AsyncIterator[Any]:
    """The messages of a stream, one after the other."""
    async for line in response.aiter_lines():
        if line.startswith("data: {"):
            yield json.loads(line.removeprefix("data: "))


@asynccontextmanager
async def session_stream(wire: Wire) -> AsyncIterator[AsyncIterator[Any]]:
    """The messages of a session that answer nothing."""
    headers = {**wire.headers({}), "accept": "text/event-stream"}
    async with wire.http.stream("GET", wire.there.url, headers=headers) as response:
        assert response.status_code == 200
        yield read_events(response)


def messages(answer: Answer) -> list[Any]:
    """Every message of an answer, in either form."""
    if answer.headers.get("content-type", "").startswith("text/event-stream"):
        lines = answer.text.replace("\r\n", "\n").split("\n")
        return [json.loads(line[6:]) for line in lines if line.startswith("data: {")]
    return [answer.json()]


async def wired(
    there: Meeting,
    person: Person | str,
    era: str = "",
    capabilities: dict[str, Any] | None = None,
    version: str = "2025-11-25",
) -> Wire:
    """Someone who speaks plain HTTP."""
    wire = Wire(there, person if isinstance(person, str) else person.token)
    there._people.append(wire)  # type: ignore[arg-type] - it leaves like everyone
    if (era or there.era) == "handshake":
        offered = {"protocolVersion": version, "capabilities": capabilities or {}}
        first = rpc("initialize", {**INITIALIZE["params"], **offered})
        bearer = {"authorization": f"Bearer {wire.token}"} if wire.token else {}
        wire.session = (await there.post(first, headers=bearer)).headers["mcp-session-id"]
    await wire.ask("tools/list")
    return wire


def payload(result: Any) -> Any:
    """The JSON in the text of a tool's result."""
    return json.loads(result["content"][0]["text"])
