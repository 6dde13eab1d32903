"""A server of the official SDK that each person signs in to themselves, behind the hub."""

from __future__ import annotations

import asyncio
import json
import logging
import subprocess
import sys
from contextlib import AsyncExitStack, asynccontextmanager

import mcp_types as types
import msgspec
import pytest

from folkmoot.core import errors as e
from folkmoot.core.events import CONSENTS
from folkmoot.core.limits import MAX_STEP_UPS
from folkmoot.core.message import Request
from folkmoot.gateway.model import UpstreamRequest
from folkmoot.operations import events as rows
from folkmoot.relay.room_backends import RoomBackends
from folkmoot.rooms.ports import Asked
from folkmoot.settings import GatewaySpec
from folkmoot.telemetry.logs import AuditTrail
from folkmoot.transports.events.sources import connections
from tests import nats, postgres
from tests.mcp_harness import Meeting, both_eras, until
from tests.nodes import several
from tests.peers.clients import Ears
from tests.peers.gateway import backend, fronted, guest
from tests.peers.protected import CONNECTIONS, Memory, Person, protected
from tests.peers.servers import Place
from tests.process import environment
from tests.relay.upstream.guarded import Guarded
from tests.transports.rest.support import Asker, done, refused
from tests.transports.rest.test_sessions import Browser


class Opening(Ears):
    """A client whose person opens what they are asked to, or does not."""

    def __init__(self, person, action="accept"):
        super().__init__()
        self.person, self.action = person, action

    async def elicit(self, _, params):
        self.asked.append(params)
        if self.action == "accept":
            assert await self.person.follow(params.url) == "diary"
        return types.ElicitResult(action=self.action)


class There:
    def __init__(self, meeting, memory):
        self.meeting, self.memory = meeting, memory

    async def person(self, handle):
        made = await self.meeting.hub.accounts.register(handle)
        person = Person(self.meeting.port, handle, made.token, self.memory)
        person.account = made.account
        return person


@asynccontextmanager
async def behind(folder, era="stateless", **more):
    """A hub with the server behind it, to which nobody has signed in."""
    async with AsyncExitStack() as stack:
        memory = Memory()
        url = await stack.enter_async_context(protected(memory))
        spec = backend("diary", Place("http", url=url), auth="oauth", **more)
        meeting = await stack.enter_async_context(fronted(folder, spec, era=era, reached=False))
        yield There(meeting, memory)


async def said(client):
    answer = await client.call_tool("diary_whose", {})
    return answer.content[0].text


async def connection(person):
    return (await person.connections())["diary"]["state"]


async def listed(meeting):
    """Wait until what the server offers is listed."""

    async def is_there():
        return "diary" not in meeting.hub.behind.gateway.catalogue.absent

    await until(is_there)


@both_eras
async def test_two_people_sign_in_and_one_takes_it_back(era, tmp_path):
    """The first ahead of time, the other in the middle of a call, which goes on by itself."""
    async with behind(tmp_path, era) as there:
        meeting = there.meeting
        ada, bob = await there.person("ada"), await there.person("bob")
        assert meeting.hub.behind.health() == {"diary": "sign_in"}
        assert await ada.sign_in(namespace="diary") == "diary"
        await listed(meeting)
        assert meeting.hub.behind.health() == {"diary": "up"}
        bobs = Opening(bob)
        async with (
            guest(meeting, ada.token) as hers,
            guest(meeting, bob.token, bobs) as his,
        ):
            assert await said(hers) == "ada"
            assert await said(his) == "bob"
            assert len(bobs.asked) == 1
            assert [await said(hers), await said(his)] == ["ada", "bob"]
            assert [await connection(each) for each in (ada, bob)] == ["live", "live"]
            # What the one has there is not listed for the other, and read by each as their own.
            uris = [str(each.uri) for each in (await his.list_resources()).resources]
            assert not [each for each in uris if each.startswith("diary:")]
            read = (await his.read_resource("diary://diary/-/ada/secret")).contents[0].text
            assert read == "bob"
            done(await bob.browser.ask("DELETE", f"{CONNECTIONS}/diary"), 204)
            assert await connection(bob) == "none"
            # It is revoked at the server too, which announced that it can be.
            assert there.memory.revoked == ["bob"]
            bobs.action = "decline"
            told = json.loads(await said(his))
            assert told["code"] == "consent_needed"
            assert "/connect/" in told["url"]
            assert await said(hers) == "ada"
        assert there.memory.revoked == ["bob"]


async def test_a_client_that_cannot_open_links_gets_one_to_show(tmp_path):
    async with behind(tmp_path) as there:
        ada, bob = await there.person("ada"), await there.person("bob")
        assert await ada.sign_in(namespace="diary") == "diary"
        await listed(there.meeting)
        async with guest(there.meeting, bob.token) as his:
            told = json.loads(await said(his))
            assert await bob.follow(told["url"]) == "diary"
            assert await said(his) == "bob"


async def test_a_phished_link_signs_nobody_in(tmp_path):
    """One opens for the account that it was made for, in a browser that is signed in as it."""
    async with behind(tmp_path) as there:
        meeting = there.meeting
        ada, eve = await there.person("ada"), await there.person("eve")
        link = meeting.hub.behind.consents.link("diary", eve.account.id)
        ticket = {"ticket": link.rpartition("/")[2]}
        await ada.browser.sign_in(ada.token)
        answer = await ada.browser.ask("POST", CONNECTIONS, ticket)
        refused(answer, 403, "sign_in_refused")
        # A stranger gets the page, and nothing of it.
        page = await eve.browser.ask("GET", f"/connect/{ticket['ticket']}")
        assert page.status == 200
        refused(await eve.browser.ask("POST", CONNECTIONS, ticket), 401, "authentication_required")
        # A program gets a link, and not what leads on.
        asked = await Asker(meeting.port, eve.token).ask("POST", CONNECTIONS, ticket)
        assert "/connect/" in done(asked, 200)["url"]
        finishing = await Asker(meeting.port, eve.token).ask(
            "POST", f"{CONNECTIONS}/finish", {"query": "code=x&state=y"}
        )
        refused(finishing, 403, "access_denied")
        assert there.memory.asked == []


async def test_a_lapsed_consent_is_told_to_its_person_and_asked_for_anew(tmp_path):
    async with behind(tmp_path) as there:
        ada = await there.person("ada")
        assert await ada.sign_in(namespace="diary") == "diary"
        await listed(there.meeting)
        told = []
        there.meeting.hub.bus.listen(CONSENTS, told.append)
        ears = Opening(ada)
        async with guest(there.meeting, ada.token, ears) as client:
            assert await said(client) == "ada"
            there.memory.end("ada")
            assert await said(client) == "ada"
        assert [each.data["change"] for each in told] == ["lapsed", "consented"]
        assert len(ears.asked) == 1
        row = rows.ConnectionsChanged("diary", "lapsed")
        assert list(connections(told[0])) == [(rows.CONNECTIONS_CHANGED, row)]


async def test_what_was_seen_is_listed_after_a_restart_though_nobody_called(tmp_path):
    async with AsyncExitStack() as stack:
        memory = Memory()
        url = await stack.enter_async_context(protected(memory))
        spec = backend("diary", Place("http", url=url), auth="oauth")
        async with fronted(tmp_path, spec, reached=False) as meeting:
            ada = await There(meeting, memory).person("ada")
            assert await ada.sign_in(namespace="diary") == "diary"
            await listed(meeting)
        before = len(memory.tokens)
        async with fronted(tmp_path, spec, reached=False) as meeting:
            await listed(meeting)
            assert meeting.hub.behind.health() == {"diary": "sign_in"}
            async with guest(meeting, ada.token) as client:
                assert await said(client) == "ada"
            assert meeting.hub.behind.health() == {"diary": "up"}
        assert len(memory.tokens) == before


async def test_the_links_of_a_deleted_account_end_with_it(tmp_path):
    async with behind(tmp_path) as there:
        hub = there.meeting.hub
        ada = await there.person("ada")
        assert await ada.sign_in(namespace="diary") == "diary"
        await listed(there.meeting)
        pool = hub.behind.fleet.backends["diary"].pool
        assert len(pool.conversations) == 1
        await hub.accounts.delete(ada.account)

        async def is_closed():
            return not pool.conversations

        await until(is_closed)


async def test_only_an_operator_signs_in_for_everyone(tmp_path):
    async with behind(tmp_path, shared=True) as there:
        ada, bob = await there.person("ada"), await there.person("bob")
        found = (await bob.connections())["diary"]
        assert (found["shared"], found["may_sign_in"]) == (True, False)
        for method, path in (("POST", CONNECTIONS), ("DELETE", f"{CONNECTIONS}/diary")):
            body = {"namespace": "diary"} if method == "POST" else None
            refused(await bob.browser.ask(method, path, body), 403, "access_denied")
        hub = there.meeting.hub
        account = ada.account
        made = await hub.accounts.authentication.create(account, scope="* operate", operated=True)
        ada.token = made.token
        assert await ada.sign_in(namespace="diary") == "diary"
        await listed(there.meeting)
        async with guest(there.meeting, bob.token) as his:
            assert await said(his) == "ada"


@pytest.mark.parametrize("who", ["", "bob"])
async def test_nobodys_token_goes_with_what_another_asks(who, tmp_path):
    """A call, a watched resource, a watched task: of a guest, and of somebody not signed in."""
    async with behind(tmp_path) as there:
        ada, bob = await there.person("ada"), await there.person("bob")
        assert await ada.sign_in(namespace="diary") == "diary"
        await listed(there.meeting)
        backend = there.meeting.hub.behind.fleet.backends["diary"]
        person = bob.account.id if who else ""
        wanted = UpstreamRequest(method="tools/call", params={"name": "whose"}, person=person)
        asking = (
            lambda: backend.request(wanted),
            lambda: backend.watch("note://x", print, person),
            lambda: backend.watch_task("task", print, person),
        )
        for each in asking:
            with pytest.raises(e.ConsentNeeded):
                await each()
        # It is no failure of the server's.
        view = backend.view()
        assert (view.state, view.errors, view.last_error) == ("up", 0, "")
        async with guest(there.meeting, ada.token) as client:
            assert await said(client) == "ada"


async def test_the_command_leads_to_the_page_and_waits(tmp_path):
    known = environment(HOME=str(tmp_path), XDG_CONFIG_HOME=str(tmp_path), BROWSER="false")

    async def begun(*words):
        program = (sys.executable, "-m", "folkmoot", *words)
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        return await asyncio.create_subprocess_exec(*program, env=known, **pipes)

    async with behind(tmp_path / "hub") as there:
        await (await begun("register", "ada", "--url", there.meeting.hub.base_url)).wait()
        made, _ = await (await begun("tokens", "create", "--json")).communicate()
        ada = Person(there.meeting.port, "ada", json.loads(made)["token"], there.memory)
        command = await begun("backends", "sign-in", "diary")
        link = (await command.stdout.readline()).decode().strip()
        assert await ada.follow(link) == "diary"
        _, told = await command.communicate()
        assert (command.returncode, b"You are signed in to diary." in told) == (0, True)
        refusing = await begun("backends", "sign-in", "other")
        assert b"There is no such server" in (await refusing.communicate())[1]


async def test_in_a_room_too_each_calls_with_their_own_token(tmp_path):
    async with behind(tmp_path) as there:
        ada, bob = await there.person("ada"), await there.person("bob")
        assert await ada.sign_in(namespace="diary") == "diary"
        await listed(there.meeting)
        hub = there.meeting.hub
        room = RoomBackends(
            hub.behind.gateway, hub.behind.rights, hub.behind.service, hub.accounts, hub.clock
        )

        async def asked(person):
            call = Request(id=1, method="tools/call", params={"name": "diary:whose"})
            named = {"room": "square", "namespace": "diary", "person": person}
            answer = await room.answer(Asked(**named, request=call, trail=AuditTrail()), None)
            return answer.result["content"][0]["text"]

        assert await asked(ada.account.id) == "ada"
        assert json.loads(await asked(bob.account.id))["code"] == "consent_needed"
        with pytest.raises(e.CapabilityDenied):
            await asked("g_guest")


async def test_nothing_secret_is_in_the_log_or_the_audit(tmp_path, caplog):
    caplog.set_level(logging.DEBUG)
    async with behind(tmp_path) as there:
        ada = await there.person("ada")
        assert await ada.sign_in(namespace="diary") == "diary"
        await listed(there.meeting)
        async with guest(there.meeting, ada.token) as client:
            assert await said(client) == "ada"
        code = f"c{'0' * 40}"
        page = await ada.browser.ask("GET", f"/oauth/callback?code={code}&state=x")
        assert page.status == 200
        done(await ada.browser.ask("DELETE", f"{CONNECTIONS}/diary"), 204)
        rows = await there.meeting.hub.store.read(
            lambda tx: tx.fetch("SELECT action, detail FROM audit")
        )
    kept = (
        caplog.text + str([each.__dict__ for each in caplog.records]) + str(list(map(tuple, rows)))
    )
    assert "connection.made" in kept
    assert "connection.forgotten" in kept
    assert not [each for each in (code, *there.memory.people) if each in kept]


async def test_an_endless_step_up_ends_in_a_clear_error(tmp_path):
    """However often its person consents, the server wants more."""
    guarded = Guarded()
    guarded.demand = "more-0"
    async with guarded.place.open():
        spec = backend("diary", Place("http", url=guarded.place.url), auth="oauth")
        async with fronted(tmp_path, spec, reached=False) as meeting:
            hub = meeting.hub
            account = (await hub.accounts.register("ada")).account
            consents, live = hub.behind.consents, hub.behind.fleet.backends["diary"]
            wanted = UpstreamRequest(method="tools/call", params={}, person=account.id)
            scope = ""
            for number in range(MAX_STEP_UPS + 1):
                url = await consents.begin("diary", account.id, "b", "http://localhost", scope)
                await consents.finish(guarded.consent(url, "ada"), account.id, "b")
                scope = guarded.demand = f"more-{number}"
                if number < MAX_STEP_UPS:
                    with pytest.raises(e.ConsentNeeded):
                        await live.request(wanted)
            guarded.demand = "and-more"
            with pytest.raises(e.BackendFailed, match="does not allow this call, whatever"):
                await live.request(wanted)


async def test_adding_such_a_server_finds_its_sign_in(tmp_path):
    async with behind(tmp_path) as there:
        fleet = there.meeting.hub.behind.fleet
        spec = fleet.backends["diary"].spec
        report = await fleet.test(spec)
        assert report.ok
        assert report.advice == f"People sign in to it at {spec.url.removesuffix('/mcp')}."
        report = await fleet.test(msgspec.structs.replace(spec, auth="none"))
        assert not report.ok
        assert 'set auth = "oauth"' in report.why


async def test_the_hub_describes_itself_to_authorization_servers(tmp_path):
    async with fronted(tmp_path, public_url="https://hub.example") as meeting:
        told = done(await Asker(meeting.port).ask("GET", "/oauth/client.json"), 200)
        assert told["client_id"] == "https://hub.example/oauth/client.json"
    async with fronted(tmp_path) as meeting:
        assert (await Asker(meeting.port).ask("GET", "/oauth/client.json")).status == 404


@pytest.mark.timeout(300)
@pytest.mark.parametrize("count", [pytest.param(3, marks=[*postgres.NEEDED, *nats.NEEDED])])
async def test_on_three_nodes_too_two_people_sign_in_and_one_takes_it_back(count, tmp_path):
    """Signed in at one node, called at another, taken back at the third."""
    memory = Memory()
    async with protected(memory) as url:
        spec = backend("diary", Place("http", url=url), auth="oauth")
        gateway = GatewaySpec(backends={"diary": spec})
        async with several(tmp_path, count, gateway=gateway) as nodes:
            meetings = [Meeting(each, "stateless") for each in nodes]
            ada, bob = [
                await There(meeting, memory).person(name)
                for meeting, name in zip(meetings[1:], ("ada", "bob"), strict=True)
            ]
            assert await ada.sign_in(namespace="diary") == "diary"
            for meeting in meetings:
                await listed(meeting)
            ears = Opening(bob)
            async with (
                guest(meetings[2], ada.token) as hers,
                guest(meetings[0], bob.token, ears) as his,
                guest(meetings[1], bob.token, ears) as his_other,
            ):
                assert [await said(each) for each in (hers, his, his_other)] == [
                    "ada",
                    "bob",
                    "bob",
                ]
                assert len(ears.asked) == 1
                away = Browser(meetings[2].port)
                await away.sign_in(bob.token)
                done(await away.ask("DELETE", f"{CONNECTIONS}/diary"), 204)
                ears.action = "decline"
                for client in (his, his_other):
                    assert "consent_needed" in await said(client)
                assert await said(hers) == "ada"
