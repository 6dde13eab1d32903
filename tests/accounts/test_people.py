from __future__ import annotations

from pathlib import Path

import pytest

from folkmoot.accounts import Account
from folkmoot.core import errors as e
from tests.accounts.support import START, refused

RESTRICTED = [
    pytest.param("contacts_only", marks=pytest.mark.requirement("privacy.contacts-only")),
    pytest.param("private", marks=pytest.mark.requirement("privacy.private")),
]


@pytest.mark.requirement("privacy.public")
async def test_a_public_profile_is_seen_by_all_and_anyone_writes_to_it(world):
    alice = await world.join("alice", bio="Hello, I'm Alice")
    bob = await world.join("bobby")
    assert await world.accounts.lookup(bob, "alice") == alice
    assert [f.bio for f in await world.accounts.search(bob, "lic")] == ["Hello, I'm Alice"]
    await world.may_write(bob, "alice")


@pytest.mark.requirement("privacy.recipients-contacts", "privacy.no-enumeration")
@pytest.mark.requirement("tool.lookup.privacy", "tool.send.privacy")
@pytest.mark.parametrize("privacy", RESTRICTED)
async def test_a_restricted_profile_is_for_those_in_its_own_contacts_alone(world, privacy):
    alice, bob = await world.join("alice", privacy=privacy), await world.join("bobby")
    await world.accounts.add_contact(bob, "alice")  # knowing her does not make him known to her
    with pytest.raises(e.UserNotFound) as hidden:
        await world.accounts.lookup(bob, "alice")
    with pytest.raises(e.UserNotFound) as absent:
        await world.accounts.lookup(bob, "nobody")
    assert hidden.value.as_jsonrpc() == absent.value.as_jsonrpc()
    assert hidden.value.message == "User not found."
    with pytest.raises(e.CannotSend, match=r"^Cannot send message to this user\.$"):
        await world.may_write(bob, "alice")
    await world.accounts.add_contact(alice, "bobby")
    assert await world.accounts.lookup(bob, "alice") == alice
    await world.may_write(bob, "alice")
    await world.accounts.remove_contact(alice, "bobby")
    await refused(world.may_write(bob, "alice"), e.CannotSend)
    assert await world.accounts.lookup(alice, "alice") == alice


@pytest.mark.requirement("privacy.no-enumeration", "tool.lookup.not-found")
async def test_looking_up_does_the_same_work_for_absent_hidden_and_impossible_users(world, viewer):
    await world.join("hidden", privacy="private")
    await world.join("halfway", privacy="contacts_only")
    asked = []
    # The first time a store may have to learn how a query is run.
    await refused(world.accounts.lookup(viewer, "nobody"), e.UserNotFound)
    for handle in ("hidden", "halfway", "nobody", "no handle", "\ud800", "x" * 1_000_000):
        world.store.statements.clear()
        await refused(world.accounts.lookup(viewer, handle), e.UserNotFound)
        asked.append([sql for sql, _ in world.store.statements])
    assert all(statements == asked[0] for statements in asked)


@pytest.mark.requirement("tool.block.blocks", "tool.block.one-way", "tool.block.unblock")
async def test_a_block_works_in_one_direction_until_it_is_lifted(world, alice, bob):
    await world.accounts.add_contact(alice, "bobby")
    for _ in range(2):
        assert (await world.accounts.block(alice, "@Bobby")).id == bob.id
    with pytest.raises(e.CannotSend, match=r"^Cannot send message to this user\.$"):
        await world.may_write(bob, "alice")
    await world.may_write(alice, "bobby")
    for _ in range(2):
        assert (await world.accounts.unblock(alice, "bobby")).id == bob.id
    await world.may_write(bob, "alice")


async def test_a_block_holds_for_a_contact_of_someone_private(world):
    alice, bob = await world.join("alice", privacy="private"), await world.join("bobby")
    await world.accounts.add_contact(alice, "bobby")
    await world.accounts.block(alice, "bobby")
    await refused(world.may_write(bob, "alice"), e.CannotSend)


@pytest.mark.requirement("tool.block.not-found", "tool.add-contact.not-found")
async def test_nobody_adds_or_blocks_whom_there_is_not(world, alice):
    accounts = world.accounts
    for action in ("block", "unblock", "add_contact", "remove_contact", "lookup"):
        for handle in ("nobody", "", "no handle", "\0", "\ud800", "%"):
            asked = getattr(accounts, action)(alice, handle)
            await refused(asked, e.UserNotFound, r"^User not found\.$")
    await refused(world.store.read(lambda tx: accounts.fetch(tx, "nobody")), e.UserNotFound)
    assert await world.store.read(lambda tx: accounts.fetch(tx, alice.id)) == alice


@pytest.mark.requirement("tool.add-contact.self")
async def test_nobody_adds_or_blocks_themselves(world, alice):
    await world.accounts.change_handle(alice, "alice_v2")
    for handle in ("alice_v2", "@Alice"):
        with pytest.raises(e.CannotAddSelf, match=r"^Cannot add yourself as a contact\.$"):
            await world.accounts.add_contact(alice, handle)
        await refused(world.accounts.block(alice, handle), e.CannotBlockSelf)


@pytest.mark.requirement("tool.contacts.output", "tool.add-contact.replaces")
async def test_contacts_are_listed_by_present_handle_with_the_last_nickname_given(world):
    accounts = world.accounts
    alice, bob = await world.join("alice"), await world.join("bobby", display_name="Bob B.")
    assert await accounts.add_contact(alice, "bobby", "bestfriend") == bob
    world.clock.advance(5)
    await accounts.add_contact(alice, "BOBBY", "old friend")
    await accounts.change_handle(bob, "bob_v2")
    [contact] = (await accounts.contacts(alice)).contacts
    assert (contact.handle, contact.display_name) == ("bob_v2", "Bob B.")
    assert (contact.nickname, contact.added_at) == ("old friend", START)
    await accounts.add_contact(alice, "bob_v2")
    [contact] = (await accounts.contacts(alice)).contacts
    assert contact.nickname == ""
    await refused(accounts.add_contact(alice, "bob_v2", "x" * 101), e.ArgumentInvalid, "nickname")
    await accounts.remove_contact(alice, "bob_v2")
    assert (await accounts.contacts(alice)).contacts == []
    await refused(accounts.remove_contact(alice, "bob_v2"), e.ContactNotFound)


async def test_the_list_of_contacts_tells_no_display_name_that_is_private(world, viewer):
    people: list[Account] = []
    for privacy in ("public", "contacts_only", "private"):
        name = f"{privacy[:7]}_one"
        people.append(await world.join(name, privacy=privacy, display_name="Real Name"))
        await world.accounts.add_contact(viewer, name)

    async def names() -> set[tuple[str, str]]:
        page = await world.accounts.contacts(viewer)
        return {(contact.handle, contact.display_name) for contact in page.contacts}

    told = {("public_one", "Real Name"), ("contact_one", "Real Name")}
    assert await names() == {*told, ("private_one", "private_one")}
    await world.accounts.add_contact(people[2], "viewer")
    assert await names() == {*told, ("private_one", "Real Name")}


@pytest.mark.requirement("paging.unbounded-lists")
async def test_contacts_and_blocks_come_in_pages_by_handle(world):
    accounts = world.accounts
    alice = await world.join("alice")
    names = [f"user_{number * 7 % 25:02}" for number in range(25)]
    for name in names:
        await world.register(name)
        await accounts.add_contact(alice, name)
        await accounts.block(alice, name)
    known: list[str] = []
    blocked: list[str] = []
    cursor = None
    while True:
        page = await accounts.contacts(alice, 4, cursor)
        assert 1 <= len(page.contacts) <= 4
        known += [contact.handle for contact in page.contacts]
        blocks = await accounts.blocked(alice, 4, cursor)
        blocked += blocks.blocked
        assert blocks.next_cursor == page.next_cursor
        if (cursor := page.next_cursor) is None:
            break
    assert known == blocked == sorted(names)
    assert (await accounts.contacts(alice, 25)).next_cursor is None
    assert (await accounts.blocked(alice, 25)).next_cursor is None
    await accounts.unblock(alice, names[0])
    assert names[0] not in (await accounts.blocked(alice)).blocked
    assert (await accounts.blocked(await world.join("bob"))).blocked == []


@pytest.mark.parametrize(
    ("limit", "cursor", "wrong"),
    [
        *((limit, None, "limit") for limit in (0, -1, 101, 10**30)),
        *((10, cursor, "cursor") for cursor in ("", "1", "x-y", "alice", "after-", "after-Alice")),
        (10, "after-alice\n", "cursor"),
    ],
)
async def test_a_page_of_contacts_has_a_limit_and_a_cursor_that_a_page_gave(
    world, alice, limit, cursor, wrong
):
    for listing in (world.accounts.contacts, world.accounts.blocked):
        await refused(listing(alice, limit, cursor), e.ArgumentInvalid, wrong)


def contents(folder: Path) -> bytes:
    return b"".join(file.read_bytes() for file in folder.iterdir() if file.is_file())


@pytest.mark.requirement("contact.nickname-sealed")
async def test_nicknames_are_nowhere_readable_in_the_database(world, tmp_path):
    alice, bob = [(await world.accounts.register(name)).account for name in ("alice", "bob")]
    await world.accounts.add_contact(alice, "bob", "Schnuckelchen")
    (contact,) = (await world.accounts.contacts(alice)).contacts
    assert contact.nickname == "Schnuckelchen"
    kept = await world.accounts.belongings(alice.id)
    assert kept is not None
    assert [each.nickname for each in kept.contacts] == ["Schnuckelchen"]
    [(stored,)] = await world.rows("SELECT nickname FROM contacts")
    assert "Schnuckelchen" not in stored
    assert b"Schnuckelchen" not in contents(tmp_path)
    # Sealed for this contact alone: moved to another, it does not open.
    carol = (await world.accounts.register("carol")).account
    await world.accounts.add_contact(alice, "carol", "Caro")
    await world.store.write(
        lambda tx: tx.execute(
            "UPDATE contacts SET nickname = ? WHERE contact_id = ?", (stored, carol.id)
        )
    )
    await refused(world.accounts.contacts(alice), e.SealBroken)
    assert bob.id != carol.id
