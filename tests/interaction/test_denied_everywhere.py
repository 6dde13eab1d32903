"""What the operator denies an account holds on every way into the hub.

Each way is a row: how it is tried, and the kinds it is judged by. For every deny the expected
verdict is computed from those kinds, so a way that asks policy nothing, or asks with another kind,
fails here.
"""

from __future__ import annotations

import asyncio
import gc
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx2
import pytest
from mcp.shared.exceptions import MCPError

from folkmoot.app import Hub
from folkmoot.core import errors as e
from folkmoot.core.capability import Rights
from folkmoot.core.kinds import parse
from folkmoot.operations import CATALOGUE
from folkmoot.operations.routes import ENDPOINTS
from folkmoot.settings import GatewaySpec, Settings
from tests.interaction.room_client import (
    ROOM,
    Message,
    Seat,
    anew,
    chat,
    fulfilment,
    grant,
    joined,
    message,
    notice,
    proposal,
    rest,
    say,
    turned_away,
)
from tests.mcp_harness import BOTH, both_eras, modern, settings, until
from tests.nodes import heard_everywhere, nodes_of, running

TOOL = "mcp.request.tools/call"
INBOX = "mmp://mailboxes/inbox"
DENIED = "capability_denied"
NOT_ALLOWED = 4403

DENIES = [
    "!mcp.request.*",
    "!*",
    f"!{TOOL}:room/*",
    *(f"!{TOOL}:room/{name}" for name in ("say", "join", "read", "decide")),
    *(f"!{TOOL}:room/{name}" for name in ("call", "tools", "post", "show")),
    f"!{TOOL}:msg/*",
    "!mcp.request.resources/*",
    "!mcp.request.resources/read",
    "!mcp.request.prompts/*",
    "!chat.*",
    "!mcp.notification.notifications/chat/message",
    "!mcp.proposal.*",
    "!reasoning.*",
]


# What a route says in the room.
SAID_TOO = {
    "invite": ("room.invite",),
    "grantInRoom": ("capability.grant",),
    "revokeInRoom": ("capability.revoke",),
    "kick": ("room.kick",),
}


class Way(NamedTuple):
    """One way in: the kinds it is judged by, and whether trying it was denied."""

    name: str
    kinds: tuple[str, ...]
    is_denied: Callable[[Visit], Awaitable[bool]]
    # Whether it needs a WebSocket, which a deny may have closed.
    connected: bool = False


class Visit:
    """Bob at a hub where ann has a room."""

    # What he is told where he is denied something.
    code = DENIED

    def __init__(self, hub: Hub, http: httpx2.AsyncClient, token: str, ann: str) -> None:
        self.hub = hub
        self.ann = ann
        self.http = http
        self.token = token
        self.port = int(hub.base_url.rpartition(":")[2])
        self.seat: Seat | None = None

    async def change(self, command: str, pattern: str) -> None:
        """What the operator does with `folkmoot grant` and `folkmoot revoke`."""
        granting = self.hub.behind.granting
        await (granting.revoke if command == "revoke" else granting.grant)("bob", [pattern])

    async def mcp(self, method: str, **params: Any) -> Any:
        """What a request to `/mcp` answers."""
        sent, headers = modern(method, **params)
        if "uri" in params:
            headers["mcp-name"] = params["uri"]
        answer = await self.http.post(
            "/mcp",
            content=json.dumps(sent),
            headers={**BOTH, **headers, "authorization": f"Bearer {self.token}"},
        )
        return answer.json()

    async def tool_denied(self, name: str) -> bool:
        answer = await self.mcp("tools/call", name=name, arguments={})
        if "error" in answer:
            return bool(answer["error"]["data"]["code"] == self.code)
        return json.loads(answer["result"]["content"][0]["text"]).get("code") == self.code

    async def request_denied(self, method: str, **params: Any) -> bool:
        answer = await self.mcp(method, **params)
        return "error" in answer and (answer["error"].get("data") or {}).get("code") == DENIED

    async def rest_denied(self, method: str, path: str, body: Any) -> bool:
        async with self.http.stream(
            method,
            path.replace("{room}", ROOM),
            headers={"authorization": f"Bearer {self.token}", "content-type": "application/json"},
            content=None if body is None else json.dumps(body),
        ) as answer:
            # Of a stream of events there is no end to wait for.
            if answer.status_code != 403:
                return False
            told = json.loads(await answer.aread())["error"]
        return told["code"] == self.code and self.is_the_hubs(told["message"])

    async def said_denied(self, sent: Message) -> bool:
        await self.seat.send(sent)
        told = await self.seat.outcome(sent["id"])
        if told["kind"] != "system.error":
            return False
        refusal = told["payload"]
        return refusal["error"] == self.code and self.is_the_hubs(refusal["message"])

    def is_the_hubs(self, sentence: str) -> bool:
        """A room's own refusal tells what one holds there; ours names the hub or our rights."""
        return "hub" in sentence or "denied to you" in sentence


def tool(name: str) -> str:
    return f"{TOOL}:{name}"


def tools() -> Iterator[Way]:
    for row in CATALOGUE.tools:
        yield Way(f"tool {row.name}", (tool(row.name),), lambda v, n=row.name: v.tool_denied(n))


def routes() -> Iterator[Way]:
    for row in ENDPOINTS:
        # What is the operator's is refused to everyone here, whatever they hold.
        if row.public or row.row.who == "operator" or not row.row.judged or row.id == "deleteRoom":
            continue
        # As the tools are: nothing is to come of it.
        body = dict(row.route.example) if row.in_room and row.body else {} if row.body else None
        yield Way(
            f"{row.method} {row.path}",
            (tool(row.name), *SAID_TOO.get(row.id, ())),
            lambda v, r=row, b=body: v.rest_denied(r.method, r.path, b),
        )
    # Last, since ann's room must stand until here; bob may not delete it anyway.
    gone = next(row for row in ENDPOINTS if row.id == "deleteRoom")
    yield Way("DELETE", (tool(gone.name),), lambda v: v.rest_denied("DELETE", gone.path, None))


def request(method: str, **params: Any) -> Message:
    """A request to ann."""
    payload = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    return message(f"mcp.request.{method}", payload, to=["ann"])


def decision(verb: str) -> Message:
    return message(f"mcpx.{verb}.proposal", {"reason": "no"}, correlation_id=["p-1"])


CHAT = ("chat.message", "mcp.notification.notifications/chat/message", tool("room/say"))
MOW, POST, DECIDE = f"{TOOL}:mow", tool("room/post"), tool("room/decide")
# Messages of a room, and the kinds that each is judged by.
MESSAGES: dict[str, tuple[Message, tuple[str, ...]]] = {
    "chat": (chat(), CHAT),
    "chat as a notification": (notice(), CHAT),
    "chat.say": (say(), (*CHAT, f"{TOOL}:chat.say")),
    "a proposal": (proposal("mow"), ("mcp.proposal.tools/call:mow", tool("room/propose"))),
    "a call": (request("tools/call", name="mow", arguments={}), (MOW, tool("room/call"), POST)),
    "a listing": (request("tools/list"), ("mcp.request.tools/list", tool("room/tools"), POST)),
    "a fulfilment": (fulfilment(proposal("mow"), "ann"), (MOW, DECIDE)),
    "a withdrawal": (decision("withdraw"), ("mcpx.withdraw.proposal", DECIDE)),
    "a rejection": (decision("reject"), ("mcpx.reject.proposal", DECIDE)),
    "a kick": (message("room.kick", {"participant": "ann"}), ("room.kick", tool("room/kick"))),
    "a grant": (grant("ann", "chat.*"), ("capability.grant", tool("room/grant"))),
    "a thought": (message("reasoning.thought", {}), ("reasoning.thought", POST)),
    "another protocol": (message("garden.mow", {}), ("garden.mow", POST)),
}


def said() -> Iterator[Way]:
    path = "/v1/rooms/{room}/messages"
    for name, (sent, kinds) in MESSAGES.items():
        yield Way(
            f"WebSocket: {name}", kinds, lambda v, m=sent: v.said_denied(anew(m)), connected=True
        )
        yield Way(f"POST: {name}", kinds, lambda v, m=sent: v.rest_denied("POST", path, anew(m)))


def protocol() -> Iterator[Way]:
    def request(method: str, **params: Any) -> Callable[[Visit], Awaitable[bool]]:
        return lambda visit: visit.request_denied(method, **params)

    for listed in ("tools", "prompts", "resources", "resources/templates"):
        yield Way(listed, (f"mcp.request.{listed}/list",), request(f"{listed}/list"))
    read = f"mcp.request.resources/read:{INBOX}"
    yield Way("inbox", (read, tool("msg/digest")), request("resources/read", uri=INBOX))
    app = "ui://mmp-inbox"
    yield Way("app", (f"mcp.request.resources/read:{app}",), request("resources/read", uri=app))
    yield Way("prompt", ("mcp.request.prompts/get:no",), request("prompts/get", name="no"))
    about = {"ref": {"type": "ref/prompt", "name": "no"}, "argument": {"name": "a", "value": ""}}
    completing = request("completion/complete", **about)
    yield Way("completion", ("mcp.request.completion/complete:no",), completing)


WAYS = (*protocol(), *said(), *tools(), *routes())


@asynccontextmanager
async def visiting(given: Settings, kind: type[Visit] = Visit) -> AsyncIterator[Any]:
    """A hub where ann has a room that allows whatever the hub does not deny."""
    async with (
        running(given) as hub,
        httpx2.AsyncClient(base_url=hub.base_url, verify=False) as http,
    ):
        ann, bob = [(await hub.accounts.register(name)).token for name in ("ann", "bob")]
        there = kind(hub, http, bob, ann)
        made = await rest(there.port, ann, "POST", "", {"name": ROOM, "capabilities": ["*"]})
        assert made.status == 201, made
        yield there


@pytest.fixture
async def there(tmp_path: Path) -> AsyncIterator[Visit]:
    async with visiting(settings(tmp_path)) as made:
        yield made


def covers(deny: str, *kinds: str) -> bool:
    rights = Rights([deny])
    return any(rights.denies(parse(kind), {}) for kind in kinds)


@pytest.mark.requirement("hub.deny-everywhere")
@pytest.mark.parametrize(
    "deny",
    [
        pytest.param(deny, marks=[pytest.mark.long] if number % 8 else [])
        for number, deny in enumerate(DENIES)
    ],
)
async def test_what_the_hub_denies_is_denied_on_every_way_in(deny, there):
    await there.change("grant", deny)
    if covers(deny, tool("room/join"), tool("room/read")):
        assert await turned_away(there.port, there.token) == NOT_ALLOWED
        assert not await astray(there, deny)
    else:
        async with joined(there.port, there.token) as there.seat:
            assert not await astray(there, deny)
    assert not refusals_left()


def refusals_left() -> list[e.FolkmootError]:
    """Refusals that are still in memory after they were told, with all that they hold."""
    gc.collect()
    kinds = (e.PolicyError, e.BlockedByInterceptor)
    return [each for each in gc.get_objects() if isinstance(each, kinds) and each.__traceback__]


async def astray(there: Visit, deny: str) -> list[str]:
    """The ways on which the verdict is not the one that the deny has."""
    wrong: list[str] = []
    for way in WAYS:
        if way.connected and there.seat is None:
            continue
        expected = covers(deny, *way.kinds)
        if await way.is_denied(there) != expected:
            wrong.append(f"{way.name}: {'passed' if expected else 'was denied'}")
    return wrong


@pytest.mark.requirement("hub.audit-refusals")
@pytest.mark.parametrize("deny", ["!mcp.request.*", f"!{TOOL}:room/say"])
async def test_what_is_denied_leaves_an_audit_line_on_every_way_in(deny, there, caplog):
    def is_refusal(record: Any) -> bool:
        said = vars(record)
        detail = said.get("detail")
        noted = detail.get("outcome") if isinstance(detail, dict) else None
        is_bobs = record.name == "folkmoot.audit" and said.get("by") == "bob"
        return is_bobs and DENIED in (said.get("outcome"), noted)

    async def silent() -> list[str]:
        found = []
        for way in WAYS:
            if covers(deny, *way.kinds) and (there.seat or not way.connected):
                caplog.clear()
                assert await way.is_denied(there)
                if not any(map(is_refusal, caplog.records)):
                    found.append(way.name)
        return found

    await there.change("grant", deny)
    if not covers(deny, tool("room/join")):
        async with joined(there.port, there.token) as there.seat:
            assert not await silent()
        return
    caplog.clear()
    assert await turned_away(there.port, there.token) == NOT_ALLOWED
    assert any(map(is_refusal, caplog.records))
    assert not await silent()


@pytest.mark.requirement("hub.deny-everywhere")
async def test_without_a_deny_every_way_is_open(there):
    async with joined(there.port, there.token) as there.seat:
        assert not await astray(there, "!nothing.*")


@pytest.mark.parametrize("deny", [f"!{TOOL}:room/join", f"!{TOOL}:room/read", "!mcp.request.*"])
async def test_a_deny_ends_open_connections_at_once(deny, there):
    async with joined(there.port, there.token) as seat:
        await there.change("grant", deny)
        assert await seat.closed() == NOT_ALLOWED
        await there.change("revoke", deny)
        async with joined(there.port, there.token) as again:
            await again.said(chat())


async def test_a_deny_holds_for_the_next_message_of_an_open_connection(there):
    async with joined(there.port, there.token) as seat:
        await seat.said(chat())
        await there.change("grant", "!room/say")
        await heard_everywhere(there.hub)
        for sent in (chat(), notice(), say()):
            told = await seat.refused(sent)
            assert told["error"] == DENIED
            assert told["attempted_kind"].startswith(sent["kind"])
        await seat.said(message("reasoning.thought", {}))
        await there.change("revoke", "!room/say")
        await heard_everywhere(there.hub)
        await seat.said(chat())


@pytest.mark.one_node("counts who waits in the room")
async def test_a_call_that_waits_answers_nothing_that_was_denied_meanwhile(there):
    waiting = (
        rest(there.port, there.token, "GET", f"/{ROOM}/messages?wait=30"),
        there.mcp("tools/call", name="room/read", arguments={"room": ROOM, "wait": 30}),
    )
    answers = [asyncio.ensure_future(each) for each in waiting]
    await until(lambda: sum(len(live._waiters) for live in there.hub.rooms._live) == len(answers))
    await there.change("grant", f"!{TOOL}:room/read")
    assert (await rest(there.port, there.ann, "POST", f"/{ROOM}/messages", chat())).status == 201
    by_rest, by_tool = [await each for each in answers]
    assert (by_rest.status, by_rest.json()["error"]["code"]) == (403, DENIED)
    assert json.loads(by_tool["result"]["content"][0]["text"])["code"] == DENIED


@pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")
@pytest.mark.requirement("hub.deny-everywhere")
@both_eras
async def test_no_more_is_heard_of_a_mailbox_that_is_denied(era, hub):
    ann, bob = await hub.people("ann", "bob")

    @asynccontextmanager
    async def following() -> AsyncIterator[None]:
        if era == "stateless":
            async with bob.client.listen(resource_subscriptions=[INBOX]):
                yield
        else:
            await bob.client.subscribe_resource(INBOX)
            yield

    async with following():
        assert hub.hub.bus.subscriptions
        await hub.hub.behind.granting.grant("bob", ["!msg/digest"])
        await ann.call("msg/send", to="bob", body="Tea at four?")
        await until(lambda: not hub.hub.bus.subscriptions)
    with pytest.raises(MCPError, match="A deny at the hub"):
        async with following():
            pass


async def test_a_deny_may_name_one_room(there):
    await rest(there.port, there.token, "POST", "", {"name": "tea"})
    deny = {"kind": f"!{TOOL}:room/*", "payload": {"params": {"arguments": {"room": ROOM}}}}
    async with joined(there.port, there.token) as here:
        for node in nodes_of(there.hub):
            await node.behind.rights.configure(GatewaySpec(grants={"bob": (deny,)}))
        assert await here.closed() == NOT_ALLOWED
    assert await turned_away(there.port, there.token) == NOT_ALLOWED
    assert await there.rest_denied("GET", "/v1/rooms/{room}/messages", None)
    assert await there.rest_denied("POST", "/v1/rooms/{room}/messages", chat())
    async with joined(there.port, there.token, "tea") as tea:
        await tea.said(chat())


async def test_what_the_hub_allows_widens_no_right_in_a_room(there):
    cyd = (await there.hub.accounts.register("cyd")).token
    quiet = {"name": "quiet", "capabilities": ["reasoning.*"]}
    assert (await rest(there.port, cyd, "POST", "", quiet)).status == 201
    await there.change("grant", "*")
    async with joined(there.port, there.token, "quiet") as seat:
        assert (await seat.refused(chat()))["error"] == DENIED
        await seat.said(message("reasoning.thought", {}))


@both_eras
async def test_what_is_denied_at_the_hub_is_not_listed(hub):
    bob = await hub.person("bob")

    async def listed() -> set[str]:
        tools = {tool.name for tool in (await bob.client.list_tools()).tools}
        return tools | {str(each.uri) for each in (await bob.client.list_resources()).resources}

    hidden = {"room_say", "msg_digest", INBOX}
    assert hidden <= await listed()
    await hub.hub.behind.granting.grant("bob", [f"!{TOOL}:room/say", f"!{TOOL}:msg/digest"])
    left = await listed()
    assert not hidden & left
    assert {"room_read", "msg_threads"} <= left
    found = await bob.call("folkmoot_find_tool", query="say something in a room, digest")
    assert not hidden & {tool["name"] for tool in found["tools"]}
