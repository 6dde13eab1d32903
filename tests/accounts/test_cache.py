from __future__ import annotations

import asyncio

import pytest

from folkmoot.accounts import Account, Credential, Identity
from folkmoot.accounts.authentication import KnownIdentities
from folkmoot.accounts.model import principal_of
from tests.store.support import Gate


def identity(name: str, owner: str = "") -> Identity:
    account = Account(owner or name, name, name, "", "public", "", "person", "", None, 0, 0)
    credential = Credential(f"c_{name}", "token", account.id, 0)
    return Identity(credential, account, principal_of(account))


def remember(known: KnownIdentities, name: str, owner: str = "") -> None:
    known.put(f"hash of {name}", identity(name, owner), read_at=known.moment)


def test_only_so_many_are_remembered_and_the_one_not_seen_longest_goes_first():
    known = KnownIdentities(most=3)
    for name in ("a", "b", "c"):
        remember(known, name)
    assert known.get("hash of a") == known.get_by_id("c_a") == identity("a")
    remember(known, "d")
    assert len(known) == 3
    assert known.get("hash of b") is known.get_by_id("c_b") is None
    assert known.get("hash of a") == identity("a")


def test_a_credential_that_ended_is_forgotten_and_no_other():
    known = KnownIdentities()
    for name in ("token", "other"):
        remember(known, name, "ann")
    remember(known, "bob")
    known.forget("c_token")
    assert known.get("hash of token") is None
    assert known.get("hash of other") is not None
    known.forget("c_unknown")
    assert len(known) == 2


def test_what_was_read_before_a_change_is_not_remembered_after_it():
    known = KnownIdentities()
    for forget in (lambda: known.forget("c_a"), lambda: known.forget_account("a")):
        read_at = known.moment
        remember(known, "a")
        forget()
        assert len(known) == 0
        known.put("old", identity("a"), read_at=read_at)
        assert known.get("old") is None
        remember(known, "a")
        assert known.get("hash of a") == identity("a")


@pytest.mark.requirement("auth.by-hash")
async def test_a_token_that_was_seen_costs_no_statement(world, new):
    assert await world.accounts.authenticate(new.token) == new.account
    before = len(world.store.statements)
    for _ in range(10):
        assert await world.accounts.authenticate(new.token) == new.account
    assert len(world.store.statements) == before


@pytest.mark.requirement("auth.old-token-stops")
async def test_an_account_read_while_it_was_recovered_is_not_remembered(world, new):
    accounts = world.accounts

    async def recover_meanwhile() -> None:
        world.store.after_read = None
        await accounts.recover("alice", new.recovery_code)

    world.store.after_read = recover_meanwhile
    assert await accounts.authenticate(new.token) == new.account  # as it was when asked
    assert await accounts.authenticate(new.token) is None


@pytest.mark.sqlite("stops its writer's thread")
@pytest.mark.requirement("auth.old-token-stops")
async def test_a_recovery_whose_caller_went_away_still_ends_the_old_token(world, new):
    accounts = world.accounts
    gate = world.store.in_unit = Gate()

    async def recover() -> None:
        await accounts.recover("alice", new.recovery_code)

    async with asyncio.TaskGroup() as tasks:
        caller = tasks.create_task(recover())
        await gate.entered()
        caller.cancel()
        await asyncio.wait([caller])
        # Not committed yet: whoever asks now may be let in, until the old token ends.
        assert await accounts.authenticate(new.token) is not None
        gate.open()
    world.store.in_unit = None
    await world.inner.write(lambda tx: tx.fetch("SELECT 1"))
    assert await accounts.authenticate(new.token) is None
