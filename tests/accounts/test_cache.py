from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from folkmoot.accounts import Account
from folkmoot.accounts.cache import KnownTokens
from tests.accounts.support import World, run
from tests.store.support import Gate


def account(name: str) -> Account:
    return Account(name, name, name, "", "public", "", "person", "", None, 0, 0)


def remember(known: KnownTokens, name: str) -> None:
    known.put(f"hash of {name}", account(name), read_at=known.moment)


def test_only_so_many_are_remembered_and_the_one_not_seen_longest_goes_first() -> None:
    known = KnownTokens(most=3)
    for name in ("a", "b", "c"):
        remember(known, name)
    assert known.get("hash of a") == account("a")
    remember(known, "d")
    assert len(known) == 3
    assert known.get("hash of b") is None
    assert known.get("hash of a") == account("a")


def test_an_account_is_remembered_under_one_token_only() -> None:
    known = KnownTokens()
    known.put("old", account("a"), read_at=0)
    known.put("new", account("a"), read_at=0)
    assert known.get("old") is None
    assert len(known) == 1


def test_what_was_read_before_a_change_is_not_remembered_after_it() -> None:
    known = KnownTokens()
    read_at = known.moment
    remember(known, "a")
    known.forget("a")
    assert len(known) == 0
    known.put("old", account("a"), read_at=read_at)
    assert known.get("old") is None
    remember(known, "a")
    assert known.get("hash of a") == account("a")


@pytest.mark.requirement("auth.by-hash")
def test_a_token_that_was_seen_costs_no_statement(tmp_path: Path) -> None:
    async def body(here: World) -> None:
        new = await here.register("alice")
        assert await here.accounts.authenticate(new.token) == new.account
        before = len(here.store.statements)
        for _ in range(10):
            assert await here.accounts.authenticate(new.token) == new.account
        assert len(here.store.statements) == before

    run(body, tmp_path)


@pytest.mark.requirement("auth.old-token-stops")
def test_an_account_read_while_it_was_recovered_is_not_remembered(tmp_path: Path) -> None:
    async def body(here: World) -> None:
        new = await here.register("alice")
        accounts = here.accounts

        async def recover_meanwhile() -> None:
            here.store.after_read = None
            await accounts.recover("alice", new.recovery_code)

        here.store.after_read = recover_meanwhile
        assert await accounts.authenticate(new.token) == new.account  # as it was when asked
        assert await accounts.authenticate(new.token) is None

    run(body, tmp_path)


@pytest.mark.requirement("auth.old-token-stops")
def test_a_recovery_whose_caller_went_away_still_ends_the_old_token(tmp_path: Path) -> None:
    async def body(here: World) -> None:
        new = await here.register("alice")
        accounts = here.accounts
        gate = here.store.in_unit = Gate()

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
        here.store.in_unit = None
        await here.inner.write(lambda tx: tx.fetch("SELECT 1"))
        assert await accounts.authenticate(new.token) is None

    run(body, tmp_path)
