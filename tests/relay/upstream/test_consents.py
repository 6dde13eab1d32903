"""Consents at servers behind the hub: whose tokens are used, and how they are renewed."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from urllib.parse import parse_qs, parse_qsl, urlsplit

import msgspec
import pytest

from folkmoot.accounts.limits import SIGN_IN_SECONDS
from folkmoot.core import errors as e
from folkmoot.core.events import CONSENTS, about
from folkmoot.core.limits import MAX_STEP_UPS
from folkmoot.core.message import Response
from folkmoot.core.oauth.discovery import Request
from folkmoot.gateway.model import UpstreamRequest
from folkmoot.mcp.client.target import HttpTarget
from folkmoot.relay.upstream.authorization import send
from folkmoot.relay.upstream.consents import Consents, PersonTokens
from folkmoot.relay.upstream.links import Affinity
from folkmoot.settings.backends import BackendSpec, SecretReference
from tests.accounts import support
from tests.accounts.support import World, refused
from tests.relay.upstream.guarded import BACK, Guarded


class Hub:
    """Two people, and two servers that want their own sign-in."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.servers: dict[str, BackendSpec] = {}
        self.consents = self.node()

    def node(self) -> Consents:
        world = self.world
        store, clock, vault = world.store, world.clock, world.vault
        return Consents(store, clock, vault, self.servers.get, {}, "https://hub.example", True)

    def add(self, namespace: str, guarded: Guarded, **more) -> None:
        self.servers[namespace] = protected(namespace, guarded.place.url, **more)

    async def begin(self, namespace, account, base="http://localhost:8000", **more) -> str:
        session = f"session of {account.handle}"
        return await self.consents.begin(namespace, account.id, session, base, **more)

    async def finish(self, pairs, account) -> str:
        return await self.consents.finish(pairs, account.id, f"session of {account.handle}")

    async def sign_in(self, namespace, guarded, account, **more) -> None:
        url = await self.begin(namespace, account, **more)
        assert await self.finish(guarded.consent(url, account.handle), account) == namespace

    async def call(self, guarded, account) -> int:
        """Ask a server something as a person; the status of its answer."""
        tokens = PersonTokens(self.consents, "notes", self.servers["notes"].owner(account.id))
        async with HttpTarget(guarded.place.url, tokens=tokens) as target:
            ping = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
            async with target.ask("POST", {}, ping) as answer:
                return answer.status

    async def token(self, namespace, account, refused="", consents=None) -> str:
        owner = self.servers[namespace].owner(account.id)
        held = await (consents or self.consents).held(namespace, owner, refused)
        return held.tokens.access


def protected(namespace: str, url: str, **more) -> BackendSpec:
    return BackendSpec(name=namespace, namespace=namespace, url=url, auth="oauth", **more)


@pytest.fixture
async def world(tmp_path) -> AsyncIterator[World]:
    async with support.world(tmp_path) as here:
        yield here


@pytest.fixture
async def notes() -> AsyncIterator[Guarded]:
    guarded = Guarded()
    async with guarded.place.open():
        yield guarded


@pytest.fixture
async def hub(world, notes) -> Hub:
    hub = Hub(world)
    hub.add("notes", notes)
    return hub


@pytest.fixture
async def alice(world):
    return await world.join("alice")


@pytest.fixture
async def bob(world):
    return await world.join("bobby")


async def test_two_people_have_each_their_own_consent(hub, notes, alice, bob):
    await refused(hub.token("notes", alice), e.ConsentNeeded)
    await hub.sign_in("notes", notes, alice)
    await refused(hub.token("notes", bob), e.ConsentNeeded)
    await hub.sign_in("notes", notes, bob)
    assert notes.access[await hub.token("notes", alice)] == "alice"
    assert notes.access[await hub.token("notes", bob)] == "bobby"
    # One registration serves both.
    assert [each["redirect_uris"] for each in notes.registered] == [[BACK]]
    assert await hub.consents.forget("notes", alice.id)
    assert not await hub.consents.forget("notes", alice.id)
    await refused(hub.token("notes", alice), e.ConsentNeeded)
    assert notes.access[await hub.token("notes", bob)] == "bobby"


async def test_nobodys_token_goes_with_a_call_of_nobody(hub, notes, alice):
    await hub.sign_in("notes", notes, alice)
    with pytest.raises(e.ConsentNeeded):
        hub.servers["notes"].owner("")
    await refused(hub.consents.held("notes", ""), e.ConsentNeeded)
    await refused(hub.consents.held("other", alice.id), e.NotFound)


async def test_a_row_that_is_moved_to_another_person_does_not_open(hub, notes, alice, bob):
    await hub.sign_in("notes", notes, alice)
    await hub.sign_in("notes", notes, bob)

    async def swap(tx):
        row = await tx.fetch_one("SELECT tokens FROM consents WHERE holder = ?", (alice.id,))
        await tx.execute("UPDATE consents SET tokens = ? WHERE holder = ?", (row[0], bob.id))

    await hub.world.store.write(swap)
    await refused(hub.token("notes", bob), e.SealBroken)


async def test_a_shared_consent_is_for_everyone(hub, notes, alice, bob):
    hub.add("notes", notes, shared=True)
    await hub.sign_in("notes", notes, alice)
    assert await hub.token("notes", alice) == await hub.token("notes", bob)


async def test_tokens_never_follow_a_server_to_another_address(hub, notes, alice):
    await hub.sign_in("notes", notes, alice)
    hub.servers["notes"] = protected("notes", "https://rogue.example/mcp")
    await refused(hub.token("notes", alice), e.ConsentNeeded)
    hub.add("notes", notes, trusted_issuers=("https://sso.example",))
    await refused(hub.token("notes", alice), e.ConsentNeeded)
    await refused(hub.begin("notes", alice), e.SignInRefused)


async def test_the_scope_is_that_of_the_challenge_and_grows_by_step_up(hub, notes, alice):
    url = await hub.begin("notes", alice)
    assert parse_qs(urlsplit(url).query)["scope"] == ["read"]
    await hub.finish(notes.consent(url, "alice"), alice)
    url = await hub.begin("notes", alice, scope="write")
    assert parse_qs(urlsplit(url).query)["scope"] == ["read write"]
    # The old consent is good until there is a new one.
    await hub.token("notes", alice)
    hub.add("notes", notes, scopes=("all",))
    assert parse_qs(urlsplit(await hub.begin("notes", alice)).query)["scope"] == ["all"]


@pytest.mark.parametrize(
    ("settings", "documents", "client"),
    [
        ({"client_id": "given"}, True, "given"),
        ({}, True, "https://hub.example/oauth/client.json"),
        ({}, False, "hub-1"),
    ],
)
async def test_the_hub_is_known_in_one_of_three_ways(world, alice, settings, documents, client):
    guarded = Guarded(client_id_metadata_document_supported=documents)
    async with guarded.place.open():
        hub = Hub(world)
        hub.add("notes", guarded, **settings)
        url = await hub.begin("notes", alice)
        assert parse_qs(urlsplit(url).query)["client_id"] == [client]
        assert len(guarded.registered) == (client == "hub-1")
        await hub.finish(guarded.consent(url, "alice"), alice)


async def test_a_registration_is_made_anew_for_another_way_back(hub, notes, alice):
    await hub.begin("notes", alice)
    for base in ("http://localhost:8000", "https://hub.example"):
        await hub.begin("notes", alice, base)
    assert len(notes.registered) == 2


async def test_a_sign_in_ends_in_the_session_that_began_it(hub, notes, alice, bob):
    """A phished link: whoever follows it elsewhere consents to nothing of another's."""
    pairs = notes.consent(await hub.begin("notes", alice), "bobby")
    await refused(hub.finish(pairs, bob), e.SignInRefused, "not begun here")
    other = hub.consents.finish(pairs, alice.id, "another session")
    await refused(other, e.SignInRefused, "not begun here")
    foreign = hub.consents.finish(pairs, bob.id, f"session of {alice.handle}")
    await refused(foreign, e.SignInRefused, "not begun here")
    assert [asked for asked in notes.place.asked if asked.path == "/token"] == []


async def test_a_sign_in_ends_once_and_soon(hub, notes, alice):
    old = notes.consent(await hub.begin("notes", alice), "alice")
    pairs = notes.consent(await hub.begin("notes", alice), "alice")
    await refused(hub.finish(old, alice), e.SignInRefused)
    await hub.finish(pairs, alice)
    await refused(hub.finish(pairs, alice), e.SignInRefused)
    late = notes.consent(await hub.begin("notes", alice), "alice")
    hub.world.clock.advance(SIGN_IN_SECONDS)
    await refused(hub.finish(late, alice), e.SignInRefused)
    for wrong in ([], [("state", "x")], [*pairs, *pairs]):
        await refused(hub.finish(wrong, alice), e.SignInRefused)


async def test_the_answer_of_one_server_is_not_taken_for_anothers(hub, notes, alice):
    """Mix-up: two servers, one callback. The state names the server, `iss` must agree."""
    other = Guarded(authorization_response_iss_parameter_supported=True)
    async with other.place.open():
        hub.add("other", other)
        url = await hub.begin("other", alice)
        for more in ({}, {"iss": notes.base}, {"iss": f"{other.base}/"}):
            await refused(hub.finish(other.consent(url, "alice", **more), alice), e.SignInRefused)
        assert [asked for asked in other.place.asked if asked.path == "/token"] == []
        await hub.finish(other.consent(url, "alice", iss=other.base), alice)
        assert other.access[await hub.token("other", alice)] == "alice"
    assert "/token" not in {asked.path for asked in notes.place.asked}


async def test_tokens_are_renewed_at_four_fifths_of_their_life(hub, notes, alice):
    await hub.sign_in("notes", notes, alice)
    first = await hub.token("notes", alice)
    hub.world.clock.advance(799)
    assert await hub.token("notes", alice) == first
    hub.world.clock.advance(1)
    # Many calls, on two nodes, at once: one of them renews.
    nodes = [hub.consents, hub.node()] * 10
    found = await asyncio.gather(*(hub.token("notes", alice, "", node) for node in nodes))
    assert len(set(found)) == 1
    assert first not in found
    assert notes.refreshed == 1


async def test_a_refused_token_is_renewed_once_however_many_calls_it_was_refused_to(
    hub, notes, alice
):
    notes.seconds = None
    await hub.sign_in("notes", notes, alice)
    first = await hub.token("notes", alice)
    nodes = [hub.consents, hub.node()] * 10
    found = await asyncio.gather(*(hub.token("notes", alice, first, node) for node in nodes))
    assert len({*found, first}) == 2
    assert notes.refreshed == 1


async def test_a_renewal_outlives_the_call_that_wanted_it(hub, notes, alice):
    await hub.sign_in("notes", notes, alice)
    first = await hub.token("notes", alice)
    notes.gate.clear()
    call = asyncio.create_task(hub.token("notes", alice, first))
    await notes.at_gate.wait()
    call.cancel()
    notes.gate.set()
    await asyncio.wait([call])
    assert call.cancelled()
    assert await hub.token("notes", alice) != first
    assert notes.refreshed == 1


@pytest.mark.parametrize("error", ["invalid_grant", "invalid_client"])
async def test_a_lapsed_consent_is_published_and_can_be_given_again(hub, notes, alice, error):
    told = []
    hub.world.store.bus.listen(CONSENTS, told.append)
    await hub.sign_in("notes", notes, alice)
    first = await hub.token("notes", alice)
    notes.failure = (400, {"error": error})
    await refused(hub.token("notes", alice, first), e.ConsentNeeded)
    assert [(about(each), each.data["change"]) for each in told] == [
        (alice.id, "consented"),
        (alice.id, "lapsed"),
    ]
    assert (await hub.consents.of("notes", alice.id)).state == "lapsed"
    await refused(hub.token("notes", alice), e.ConsentNeeded)
    notes.failure = None
    await hub.sign_in("notes", notes, alice)
    # Where the server forgot the hub itself, it is registered again.
    assert len(notes.registered) == (2 if error == "invalid_client" else 1)
    assert (await hub.consents.of("notes", alice.id)).state == "live"


async def test_a_server_that_fails_to_renew_leaves_the_token_while_it_is_good(hub, notes, alice):
    await hub.sign_in("notes", notes, alice)
    first = await hub.token("notes", alice)
    notes.failure = (503, {})
    hub.world.clock.advance(800)
    assert await hub.token("notes", alice) == first
    await refused(hub.token("notes", alice, first), e.SignInRefused)
    hub.world.clock.advance(200)
    await refused(hub.token("notes", alice), e.SignInRefused)
    notes.failure = None
    assert await hub.token("notes", alice) != first


async def test_a_lease_of_a_node_that_is_gone_ends(hub, notes, alice):
    await hub.sign_in("notes", notes, alice)
    first = await hub.token("notes", alice)
    now = int(hub.world.clock.now())
    sql = "UPDATE consents SET leased_until = ?"
    await hub.world.store.write(lambda tx: tx.execute(sql, (now + 30,)))
    waiting = asyncio.create_task(hub.token("notes", alice, first))
    await asyncio.sleep(0.01)
    assert notes.refreshed == 0
    hub.world.clock.advance(31)
    assert await waiting != first


async def test_a_consent_is_gone_with_its_account(hub, notes, alice, bob):
    await hub.sign_in("notes", notes, alice)
    begun = notes.consent(await hub.begin("notes", alice), "alice")
    taken = await hub.world.accounts.belongings(alice.id)
    (server,) = taken.servers
    assert (server.namespace, server.issuer, server.scope) == ("notes", notes.base, "read")
    exported = msgspec.json.encode(taken).decode()
    assert "token-0" not in exported
    await hub.world.accounts.delete(alice)
    assert await hub.world.rows("SELECT * FROM consents") == []
    await refused(hub.finish(begun, alice), e.SignInRefused)
    await refused(hub.token("notes", alice), e.ConsentNeeded)


async def test_nothing_secret_lies_in_the_database(hub, notes, alice):
    await hub.sign_in("notes", notes, alice)
    await hub.begin("notes", alice)
    rows = await hub.world.rows("SELECT * FROM consents")
    rows += await hub.world.rows("SELECT * FROM registrations")
    kept = json.dumps([list(row) for row in rows])
    for secret in (*notes.access, *notes.refresh, "shh-shh-shh"):
        assert secret not in kept


async def test_a_server_cannot_lead_the_hub_to_addresses_of_another_network(hub, notes):
    """A server on the internet cannot have the hub ask what only the hub can reach."""
    far = protected("far", "https://notes.example/mcp")
    inside = Request(f"https://localhost:{notes.place.port}/token")
    await refused(send(far, inside), e.ServerUnreachable)
    assert notes.place.connections == 0


async def test_a_request_shows_the_token_of_its_person(hub, notes, alice, bob):
    await refused(hub.call(notes, alice), e.ConsentNeeded)
    await hub.sign_in("notes", notes, alice)
    await hub.sign_in("notes", notes, bob)
    for person in (alice, bob, alice):
        assert await hub.call(notes, person) == 200
        shown = notes.place.asked[-1].headers["authorization"].removeprefix("Bearer ")
        assert notes.access[shown] == person.handle


async def test_a_request_whose_token_is_refused_goes_on_with_the_next(hub, notes, alice):
    await hub.sign_in("notes", notes, alice)
    notes.access.clear()
    assert await hub.call(notes, alice) == 200
    assert notes.refreshed == 1


async def test_a_server_that_refuses_every_token_is_not_asked_for_ever(hub, notes, alice):
    await hub.sign_in("notes", notes, alice)

    class Forgetful(dict):
        def __setitem__(self, access, person):
            """Every new token is forgotten at once."""

    notes.access = Forgetful()
    await refused(hub.call(notes, alice), e.ServerAnswerInvalid, "401")
    assert notes.refreshed == 1


async def test_a_call_that_needs_more_asks_for_consent_but_not_endlessly(hub, notes, alice):
    await hub.sign_in("notes", notes, alice)
    notes.demand = "write"
    with pytest.raises(e.ConsentNeeded) as needed:
        await hub.call(notes, alice)
    assert needed.value.scope == "write"
    await hub.sign_in("notes", notes, alice, scope="write")
    # It was asked for, and the server demands it still.
    await refused(hub.call(notes, alice), e.SignInRefused)


async def test_an_endless_step_up_ends_though_the_server_wants_something_new_each_time(
    hub, notes, alice
):
    await hub.sign_in("notes", notes, alice)
    for number in range(MAX_STEP_UPS):
        notes.demand = f"more-{number}"
        await refused(hub.call(notes, alice), e.ConsentNeeded)
        await hub.sign_in("notes", notes, alice, scope=notes.demand)
    notes.demand = "and-more"
    await refused(hub.call(notes, alice), e.SignInRefused, "whatever its person consents to")
    # Whoever signs in anew begins anew.
    await hub.sign_in("notes", notes, alice)
    await refused(hub.call(notes, alice), e.ConsentNeeded)


async def test_a_consent_that_was_taken_back_is_no_use_on_a_link_that_is_open(hub, notes, alice):
    await hub.sign_in("notes", notes, alice)
    tokens, other = (PersonTokens(each, "notes", alice.id) for each in (hub.consents, hub.node()))
    assert await tokens.token() == await other.token()
    notes.failure = (503, {})
    assert await hub.consents.forget("notes", alice.id)
    await refused(tokens.token(), e.ConsentNeeded)
    await refused(other.token(), e.ConsentNeeded)


async def test_a_consent_that_is_forgotten_is_revoked_where_the_server_can(world, alice):
    guarded = Guarded()
    async with guarded.place.open():
        guarded.metadata["revocation_endpoint"] = f"{guarded.base}/revoke"
        hub = Hub(world)
        hub.add("notes", guarded)
        await hub.sign_in("notes", guarded, alice)
        good = [*guarded.refresh, *guarded.access]
        assert await hub.consents.forget("notes", alice.id)
        asked = [each for each in guarded.place.asked if each.path == "/revoke"]
        assert [dict(parse_qsl(each.body.decode()))["token"] for each in asked] == good


async def test_a_sign_in_that_was_begun_and_left_is_swept(hub, notes, alice, bob):
    await hub.begin("notes", alice)
    await hub.sign_in("notes", notes, bob)
    await hub.begin("notes", bob)
    hub.world.clock.advance(SIGN_IN_SECONDS - 1)
    # Begun anew, it lasts anew.
    begun = await hub.begin("notes", alice)
    hub.world.clock.advance(2)
    await hub.world.accounts.authentication.upkeep()
    assert len(await hub.world.rows("SELECT * FROM consents")) == 2
    await hub.finish(notes.consent(begun, "alice"), alice)
    await hub.consents.forget("notes", alice.id)
    await hub.begin("notes", alice)
    hub.world.clock.advance(SIGN_IN_SECONDS)
    await hub.world.accounts.authentication.upkeep()
    (row,) = await hub.world.rows("SELECT holder FROM consents")
    assert row[0] == bob.id


async def test_one_that_was_begun_and_not_ended_is_no_consent(hub, notes, alice):
    await hub.begin("notes", alice)
    assert await hub.consents.of("notes", alice.id) is None
    assert not await hub.consents.forget("notes", alice.id)


async def test_a_link_is_for_its_account_and_not_for_long(hub, alice, bob):
    ticket = hub.consents.link("notes", alice.id, "write").rpartition("/")[2]
    assert hub.consents.opened(ticket, alice.id) == ("notes", "write")
    with pytest.raises(e.SignInRefused):
        hub.consents.opened(ticket, bob.id)
    hub.world.clock.advance(SIGN_IN_SECONDS)
    with pytest.raises(e.SignInRefused):
        hub.consents.opened(ticket, alice.id)


async def test_the_secret_of_a_client_is_read_from_where_it_is(world, alice):
    guarded = Guarded()
    async with guarded.place.open():
        hub = Hub(world)
        hub.consents.environ = {"SECRET": "shh"}
        secret = SecretReference(env="SECRET")
        hub.add("notes", guarded, client_id="hub", client_secret=secret)
        await hub.sign_in("notes", guarded, alice)
        asked = [each for each in guarded.place.asked if each.path == "/token"]
        basic = base64.b64encode(b"hub:shh").decode()
        assert asked[0].headers["authorization"] == f"Basic {basic}"


def test_what_belongs_to_one_person_leads_nobody_else_to_their_link():
    class Conversation:
        pass

    affinity, theirs = Affinity(), Conversation()
    wanted = UpstreamRequest(method="tools/call", params={"requestState": "s"}, person="alice")
    affinity.note(wanted, Response(id=1, result={"requestState": "s"}), theirs)
    assert affinity.of(wanted) is theirs
    assert affinity.of(msgspec.structs.replace(wanted, person="bob")) is None


async def test_no_token_goes_along_with_a_redirect(hub, notes, alice):
    await hub.sign_in("notes", notes, alice)
    elsewhere = Guarded()
    async with elsewhere.place.open():
        for place in (f"{notes.base}/other", elsewhere.place.url):
            notes.redirect = place
            assert await hub.call(notes, alice) == 307
        assert elsewhere.place.connections == 0
    assert "/other" not in {asked.path for asked in notes.place.asked}
