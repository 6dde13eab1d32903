"""What happens to accounts at the same moment, through two connections to one database."""

from __future__ import annotations

import asyncio
import secrets
from collections import Counter
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from folkmoot.accounts import Accounts, Policy
from folkmoot.clock import SystemClock
from folkmoot.core import errors as e
from folkmoot.vault import Vault
from tests.contract.engines import STORES, OpenStore

pytestmark = pytest.mark.parametrize("open_store", STORES)


@asynccontextmanager
async def two_hubs(
    open_store: OpenStore, folder: Path, policy: Policy = "open"
) -> AsyncIterator[tuple[Accounts, Accounts]]:
    async with open_store(folder) as first, open_store(folder) as second:
        vault = Vault(secrets.token_bytes(32), "test")
        one, two = (
            Accounts(store, SystemClock(), vault, policy=policy) for store in (first, second)
        )
        yield one, two


async def at_once(*actions: Awaitable[Any]) -> Counter[type]:
    return Counter(map(type, await asyncio.gather(*actions, return_exceptions=True)))


@pytest.mark.requirement("handle.unique")
async def test_of_those_who_register_one_handle_at_the_same_moment_exactly_one_wins(
    open_store: OpenStore, tmp_path: Path
) -> None:
    async with two_hubs(open_store, tmp_path) as (one, two):
        for number in range(5):
            outcome = await at_once(
                *(each.register(f"alice_{number}") for each in (one, two, one, two))
            )
            assert outcome[e.HandleTaken] == 3
            assert await one.count() == number + 1


@pytest.mark.requirement("handle.unique")
async def test_of_those_who_change_to_one_handle_at_the_same_moment_exactly_one_wins(
    open_store: OpenStore, tmp_path: Path
) -> None:
    async with two_hubs(open_store, tmp_path) as (one, two):
        people = [(await one.register(f"person_{number}")).account for number in range(4)]
        changes = [
            each.change_handle(person, "wanted")
            for each, person in zip((one, two, one, two), people, strict=True)
        ]
        outcome = await at_once(*changes, one.register("wanted"), two.register("wanted"))
        assert outcome[e.HandleTaken] == 5


@pytest.mark.requirement("invite.claimed-once")
async def test_of_those_who_claim_one_invite_at_the_same_moment_exactly_one_registers(
    open_store: OpenStore, tmp_path: Path
) -> None:
    async with two_hubs(open_store, tmp_path, "invite") as (one, two):
        for round_ in range(5):
            code = await one.create_invite(None)
            outcome = await at_once(
                *(
                    each.register(f"guest_{round_}_{number}", invite_code=code)
                    for number, each in enumerate((one, two, one, two))
                )
            )
            assert outcome[e.InviteClaimed] == 3
            assert await two.count() == round_ + 1
            assert (await two.invitation(code)).state == "claimed"


@pytest.mark.requirement("recovery.new-token")
async def test_of_recoveries_at_the_same_moment_one_token_is_left(
    open_store: OpenStore, tmp_path: Path
) -> None:
    async with two_hubs(open_store, tmp_path) as (one, two):
        new = await one.register("alice")
        back = await asyncio.gather(
            *(each.recover("alice", new.recovery_code) for each in (one, two, one, two))
        )
        tokens = [new.token, *(each.token for each in back)]
        async with open_store(tmp_path) as store:
            fresh = Accounts(store, SystemClock(), Vault(bytes(32), "test"), policy="open")
            known = [token for token in tokens if await fresh.authenticate(token)]
        assert len(known) == 1
        assert known != [new.token]


async def test_two_who_add_each_other_and_one_who_leaves_at_the_same_moment_leave_no_trace(
    open_store: OpenStore, tmp_path: Path
) -> None:
    async with two_hubs(open_store, tmp_path) as (one, two):
        alice, bob = [(await one.register(name)).account for name in ("alice", "bobby")]
        await asyncio.gather(
            one.add_contact(alice, "bobby"),
            two.add_contact(bob, "alice"),
            two.block(bob, "alice"),
            one.delete(alice),
            two.add_contact(alice, "bobby"),
            return_exceptions=True,
        )
        assert (await two.contacts(bob)).contacts == []
        found = await two.belongings(bob.id)
        assert found is not None
        assert found.blocked == []
