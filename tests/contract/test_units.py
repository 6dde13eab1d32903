"""Units that must hold with more than one writer: two at once, in every order of their statements.

Each actor has parts of its own, as a hub of its own would.
"""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import pytest
from msgspec.structs import replace

from folkmoot.accounts import Account, Accounts
from folkmoot.accounts.registration import ReservedNames
from folkmoot.core import errors as e
from folkmoot.core.ports import Tx, Unit
from folkmoot.gateway.grants import Granting
from folkmoot.gateway.pins import Pins
from folkmoot.gateway.rights import HubRights
from folkmoot.keys import MasterKey
from folkmoot.mail import Mail
from folkmoot.rooms import invitations, queries, queries_members
from folkmoot.rooms.access import leave_all_rooms
from folkmoot.rooms.directory import may_own_another
from folkmoot.rooms.machine import Role
from folkmoot.rooms.model import Membership, RoomRecord
from folkmoot.vault import Vault
from tests.conftest import settings_of
from tests.contract.interleaving import Interleaver, broken_orders
from tests.gateway.support import tool
from tests.mail.support import BOOKS, NOON, StillClock
from tests.rooms.storehouse import record

KEY = MasterKey(bytes(range(32)))
OTHER_KEY = MasterKey(bytes(range(1, 33)))
THIRD_KEY = MasterKey(bytes(range(2, 34)))

Holds = Callable[[list[Any]], Awaitable[bool] | bool]


class Hub:
    """The parts of a hub that shares its database with others."""

    def __init__(self, store: Interleaver, clock: StillClock, vault: Vault) -> None:
        self.store = store
        self.reserved = ReservedNames()
        self.accounts = Accounts(store, clock, vault, policy="open", reserved=self.reserved)
        self.mail = Mail(store, store.bus, clock, self.accounts, vault)
        self.pins = Pins(store, clock)


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

    async def always_after(self, holds: Holds, *units: Unit[Any]) -> None:
        """The same of units."""
        await self.always(holds, *(lambda hub, unit=unit: hub.store.write(unit) for unit in units))


def succeeded(told: Sequence[Any]) -> list[Any]:
    return [each for each in told if not isinstance(each, BaseException)]


@pytest.fixture
def world(request: pytest.FixtureRequest) -> World:
    return World(**settings_of(request))


LOCKS = pytest.mark.settings(row_locks=True)
"""For units that rely on a database that makes them wait for rows that another changed."""


@pytest.mark.parametrize("keys", [(KEY, KEY), (KEY, OTHER_KEY)], ids=["one key", "two keys"])
@LOCKS
async def test_two_first_starts_make_one_data_key(world, keys):
    def holds(told: list[Any]) -> bool:
        if keys[0] != keys[1]:
            return sorted(type(each).__name__ for each in told) == ["KeyMismatch", "Vault"]
        one, two = told
        return bool(two.open("p", "r", one.seal("p", "r", b"words")) == b"words")

    await world.always(
        holds,
        lambda one: Vault.load(one.store, keys[0]),
        lambda two: Vault.load(two.store, keys[1]),
    )


@pytest.mark.parametrize("other", [KEY, THIRD_KEY], ids=["a start", "another change"])
@LOCKS
async def test_whatever_meets_a_change_of_the_master_key_leaves_a_way_to_the_data(world, other):
    store = world.store
    sealed = (await Vault.load(store, KEY)).seal("p", "r", b"words")

    async def change(key: MasterKey) -> None:
        vault = await Vault.load(store, KEY)
        if key != KEY:
            await vault.admit(store, key)
            await vault.settle_on(store, key)

    async def holds(told: list[Any]) -> bool:
        assert all(each is None or isinstance(each, e.KeyMismatch) for each in told), told
        [[recorded]] = store.rows("SELECT value FROM meta WHERE key = 'master_key_id'")
        [key] = [each for each in (KEY, OTHER_KEY, THIRD_KEY) if each.id == recorded]
        return (await Vault.load(store, key)).open("p", "r", sealed) == b"words"

    await world.always(holds, lambda _: change(OTHER_KEY), lambda _: change(other))


@pytest.mark.requirement("handle.unique", "gateway.reserved-names")
async def test_a_name_is_a_namespace_or_a_handle_and_never_both(world):
    def holds(told: list[Any]) -> bool:
        taken, registered = told
        return (taken == {}) == isinstance(registered, e.HandleTaken)

    await world.always(
        holds,
        lambda one: one.reserved.reserve(world.store, ["github"], NOON),
        lambda two: two.accounts.register("github"),
    )


async def test_an_account_that_changes_its_handle_twice_at_once_has_one(world):
    [ann] = await world.people("ann")

    def holds(told: list[Any]) -> bool:
        live = "SELECT handle FROM handles WHERE kind = 'live'"
        return len(succeeded(told)) >= 1 and (
            world.store.rows(live) == world.store.rows("SELECT handle FROM users")
        )

    await world.always(
        holds,
        lambda one: one.accounts.change_handle(ann, "anna"),
        lambda two: two.accounts.change_handle(ann, "anne"),
    )


@LOCKS
async def test_who_changes_their_name_twice_at_once_is_found_by_the_name_they_have(world):
    [ann] = await world.people("ann")

    async def holds(told: list[Any]) -> bool:
        [[name]] = world.store.rows("SELECT display_name FROM users")
        other = {"Zoe": "Quentin", "Quentin": "Zoe"}[name]
        hub = world.hub()
        found = [await hub.accounts.search(ann, text) for text in (name, other)]
        return succeeded(told) == told and [len(each) for each in found] == [1, 0]

    await world.always(
        holds,
        lambda one: one.accounts.set_profile(ann, display_name="Zoe"),
        lambda two: two.accounts.set_profile(ann, display_name="Quentin"),
    )


async def test_of_two_invites_for_a_handle_one_is_open(world):
    holds = world.keeps("SELECT COUNT(*) FROM invites", (1,))
    await world.always(holds, *[lambda hub: hub.accounts.invite_for("support")] * 2)


@LOCKS
async def test_of_two_recoveries_one_token_is_left(world):
    code = (await world.hub().accounts.register("ann")).recovery_code
    holds = world.keeps("SELECT COUNT(*) FROM credentials", (1,))
    await world.always(holds, *[lambda hub: hub.accounts.recover("ann", code)] * 2)


async def test_two_first_sights_of_a_tool_are_one_new_and_one_changed(world):
    def holds(told: list[Any]) -> bool:
        return sorted(each["read"].verdict for each in told) == ["changed", "new"]

    await world.always(
        holds,
        lambda one: one.pins.judge("docs", [tool("read")]),
        lambda two: two.pins.judge("docs", [tool("read", description="Another.")]),
    )


async def test_what_a_tool_became_is_noted_of_the_pin_that_was_judged(world):
    """Otherwise a change that is accepted at this moment would be held back as one of itself."""
    await world.hub().pins.judge("docs", [tool("read")])
    await world.hub().pins.judge("docs", [tool("read", description="Another.")])

    async def accept(one: Hub) -> None:
        await one.pins.load()
        await one.pins.accept("docs")

    async def look(two: Hub) -> Any:
        await two.pins.load()
        return await two.pins.judge("docs", [tool("read", description="A third.")])

    def holds(told: list[Any]) -> bool:
        same = "SELECT 1 FROM pins WHERE changed_hash = hash"
        return told[1]["read"].verdict == "changed" and world.none(same)

    await world.always(holds, accept, look)


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
        await hub.mail.archive(self.bob, self.thread)


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


async def test_what_is_revoked_twice_at_once_is_revoked_once(world):
    await world.people("ann")

    async def granting(hub: Hub) -> Granting:
        rights = await HubRights.open(world.store, world.clock, hub.accounts, None)
        return Granting(rights, world.store, world.clock, hub.accounts)

    await (await granting(world.hub())).grant("ann", ["mcp.request.tools/call:files:*"])

    async def revoke(hub: Hub) -> Any:
        return await (await granting(hub)).revoke("ann", ["mcp.request.tools/call:files:*"])

    def holds(told: list[Any]) -> bool:
        refused = [each for each in told if isinstance(each, e.CommandInvalid)]
        lines = world.store.rows("SELECT 1 FROM audit WHERE action = 'hub.revoke'")
        return len(succeeded(told)) == len(refused) == len(lines) == 1

    await world.always(holds, revoke, revoke)


async def with_room(world: World, access: str = "invite") -> tuple[RoomRecord, list[Account]]:
    people = await world.people("ann", "bob")

    async def unit(tx: Tx) -> RoomRecord:
        room = await queries.insert_room(tx, record(access=access, created_by=people[0].id))
        assert room is not None
        owner = Membership(room.id, people[0].id, Role.OWNER, "member")
        await queries_members.put_membership(tx, owner)
        return room

    return await world.store.write(unit), people


@pytest.mark.parametrize("what", ["join", "invite", "leave"])
@pytest.mark.parametrize("rows", ["free", pytest.param("locked", marks=LOCKS)])
async def test_who_is_put_out_at_this_moment_stays_out(world, what, rows):
    room, (_, bob) = await with_room(world)
    await world.store.write(lambda tx: queries_members.join(tx, room.id, bob.id))

    async def meanwhile(tx: Tx) -> None:
        if what == "join":
            await queries_members.join(tx, room.id, bob.id)
        elif what == "invite":
            await queries_members.invite(tx, room.id, bob.id, banned=False)
        else:
            await queries_members.leave(tx, room.id, bob.id)

    def holds(told: list[Any]) -> bool:
        states = world.store.rows("SELECT state FROM room_members WHERE account_id = ?", bob.id)
        return states == [("banned",)]

    await world.always_after(
        holds, meanwhile, lambda tx: queries_members.expel(tx, room.id, bob.id)
    )


async def test_of_two_changes_of_a_room_none_is_lost(world):
    room, _ = await with_room(world)

    def change(**parts: Any) -> Unit[bool]:
        async def unit(tx: Tx) -> bool:
            known = await queries.room_by_id(tx, room.id)
            assert known is not None
            return await queries.update_room(tx, replace(known, **parts))

        return unit

    def holds(told: list[Any]) -> bool:
        [kept] = world.store.rows("SELECT access, epoch, version FROM rooms")
        expected = ("open" if told[0] else "invite", "e2" if told[1] else "e1", sum(told))
        return any(told) and kept == expected

    await world.always_after(holds, change(access="open"), change(epoch="e2"))


async def test_who_is_deleted_while_a_room_changes_holds_nothing_there(world):
    room, (_, bob) = await with_room(world)
    held = {bob.id: ("chat",)}

    async def give(tx: Tx) -> None:
        await queries_members.join(tx, room.id, bob.id)
        known = await queries.room_by_id(tx, room.id)
        assert known is not None
        assert await queries.update_room(tx, replace(known, grants=held))

    await world.store.write(give)

    async def change(tx: Tx) -> bool:
        known = await queries.room_by_id(tx, room.id)
        assert known is not None
        return await queries.update_room(tx, replace(known, epoch="e2"))

    holds = world.keeps("SELECT grants FROM rooms", ("{}",))
    await world.always_after(holds, change, lambda tx: leave_all_rooms(tx, bob))


async def test_a_room_is_not_removed_with_someone_who_comes_at_this_moment(world):
    room, (ann, bob) = await with_room(world)
    world.store.connection.execute("DELETE FROM room_members WHERE account_id = ?", (ann.id,))

    def holds(told: list[Any]) -> bool:
        invited, removed = told
        return bool(invited != removed) and len(world.store.rows("SELECT 1 FROM rooms")) == invited

    await world.always_after(
        holds,
        lambda tx: queries_members.invite(tx, room.id, bob.id, banned=True),
        lambda tx: queries.delete_if_deserted(tx, room.id),
    )


async def test_backends_that_are_brought_twice_at_once_are_there_once(world):
    room, _ = await with_room(world)

    def put(*names: str) -> Unit[None]:
        return lambda tx: queries.put_backends(tx, room.id, names)

    def holds(told: list[Any]) -> bool:
        kept = {name for (name,) in world.store.rows("SELECT namespace FROM room_backends")}
        return told == [None, None] and kept >= {"files"} and kept <= {"files", "docs"}

    await world.always_after(holds, put("files"), put("files", "docs"))


@LOCKS
async def test_nobody_owns_a_room_too_many_by_making_two_at_once(world):
    _, (ann, _) = await with_room(world)

    def make(name: str) -> Unit[bool]:
        async def unit(tx: Tx) -> bool:
            if not await may_own_another(tx, ann.id, 2):
                return False
            room = await queries.insert_room(tx, record(name, created_by=ann.id))
            assert room is not None
            owner = Membership(room.id, ann.id, Role.OWNER, "member")
            await queries_members.put_membership(tx, owner)
            return True

        return unit

    def holds(told: list[Any]) -> bool:
        return sorted(told) == [False, True]

    await world.always_after(holds, make("one"), make("two"))


@LOCKS
async def test_a_room_has_no_guest_too_many_by_inviting_two_at_once(world, monkeypatch):
    monkeypatch.setattr(invitations, "MAX_GUESTS", 1)
    room, (ann, _) = await with_room(world)

    def invite(name: str) -> Unit[Any]:
        guest = invitations.new_guest(room.id, name, ann.id)
        return lambda tx: invitations.do_invite(tx, guest, name, NOON)

    def holds(told: list[Any]) -> bool:
        refused = [each for each in told if isinstance(each, e.TooManyOpen)]
        return len(succeeded(told)) == len(refused) == 1

    await world.always_after(holds, invite("kim"), invite("lee"))


async def test_two_rooms_that_are_made_at_once_have_numbers_of_their_own(world):
    def make(name: str) -> Unit[Any]:
        return lambda tx: queries.insert_room(tx, record(name))

    def holds(told: list[Any]) -> bool:
        return len({each.id for each in told}) == 2

    await world.always_after(holds, make("one"), make("two"))
