"""Letters hold with more than one writer: two units at once, in every order of their statements.

Sending is not SERIALIZABLE on PostgreSQL. Each actor has parts of its own, as its own hub would.
"""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import pytest

from folkmoot.accounts import Account, Accounts
from folkmoot.accounts.registration import ReservedNames
from folkmoot.mail import Mail
from folkmoot.vault import Vault
from tests.conftest import settings_of
from tests.contract.interleaving import Interleaver, broken_orders
from tests.mail.support import BOOKS, StillClock

Holds = Callable[[list[Any]], Awaitable[bool] | bool]


class Hub:
    """The parts of a hub that shares its database with others."""

    def __init__(self, store: Interleaver, clock: StillClock, vault: Vault) -> None:
        reserved = ReservedNames()
        self.accounts = Accounts(store, clock, vault, policy="open", reserved=reserved)
        self.mail = Mail(store, store.bus, clock, self.accounts, vault)


class World:
    """A database with people, and as many hubs on it as are asked for."""

    def __init__(self, *, row_locks: bool = False) -> None:
        self.store = Interleaver(row_locks=row_locks)
        self.clock = StillClock()
        self.vault = Vault(secrets.token_bytes(32), "test")

    def hub(self) -> Hub:
        return Hub(self.store, self.clock, self.vault)

    async def people(self, *handles: str) -> list[Account]:
        hub = self.hub()
        return [(await hub.accounts.register(handle)).account for handle in handles]

    def none(self, sql: str, *params: Any) -> bool:
        return not self.store.rows(sql, *params)

    def keeps(self, sql: str, *rows: tuple[Any, ...]) -> Holds:
        """Whether nothing failed, and a query finds these rows then."""
        return lambda told: succeeded(told) == told and self.store.rows(sql) == list(rows)

    async def always(self, holds: Holds, *acts: Callable[[Hub], Awaitable[Any]]) -> None:
        """Have something hold after every order of what these do at once, each at its own hub."""

        def actions() -> list[Callable[[], Awaitable[Any]]]:
            return [partial(act, self.hub()) for act in acts]

        assert await broken_orders(self.store, actions, holds) == []


def succeeded(told: Sequence[Any]) -> list[Any]:
    return [each for each in told if not isinstance(each, BaseException)]


@pytest.fixture
def world(request: pytest.FixtureRequest) -> World:
    return World(**settings_of(request))


# For units that rely on a database that makes them wait for rows that another changed.
LOCKS = pytest.mark.settings(row_locks=True)


class Letters(NamedTuple):
    """Ann has written to bob twice; what the two can do with it."""

    ann: Account
    bob: Account
    thread: str
    message: str

    async def mark(self, hub: Hub) -> None:
        await hub.mail.mark_delivered(self.bob, (1, 2))

    async def read(self, hub: Hub) -> None:
        await hub.mail.mark_read(self.bob, self.thread)

    async def send(self, hub: Hub) -> None:
        await hub.mail.send(self.ann, "bob", body="another")

    async def reply(self, hub: Hub) -> None:
        await hub.mail.send(self.bob, "ann", body="the other way")

    async def delete(self, hub: Hub) -> None:
        await hub.mail.delete_message(self.bob, self.message)

    async def delete_own(self, hub: Hub) -> None:
        await hub.mail.delete_message(self.ann, self.message)

    async def delete_thread(self, hub: Hub) -> None:
        await hub.mail.delete_thread(self.bob, self.thread)

    async def archive(self, hub: Hub) -> None:
        await hub.mail.set_state(self.bob, self.thread, "archived")


@pytest.fixture
async def letters(world: World) -> Letters:
    ann, bob = await world.people("ann", "bob")
    for number in range(2):
        await world.hub().mail.send(ann, "bob", body=f"number {number}")
    [[message, thread]] = world.store.rows("SELECT id, thread_id FROM messages WHERE seq = 2")
    return Letters(ann, bob, thread, message)


@pytest.mark.requirement("thread.unread-per-message")
@pytest.mark.parametrize(
    ("one", "two", "copies"),
    [
        (Letters.mark, Letters.mark, [2, 2]),
        (Letters.mark, Letters.read, [2, 2]),
        (Letters.delete, Letters.delete, [2, 1]),
        (Letters.delete, Letters.delete_thread, [1, 1]),
        (Letters.delete, Letters.delete_own, [2]),
        (Letters.delete_thread, Letters.archive, [1, 1]),
        pytest.param(Letters.read, Letters.send, [2, 2, 2], marks=LOCKS),
        pytest.param(Letters.delete, Letters.send, [2, 1, 2], marks=LOCKS),
        pytest.param(Letters.delete_thread, Letters.send, None, marks=LOCKS),
        pytest.param(Letters.send, Letters.reply, [2, 2, 2, 2], marks=LOCKS),
    ],
)
async def test_what_two_do_with_letters_at_once_is_counted_once(world, letters, one, two, copies):
    """A letter goes with its last copy, and one that comes meanwhile is there."""

    def holds(told: list[Any]) -> bool:
        kept = [
            left for (left,) in world.store.rows("SELECT copies_left FROM messages ORDER BY seq")
        ]
        gone = "SELECT 1 FROM members WHERE last_seq = 0 AND state <> 'active'"
        return copies in (None, kept) and all(map(world.none, (*BOOKS.values(), gone)))

    await world.always(holds, partial(one, letters), partial(two, letters))


@LOCKS
async def test_two_who_write_to_each_other_first_share_a_thread_in_order(world):
    ann, bob = await world.people("ann", "bob")

    def holds(told: list[Any]) -> bool:
        one_thread = world.keeps("SELECT COUNT(*) FROM threads", (1,))(told)
        return bool(one_thread) and all(map(world.none, BOOKS.values()))

    await world.always(
        holds,
        lambda one: one.mail.send(ann, "bob", body="one"),
        lambda two: two.mail.send(bob, "ann", body="two"),
    )


@LOCKS
async def test_a_message_under_one_key_is_sent_once(world):
    ann, _ = await world.people("ann", "bob")

    def holds(told: list[Any]) -> bool:
        same = len({each.message_id for each in succeeded(told)}) == 1
        return same and bool(world.keeps("SELECT COUNT(*) FROM messages", (1,))(told))

    await world.always(
        holds, *[lambda hub: hub.mail.send(ann, "bob", body="one", idempotency_key="k")] * 2
    )
