from __future__ import annotations

from typing import Any

import msgspec
import pytest

from benchmarks.steps import metered
from folkmoot.core import errors
from folkmoot.core.kinds import KNOWN_KINDS
from folkmoot.core.ports import Unit
from folkmoot.rooms import queries, queries_members, queries_messages
from folkmoot.rooms.machine import REPLAYED, Role
from folkmoot.rooms.machine.model import Used
from folkmoot.rooms.model import Membership, RoomPolicy
from tests.mail.support import NOON
from tests.rooms.storehouse import numbers, opened, record, said

HELD = ("chat.*", {"kind": "mcp.request.tools/call", "payload": {"params": {"name": "read"}}})


@pytest.mark.parametrize("held", [HELD, (), None], ids=["some", "nothing", "the-defaults"])
async def test_a_room_is_read_as_it_was_stored(store, held):
    (alice,) = await store.people("alice")
    room = await store.room(
        access="invite",
        durable=False,
        capabilities=held,
        grants={alice.id: ("*", "!room.kick")},
        policy=RoomPolicy(quorum=3, proposal_seconds=0.5),
        created_by=alice.id,
    )
    assert (room.id > 0, room.capabilities) == (True, held)
    assert await store.read(queries.room_by_name, "square") == room
    assert await store.read(queries.room_by_id, room.id) == room
    assert await store.read(queries.room_by_name, "circle") is None
    assert await store.read(queries.room_by_id, room.id + 1) is None


async def test_no_two_rooms_have_one_name_and_no_number_is_given_twice(store):
    first = await store.room()
    assert await store.write(queries.insert_room, record()) is None
    await store.write(queries.delete_room, first.id)
    again = await store.room()
    assert again.id > first.id


async def test_a_change_of_a_room_leaves_its_name_and_history_alone(store):
    room = await store.room()
    await store.write(queries.save_snapshot, room.id, b"s", 0, 1)
    changed = msgspec.structs.replace(
        room,
        access="private",
        epoch="e2",
        capabilities=HELD,
        grants={"a1": ("*",)},
        policy=RoomPolicy(quorum=2),
        updated_at=NOON + 1,
    )
    wrong = msgspec.structs.replace(changed, name="circle", first_seq=9, created_at=1)
    assert await store.write(queries.update_room, wrong)
    stored = msgspec.structs.replace(changed, version=1)
    assert await store.read(queries.room_by_id, room.id) == stored
    assert not await store.write(queries.update_room, changed)
    assert await store.read(queries.snapshot_of, room.id) == (b"s", 0)


async def test_everything_of_a_room_goes_with_it_and_nothing_of_another(store):
    (alice,) = await store.people("alice")
    rooms = [await store.room(name) for name in ("one", "two")]
    for room in rooms:
        await store.put(room, alice)
        await store.say(room, [said(1)])
        await store.write(queries.save_snapshot, room.id, b"s", 1, 1)
    gone, stays = rooms
    await store.write(queries.delete_room, gone.id)
    assert await store.member(gone, alice) is None
    assert await store.all_of(gone) == []
    assert await store.read(queries.snapshot_of, gone.id) == (None, 0)
    assert await store.member(stays, alice) is not None
    assert await store.all_of(stays) == [said(1)]
    assert await store.read(queries.snapshot_of, stays.id) == (b"s", 1)
    with pytest.raises(errors.ConstraintViolated):
        await store.say(gone, [said(2)])


async def test_a_snapshot_takes_the_place_of_the_one_before_and_says_where_the_history_begins(
    store,
):
    room = await store.room()
    assert await store.read(queries.snapshot_of, room.id) == (None, 0)
    await store.write(queries.save_snapshot, room.id, b"one", 5, 1)
    await store.write(queries.save_snapshot, room.id, b"two", 9, 4)
    assert await store.read(queries.snapshot_of, room.id) == (b"two", 9)
    assert (await store.again(room)).first_seq == 4


async def test_the_last_seq_is_known_even_when_no_message_is_left(store):
    room = await store.room()
    assert (await store.again(room)).last_seq == 0
    await store.say(room, [said(1), said(2), said(3)])
    assert (await store.again(room)).last_seq == 3
    await store.write(queries_messages.trim, room.id, 4, 100)
    await store.write(queries.save_snapshot, room.id, b"s", 3, 4)
    assert (await store.again(room)).last_seq == 3


async def test_a_list_has_what_someone_may_know_of_and_what_they_are_there(store):
    alice, bob = await store.people("alice", "bob")
    a = await store.room("a-open")
    b = await store.room("b-invite", access="invite")
    c = await store.room("c-private", access="private")
    d = await store.room("d-invited", access="private")
    e = await store.room("e-banned", access="private")
    f = await store.room("f-banned", access="open")
    await store.room("g-strange", access="private")
    await store.put(b, alice, Role.OWNER)
    await store.put(c, alice)
    await store.put(d, alice, state="invited")
    await store.put(e, alice, state="banned")
    await store.put(f, alice, state="banned")
    await store.put(a, bob)
    seen = await store.read(queries.rooms_seen_by, alice.id, "", 10)
    assert seen[0].room == a
    assert [(one.room.name, one.membership) for one in seen] == [
        ("a-open", None),
        ("b-invite", Membership(b.id, alice.id, Role.OWNER, "member")),
        ("c-private", Membership(c.id, alice.id, Role.MEMBER, "member")),
        ("d-invited", Membership(d.id, alice.id, Role.MEMBER, "invited")),
        ("f-banned", Membership(f.id, alice.id, Role.MEMBER, "banned")),
    ]


async def test_the_pages_of_a_list_are_the_list(store):
    (alice,) = await store.people("alice")
    for number in range(20):
        access = ("open", "private", "invite")[number % 3]
        room = await store.room(f"room-{number:02}", access=access)
        if number % 2:
            await store.put(room, alice)
    whole = [one.room.name for one in await store.read(queries.rooms_seen_by, alice.id, "", 99)]
    paged: list[str] = []
    while some := await store.read(queries.rooms_seen_by, alice.id, paged[-1] if paged else "", 3):
        assert len(some) <= 3
        paged += [one.room.name for one in some]
    assert paged == whole == sorted(whole)
    assert len(whole) == 17


async def test_a_list_costs_the_same_however_many_private_rooms_others_have(tmp_path):
    with metered() as meter:
        async with opened(tmp_path) as house:
            (alice,) = await house.people("alice")
            for number in range(10):
                await house.put(await house.room(f"m-{number}", access="private"), alice)
                await house.room(f"n-{number}")

            async def look() -> None:
                await house.store.read(
                    lambda tx: queries.rooms_seen_by(tx, alice.id, "", 15), long=True
                )

            few = await meter.measure(look)
            flood = (
                "WITH RECURSIVE n (n) AS "
                "(SELECT 1000 UNION ALL SELECT n + 1 FROM n WHERE n < 6000) "
                "INSERT INTO rooms (id, name, epoch, access, durable, grants, policy, first_seq, "
                "created_at, updated_at) "
                "SELECT n, 'a-' || n, 'e', 'private', 1, '{}', '{}', 1, 1, 1 "
                "FROM n"
            )
            await house.write(lambda tx: tx.execute(flood))
            assert await meter.measure(look) <= few * 1.05


async def test_a_membership_is_changed_removed_and_counted(store):
    alice, bob = await store.people("alice", "bob")
    one, two = [await store.room(name) for name in ("one", "two")]
    await store.put(one, alice, Role.OWNER)
    await store.put(two, alice, Role.OWNER)
    await store.put(one, bob)
    assert await store.read(queries_members.count_owned, alice.id) == 2
    assert await store.read(queries_members.count_owned, bob.id) == 0
    await store.put(two, alice, Role.MEMBER, "invited")
    assert await store.read(queries_members.count_owned, alice.id) == 1
    assert await store.read(queries_members.memberships_of, alice.id) == [
        ("one", Membership(one.id, alice.id, Role.OWNER, "member")),
        ("two", Membership(two.id, alice.id, Role.MEMBER, "invited")),
    ]
    assert not await store.write(queries_members.leave, one.id, alice.id)
    assert await store.write(queries_members.leave, two.id, alice.id)
    assert not await store.write(queries_members.leave, two.id, alice.id)
    assert await store.member(two, alice) is None


async def test_whoever_is_expelled_is_banned_though_they_never_were_a_member(store):
    alice, bob = await store.people("alice", "bob")
    room = await store.room()
    await store.put(room, alice)
    for account in (alice, bob):
        await store.write(queries_members.expel, room.id, account.id)
        assert await store.member(room, account) == Membership(
            room.id, account.id, Role.MEMBER, "banned"
        )
    await store.write(queries_members.expel, room.id, "gone-meanwhile")
    assert await store.read(queries_members.membership, room.id, "gone-meanwhile") is None


async def test_owners_are_told_by_their_present_handles(store):
    alice, bob, carol = await store.people("alice", "bob", "carol")
    one, two, three = [await store.room(name) for name in ("one", "two", "three")]
    await store.put(one, bob, Role.OWNER)
    await store.put(one, alice, Role.OWNER)
    await store.put(one, carol)
    await store.put(two, carol, Role.OWNER)
    await store.accounts.change_handle(bob, "robert")
    assert await store.read(queries_members.owners_of, one.id) == ["alice", "robert"]
    owners = await store.read(queries_members.owners_by_room, [one.id, two.id, three.id])
    assert owners == {one.id: ["alice", "robert"], two.id: ["carol"], three.id: []}
    assert await store.read(queries_members.owners_by_room, []) == {}
    found = await store.read(queries_members.handles_of, [bob.id, "gone", carol.id])
    assert found == {bob.id: "robert", carol.id: "carol"}
    handles = await store.read(queries_members.handles_in, one.id)
    assert sorted(handles) == ["alice", "carol", "robert"]


async def test_long_lists_of_accounts_are_looked_up_in_parts(store):
    people = await store.people("alice", "bob")
    ids = [people[0].id, *(f"gone-{number}" for number in range(700)), people[1].id]
    assert await store.read(queries_members.handles_of, ids) == {
        one.id: one.handle for one in people
    }


async def test_an_account_that_goes_leaves_what_it_said_and_nothing_else(store):
    alice, bob = await store.people("alice", "bob")
    one, two, three = [
        await store.room(name, created_by=alice.id) for name in ("one", "two", "three")
    ]
    await store.put(one, alice, Role.OWNER)
    await store.put(two, alice, state="banned")
    await store.put(three, bob)
    message = said(1, account=alice.id)
    await store.say(one, [message])
    assert await store.write(queries_members.remove_account, alice.id) == [one.id, two.id]
    assert await store.read(queries_members.memberships_of, alice.id) == []
    assert await store.member(three, bob) is not None
    assert await store.all_of(one) == [message]
    assert (await store.again(one)).created_by is None


@pytest.mark.parametrize("count", [1, 7, 8, 9, 63, 64, 65, 200])
async def test_messages_come_back_as_they_were_stored_however_many_at_once(store, count):
    messages = [
        said(seq, about="a2" if seq % 2 else None, account="a1" if seq % 3 else None)
        for seq in range(1, count + 1)
    ]
    room = await store.room()
    await store.say(room, messages)
    assert await store.all_of(room) == messages
    assert await store.page(room, after=count - 1, limit=9) == messages[-1:]
    assert await store.page(room, after=count, limit=9) == []


async def test_no_two_messages_have_one_place_and_none_of_a_batch_is_stored_without_the_rest(store):
    one, two = [await store.room(name) for name in ("one", "two")]
    await store.say(one, [said(1)])
    await store.say(two, [said(1)])
    with pytest.raises(errors.ConstraintViolated):
        await store.say(one, [said(3), said(1, id="other")])
    assert await store.all_of(one) == [said(1)]


@pytest.mark.parametrize(
    ("wanted", "page"),
    [
        ({"limit": 3}, [8, 9, 10]),
        ({"after": 0, "limit": 3}, [1, 2, 3]),
        ({"after": 8, "limit": 3}, [9, 10]),
        ({"after": 10, "limit": 3}, []),
        ({"before": 6, "limit": 3}, [3, 4, 5]),
        ({"before": 2, "limit": 3}, [1]),
        ({"before": 1, "limit": 3}, []),
        ({"before": 99, "limit": 2}, [9, 10]),
        ({"after": 2, "before": 9, "limit": 3}, [3, 4, 5]),
        ({"after": 2, "before": 5, "limit": 9}, [3, 4]),
        ({"after": 5, "before": 5, "limit": 9}, []),
    ],
)
async def test_a_page_is_in_order_and_ends_where_it_was_asked_to(store, wanted, page):
    room, other = [await store.room(name) for name in ("one", "two")]
    for one in (room, other):
        await store.say(one, [said(n) for n in range(1, 11)])
    found = await store.page(room, **wanted)
    assert found == [said(seq) for seq in page]


async def test_a_page_is_bounded_in_bytes_and_has_one_message_however_large(store):
    large = 400_000
    room = await store.room()
    sizes = {1: large, 2: large, 3: large, 4: 2_000_000, 5: large}
    messages = [said(seq, data=b"x" * size) for seq, size in sizes.items()]
    await store.say(room, messages)
    pages = [
        numbers(await store.page(room, limit=9, **wanted))
        for wanted in ({"after": 0}, {"after": 2}, {"after": 3}, {"before": 4}, {"before": 5})
    ]
    assert pages == [[1, 2], [3], [4], [2, 3], [4]]


async def test_reading_costs_what_it_returns_wherever_it_begins(tmp_path):
    with metered() as meter:
        async with opened(tmp_path) as house:
            room = await house.room()
            await house.write(queries_messages.insert, room.id, [said(n) for n in range(1, 8_001)])

            async def cost(ask: Unit[Any]) -> int:
                return await meter.measure(lambda: house.store.read(ask, long=True))

            def page(**wanted: int) -> Unit[Any]:
                return lambda tx: queries_messages.page(tx, room.id, limit=50, **wanted)

            places = ({"after": 0}, {"after": 7_900}, {"before": 60}, {"before": 7_900}, {})
            costs = [await cost(page(**wanted)) for wanted in places]
            assert max(costs) <= min(costs) * 1.3
            assert await cost(lambda tx: queries_messages.used(tx, room.id, ["m4000"])) < 50
            assert await cost(lambda tx: queries_messages.oldest_after(tx, room.id, NOON)) < 1_000
            scans = {
                sql: scanned
                for sql, scanned in meter.statements.items()
                if "room_messages" in sql and scanned
            }
            assert scans == {}


async def test_ids_are_looked_up_together_and_each_has_its_last_message(store):
    one, two = [await store.room(name) for name in ("one", "two")]
    await store.say(one, [said(1), said(2, account=None), said(3, id="m1", account="a2")])
    ids = ["m1", "m2", "m3"]
    found = {"m1": Used(3, "a2", is_chat=True), "m2": Used(2, None, is_chat=True), "m3": None}
    assert await store.used(one, ids) == found
    await store.write(queries_messages.trim, one.id, 2, 10)
    assert await store.used(one, ids) == found
    assert await store.used(two, ids) == dict.fromkeys(ids)
    assert await store.used(one, []) == {}


async def test_only_messages_that_change_what_a_room_knows_are_read_again(store):
    room = await store.room()
    kinds = [known.kind for known in KNOWN_KINDS]
    kinds += ["mcp.request", "mcp.request.tools/call:a", "mcp.requests.x", "chat.message"]
    await store.say(room, [said(n, kind=kind) for n, kind in enumerate(kinds, 1)])
    read = [one.kind for one in await store.read(queries_messages.replayed_since, room.id, 1)]
    assert read == [kind for kind in kinds[1:] if ".".join(kind.split(".")[:2]) in REPLAYED]
    assert "chat.message" not in read


async def test_the_oldest_messages_go_a_few_at_a_time_and_their_ids_with_them(store):
    room, other = [await store.room(name) for name in ("one", "two")]
    for one in (room, other):
        await store.say(one, [said(n) for n in range(1, 11)])
    gone = [await store.write(queries_messages.trim, room.id, 7, 4) for _ in range(3)]
    assert [share.messages for share in gone] == [4, 2, 0]
    assert numbers(await store.all_of(room)) == [7, 8, 9, 10]
    assert len(await store.all_of(other)) == 10
    assert await store.used(room, ["m6"]) == {"m6": None}
    assert await store.used(room, ["m7"]) == {"m7": Used(7, "a1", is_chat=True)}


async def test_the_first_message_of_a_time_is_found(store):
    room, empty = [await store.room(name) for name in ("one", "two")]
    await store.say(room, [said(n) for n in range(5, 30)])
    for seconds, seq in ((-NOON, 5), (5.25, 5), (5.3, 6), (17.0, 17), (29.25, 29), (29.5, None)):
        assert await store.read(queries_messages.oldest_after, room.id, NOON + seconds) == seq
    assert await store.read(queries_messages.oldest_after, empty.id, 0.0) is None


async def test_all_that_an_account_said_is_found_in_pages(store, monkeypatch):
    monkeypatch.setattr(queries_messages, "SCAN_MESSAGES", 7)
    alice, bob = await store.people("alice", "bob")
    rooms = [await store.room(f"room-{number}") for number in range(4)]
    for number, room in enumerate(rooms):
        messages = [
            said(seq, account=alice.id if seq % (number + 2) == 0 else bob.id)
            for seq in range(1, 41 if number != 2 else 1)
        ]
        await store.say(room, messages)
        found = []
        after: int | None = 0
        while after is not None:
            page = await store.read(queries_messages.said_in, room.id, alice.id, after, 3)
            assert len(page.messages) <= 3
            assert page.next is None or page.next > after
            found += page.messages
            after = page.next
        assert found == [one for one in messages if one.account == alice.id]


async def test_only_an_account_that_is_there_can_be_a_member(store):
    room = await store.room()
    with pytest.raises(errors.ConstraintViolated):
        await store.write(
            queries_members.put_membership, Membership(room.id, "nobody", Role.MEMBER, "member")
        )
