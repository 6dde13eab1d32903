"""A server that knows both eras is spoken to in that of its caller's client."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from msgspec.structs import replace

from folkmoot.clock import SystemClock
from folkmoot.core import errors as e
from folkmoot.core.session import Era
from folkmoot.gateway.model import BackendState
from folkmoot.gateway.trial import FirstSight
from folkmoot.relay.upstream import links
from folkmoot.relay.upstream.fleet import Fleet
from folkmoot.settings.backends import BackendSpec
from tests.harness import reached
from tests.mcp.client.places import Asked, Place, Shaking
from tests.relay.upstream.scripted import (
    ERAS,
    FORM,
    Running,
    both_eras,
    call,
    leave,
    running,
    seen,
    spec,
)

pytestmark = pytest.mark.requirement("gateway.callers-era")

OFFERS = {"tools": {}}
HANDSHAKE, STATELESS = Era.HANDSHAKE, Era.STATELESS
ALL: dict[str, Any] = {"elicitation": {"form": {}, "url": {}}, "sampling": {}}


class Both(Shaking):
    """A server of some eras, which tells how it was spoken to."""

    def __init__(self, *eras: str) -> None:
        super().__init__(self._tell, OFFERS)
        self.eras = eras
        self.ended: list[str] = []
        self.lists = 0

    async def do(self, asked: Asked) -> None:
        method = asked.message["method"] if asked.method == "POST" else asked.method
        if method == "DELETE":
            self.ended.append(asked.headers["mcp-session-id"])
            await asked.say(200)
        elif method == "server/discover" and "stateless" in self.eras:
            versions = {"supportedVersions": ["2026-07-28"], "capabilities": OFFERS}
            await asked.result({"resultType": "complete", **versions})
        elif (
            asked.method != "POST"
            or "mcp-session-id" in asked.headers
            or (method == "initialize" and "handshake" in self.eras)
        ):
            await super().do(asked)
        elif "id" not in asked.message:
            await asked.say(202)
        else:
            await self._tell(asked)

    async def _tell(self, asked: Asked) -> None:
        """How it was asked: in which session, and what was offered when that was opened."""
        method, session = asked.message["method"], asked.headers.get("mcp-session-id", "")
        if method == "tools/list":
            self.lists += 1
            await asked.result({"resultType": "complete", "tools": []})
        elif method == "tools/call" and asked.message["params"]["name"] == "hang":
            await asyncio.Event().wait()
        elif method == "tools/call":
            opener = self.opened[session].message if session else {"params": {}}
            told = {"session": session, "offered": opener["params"].get("capabilities")}
            await asked.result({"resultType": "complete", "content": [], **told})
        else:
            await asked.error(-32601, f"Method not found: {method}")


@asynccontextmanager
async def reaching(*eras: str, **settings: Any) -> AsyncIterator[tuple[Both, Running]]:
    """A server of some eras, and the backend that reaches it."""
    server = Both(*eras)
    async with (
        server.place.open() as place,
        running(spec(url=place.url, **settings)) as there,
    ):
        yield server, there


async def spoken(backend: Any, era: Era | None, offered: dict[str, Any], **more: Any) -> Any:
    """How a call reached the server: in which session, and what was offered there."""
    answer = await backend.request(call("how", era=era, capabilities=offered, **more))
    return answer.result["session"], answer.result["offered"]


async def test_each_caller_reaches_a_server_of_both_eras_in_its_own_with_what_it_offers():
    async with reaching(*ERAS) as (server, there):
        backend = there.backend
        before = len(server.opened)
        assert await spoken(backend, STATELESS, ALL) == ("", None)
        assert await spoken(backend, None, ALL) == ("", None)
        assert len(server.opened) == before
        first = await spoken(backend, HANDSHAKE, FORM)
        assert first[1] == FORM
        # What a client may say in two ways is one offer, and roots are never offered.
        same = {"elicitation": {}, "roots": {"listChanged": True}}
        assert await spoken(backend, HANDSHAKE, same, person="bob") == first
        assert (await spoken(backend, HANDSHAKE, {}))[1] == {}
        tools = {"sampling": {"tools": {}, "other": {}}}
        assert (await spoken(backend, HANDSHAKE, tools))[1] == {"sampling": {"tools": {}}}
        assert backend.view().connections == 4
        assert (backend.view().era, server.lists) == ("stateless", 1)


async def test_a_server_of_the_handshake_era_is_offered_what_its_caller_offers():
    async with reaching("handshake") as (_, there):
        primary = await spoken(there.backend, None, {})
        assert primary[1] == ALL
        assert await spoken(there.backend, STATELESS, ALL) == primary
        assert (await spoken(there.backend, STATELESS, {}))[1] == {}
        assert (await spoken(there.backend, HANDSHAKE, FORM))[1] == FORM


async def test_there_are_four_links_at_most_and_who_finds_none_free_uses_the_first():
    async with reaching(*ERAS) as (_, there):
        backend = there.backend
        offers: list[dict[str, Any]] = [{}, FORM, {"sampling": {}}]
        waiting = asyncio.gather(
            *(there.ask("hang", era=HANDSHAKE, capabilities=offer) for offer in offers)
        )
        await reached(lambda: backend.view().connections == 4 and backend.in_flight == 3)
        await reached(lambda: all(c.in_flight for c in backend.pool.conversations))
        assert await spoken(backend, HANDSHAKE, ALL) == ("", None)
        await leave(waiting)
        assert (await spoken(backend, HANDSHAKE, ALL))[1] == ALL
        assert backend.view().connections == 4


async def test_a_link_beside_the_first_is_closed_when_it_is_idle(monkeypatch):
    monkeypatch.setattr(links, "IDLE_SECONDS", 0.05)
    async with reaching(*ERAS) as (server, there):
        session, _ = await spoken(there.backend, HANDSHAKE, FORM)
        await reached(lambda: session in server.ended)
        await reached(lambda: there.backend.view().connections == 1)
        assert (await spoken(there.backend, HANDSHAKE, FORM))[0] != session


async def test_a_server_that_refuses_the_callers_era_is_asked_once_in_its_own():
    async with reaching("stateless") as (server, there):

        def handshakes() -> int:
            return sum(b'"initialize"' in each.body for each in server.place.of("POST"))

        before = handshakes()
        for _ in range(5):
            assert await spoken(there.backend, HANDSHAKE, FORM) == ("", None)
        assert handshakes() == before + 1
        assert there.backend.state is BackendState.UP
        assert there.backend.view().errors == 0


def fixed(place: Place, era: Any) -> BackendSpec:
    """The settings of a server whose era they name."""
    return replace(spec(url=place.url, transport="http"), era=era)


async def test_a_setting_fixes_the_era(monkeypatch):
    monkeypatch.setattr(links, "LONGEST_WAIT", 0.02)
    server, old = Both(*ERAS), Both("handshake")
    async with server.place.open() as place, old.place.open() as other:
        async with running(fixed(place, "handshake")) as there:
            assert (await spoken(there.backend, STATELESS, ALL))[1] == ALL
            assert there.backend.view().era == "handshake"
        async with running(fixed(place, "stateless")) as there:
            assert await spoken(there.backend, HANDSHAKE, FORM) == ("", None)
            assert there.backend.view().connections == 1
        async with running(fixed(other, "stateless"), reached=False) as there:
            await there.until(lambda b: b.state is BackendState.BROKEN)
            with pytest.raises(e.BackendUnavailable, match="does not speak the stateless era"):
                await spoken(there.backend, HANDSHAKE, FORM)


@both_eras
async def test_a_process_that_knows_one_era_is_spoken_to_in_that(there, era):
    for caller in (*Era, *Era):
        assert (await there.ask("echo", era=caller))["pid"] == there.process
    assert len(await seen(there.backend, "initialize")) == (era == "handshake")
    assert there.backend.view().connections == 1


async def test_a_command_that_knows_both_eras_runs_once_for_each_that_callers_speak():
    async with running(spec("demo", "both")) as there:

        async def pid(era: Era | None, **more: Any) -> int:
            return int((await there.ask("echo", era=era, **more))["pid"])

        assert {await pid(None), await pid(STATELESS)} == {there.process}
        assert there.backend.view().connections == 1
        other = await pid(HANDSHAKE, capabilities=FORM)
        assert other != there.process
        assert await pid(HANDSHAKE, person="bob") == other
        assert there.backend.view().connections == 2
        question = {"asks": "elicitation/create", "about": {"message": "Sure?"}}
        asked = await there.ask("ask", capabilities=FORM, era=HANDSHAKE, **question)
        assert asked["resultType"] == "input_required"
    async with running(spec("demo", "both", connections=2)) as there:
        assert len({await pid(HANDSHAKE) for _ in range(4)}) == 2


@pytest.mark.parametrize("fixed", [{"era": "stateless"}, {"single": True}])
async def test_a_command_with_one_era_or_that_must_run_once_is_not_run_again(fixed):
    async with running(replace(spec("demo", "both"), **fixed)) as there:
        answer = await there.ask("echo", era=HANDSHAKE, capabilities=FORM)
        assert answer["pid"] == there.process


async def test_a_server_that_wanted_to_ask_in_the_stateless_era_is_shown_with_advice():
    async with running(replace(spec("demo", "both"), era="stateless")) as there:
        assert there.backend.view().advice == ""
        await there.ask("ask", era=HANDSHAKE, capabilities=FORM, asks="elicitation/create")
        assert 'Set era = "handshake"' in there.backend.view().advice


@pytest.mark.parametrize("era", [*ERAS, "both"])
async def test_a_test_of_a_server_says_whether_another_era_could_serve_it_better(era):
    unseen: Any = FirstSight()
    report = await Fleet(unseen, SystemClock()).test(spec("demo", era))
    assert report.ok
    assert ('set era = "handshake"' in report.advice) is (era == "both")


async def test_where_each_person_has_a_link_it_is_in_the_era_of_their_client():
    async with reaching(*ERAS, per_user=True) as (_, there):
        ann = await spoken(there.backend, HANDSHAKE, FORM, person="ann")
        bob = await spoken(there.backend, HANDSHAKE, FORM, person="bob")
        assert ann[1] == bob[1] == FORM
        assert ann[0] != bob[0]
        assert await spoken(there.backend, STATELESS, FORM, person="ann") == ("", None)
