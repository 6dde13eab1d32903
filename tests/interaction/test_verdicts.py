"""One verdict for every way in: each operation of the table, by each tool and route that it has.

Nothing here names an operation: a new row is asked for by itself. What an operation answers once it
was let through does not count, so it is asked with as little as it takes.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from itertools import chain
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, get_args

import httpx2
import pytest

from folkmoot.app import Hub
from folkmoot.core import errors
from folkmoot.core.scopes import ALL, OPERATE, SCOPES
from folkmoot.operations import CATALOGUE, OPERATIONS, Absent, Operation
from folkmoot.operations.routes import Endpoint, endpoints
from tests.mcp_harness import BOTH, INITIALIZE, modern, rpc, settings
from tests.nodes import running

ROOM: Final = "square"
# By the code of a refusal; those of the specification have but a sentence.
VERDICTS: Final = {
    "scope_missing": "scope",
    "token_invalid": "dead",
    errors.TokenInvalid().message: "dead",
    "authentication_required": "anonymous",
    errors.AuthenticationRequired().message: "anonymous",
}
REFUSALS: Final = (
    *("mcp.request.tools/call", "A deny at the hub"),
    *("guest has no account", "Only an operator"),
)
Asking: TypeAlias = Literal["allowed", "denied", "outside", "inside", "dead", "guest", "anonymous"]
# Who asks: with a whole token; denied by a grant; with a token whose scope has other things, and
# with one that has just this; with a revoked token; as a guest of a room; without a token.
ASKING: Final[tuple[Asking, ...]] = get_args(Asking)


def expected(row: Operation, asking: Asking) -> str:
    if row.public:
        # Whoever looks for tools with a dead token is told so, instead of finding few.
        return "dead" if asking == "dead" and row.tool == "finder" else "passed"
    if asking in ("dead", "anonymous"):
        return asking
    if asking == "guest":
        return "passed" if row.who == "guest" else "refused"
    if asking == "inside" or (asking == "outside" and not row.scope):
        return "refused" if row.local else "passed"
    if row.scope == OPERATE or asking == "outside":
        return "scope"
    return "refused" if asking == "denied" else "passed"


class Callers:
    """A hub, and everyone who asks it."""

    def __init__(self, hub: Hub, http: httpx2.AsyncClient) -> None:
        self.hub = hub
        self.http = http
        self._tokens: dict[str, str] = {"anonymous": ""}
        self._sessions: dict[str, str] = {}

    async def prepare(self) -> None:
        """Let everyone come."""
        accounts = self.hub.accounts
        ann, bob, dan = [await accounts.register(name) for name in ("ann", "bob", "dan")]
        self._bob = bob.account
        self._tokens |= {"allowed": bob.token, "denied": dan.token}
        gone = await accounts.authentication.create(bob.account)
        await accounts.authentication.revoke(bob.account, gone.credential.id)
        self._tokens["dead"] = gone.token
        made = await self.rest("POST", "/v1/rooms", ann.token, {"name": ROOM, "access": "open"})
        assert made.status_code == 201
        asked = await self.rest("POST", f"/v1/rooms/{ROOM}/invites", ann.token, {"guest": "kim"})
        invited = {"token": asked.json()["token"]}
        entered = await self.rest("POST", f"/v1/rooms/{ROOM}/guests", "", invited)
        self._tokens["guest"] = entered.json()["credential"]
        for row in SCOPES:
            words = f"{row.name}:{ROOM}" if row.about == "room" else row.name
            await self._scoped(row.name, words)
            others = " ".join(each.name for each in SCOPES if each is not row)
            await self._scoped(f"not {row.name}", others)
            await self._scoped(f"all {row.name}", row.name)
        await self.hub.behind.granting.grant("dan", ["!mcp.request.tools/call:*"])

    async def _scoped(self, name: str, scope: str) -> None:
        made = await self.hub.accounts.authentication.create(self._bob, scope=scope, operated=True)
        self._tokens[name] = made.token

    def token(self, row: Operation, asking: Asking) -> str:
        if not row.scope and asking in ("inside", "outside"):
            return self._tokens["allowed"]
        if row.scope == ALL and asking in ("inside", "outside"):
            return self._tokens["allowed" if asking == "inside" else "all mail.read"]
        if asking == "inside":
            return self._tokens[row.scope if row.about else f"all {row.scope}"]
        return self._tokens[f"not {row.scope}" if asking == "outside" else asking]

    async def rest(self, method: str, path: str, token: str, body: Any = None) -> httpx2.Response:
        headers = {"authorization": f"Bearer {token}"} if token else {}
        return await self.http.request(method, path, headers=headers, json=body)

    async def route(self, endpoint: Endpoint, asking: Asking) -> str:
        path = endpoint.path.replace("{room}", ROOM)
        for each in endpoint.path_parameters:
            path = path.replace(f"{{{each.name}}}", "planning")
        needed = [each for each in endpoint.query if each.required]
        query = {each.name: each.schema.get("minimum", "planning") for each in needed}
        body = endpoint.route.example if endpoint.route.body else {} if endpoint.body else None
        token = self.token(endpoint.row, asking)
        headers = {"authorization": f"Bearer {token}"} if token else {}
        async with self.http.stream(
            endpoint.method, path, params=query, headers=headers, json=body
        ) as answer:
            if answer.is_success:
                return "passed"
            error = json.loads(await answer.aread())["error"]
        return verdict(error["code"], error["message"])

    async def tool(self, row: Operation, asking: Asking, era: str) -> str:
        """The verdict of a tool, in an era."""
        params = {"name": row.name, "arguments": {row.about: ROOM} if row.about else {}}
        token = self.token(row, asking)
        headers = BOTH | ({"authorization": f"Bearer {token}"} if token else {})
        if era == "stateless":
            sent, more = modern("tools/call", **params)
            headers |= more
        else:
            sent = rpc("tools/call", params, 2)
            headers["mcp-session-id"] = await self._session(token, headers)
        text = (await self.http.post("/mcp", headers=headers, content=json.dumps(sent))).text
        told = json.loads(text if text.startswith("{") else text.rpartition("data: ")[2])
        if "error" in told:
            return verdict((told["error"].get("data") or {}).get("code", ""), "")
        said = json.loads(told["result"]["content"][0]["text"])
        if not told["result"]["isError"]:
            return "passed"
        return verdict(said.get("code", ""), str(said.get("error")))

    async def _session(self, token: str, headers: dict[str, str]) -> str:
        if token not in self._sessions:
            opened = await self.http.post("/mcp", headers=headers, content=json.dumps(INITIALIZE))
            self._sessions[token] = opened.headers["mcp-session-id"]
        return self._sessions[token]


def verdict(code: str, sentence: str) -> str:
    """What a refusal says of who asked; what else went wrong came after they were let through."""
    if any(words in sentence for words in REFUSALS):
        return "refused"
    return VERDICTS.get(code) or VERDICTS.get(sentence, "passed")


def ways(row: Operation) -> Iterator[tuple[str, Any]]:
    """Each way in that an operation has, and how it is asked."""
    for endpoint in endpoints((row,)):
        yield f"{endpoint.method} {endpoint.path}", lambda c, a, e=endpoint: c.route(e, a)
    if not isinstance(row.tool, Absent):
        for era in ("stateless", "handshake"):
            yield f"tool, {era}", lambda c, a, e=era: c.tool(row, a, e)


def cases(asking: Asking, rows: tuple[Operation, ...]) -> Iterator[tuple[Operation, str, Any]]:
    for row in rows:
        for name, ask in ways(row):
            # Guests have REST and WebSockets; at `/mcp` theirs is no token at all.
            if asking == "guest" and name.startswith("tool"):
                continue
            # What anyone may do, one who is denied it does without saying who they are.
            if not (asking == "denied" and row.public):
                yield row, name, ask


@pytest.fixture
async def there(tmp_path: Path) -> AsyncIterator[Callers]:
    async with (
        running(settings(tmp_path)) as hub,
        httpx2.AsyncClient(base_url=hub.base_url, verify=False) as http,
    ):
        everyone = Callers(hub, http)
        await everyone.prepare()
        yield everyone


async def astray(there: Callers, asking: Asking, rows: tuple[Operation, ...]) -> list[str]:
    """The ways on which the verdict is another."""
    wrong = []
    for row, name, ask in cases(asking, rows):
        found, wanted = await ask(there, asking), expected(row, asking)
        if found != wanted:
            wrong.append(f"{asking}: {row.name} by {name}: {found}, not {wanted}")
    return wrong


@pytest.mark.requirement("hub.one-verdict")
async def test_each_operation_has_one_verdict_on_each_way_for_one_of_those_who_ask(there):
    many = len(ASKING)
    found = [await astray(there, asking, OPERATIONS[at::many]) for at, asking in enumerate(ASKING)]
    assert [*chain.from_iterable(found)] == []


@pytest.mark.long
@pytest.mark.requirement("hub.one-verdict")
@pytest.mark.parametrize("asking", ASKING)
async def test_each_operation_has_one_verdict_on_every_way_in(asking, there):
    assert await astray(there, asking, OPERATIONS) == []


@pytest.mark.requirement("hub.one-verdict")
def test_every_tool_and_every_route_is_asked():
    assert {tool.name for tool in CATALOGUE.tools} <= {row.name for row in OPERATIONS}
    asked = {name for row in OPERATIONS for name, _ in ways(row)}
    assert {f"{each.method} {each.path}" for each in endpoints(OPERATIONS)} <= asked
