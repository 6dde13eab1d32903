from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from folkmoot.core import errors as e
from folkmoot.rooms import invitations, queries, queries_guests, queries_members
from folkmoot.rooms.invitations import GuestSecret
from folkmoot.rooms.model import Guest, RoomId
from tests.mail.support import NOON
from tests.rooms.storehouse import Storehouse
from tests.store.support import rows
from tests.stores import ON_POSTGRES, is_in_tables

DAY = 86_400


async def invite(
    house: Storehouse, room_id: RoomId, name: str = "kim", *, by: str = "a1", now: int = NOON
) -> tuple[Guest, GuestSecret]:
    guest, secret = invitations.new_guest(room_id, name, by), invitations.new_invitation()
    expires_at = await house.write(invitations.do_invite, guest, secret.hash, now)
    assert expires_at == now + 7 * DAY
    return guest, secret


async def exchange(
    house: Storehouse, room_id: RoomId, invitation: str, *, now: int = NOON
) -> tuple[Guest, GuestSecret]:
    hash_, credential = invitations.hash_invitation(invitation), invitations.new_credential()
    guest, _ = await house.write(invitations.do_exchange, room_id, hash_, credential.hash, now)
    return guest, credential


async def come(
    house: Storehouse, room_id: RoomId, name: str = "kim", by: str = "a1"
) -> tuple[Guest, GuestSecret]:
    """Be invited, and come in."""
    guest, invitation = await invite(house, room_id, name, by=by)
    came, credential = await exchange(house, room_id, invitation.text)
    assert came == guest
    return came, credential


async def authenticate(house: Storehouse, credential: str) -> Guest | None:
    hash_ = invitations.hash_credential(credential)
    assert hash_ is not None
    found = await house.read(queries_guests.by_credential, hash_)
    return None if found is None else found[0]


async def refused(attempt: Any, error: type[e.FolkmootError], words: str | None = None) -> None:
    with pytest.raises(error, match=words):
        await attempt


async def is_stored(house: Storehouse, folder: Path, text: str) -> bool:
    if ON_POSTGRES:
        return await is_in_tables(house.store, text)
    files = list(folder.iterdir())
    return any(text.encode() in file.read_bytes() for file in files)


@pytest.mark.requirement("room.guest-once")
async def test_an_invitation_is_exchanged_once_for_a_credential_of_its_room(store):
    room, other = [await store.room(name) for name in ("one", "two")]
    invited, invitation = await invite(store, room.id)
    await refused(exchange(store, other.id, invitation.text), e.InvitationInvalid)
    guest, credential = await exchange(store, room.id, invitation.text)
    assert guest == invited == Guest(invited.id, room.id, "kim", "a1")
    assert guest.id.startswith("guest:")
    await refused(exchange(store, room.id, invitation.text), e.InvitationInvalid, "used before")
    assert await authenticate(store, credential.text) == guest


async def test_of_two_who_show_one_invitation_at_the_same_time_one_gets_in(store):
    room = await store.room()
    _, invitation = await invite(store, room.id)
    outcomes = await asyncio.gather(
        *(exchange(store, room.id, invitation.text) for _ in range(20)), return_exceptions=True
    )
    won = [one for one in outcomes if isinstance(one, tuple)]
    lost = [one for one in outcomes if isinstance(one, e.InvitationInvalid)]
    assert (len(won), len(lost)) == (1, 19)
    assert await authenticate(store, won[0][1].text) == won[0][0]


async def test_a_secret_has_a_form_of_its_own_and_is_neither_shown_nor_stored(store, tmp_path):
    room = await store.room()
    _, invitation = await invite(store, room.id)
    _, credential = await exchange(store, room.id, invitation.text)
    _, waiting = await invite(store, room.id, "lee")
    assert invitations.hash_invitation(invitation.text) == invitation.hash
    assert invitations.hash_credential(credential.text) == credential.hash
    assert invitations.hash_invitation(credential.text) is None
    assert invitations.hash_credential(invitation.text) is None
    assert invitations.hash_invitation(invitation.text + "\n") is None
    for secret in (invitation, credential, waiting):
        assert secret.text not in repr(secret)
        assert not await is_stored(store, tmp_path, secret.text[3:])
    assert await is_stored(store, tmp_path, waiting.hash)


@pytest.mark.parametrize("shown", ["", "gi_short", "gk_" + "0" * 64, "gi_" + "0" * 64])
async def test_what_is_no_invitation_opens_nothing(store, shown):
    room = await store.room()
    await invite(store, room.id)
    await refused(exchange(store, room.id, shown), e.InvitationInvalid)


async def test_an_invitation_is_good_for_seven_days_and_then_removed_with_a_few_others(store):
    room = await store.room()
    for name in ("ben", "dan", "lee"):
        _, late = await invite(store, room.id, name)
    _, early = await invite(store, room.id, "kim")
    end = NOON + 7 * DAY
    await refused(exchange(store, room.id, late.text, now=end), e.InvitationInvalid, "expired")
    guest, credential = await exchange(store, room.id, early.text, now=end - 1)
    assert await store.write(queries_guests.remove_expired, end - 1, 10) == 0
    gone = [await store.write(queries_guests.remove_expired, end, 2) for _ in range(3)]
    assert gone == [2, 1, 0]
    assert await store.write(queries_guests.remove_expired, end + 999 * DAY, 10) == 0
    assert await authenticate(store, credential.text) == guest


async def test_whoever_is_put_out_has_no_credential_any_more(store):
    room = await store.room()
    guest, credential = await come(store, room.id)
    await store.write(queries_members.expel, room.id, guest.id)
    assert await authenticate(store, credential.text) is None
    assert not await store.write(queries_guests.remove, guest.id)
    again, credential = await come(store, room.id)
    assert again.id != guest.id
    assert await authenticate(store, credential.text) == again


async def test_a_guest_who_was_invited_can_be_forgotten_before_coming(store):
    room = await store.room()
    guest, invitation = await invite(store, room.id)
    assert await store.write(queries_guests.remove, guest.id)
    await refused(exchange(store, room.id, invitation.text), e.InvitationInvalid)


async def test_guests_go_with_their_room(store):
    room = await store.room()
    _, credential = await come(store, room.id)
    await store.write(queries.delete_room, room.id)
    assert await authenticate(store, credential.text) is None


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (["alice", "old_bob", "bob", "carol"], "handle of an account"),
        (["a1ice", "al-ice"], "another participant"),
        (["gateway", "gatevvay", "system"], "the hub itself"),
        (["mmp", "r00m"], "reserved"),
        (["Kim", "k", "kim\n", "k\u0456m"], "lower-case"),  # also of another alphabet
        (["ben", "be-n"], "another guest"),
    ],
)
async def test_a_guest_has_a_name_that_is_nobody_elses(store, names, words):
    alice, bob, carol = await store.people("alice", "old_bob", "carol")
    await store.accounts.change_handle(bob, "bob")
    await store.accounts.delete(carol)
    room = await store.room()
    await store.put(room, alice)
    await come(store, room.id, "ben")
    for name in names:
        await refused(invite(store, room.id, name), e.NameRefused, words)
    await invite(store, room.id, "anna")


async def test_a_handle_whose_time_is_over_may_be_the_name_of_a_guest(store):
    (carol,) = await store.people("carol")
    await store.accounts.delete(carol)
    room = await store.room()
    await refused(invite(store, room.id, "carol"), e.NameRefused)
    await invite(store, room.id, "carol", now=NOON + 30 * DAY)


async def test_two_rooms_may_have_guests_of_one_name(store):
    for name in ("one", "two"):
        await come(store, (await store.room(name)).id)


async def test_whoever_invites_anew_makes_the_earlier_invitation_void_if_it_was_theirs(store):
    room = await store.room()
    _, first = await invite(store, room.id, by="a1")
    await refused(invite(store, room.id, by="a2"), e.NameRefused, "another guest")
    _, second = await invite(store, room.id, by="a1")
    await refused(exchange(store, room.id, first.text), e.InvitationInvalid)
    guest, credential = await exchange(store, room.id, second.text)
    await refused(invite(store, room.id, by="a1"), e.NameRefused, "another guest")
    assert await authenticate(store, credential.text) == guest


async def test_a_name_is_free_again_when_its_invitation_has_expired(store):
    room = await store.room()
    await invite(store, room.id, by="a1")
    await invite(store, room.id, by="a2", now=NOON + 7 * DAY)


async def test_a_room_has_so_many_guests_and_no_more(store, monkeypatch):
    monkeypatch.setattr(invitations, "MAX_GUESTS", 3)
    room, other = [await store.room(name) for name in ("one", "two")]
    for name in ("kim", "lee", "ben"):
        await invite(store, room.id, name)
    await refused(invite(store, room.id, "anna"), e.TooManyOpen)
    await invite(store, room.id, "kim")
    await invite(store, other.id, "anna")


async def test_with_an_account_go_its_invitations_and_not_those_who_came(store):
    (alice,) = await store.people("alice")
    room = await store.room()
    _, waiting = await invite(store, room.id, "kim", by=alice.id)
    guest, credential = await come(store, room.id, "lee", by=alice.id)
    await store.write(queries_members.remove_account, alice.id)
    await refused(exchange(store, room.id, waiting.text), e.InvitationInvalid)
    assert await authenticate(store, credential.text) == guest


async def test_an_invitation_that_is_refused_leaves_nothing_behind(store):
    await store.people("alice")
    room = await store.room()
    await refused(invite(store, room.id, "alice"), e.NameRefused)
    assert await store.store.read(rows("SELECT id FROM room_guests")) == []
