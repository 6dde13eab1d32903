"""Many credentials for one account: made, listed, used, revoked, expired."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from folkmoot.accounts import Account, Registered
from folkmoot.accounts.authentication import Authentication
from folkmoot.accounts.limits import MAX_LABEL, MAX_TOKEN_SECONDS
from folkmoot.core import errors as e
from folkmoot.core.ports import Event
from folkmoot.quotas import Quotas
from folkmoot.settings.sections import QuotaSettings
from tests.accounts.support import World, refused


@pytest.fixture
async def ann(world: World) -> Registered:
    return await world.register("ann")


@pytest.fixture
async def tokens(world: World) -> Authentication:
    return world.accounts.authentication


async def labels(here: World, account: Account) -> list[str]:
    return [each.label for each in await here.accounts.authentication.list(account)]


@pytest.mark.requirement("credentials.many")
async def test_an_account_has_many_tokens_and_each_is_revoked_by_itself(world, ann, tokens):
    world.clock.advance(1)
    laptop = await tokens.create(ann.account, "laptop")
    world.clock.advance(1)
    phone = await tokens.create(ann.account, "phone")
    secrets = [ann.token, laptop.token, phone.token]
    assert [await world.accounts.authenticate(each) for each in secrets] == [ann.account] * 3
    assert await labels(world, ann.account) == ["first token", "laptop", "phone"]
    heard: list[Event] = []
    world.store.bus.listen("credential.*", heard.append)
    await tokens.revoke(ann.account, laptop.credential.id)
    assert heard == [Event(f"credential.{laptop.credential.id}", {"account": ann.account.id})]
    assert await world.accounts.authenticate(laptop.token) is None
    assert await world.accounts.still_valid(laptop.credential.id) is None
    assert [await world.accounts.authenticate(each) for each in (ann.token, phone.token)] == [
        ann.account
    ] * 2
    assert await labels(world, ann.account) == ["first token", "phone"]
    assert phone.token not in repr(phone)
    rows = await world.rows("SELECT * FROM credentials")
    assert not any(token.encode() in repr(rows).encode() for token in secrets)


async def test_who_creates_and_revokes_a_token_is_in_the_audit_log_and_no_secret_is(world, caplog):
    ann, tokens = await world.register("ann"), world.accounts.authentication
    with caplog.at_level(logging.INFO, "folkmoot.audit"):
        made = await tokens.create(ann.account, "laptop")
        await tokens.revoke(ann.account, made.credential.id)
    lines: list[Any] = [
        (it.message, it.by, it.account, it.about)  # type: ignore[attr-defined]
        for it in caplog.records
    ]
    about = ("ann", ann.account.id, made.credential.id)
    assert lines == [("token.created", *about), ("token.revoked", *about)]
    assert made.token not in caplog.text


@pytest.mark.requirement("credentials.many")
async def test_nobody_revokes_what_is_not_theirs_or_not_there(world):
    ann, bob = await world.register("ann"), await world.register("bob")
    tokens = world.accounts.authentication
    for wrong in (bob.credential_id, "", "c_" + "0" * 24, "' OR 1=1 --"):
        await refused(tokens.revoke(ann.account, wrong), e.CredentialNotFound)
    await tokens.revoke(ann.account, ann.credential_id)
    await refused(tokens.revoke(ann.account, ann.credential_id), e.CredentialNotFound)
    assert await world.accounts.authenticate(bob.token) == bob.account
    assert await world.accounts.authenticate(ann.token) is None
    back = await world.accounts.recover("ann", ann.recovery_code)
    assert await world.accounts.authenticate(back.token) is not None


@pytest.mark.requirement("credentials.recover-ends-all")
async def test_recovering_ends_every_credential_and_deleting_removes_them(world, ann, tokens):
    other = await tokens.create(ann.account, "other")
    session = await tokens.bind(other.credential.id, "5" * 64, 2_000_000_000)
    for each in (ann.credential_id, other.credential.id, session.id):
        assert await world.accounts.still_valid(each) == ann.account
    back = await world.accounts.recover("ann", ann.recovery_code)
    for each in (ann.credential_id, other.credential.id, session.id):
        assert await world.accounts.still_valid(each) is None
    assert await labels(world, back.account) == ["recovered"]
    await world.accounts.delete(back.account)
    assert await world.rows("SELECT * FROM credentials") == []
    await refused(tokens.create(back.account), e.TokenInvalid)


@pytest.mark.requirement("credentials.session-row")
async def test_a_session_that_was_signed_in_ends_with_its_token_and_is_no_token(world, ann, tokens):
    made = await tokens.bind(ann.credential_id, "5" * 64, 2_000_000_000)
    assert (made.kind, made.parent_id) == ("session", ann.credential_id)
    assert await world.accounts.still_valid(made.id) == ann.account
    assert await labels(world, ann.account) == ["first token"]
    again = await tokens.bind(ann.credential_id, "5" * 64, 2_000_000_000)
    assert await world.accounts.still_valid(made.id) is None, "the session has another now"
    await tokens.revoke(ann.account, ann.credential_id)
    assert await world.accounts.still_valid(again.id) is None
    assert await tokens.bind(ann.credential_id, "5" * 64, 2_000_000_000) is None
    assert await world.rows("SELECT * FROM credentials") == []


@pytest.mark.requirement("credentials.expire")
async def test_a_token_opens_nothing_from_the_moment_it_expires_and_is_then_removed(world):
    ann, tokens = await world.register("ann"), world.accounts.authentication
    short = await tokens.create(ann.account, "short", expires_in=60)
    assert await world.accounts.authenticate(short.token) == ann.account
    world.clock.advance(59)
    assert await world.accounts.authenticate(short.token) == ann.account
    world.clock.advance(1)
    assert await world.accounts.authenticate(short.token) is None
    assert await world.accounts.still_valid(short.credential.id) is None
    heard: list[str] = []
    world.store.bus.listen("credential.*", lambda event: heard.append(event.subject))
    await tokens.upkeep()
    assert heard == [f"credential.{short.credential.id}"]
    assert await labels(world, ann.account) == ["first token"]
    before = world.store.writes
    await tokens.upkeep()
    assert world.store.writes == before, "nothing to do is nothing written"


async def test_a_token_that_expires_makes_none_that_outlives_it(world, ann, tokens):
    short = (await tokens.create(ann.account, "short", expires_in=60)).credential.id
    for longer in (None, 61):
        with pytest.raises(e.ArgumentInvalid, match="at most 60 seconds"):
            await tokens.create(ann.account, "longer", expires_in=longer, by=short)
    await tokens.create(ann.account, "same", expires_in=60, by=short)
    assert sorted(await labels(world, ann.account)) == ["first token", "same", "short"]


@pytest.mark.requirement("credentials.used-at")
async def test_the_last_use_is_stored_now_and_then_and_costs_a_request_nothing(world, ann, tokens):
    session = await tokens.bind(ann.credential_id, "5" * 64, 2_000_000_000)
    before = world.store.writes
    for _ in range(3):
        assert await world.accounts.authenticate(ann.token) is not None
    assert world.store.writes == before
    assert await world.rows("SELECT used_at FROM credentials WHERE kind = 'token'") == [(None,)]
    [shown] = await tokens.list(ann.account)
    assert shown.used_at == int(world.clock.now()), "it is known here at once"
    await tokens.upkeep()
    [shown] = await tokens.list(ann.account)
    assert shown.used_at == int(world.clock.now())
    world.clock.advance(100)
    assert await world.accounts.still_valid(session.id) is not None
    await tokens.upkeep()
    [shown] = await tokens.list(ann.account)
    assert shown.used_at == int(world.clock.now()), "the use of a session is its token's"


@pytest.mark.requirement("credentials.bounded")
@pytest.mark.settings(quotas=Quotas(QuotaSettings(tokens_per_account=3)))
async def test_an_account_has_no_more_tokens_than_the_quota_also_at_the_same_moment(world):
    ann, tokens = await world.register("ann"), world.accounts.authentication
    made = await asyncio.gather(
        *(tokens.create(ann.account, str(number)) for number in range(5)),
        return_exceptions=True,
    )
    refused = [each for each in made if isinstance(each, e.QuotaExceeded)]
    assert len(refused) == 3
    assert "one account may have 3" in refused[0].message
    assert refused[0].data["quota"] == "tokens_per_account"
    assert len(await tokens.list(ann.account)) == 3


WRONG: list[dict[str, Any]] = [
    *({"label": label} for label in ("x" * (MAX_LABEL + 1), "a\nb", "a\u202eb")),
    *({"expires_in": seconds} for seconds in (0, -1, MAX_TOKEN_SECONDS + 1)),
]


@pytest.mark.parametrize("given", WRONG)
async def test_a_token_that_cannot_be_is_refused_and_nothing_is_made(ann, tokens, given):
    await refused(tokens.create(ann.account, **given), e.ArgumentInvalid, next(iter(given)))
    assert len(await tokens.list(ann.account)) == 1


@pytest.mark.requirement("credentials.scope-child", "credentials.session-row")
async def test_a_session_has_the_scope_of_its_token_and_ends_no_later(world, ann, tokens):
    short = await tokens.create(ann.account, scope="rooms:square account", expires_in=60)
    made = await tokens.bind(short.credential.id, "5" * 64, 2_000_000_000)
    assert (made.scope, made.expires_at) == ("account rooms:square", short.credential.expires_at)
    who = await world.accounts.principal(made.id)
    assert (who.name, who.scope) == ("ann", "account rooms:square")
    child = await tokens.create(ann.account, by=made.id, expires_in=30)
    assert child.credential.scope == "account rooms:square"
    world.clock.advance(60)
    assert await world.accounts.principal(made.id) is None
    await tokens.revoke(ann.account, short.credential.id)
    await refused(tokens.create(ann.account, by=made.id), e.TokenInvalid)
