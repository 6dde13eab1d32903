"""Apps that use an account: what they are given, for how long, and what ends it."""

from __future__ import annotations

import asyncio
import logging
import re
from typing import Any

import pytest
from msgspec.structs import replace

from folkmoot.accounts import Account, Credential, Pair, apps
from folkmoot.accounts.apps import Apps
from folkmoot.accounts.credentials import hash_secret
from folkmoot.core import errors as e
from folkmoot.core.ports import Event
from tests.accounts.support import DAY, World, refused
from tests.apps import BACK, CLIENT, GIVEN, SCOPE, SHOWN, browser, connect, consent

HOUR = 3600
OTHER = "https://other.example/client.json"
COUNTED = ("app_grants", "app_refresh", "credentials")


@pytest.fixture
async def ann(world: World) -> Account:
    return await world.join("ann")


@pytest.fixture
async def made(world: World) -> Apps:
    return world.accounts.apps


async def opens(here: World, *pairs: Pair) -> list[str | None]:
    """The scope of what each access token opens; None where it opens nothing."""
    found = [
        await here.accounts.authentication.by_hash(hash_secret(each.access_token)) for each in pairs
    ]
    return [None if one is None else one.credential.scope for one in found]


async def count(here: World, table: str) -> int:
    return int((await here.rows(f"SELECT COUNT(*) FROM {table}"))[0][0])


async def test_an_app_gets_its_tokens_for_a_code_and_only_hashes_are_stored(
    world, ann, made, caplog
):
    with caplog.at_level(logging.DEBUG):
        code = await consent(world.accounts, ann)
        pair = await made.exchange(code, **SHOWN)
        again = await made.refresh(pair.refresh_token, client_id=CLIENT)
    assert re.fullmatch("ac_[0-9a-f]{64}", code)
    assert re.fullmatch("at_[0-9a-f]{64}", pair.access_token)
    assert re.fullmatch("rt_[0-9a-f]{64}", pair.refresh_token)
    assert (pair.scope, pair.expires_in) == (SCOPE, HOUR)
    assert await opens(world, pair, again) == [SCOPE, SCOPE]
    [app] = await made.list(ann)
    assert (app.kind, app.client_name, app.redirect_host) == ("app", "Assistant", "127.0.0.1")
    assert (app.client_id, app.scope, app.resource) == (CLIENT, SCOPE, GIVEN["client"].resource)
    assert f"app.connected by=ann about={app.id}" == next(
        f"{it.message} by={it.by} about={it.about}"
        for it in caplog.records
        if it.name == "folkmoot.audit" and it.message.startswith("app.")
    )
    secrets = (code, *pair_texts(pair), *pair_texts(again))
    stored = [await world.rows(f"SELECT * FROM {table}") for table in COUNTED]
    for text in (repr(stored), caplog.text, repr(pair), repr(app)):
        assert not any(secret in text or secret[3:] in text for secret in secrets)


def pair_texts(pair: Pair) -> tuple[str, str]:
    return pair.access_token, pair.refresh_token


WRONG: dict[str, tuple[dict[str, Any], int]] = {
    "another client's": ({"client_id": OTHER}, 0),
    "another redirect": ({"redirect_uri": BACK + "/"}, 0),
    "another verifier": ({"challenge_of": lambda _: False}, 0),
    "another resource": ({"resource": "https://other.example/mcp"}, 0),
    "after 60 seconds": ({}, 60),
}


@pytest.mark.parametrize("shown", WRONG.values(), ids=WRONG)
async def test_a_code_is_good_for_nobody_else_and_for_a_minute(world, ann, made, shown):
    given, seconds = shown
    code = await consent(world.accounts, ann)
    world.clock.advance(seconds)
    before = [await count(world, table) for table in COUNTED]
    told = await refused(made.exchange(code, **SHOWN | given), e.GrantInvalid)
    assert told == str(e.GrantInvalid()), "nothing tells what was wrong"
    assert [await count(world, table) for table in COUNTED] == before
    if not seconds:
        assert (
            await made.exchange(code, **SHOWN, resource=GIVEN["client"].resource)
        ).scope == SCOPE


@pytest.mark.parametrize("text", ["", "ac_", "ac_" + "0" * 64, "at_" + "0" * 64, "\ud800"])
async def test_what_is_no_code_makes_no_write(world, made, text):
    writes = world.store.writes
    await refused(made.exchange(text, **SHOWN), e.GrantInvalid)
    await refused(made.refresh(text.replace("ac_", "rt_"), client_id=CLIENT), e.GrantInvalid)
    await made.revoke(text, client_id=CLIENT)
    assert world.store.writes == writes


async def test_a_code_that_is_replayed_ends_the_grant_that_it_made(world, ann, made):
    code, other = await consent(world.accounts, ann), await connect(world.accounts, ann)
    pair = await made.exchange(code, **SHOWN)
    world.clock.advance(61)
    assert await opens(world, pair) == [SCOPE]
    await refused(made.exchange(code, **SHOWN | {"client_id": OTHER}), e.GrantInvalid)
    assert await opens(world, pair, other) == [None, SCOPE]
    await refused(made.refresh(pair.refresh_token, client_id=CLIENT), e.GrantInvalid)
    assert len(await made.list(ann)) == 1


async def test_a_code_that_is_used_twice_at_the_same_moment_is_good_for_nothing(world, ann, made):
    code = await consent(world.accounts, ann)
    tries = [made.exchange(code, **SHOWN) for _ in range(4)]
    found = await asyncio.gather(*tries, return_exceptions=True)
    pairs = [each for each in found if isinstance(each, Pair)]
    assert len(pairs) == 1
    assert all(isinstance(each, Pair | e.GrantInvalid) for each in found)
    assert await opens(world, *pairs) == [None]


async def test_agents_guests_and_tokens_cannot_consent(world, ann, made):
    robot = (await world.accounts.register("robot", account_type="agent")).account
    token = (await world.accounts.authentication.create(ann)).credential
    for account, by in ((robot, await browser(world.accounts, robot)), (ann, token)):
        await refused(made.code(account, by, **GIVEN), e.AccessDenied)
    bob = await world.join("bobby")
    guest = Credential("c_none", "guest", None, 0, guest_id="g")
    for by in (await browser(world.accounts, bob), guest, replace(guest, kind="browser")):
        await refused(made.code(ann, by, **GIVEN), e.TokenInvalid)
    claims = replace(token, kind="browser", scope="*")
    await refused(made.code(ann, claims, **GIVEN), e.AccessDenied)
    here = await browser(world.accounts, ann)
    await world.accounts.suspend(ann, suspended=True)
    await refused(made.code(ann, here, **GIVEN), e.AccountSuspended)
    await world.accounts.suspend(ann, suspended=False)
    world.clock.advance(8 * DAY)
    await refused(made.code(ann, here, **GIVEN), e.TokenInvalid)
    assert await count(world, "app_grants") == 0


@pytest.mark.parametrize(
    ("held", "wanted"),
    [("mail.read", "mail.read mail.send"), ("rooms:square", "rooms"), ("* operate", "operate")]
    + [("*", each) for each in ("", " ", "*", "account", "mail.read account", "operate")],
)
async def test_an_app_gets_no_scope_that_the_browser_has_not_nor_one_to_make_credentials(
    world, ann, made, held, wanted
):
    here = await browser(world.accounts, ann, held)
    await refused(made.code(ann, here, **GIVEN | {"scope": wanted}), e.OAuthError)


async def test_a_refresh_token_gets_the_next_pair_for_sixty_days_after_the_last(world, ann, made):
    pair = await connect(world.accounts, ann)
    for _ in range(4):
        world.clock.advance(60 * DAY - 1)
        before, pair = pair, await made.refresh(pair.refresh_token, client_id=CLIENT)
        assert await opens(world, before, pair) == [None, SCOPE]
        await world.accounts.authentication.upkeep()
    world.clock.advance(60 * DAY)
    await refused(made.refresh(pair.refresh_token, client_id=CLIENT), e.GrantInvalid)
    assert len(await made.list(ann)) == 1


@pytest.mark.requirement("sign-in.refresh-window")
async def test_a_spent_refresh_token_gets_pairs_within_the_window_and_ends_the_grant_after_it(
    world, ann, made
):
    first = await connect(world.accounts, ann)
    pairs = [await made.refresh(first.refresh_token, client_id=CLIENT)]
    for _ in range(2):
        world.clock.advance(60)
        pairs.append(await made.refresh(first.refresh_token, client_id=CLIENT))
    assert len({text for pair in (first, *pairs) for text in pair_texts(pair)}) == 8
    # Each of them goes on by itself.
    pairs += [await made.refresh(each.refresh_token, client_id=CLIENT) for each in pairs]
    assert await opens(world, first, *pairs) == [SCOPE] * 7
    world.clock.advance(1)
    await refused(made.refresh(first.refresh_token, client_id=OTHER), e.GrantInvalid)
    assert await opens(world, first, *pairs) == [SCOPE] * 7, "another app ends nothing"
    await refused(made.refresh(first.refresh_token, client_id=CLIENT), e.GrantInvalid)
    assert await opens(world, first, *pairs) == [None] * 7
    await refused(made.refresh(pairs[-1].refresh_token, client_id=CLIENT), e.GrantInvalid)
    assert [await count(world, table) for table in COUNTED[:2]] == [0, 0]


async def test_twenty_who_refresh_with_one_token_at_once_all_get_their_own_pair(world, ann, made):
    first = await connect(world.accounts, ann)
    tries = [made.refresh(first.refresh_token, client_id=CLIENT) for _ in range(20)]
    pairs = await asyncio.gather(*tries)
    assert len({each.refresh_token for each in pairs}) == 20
    assert await opens(world, *pairs) == [SCOPE] * 20
    later = [made.refresh(each.refresh_token, client_id=CLIENT) for each in pairs]
    ending = made.revoke(first.access_token, client_id=CLIENT)
    *told, _ = await asyncio.gather(*later, ending, return_exceptions=True)
    assert all(isinstance(each, Pair | e.GrantInvalid) for each in told)
    assert await opens(world, *pairs, *(each for each in told if isinstance(each, Pair))) == [
        None
    ] * (20 + sum(isinstance(each, Pair) for each in told))


async def test_no_refresh_gets_more_scope_than_the_grant_and_a_refusal_spends_nothing(
    world, ann, made
):
    pair = await connect(world.accounts, ann, scope="mail.read rooms:square")
    for more in ("mail.send", "rooms", "*", "operate"):
        wish = made.refresh(pair.refresh_token, client_id=CLIENT, scope=more)
        await refused(wish, e.OAuthError)
    world.clock.advance(DAY)
    # What it asks for of that is given: it may repeat all that it asked for at first.
    asked = "mail.read mail.send offline_access"
    less = await made.refresh(pair.refresh_token, client_id=CLIENT, scope=asked)
    assert await opens(world, less) == ["mail.read"]
    whole = await made.refresh(less.refresh_token, client_id=CLIENT)
    assert await opens(world, whole) == ["mail.read rooms:square"]


async def test_neither_token_of_a_pair_does_what_the_other_does(world, ann, made):
    pair = await connect(world.accounts, ann)
    accounts = world.accounts
    await refused(made.refresh(pair.access_token, client_id=CLIENT), e.GrantInvalid)
    await refused(made.refresh("rt_" + pair.access_token[3:], client_id=CLIENT), e.GrantInvalid)
    assert await accounts.authentication.by_hash(hash_secret(pair.refresh_token)) is None
    for text in (*pair_texts(pair), "at_" + pair.refresh_token[3:]):
        await refused(accounts.identify(text), e.TokenInvalid)
        assert await accounts.authentication.by_browser(text) is None
    assert len(await made.list(ann)) == 1


@pytest.mark.parametrize("which", ["access_token", "refresh_token"])
async def test_an_app_ends_its_grant_with_either_token_and_no_other_app_does(
    world, ann, made, which
):
    pair, other = await connect(world.accounts, ann), await connect(world.accounts, ann)
    text = getattr(pair, which)
    await made.revoke(text, client_id=OTHER)
    assert await opens(world, pair) == [SCOPE]
    heard: list[Event] = []
    world.store.bus.listen("credential.*", heard.append)
    before = {it.id for it in await made.list(ann)}
    for _ in range(2):
        await made.revoke(text, client_id=CLIENT)
    assert await opens(world, pair, other) == [None, SCOPE]
    [gone] = before - {it.id for it in await made.list(ann)}
    assert heard == [Event(f"credential.{gone}", {"account": ann.id})], "and of no access token"


async def test_an_access_token_that_expires_ends_nothing_and_its_grant_outlasts_it(
    world, ann, made
):
    pair = await connect(world.accounts, ann)
    [app] = await made.list(ann)
    found = await world.accounts.authentication.by_hash(hash_secret(pair.access_token))
    assert found.credential.lasting_id == app.id
    heard: list[Event] = []
    for subject in ("credential.*", "tokens.*"):
        world.store.bus.listen(subject, heard.append)
    world.clock.advance(HOUR)
    assert await opens(world, pair) == [None]
    await world.accounts.authentication.upkeep()
    assert heard == []
    kinds = await world.rows("SELECT kind, parent_id IS NULL FROM credentials ORDER BY kind")
    assert [(kind, bool(top)) for kind, top in kinds] == [
        ("app", True), ("browser", True), ("token", True),
    ]  # fmt: skip
    assert await world.accounts.still_valid(app.id) == ann
    await world.accounts.authentication.revoke(ann, app.id)
    assert heard[0].subject == f"credential.{app.id}"
    assert await world.accounts.still_valid(app.id) is None


async def test_a_grant_that_nobody_uses_for_ninety_days_ends(world, ann, made):
    idle, used = await connect(world.accounts, ann), await connect(world.accounts, ann)
    await consent(world.accounts, ann)
    world.clock.advance(50 * DAY)
    used = await made.refresh(used.refresh_token, client_id=CLIENT)
    await world.accounts.authentication.upkeep()
    assert len(await made.list(ann)) == 2
    assert await count(world, "app_grants") == 2, "the spent ones"
    world.clock.advance(40 * DAY)
    heard: list[Event] = []
    world.store.bus.listen("credential.*", heard.append)
    gone = (await made.list(ann))[-1]
    await world.accounts.authentication.upkeep()
    assert f"credential.{gone.id}" in {event.subject for event in heard}
    [left] = await made.list(ann)
    await refused(made.refresh(idle.refresh_token, client_id=CLIENT), e.GrantInvalid)
    assert (await made.refresh(used.refresh_token, client_id=CLIENT)).scope == SCOPE
    assert left.id != gone.id
    await world.accounts.authentication.upkeep()
    writes = world.store.writes
    await world.accounts.authentication.upkeep()
    assert world.store.writes == writes


async def test_lists_show_the_grant_and_its_last_use_and_no_access_token(world, ann, made):
    tokens = world.accounts.authentication
    pair = await connect(world.accounts, ann)
    pair = await made.refresh(pair.refresh_token, client_id=CLIENT)
    [app] = await made.list(ann)
    listed = {it.id: it for it in await tokens.list(ann) if it.kind == "app"}
    assert listed.keys() == {app.id}
    assert (listed[app.id].label, listed[app.id].scope) == ("Assistant", SCOPE)
    world.clock.advance(600)
    await opens(world, pair)
    await tokens.upkeep()
    assert (await made.list(ann))[0].used_at == app.created_at + 600
    assert (await world.accounts.quotas_of(ann.id, tokens=True))["tokens"]["used"] == 1
    [(access,)] = await world.rows(
        "SELECT id FROM credentials WHERE parent_id = ? ORDER BY id DESC LIMIT 1", app.id
    )
    await refused(tokens.revoke(ann, access), e.CredentialNotFound)
    assert (await world.accounts.belongings(ann.id)).apps == await made.list(ann)


async def test_one_app_too_many_ends_the_one_unused_for_longest_and_none_is_merged(
    world, ann, made, monkeypatch
):
    monkeypatch.setattr(apps, "MAX_GRANTS", 3)
    pairs = []
    for _ in range(3):
        world.clock.advance(1)
        pairs.append(await connect(world.accounts, ann))
    assert await opens(world, *pairs) == [SCOPE] * 3
    world.clock.advance(1)
    pairs[0] = await made.refresh(pairs[0].refresh_token, client_id=CLIENT)
    pairs.append(await connect(world.accounts, ann))
    assert await opens(world, *pairs) == [SCOPE, None, SCOPE, SCOPE]


async def test_the_tokens_of_a_grant_and_the_codes_of_an_account_are_bounded(
    world, ann, made, monkeypatch
):
    monkeypatch.setattr(apps, "MAX_TOKENS_OF_GRANT", 3)
    monkeypatch.setattr(apps, "MAX_APP_CODES", 2)
    pair = await connect(world.accounts, ann)
    for _ in range(5):
        world.clock.advance(1)
        pair = await made.refresh(pair.refresh_token, client_id=CLIENT)
    assert await count(world, "app_refresh") == 3
    [(children,)] = await world.rows("SELECT COUNT(*) FROM credentials WHERE parent_id IS NOT NULL")
    assert children == 3
    assert await opens(world, pair) == [SCOPE]
    codes = []
    for _ in range(3):
        world.clock.advance(1)
        codes.append(await consent(world.accounts, ann))
    await refused(made.exchange(codes[0], **SHOWN), e.GrantInvalid)
    assert (await made.exchange(codes[2], **SHOWN)).scope == SCOPE


@pytest.mark.parametrize("ending", ["recover", "delete", "suspend"])
async def test_recovering_deleting_and_suspending_an_account_end_what_apps_have(world, ending):
    new = await world.register("ann")
    ann, made = new.account, world.accounts.apps
    pair, code = await connect(world.accounts, ann), await consent(world.accounts, ann)
    assert await opens(world, pair) == [SCOPE]
    if ending == "suspend":
        await world.accounts.suspend(ann, suspended=True)
    elif ending == "recover":
        await world.accounts.recover("ann", new.recovery_code)
    else:
        await world.accounts.delete(ann)
    await refused(made.refresh(pair.refresh_token, client_id=CLIENT), e.GrantInvalid)
    await refused(made.exchange(code, **SHOWN), e.GrantInvalid)
    if ending == "suspend":
        await world.accounts.suspend(ann, suspended=False)
        assert (await made.refresh(pair.refresh_token, client_id=CLIENT)).scope == SCOPE
    else:
        assert await opens(world, pair) == [None]
        assert [await count(world, table) for table in COUNTED[:2]] == [0, 0]


async def test_an_access_token_that_was_seen_costs_no_statement_until_its_grant_ends(
    world, ann, made
):
    pair = await connect(world.accounts, ann)
    await opens(world, pair)
    world.store.statements.clear()
    await opens(world, pair)
    assert world.store.statements == []
    [app] = await made.list(ann)
    await world.accounts.authentication.revoke(ann, app.id)
    assert await opens(world, pair) == [None]
