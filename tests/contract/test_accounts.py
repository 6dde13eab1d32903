"""What happens to accounts at the same moment, through two connections to one database."""

from __future__ import annotations

import asyncio
import secrets
from collections import Counter
from collections.abc import AsyncIterator, Awaitable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from folkmoot.accounts import Accounts
from folkmoot.clock import SystemClock
from folkmoot.core import errors as e
from folkmoot.vault import Vault
from tests.conftest import settings_of
from tests.contract.engines import STORES, OpenStore

pytestmark = pytest.mark.parametrize("open_store", STORES)


class Hubs(NamedTuple):
    """The accounts of two hubs on one database."""

    one: Accounts
    two: Accounts


@pytest.fixture
async def hubs(
    open_store: OpenStore, tmp_path: Path, request: pytest.FixtureRequest
) -> AsyncIterator[Hubs]:
    async with open_store(tmp_path) as first, open_store(tmp_path) as second:
        vault, options = Vault(secrets.token_bytes(32), "test"), settings_of(request)
        yield Hubs(
            *(
                Accounts(store, SystemClock(), vault, **{"policy": "open", **options})
                for store in (first, second)
            )
        )


async def at_once(*actions: Awaitable[Any]) -> Counter[type]:
    return Counter(map(type, await asyncio.gather(*actions, return_exceptions=True)))


@pytest.mark.requirement("handle.unique")
async def test_of_those_who_register_one_handle_at_the_same_moment_exactly_one_wins(hubs):
    one = hubs.one
    for number in range(5):
        outcome = await at_once(*(each.register(f"alice_{number}") for each in hubs * 2))
        assert outcome[e.HandleTaken] == 3
        assert await one.count() == number + 1


@pytest.mark.requirement("handle.unique")
async def test_of_those_who_change_to_one_handle_at_the_same_moment_exactly_one_wins(hubs):
    one, two = hubs
    people = [(await one.register(f"person_{number}")).account for number in range(4)]
    changes = [
        each.change_handle(person, "wanted") for each, person in zip(hubs * 2, people, strict=True)
    ]
    outcome = await at_once(*changes, one.register("wanted"), two.register("wanted"))
    assert outcome[e.HandleTaken] == 5


@pytest.mark.requirement("invite.claimed-once")
@pytest.mark.settings(policy="invite")
async def test_of_those_who_claim_one_invite_at_the_same_moment_exactly_one_registers(hubs):
    one, two = hubs
    for round_ in range(5):
        code = await one.create_invite(None)
        outcome = await at_once(
            *(
                each.register(f"guest_{round_}_{number}", invite_code=code)
                for number, each in enumerate(hubs * 2)
            )
        )
        assert outcome[e.InviteClaimed] == 3
        assert await two.count() == round_ + 1
        assert (await two.invitation(code)).state == "claimed"


async def test_two_who_add_each_other_and_one_who_leaves_at_the_same_moment_leave_no_trace(hubs):
    one, two = hubs
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
    assert found.blocked == []
