"""Names that nobody can simply take: those of backends, and those the operator gave rights to."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from folkmoot.accounts import Account, Accounts, Policy, ReservedNames
from folkmoot.core import errors as e
from tests.accounts.support import DAY, START, World, refused
from tests.store.support import Gate

SPELLINGS = ("gina", "GINA", "@gina", "@Gina")
NEEDS_INVITE = "This handle needs an invite that was made for it."


def with_names(policy: Policy = "open") -> Callable[[World], Accounts]:
    """The accounts of a hub that has a backend called github and gives rights to gina."""

    def make(here: World) -> Accounts:
        names = ReservedNames(namespaces=["github"], awaited=["gina"])
        return Accounts(here.store, here.clock, here.vault, policy=policy, reserved=names)

    return make


def contents(folder: Path) -> bytes:
    return b"".join(file.read_bytes() for file in folder.iterdir())


@pytest.mark.requirement("handle.shares-names", "gateway.reserved-names")
async def test_nobody_takes_the_name_of_a_backend_in_any_way(world):
    accounts = with_names()(world)
    mallory = (await accounts.register("mallory")).account
    code = await accounts.create_invite(mallory)
    for spelling in ("github", "GitHub", "@GITHUB"):
        await refused(accounts.register(spelling), e.HandleTaken)
        await refused(accounts.register(spelling, invite_code=code), e.HandleTaken)
        await refused(accounts.change_handle(mallory, spelling), e.HandleTaken)
        told = await refused(accounts.invite_for(spelling), e.HandleTaken)
        assert told == "@github cannot be anyone's handle: the name belongs to the hub."
    assert (await accounts.invitation(code)).state == "valid"
    assert await world.rows("SELECT handle FROM handles") == [("mallory",)]
    await accounts.register("git_hub")


@pytest.mark.requirement("gateway.reserved-names")
async def test_a_name_that_someone_has_becomes_no_namespace_nor_those_wanted_with_it(world):
    accounts = with_names()(world)
    await accounts.register("docs")
    taken = await accounts.reserved.reserve(world.store, ["docs", "wiki"], START)
    assert taken.keys() == {"docs"}
    assert accounts.reserved.namespaces == {"github"}
    await accounts.register("wiki")


@pytest.mark.requirement("handle.shares-names")
async def test_a_stranger_takes_no_handle_that_has_rights(world):
    accounts = with_names()(world)
    mallory = (await accounts.register("mallory")).account
    ordinary = [await accounts.create_invite(mallory), await accounts.create_invite(None)]
    other = (await accounts.invite_for("harry")).code
    for spelling in SPELLINGS:
        assert await refused(accounts.register(spelling), e.InviteRequired) == NEEDS_INVITE
        for code in ordinary:
            told = await refused(accounts.register(spelling, invite_code=code), e.InviteRequired)
            assert told == NEEDS_INVITE
        await refused(accounts.register(spelling, invite_code=other), e.InviteUnknown)
        await refused(accounts.change_handle(mallory, spelling), e.HandleTaken)
        await refused(accounts.recover(spelling, "AAAA-BBBB-CCCC"), e.HandleNotFound)
    assert {(await accounts.invitation(code)).state for code in (*ordinary, other)} == {"valid"}
    assert await accounts.count() == 1


@pytest.mark.parametrize("policy", ["open", "invite", "closed"])
async def test_the_operators_invite_opens_its_handle_once_whoever_may_register(
    world, tmp_path, policy
):
    accounts = with_names(policy)(world)
    made = await accounts.invite_for("@Gina")
    assert (made.handle, made.until) == ("gina", START + 7 * DAY)
    assert made.code not in repr(made)
    assert (await accounts.invitation(made.code)).handle == "gina"
    told = await refused(accounts.register("mallory", invite_code=made.code), e.InviteUnknown)
    assert told == "This invite was made for another handle."
    assert (await accounts.register("GINA", invite_code=f" {made.code}\n")).account.handle == "gina"
    await refused(accounts.register("gina", invite_code=made.code), e.InviteClaimed)
    assert (await accounts.invitation(made.code)).state == "claimed"
    assert made.code.encode() not in contents(tmp_path)


async def test_where_registration_is_closed_no_other_code_says_anything_else(world):
    closed = with_names("closed")(world)
    codes = [None, "", "nonsense", "ic_" + "0" * 32, await closed.create_invite(None)]
    before = world.store.writes
    for code in codes:
        for handle in ("gina", "github", "mallory"):
            await refused(closed.register(handle, invite_code=code), e.RegistrationClosed)
    assert world.store.writes == before, "a stranger's code makes the writer work"


async def test_an_invite_for_a_handle_ends_and_a_new_one_takes_its_place(world):
    accounts = with_names("closed")(world)
    first = await accounts.invite_for("gina")
    second = await accounts.invite_for("gina", 2 * DAY)
    await refused(accounts.register("gina", invite_code=first.code), e.RegistrationClosed)
    world.clock.advance(2 * DAY)
    assert (await accounts.invitation(second.code)).state == "expired"
    told = await refused(accounts.register("gina", invite_code=second.code), e.InviteUnknown)
    assert told == "This invite has expired. Ask for another."
    third = await accounts.invite_for("gina")
    await accounts.register("gina", invite_code=third.code)


async def test_no_invite_is_made_for_a_handle_that_cannot_be_had(world):
    accounts = with_names()(world)
    alice, bob = await world.join("alice"), await world.join("bobby")
    await accounts.change_handle(alice, "alice2")
    await accounts.delete(bob)
    expected = {
        "alice2": "@alice2 cannot be invited: an account has this handle.",
        "alice": "@alice cannot be invited: it leads to @alice2, who had it before, until "
        "2023-12-14.",
        "bobby": "@bobby cannot be invited: an account that had it was deleted, and it stays "
        "reserved until 2023-12-14.",
    }
    for handle, sentence in expected.items():
        assert await refused(accounts.invite_for(handle), e.HandleTaken) == sentence
    await refused(accounts.invite_for("a b"), e.HandleInvalid)
    world.clock.advance(30 * DAY)
    await accounts.invite_for("bobby")


async def invited(accounts: Accounts, handle: str) -> Account:
    code = (await accounts.invite_for(handle)).code
    return (await accounts.register(handle, invite_code=code)).account


async def test_a_handle_with_rights_passes_to_nobody_when_its_owner_is_gone(world):
    accounts = with_names()(world)
    gina = await invited(accounts, "gina")
    mallory = (await accounts.register("mallory")).account
    await accounts.delete(gina)
    for days in (0, 31, 365):
        world.clock.advance(days * DAY)
        for spelling in SPELLINGS:
            await refused(accounts.register(spelling), e.InviteRequired)
            await refused(accounts.change_handle(mallory, spelling), e.HandleTaken)
    assert (await invited(accounts, "gina")).id != gina.id


async def test_a_handle_with_rights_is_taken_back_while_it_leads_to_its_owner(world):
    accounts = with_names()(world)
    gina = await invited(accounts, "gina")
    mallory = (await accounts.register("mallory")).account
    await accounts.change_handle(gina, "gina2")
    await refused(accounts.change_handle(mallory, "gina"), e.HandleTaken)
    await refused(accounts.register("gina"), e.InviteRequired)
    await accounts.change_handle(gina, "gina")
    await accounts.change_handle(gina, "gina3")
    world.clock.advance(30 * DAY)
    await refused(accounts.change_handle(mallory, "gina"), e.HandleTaken)
    await refused(accounts.change_handle(gina, "gina"), e.HandleTaken)
    await refused(accounts.register("gina"), e.InviteRequired)


async def test_of_those_who_come_with_one_invite_for_a_handle_one_gets_it(world):
    accounts = with_names()(world)
    code = (await accounts.invite_for("gina")).code
    several = [accounts.register("gina", invite_code=code) for _ in range(4)]
    ended = await asyncio.gather(*several, return_exceptions=True)
    assert sorted(type(each).__name__ for each in ended) == [*["InviteClaimed"] * 3, "Registered"]


@pytest.mark.sqlite("stops its writer's thread")
@pytest.mark.requirement("handle.shares-names")
async def test_what_is_reserved_while_a_registration_waits_is_seen_by_it(world):
    accounts, gate = world.accounts, Gate()
    async with asyncio.TaskGroup() as tasks:
        held = tasks.create_task(world.inner.write(gate.unit))
        await gate.entered()
        waiting = tasks.create_task(refused(accounts.register("gina"), e.InviteRequired))
        await asyncio.sleep(0)
        accounts.reserved.awaited = frozenset({"gina"})
        gate.open()
    assert held.done()
    assert waiting.result() == NEEDS_INVITE


OFFICIAL_SPELLINGS = (
    *("admin", "root", "operator", "support", "everyone", "hub", "postmaster", "abuse", "security"),
    *("help", "info", "noreply", "here", "all", "channel", "you", "anonymous", "guest"),
    *("moderator", "administrator", "webmaster", "hostmaster", "daemon", "nobody", "null"),
    *("undefined", "no_reply", "Mailer_Daemon", "@Admin", "admin_", "sup_port"),
)


async def test_nobody_registers_as_or_changes_to_someone_official(world):
    accounts = Accounts(world.store, world.clock, world.vault, policy="open")
    mallory = (await accounts.register("mallory")).account
    code = await accounts.create_invite(mallory)
    for name in OFFICIAL_SPELLINGS:
        assert await refused(accounts.register(name), e.InviteRequired) == NEEDS_INVITE, name
        await refused(accounts.register(name, invite_code=code), e.InviteRequired)
        await refused(accounts.change_handle(mallory, name), e.HandleTaken)
    assert await accounts.count() == 1
    for name in ("admiral", "rooted", "alice", "bob", "spammer", "user", "agent", "helper"):
        await accounts.register(name)
    invite = await accounts.invite_for("support")
    assert (await accounts.register("support", invite_code=invite.code)).account.handle == "support"


async def test_whoever_has_an_official_name_keeps_it(world):
    accounts = Accounts(world.store, world.clock, world.vault, policy="open")
    made = await accounts.register("rooted")
    # As an account of an earlier version, which anyone could register.
    for table in ("users", "handles"):
        await world.store.write(
            lambda tx, table=table: tx.execute(f"UPDATE {table} SET handle = 'root'")
        )
    fresh = await accounts.recover("root", made.recovery_code)
    root = await accounts.authenticate(fresh.token)
    assert root.handle == "root"
    await accounts.change_handle(root, "rooted")
    assert (await accounts.change_handle(root, "root")).new_handle == "root"
