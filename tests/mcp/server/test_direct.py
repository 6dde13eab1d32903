"""The direct path: HTTP requests of both eras before a service that does what a test wants."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from folkmoot.core import errors as e
from folkmoot.core.message import Notification
from folkmoot.mcp.server.direct import DirectServer
from folkmoot.mcp.server.heads import read_head
from folkmoot.mcp.server.service import McpAnswer, McpRequest, Stopped, error_of
from folkmoot.mcp.server.sessions import HandshakeSession
from tests.mcp.server.played import until

VERSION = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
META: dict[str, Any] = {VERSION: "2026-07-28", CAPABILITIES: {}}
GONE = {"type": "http.disconnect"}


class Visitor:
    """One HTTP request, as whoever runs the server made it out."""

    def __init__(
        self, headers: dict[str, str], session: HandshakeSession | None, *, handshake: bool
    ) -> None:
        pairs = [(name.encode(), value.encode()) for name, value in headers.items()]
        self.scope = {"type": "http", "method": "POST", "path": "/mcp", "headers": pairs}
        self.head = read_head(pairs)
        self.session = session
        self.handshake = handshake
        self.leaving = asyncio.Event()
        self.ending: e.FolkmootError | None = None


class Server:
    """A service, whoever runs its server, and clients of it, all in one."""

    def __init__(self, doing: Callable[[McpRequest], Awaitable[McpAnswer]]) -> None:
        self.doing = doing
        self.happened: list[str] = []
        self.session: HandshakeSession | None = None
        self.direct = DirectServer(self, self)

    async def perform(self, asked: McpRequest) -> McpAnswer:
        if asked.request.method == "server/discover":
            return McpAnswer({"capabilities": {"tools": {}}, "instructions": "Be kind."})
        return await self.doing(asked)

    def refusal(self, asked: McpRequest, error: e.FolkmootError) -> McpAnswer:
        return error_of(error)

    async def open_session(
        self, visit: Any, version: str, capabilities: dict[str, Any]
    ) -> HandshakeSession:
        self.session = HandshakeSession(id="one", version=version, capabilities=capabilities)
        return self.session

    async def session_changed(self, session: Any) -> None:
        self.happened.append("changed")

    async def end_session(self, session: Any) -> None:
        session.end()

    def deliver(self, visit: Any, after: Callable[[], Awaitable[None]]) -> None:
        self.happened.append("delivered")

    def session_listens(self, session: Any, *, missed: bool) -> None:
        self.happened.append("missed" if missed else "listens")

    def visit(self, message: Any = None, **headers: str) -> Visitor:
        """A request of the era that the server is spoken to in."""
        session = self.session
        said = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
        if session is None and isinstance(message, dict) and message.get("method") != "initialize":
            params = message.get("params") or {}
            name = params.get("name") if isinstance(params, dict) else None
            said |= {"mcp-protocol-version": "2026-07-28", "mcp-method": message.get("method", "")}
            said |= {"mcp-name": name} if name else {}
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return Visitor(
            {name: value for name, value in (said | named).items() if value},
            session,
            handshake="mcp-protocol-version" not in said,
        )

    async def opened(self) -> HandshakeSession:
        """A session of a client."""
        await self.post(OPENING)
        assert self.session is not None
        return self.session

    async def post(
        self, message: Any, *, gone: asyncio.Event | None = None, **headers: str
    ) -> tuple[int, dict[str, str], bytes]:
        """One POST, and what came back: status, headers, body."""
        visit = self.visit(message, **headers)
        body = message if isinstance(message, bytes) else json.dumps(message).encode()
        told: list[Any] = []

        async def receive() -> Any:
            await (gone or asyncio.Event()).wait()
            return GONE

        async def send(part: Any) -> None:
            told.append(part)
            if part.get("body"):
                self.happened.append("sent")

        await self.direct.serve(visit, body, receive, send)
        if not told:
            return 0, {}, b""
        head = {name.decode(): value.decode() for name, value in told[0]["headers"]}
        return told[0]["status"], head, b"".join(part["body"] for part in told[1:])


@asynccontextmanager
async def serving(doing: Callable[[McpRequest], Awaitable[McpAnswer]]) -> AsyncIterator[Server]:
    server = Server(doing)
    async with server.direct.running():
        yield server


def call(name: str = "tool", id_: Any = 1, **params: Any) -> dict[str, Any]:
    given = {"name": name, "arguments": {}, **params}
    return {"jsonrpc": "2.0", "id": id_, "method": "tools/call", "params": given}


def modern(message: dict[str, Any], **meta: Any) -> dict[str, Any]:
    params = {**(message.get("params") or {}), "_meta": {**META, **meta}}
    return {**message, "params": params}


def events(body: bytes) -> list[Any]:
    lines = body.decode().replace("\r\n", "\n").split("\n")
    return [json.loads(line[6:]) for line in lines if line.startswith("data: ")]


async def plain(_: McpRequest) -> McpAnswer:
    return McpAnswer({"content": []})


async def test_an_answer_that_comes_at_once_leaves_in_one_piece():
    async with serving(plain) as server:
        status, headers, body = await server.post(modern(call()))
        assert (status, headers["content-type"]) == (200, "application/json")
        assert headers["content-length"] == str(len(body))
        assert json.loads(body) == {"jsonrpc": "2.0", "id": 1, "result": {"content": []}}


async def test_a_version_of_the_stateless_era_that_is_not_spoken_is_refused():
    async with serving(plain) as server:
        asked = modern(call(), **{VERSION: "2099-01-01"})
        status, _, body = await server.post(asked, mcp_protocol_version="2099-01-01")
        assert (status, json.loads(body)["error"]["code"]) == (400, -32022)


async def test_what_is_said_before_the_answer_makes_the_response_a_stream():
    async def speaking(asked: McpRequest) -> McpAnswer:
        asked.tell(Notification(method="notifications/progress", params={"progress": 1}))
        asked.tell(Notification(method="notifications/message", params={"level": "info"}))
        return McpAnswer({})

    async with serving(speaking) as server:
        asked = modern(call(), progressToken="mine")
        status, headers, body = await server.post(asked)
        assert (status, headers["content-type"]) == (200, "text/event-stream")
        first, last = events(body)
        assert first["params"] == {"progress": 1, "progressToken": "mine"}
        assert last["result"] == {}
        # Whoever asked to hear nothing hears nothing.
        _, headers, _ = await server.post(modern(call()))
        assert headers["content-type"] == "application/json"


@pytest.mark.requirement("tool.inbox.vanished-client")
async def test_what_follows_an_answer_waits_for_it_and_for_a_client_that_is_there():
    async def marking(_: McpRequest) -> McpAnswer:
        async def after() -> None: ...

        return McpAnswer({}, after=after)

    async with serving(marking) as server:
        await server.post(modern(call()))
        assert server.happened == ["sent", "delivered"]
        server.happened.clear()
        gone = asyncio.Event()
        gone.set()
        await server.post(modern(call()), gone=gone)
        assert server.happened == ["sent"]


async def test_a_client_that_leaves_ends_its_request():
    begun, gone = asyncio.Event(), asyncio.Event()
    stopped: list[bool] = []

    async def waiting(asked: McpRequest) -> McpAnswer:
        task = asyncio.current_task()
        asked.stop = task.cancel  # type: ignore[assignment]
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            task.uncancel()
            stopped.append(asked.caller.leaving.is_set())
            raise Stopped from None
        return McpAnswer({})

    async with serving(waiting) as server, asyncio.TaskGroup() as tasks:
        asking = tasks.create_task(server.post(modern(call()), gone=gone))
        await begun.wait()
        gone.set()
        assert await asking == (0, {}, b"")
        assert stopped == [True]


async def test_a_failure_is_told_without_its_details(caplog):
    async def breaking(_: McpRequest) -> McpAnswer:
        raise ValueError("a secret")

    async def busy(_: McpRequest) -> McpAnswer:
        raise e.TooManyInFlight("Too many.")

    async with serving(breaking) as server:
        _, _, body = await server.post(modern(call()))
        assert json.loads(body)["error"]["data"]["code"] == "internal_error"
        assert b"secret" not in body
        server.doing = busy
        _, _, body = await server.post(modern(call()))
        assert json.loads(body)["error"]["message"] == "Too many."
    assert "a request failed" in caplog.text


OPENED = {
    "protocolVersion": "2025-06-18",
    "capabilities": {"elicitation": {}},
    "clientInfo": {"name": "me", "version": "1"},
}
OPENING = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": OPENED}
FORM = {"method": "elicitation/create", "params": {"message": "Who?", "requestedSchema": {}}}


async def test_a_session_is_opened_from_what_the_service_says_of_itself():
    async with serving(plain) as server:
        status, headers, body = await server.post(OPENING)
        assert (status, headers["mcp-session-id"]) == (200, "one")
        told = json.loads(body)["result"]
        assert (told["protocolVersion"], told["instructions"]) == ("2025-06-18", "Be kind.")
        assert server.session.capabilities == {"elicitation": {}}


async def test_a_handshake_client_is_asked_what_the_service_wants_to_know():
    async def asking(asked: McpRequest) -> McpAnswer:
        given = asked.params.get("inputResponses")
        if given is None:
            wanted = {"resultType": "input_required", "inputRequests": {"who": FORM}}
            return McpAnswer({**wanted, "requestState": "s"})
        assert asked.params["requestState"] == "s"
        return McpAnswer({"said": given["who"]["content"], "resultType": "complete"})

    async with serving(asking) as server:
        session = await server.opened()
        async with asyncio.TaskGroup() as tasks:
            calling = tasks.create_task(server.post(call()))
            await until(lambda: bool(session.questions))
            [question] = session.questions
            reply = {"action": "accept", "content": {"name": "Ann"}}
            answer = {"jsonrpc": "2.0", "id": question, "result": reply}
            assert (await server.post(answer))[0] == 202
        _, _, body = await calling
        asked, last = events(body)
        assert (asked["id"], asked["method"]) == (question, "elicitation/create")
        assert last["result"] == {"said": {"name": "Ann"}}
        assert not session.questions
        assert not session.requests


async def waiting(asked: McpRequest) -> McpAnswer:
    """Answer when nobody is there any more."""
    await asked.caller.leaving.wait()
    return McpAnswer({"late": True})


async def test_a_cancelled_request_of_a_session_ends_without_an_answer():
    async with serving(waiting) as server:
        session = await server.opened()
        async with asyncio.TaskGroup() as tasks:
            calling = tasks.create_task(server.post(call(id_=7)))
            await until(lambda: 7 in session.requests)
            twice = await server.post(call(id_=7))
            assert json.loads(twice[2])["error"]["data"]["code"] == "invalid_id"
            for number in ("7", 8, None, 7):
                assert 7 in session.requests
                notice = {"method": "notifications/cancelled", "params": {"requestId": number}}
                assert (await server.post({"jsonrpc": "2.0", **notice}))[0] == 202
        status, _, body = await calling
        assert (status, events(body)) == (200, [])


async def test_the_end_of_a_session_is_that_of_all_its_requests():
    async with serving(waiting) as server:
        session = await server.opened()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(server.post(call()))
            await until(lambda: bool(session.requests))
            session.end()
        assert (await server.post(call()))[0] == 404


async def test_a_session_sets_its_own_level_and_answers_pings_itself():
    async with serving(plain) as server:
        session = await server.opened()
        ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
        assert json.loads((await server.post(ping))[2])["result"] == {}
        level = {**ping, "method": "logging/setLevel", "params": {"level": "error"}}
        assert json.loads((await server.post(level))[2])["result"] == {}
        assert session.log_level == "error"
        wrong = {**level, "params": {"level": "loud"}}
        assert json.loads((await server.post(wrong))[2])["error"]["code"] == -32602
