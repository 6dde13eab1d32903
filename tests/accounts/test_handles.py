from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from folkmoot.accounts import ReservedNames
from folkmoot.core import errors as e
from folkmoot.core.ports import Tx
from folkmoot.names.grammar import RESERVED_NAMES, parse_handle
from tests.accounts.support import DAY, START, World, refused

SEED = re.compile(r"^[a-z][a-z0-9_]{2,19}\Z")
VALID = st.from_regex(r"[a-z][a-z0-9_]{2,19}", fullmatch=True)


@pytest.mark.requirement("handle.format")
@given(st.text(max_size=24) | st.text("aZ0_@-\n \u212a\u0131\u017f", max_size=24))
def test_what_is_taken_for_a_handle_follows_the_grammar(text):
    handle = parse_handle(text)
    if handle is not None:
        assert SEED.match(handle)
        assert text.isascii()
        assert text.lower().removesuffix("@localhost") in (handle, f"@{handle}")


@pytest.mark.requirement("handle.format", "handle.case-and-at", "handle.localhost")
@given(VALID, st.randoms(use_true_random=False), st.booleans())
def test_a_handle_is_itself_in_any_case_and_behind_an_at(handle, random, at):
    mixed = "".join(random.choice((c, c.upper())) for c in handle)
    assert parse_handle(("@" if at else "") + mixed) == handle
    assert parse_handle(f"{'@' if at else ''}{mixed}@LocalHost") == handle


# The lower case of the Kelvin sign is a plain k.
INVALID = [
    "", "@", "ab", "1ab", "_ab", "a" * 21, "alice\n", " alice", "al ice", "al-ice", "@@alice",
    "alice@elsewhere", "alice@localhost.example", "alice@localhost@localhost", "alice@@localhost",
    "älice", "\N{KELVIN SIGN}elvin", "alice\0", "alice\ud800",
]  # fmt: skip


@pytest.mark.requirement("handle.format", "tool.register.invalid-handle")
@pytest.mark.parametrize("handle", INVALID)
async def test_what_is_no_handle_is_not_registered(world, handle):
    with pytest.raises(e.HandleInvalid) as refused:
        await world.register(handle)
    assert refused.value.message == (
        "Invalid handle. Must be 3-20 characters, lowercase alphanumeric and underscores, "
        "starting with a letter."
    )
    assert await world.accounts.count() == 0


@pytest.mark.requirement("tool.change-handle.invalid")
async def test_nobody_changes_to_what_is_no_handle(world, alice):
    for handle in INVALID:
        with pytest.raises(e.HandleInvalid, match=r"^Invalid handle format\.$"):
            await world.accounts.change_handle(alice, handle)


@pytest.mark.requirement("handle.case-and-at")
async def test_a_handle_is_stored_in_lower_case_without_its_at(world):
    alice = (await world.register("@Alice_2")).account
    assert alice.handle == "alice_2"
    assert await world.rows("SELECT handle FROM users") == [("alice_2",)]
    assert (await world.accounts.lookup(alice, "@ALICE_2")).id == alice.id


@pytest.mark.requirement("handle.unique", "tool.register.taken", "tool.change-handle.taken")
async def test_a_handle_in_use_is_taken_in_every_spelling(world):
    await world.register("alice")
    bob = await world.join("bobby")
    for spelling in ("alice", "ALICE", "@Alice"):
        await refused(world.register(spelling), e.HandleTaken, r"^Handle already taken\.$")
        with pytest.raises(e.HandleTaken, match=r"Handle already taken\."):
            await world.accounts.change_handle(bob, spelling)
    await refused(world.accounts.change_handle(bob, "bobby"), e.HandleTaken)
    assert await world.accounts.count() == 2


@pytest.mark.requirement("handle.reserved")
@pytest.mark.settings(reserved=ReservedNames(["github"]))
async def test_nobody_takes_a_reserved_name(world):
    names = {
        *("ask", "gateway", "system", "folkmoot", "mmp", "msg", "room", "chat", "file", "http"),
        "https",
    }
    alice = await world.join("alice")
    assert names == RESERVED_NAMES
    for name in [*sorted(names), "github"]:
        await refused(world.register(name.upper()), e.HandleTaken)
        await refused(world.accounts.change_handle(alice, name), e.HandleTaken)
    assert await world.rows("SELECT handle FROM handles") == [("alice",)]


async def leads_to(here: World, handle: str) -> str:
    async def query(tx: Tx) -> str:
        return (await here.accounts.resolve(tx, handle)).handle

    return await here.store.read(query)


@pytest.mark.requirement("handle.redirect", "handle.redirect-expires", "handle.resolution")
async def test_an_old_handle_leads_to_the_new_one_for_thirty_days_and_is_free_then(world, alice):
    change = await world.accounts.change_handle(alice, "Alice_V2")
    assert (change.old_handle, change.new_handle) == ("alice", "alice_v2")
    assert (change.redirects_until, change.account.handle) == (START + 2_592_000, "alice_v2")
    world.clock.advance(30 * DAY - 1)
    assert await leads_to(world, "@Alice") == "alice_v2"
    await refused(world.register("alice"), e.HandleTaken)
    world.clock.advance(1)
    await refused(leads_to(world, "alice"), e.UserNotFound)
    await world.register("alice")
    assert await leads_to(world, "alice") == "alice"
    assert await leads_to(world, "alice_v2") == "alice_v2"


@pytest.mark.requirement("handle.redirect-chain")
async def test_a_chain_of_changes_leads_to_the_present_handle(world, alice):
    for name in ("second", "third", "fourth"):
        await world.accounts.change_handle(alice, name)
        world.clock.advance(DAY)
    for name in ("alice", "second", "third"):
        assert await leads_to(world, name) == "fourth"
    world.clock.advance(27 * DAY)
    await refused(leads_to(world, "alice"), e.UserNotFound)
    assert await leads_to(world, "second") == "fourth"


@pytest.mark.requirement("handle.redirect-protected", "handle.redirect-taken-back")
async def test_only_its_owner_takes_a_redirected_handle_back(world, alice, bob):
    await world.accounts.change_handle(alice, "second")
    await refused(world.accounts.change_handle(bob, "alice"), e.HandleTaken)
    back = await world.accounts.change_handle(alice, "alice")
    assert (back.old_handle, back.new_handle) == ("second", "alice")
    assert await leads_to(world, "alice") == "alice"
    assert await leads_to(world, "second") == "alice"


@pytest.mark.requirement("handle.live-user-wins")
async def test_a_live_user_wins_over_what_once_led_elsewhere(world, alice, bob):
    await world.accounts.change_handle(alice, "second")
    world.clock.advance(30 * DAY)
    await world.accounts.change_handle(bob, "alice")
    assert (await world.accounts.lookup(bob, "alice")).id == bob.id
    assert await world.rows("SELECT kind FROM handles WHERE handle = 'alice'") == [("live",)]


async def test_nobody_hoards_names_by_changing_again_and_again(world, alice):
    for number in range(10):
        await world.accounts.change_handle(alice, f"alice_{number}")
    with pytest.raises(e.TooManyHandleChanges) as refused:
        await world.accounts.change_handle(alice, "one_more")
    assert refused.value.data == {"retry_at": START + 30 * DAY}
    await world.register("one_more")
    await world.accounts.change_handle(alice, "alice")
    world.clock.advance(30 * DAY)
    await world.accounts.change_handle(alice, "afterwards")


@pytest.mark.requirement("handle.redirect-for-tools")
@pytest.mark.requirement("tool.lookup.redirect", "tool.add-contact.redirect")
async def test_whoever_takes_a_handle_follows_its_redirect(world, bob):
    old = await world.register("alice")
    await world.accounts.change_handle(old.account, "alice_v2")
    accounts = world.accounts
    for action in (
        accounts.lookup,
        accounts.add_contact,
        accounts.remove_contact,
        accounts.block,
        accounts.unblock,
    ):
        assert (await action(bob, "alice")).handle == "alice_v2"
    assert (await accounts.recover("alice", old.recovery_code)).account.handle == "alice_v2"
    await world.may_write(bob, "alice")
