"""Two people who share one link to a server: nothing of one's reaches the other."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import LOG_LEVEL_META_KEY

from folkmoot.mcp import peer
from tests.conftest import settings_of
from tests.faults.backends import flawed
from tests.mcp_harness import ERAS, both_eras, until
from tests.peers.clients import Ears
from tests.peers.gateway import backend, fronted, guest, token_of
from tests.peers.script import LOGGED
from tests.peers.sdk_server import Notebook, notebook_http
from tests.peers.servers import Place
from tests.transports.mcp.gateway_support import wired

pytestmark = [
    pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning"),
    pytest.mark.timeout(600),
]

FORM = {"message": "Your secret?", "requestedSchema": {"type": "object", "properties": {}}}
ASK = {"method": "elicitation/create", "params": FORM}
EVERY_LOG = {LOG_LEVEL_META_KEY: "debug"}
SECRET = "shared://flaw//secret"


class Two(NamedTuple):
    """Ann and Bob, each with a client and with ears."""

    folder: Path
    ann: Client
    bob: Client
    anns: Ears
    bobs: Ears

    def done(self) -> list[str]:
        """What the server did."""
        file = self.folder / "done"
        return [line.split()[0] for line in file.read_text().splitlines()] if file.exists() else []

    async def until_done(self, what: str, times: int = 1) -> None:
        """Wait until the server did something."""
        await until(lambda: self.done().count(what) >= times)

    @asynccontextmanager
    async def waiting(self, client: Client) -> AsyncIterator[None]:
        """While entered, the server has a call of someone's that it does not answer."""
        before = self.done()
        calling = asyncio.ensure_future(client.call_tool("shared_hang", {}, meta=EVERY_LOG))
        await self.until_done("hang", before.count("hang") + 1)
        try:
            yield
        finally:
            calling.cancel()
            await asyncio.wait([calling])
        await self.until_done("cancelled", before.count("cancelled") + 1)

    async def ask(self, client: Client) -> Any:
        """What the server gets when it asks something during a call of someone's."""
        return json.loads((await client.call_tool("shared_ask", ASK)).content[0].text)


@pytest.fixture
async def at(tmp_path: Path, era: str, request: pytest.FixtureRequest) -> AsyncIterator[Two]:
    """Two people at a hub before one server of the handshake era."""
    shared = flawed("shared", tmp_path / "shared", **settings_of(request))
    async with fronted(tmp_path / "hub", shared, era=era) as there:
        tokens = [await token_of(there, handle) for handle in ("ann", "bob")]
        ears = [Ears(), Ears()]
        async with (
            guest(there, tokens[0], ears[0]) as ann,
            guest(there, tokens[1], ears[1]) as bob,
        ):
            if era == "handshake":
                for client in (ann, bob):
                    await client.session.set_logging_level("debug")
            yield Two(tmp_path / "shared", ann, bob, *ears)


@both_eras
@pytest.mark.requirement("gateway.shared-link", "gateway.server-requests")
async def test_a_question_reaches_the_one_whose_call_it_is_and_nobody_while_there_are_two(at):
    assert (await at.ask(at.ann))["result"]["action"] == "accept"
    assert [each["message"] for each in at.anns.asked] == ["Your secret?"]
    async with at.waiting(at.bob):
        assert (
            "does not belong to exactly one open call" in (await at.ask(at.ann))["error"]["message"]
        )
    # Bob has left, and what the server asks now may still be for him.
    assert "error" in await at.ask(at.ann)
    assert (len(at.anns.asked), len(at.bobs.asked)) == (1, 0)
    # What Bob left behind does not keep him from being asked.
    assert (await at.ask(at.bob))["result"]["action"] == "accept"
    assert (len(at.anns.asked), len(at.bobs.asked)) == (1, 1)


@both_eras
@pytest.mark.settings(per_user=True)
@pytest.mark.requirement("gateway.shared-link", "gateway.server-requests")
async def test_people_with_links_of_their_own_are_asked_each_by_their_own(at):
    async with at.waiting(at.bob), at.waiting(at.ann):
        answers = await asyncio.gather(at.ask(at.ann), at.ask(at.bob), at.ask(at.ann))
        assert [each["result"]["action"] for each in answers] == ["accept"] * 3
        assert (len(at.anns.asked), len(at.bobs.asked)) == (2, 1)
        processes = [
            json.loads((await client.call_tool("shared_echo", {})).content[0].text)[2]
            for client in (at.ann, at.bob, at.ann)
        ]
        assert processes[0] == processes[2] != processes[1]


@both_eras
@pytest.mark.requirement("gateway.cancelled-requests")
async def test_what_someone_cancelled_long_ago_is_asked_of_nobody_else(at, monkeypatch):
    monkeypatch.setattr(peer, "ANSWER_SECONDS", 0.0)
    async with at.waiting(at.ann):
        pass
    # The server has not answered Ann's call, so it may ask something for it at any time.
    assert "does not belong to exactly one open call" in (await at.ask(at.bob))["error"]["message"]
    assert (len(at.anns.asked), len(at.bobs.asked)) == (0, 0)
    # Another link has taken the place of the one that nobody could be asked on.
    assert (await at.ask(at.bob))["result"]["action"] == "accept"
    assert (len(at.anns.asked), len(at.bobs.asked)) == (0, 1)


def heard(ears: Ears) -> list[str]:
    """What someone was told of logs by a server, and not by the hub."""
    logged = [each["params"] for each in ears.notices if each["method"] == LOGGED]
    return [each["data"] for each in logged if each.get("logger") != "folkmoot"]


@both_eras
@pytest.mark.requirement("gateway.shared-link")
async def test_a_log_message_that_may_be_anothers_reaches_nobody(at):
    await at.ann.call_tool("shared_log", {"data": "of ann"}, meta=EVERY_LOG)
    await at.anns.until(LOGGED)
    assert (heard(at.anns), heard(at.bobs)) == (["of ann"], [])
    async with at.waiting(at.bob):
        await at.ann.call_tool("shared_log", {"data": "whose?"}, meta=EVERY_LOG)
    await at.ann.call_tool("shared_log", {"data": "of bob, who left?"}, meta=EVERY_LOG)
    assert (heard(at.anns), heard(at.bobs)) == (["of ann"], [])


@both_eras
@pytest.mark.requirement("gateway.shared-link")
async def test_what_someone_watches_is_told_to_nobody_else(era, at):
    async with at.waiting(at.ann):
        if era == "handshake":
            await at.bob.session.subscribe_resource(SECRET)
            await at.bob.call_tool("shared_touch", {"uri": "flaw://secret"})
            updated = await at.bobs.until("notifications/resources/updated")
            assert updated["params"]["uri"] == SECRET
            await at.bob.session.unsubscribe_resource(SECRET)
        else:
            async with at.bob.listen(resource_subscriptions=[SECRET]) as news:
                await at.bob.call_tool("shared_touch", {"uri": "flaw://secret"})
                assert (await anext(aiter(news))).uri == SECRET
        await at.until_done("resources/unsubscribe")
        # The server logs whatever is watched, while Ann has the only call and hears logs.
        await at.ann.call_tool("shared_echo", {}, meta=EVERY_LOG)
        assert "secret" not in str(at.anns.notices)


@pytest.mark.requirement("gateway.shared-link")
async def test_nobody_answers_or_cancels_for_another(tmp_path):
    async with fronted(tmp_path / "hub", flawed("shared", tmp_path / "shared")) as there:
        tokens = [await token_of(there, handle) for handle in ("ann", "bob")]
        can = {"elicitation": {"form": {}}}
        ann, bob = [await wired(there, token, capabilities=can) for token in tokens]
        call = ann.message("tools/call", {"name": "shared_ask", "arguments": ASK}, 7, None)
        async with ann.streamed(call) as events:
            answer = {"jsonrpc": "2.0", "id": (await anext(events))["id"]}
            cancelled = {"method": "notifications/cancelled", "params": {"requestId": 7}}
            await bob.post({**answer, "result": {"action": "decline"}})
            await bob.post({"jsonrpc": "2.0", **cancelled})
            assert (await ann.post({**answer, "result": {"action": "accept"}})).status == 202
            assert '"accept"' in (await anext(events))["result"]["content"][0]["text"]


@both_eras
@pytest.mark.requirement("gateway.no-caller-credentials")
async def test_nothing_that_a_caller_shows_the_hub_is_shown_to_a_server(era, tmp_path):
    headers = {
        "Cookie": "session=caller",
        "X-Api-Key": "caller-key",
        "Proxy-Authorization": "Basic caller",
        "X-Forwarded-For": "203.0.113.7",
        "User-Agent": "caller-agent",
    }
    book, sessions = Notebook(), set()

    async def note(request: Any) -> None:
        sessions.add(request.headers.get("mcp-session-id", "none"))

    async with notebook_http(book) as url:
        spec = backend("notes", Place("http", url=url), headers={"X-Of-The-Hub": "yes"})
        async with fronted(tmp_path, spec, era=era) as there:
            token = await token_of(there, "ann")
            shown = {**headers, "Authorization": f"Bearer {token}"}
            hooks: Any = {"request": [note]}
            async with httpx2.AsyncClient(headers=shown, verify=False, event_hooks=hooks) as http:
                transport = streamable_http_client(there.url, http_client=http)
                async with Client(transport, mode=ERAS[era]) as client:
                    result = await client.call_tool("notes_note_headers", {})
                    assert result.content[0].text == "noted"
    [seen] = book.headers
    assert seen["x-of-the-hub"] == "yes"
    for value in (token, "caller", "203.0.113.7", "ann"):
        assert value not in str(seen)
    assert not {"authorization", "cookie", "x-api-key"} & seen.keys()
    # The session that a server of the handshake era sees is the hub's own.
    assert ("mcp-session-id" in seen) is (era == "handshake")
    assert seen.get("mcp-session-id") not in sessions
