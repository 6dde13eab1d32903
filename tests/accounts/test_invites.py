from __future__ import annotations

import pytest

from folkmoot.accounts import Account
from folkmoot.core import errors as e
from folkmoot.core.ports import Tx
from tests.accounts.support import START, refused

BODY = "Come along, there is cake \U0001f370"


@pytest.mark.sqlite("reads its file")
@pytest.mark.requirement("tool.invite.stored", "rest.no-plaintext")
async def test_an_invite_is_stored_by_the_hash_of_its_code_with_its_message_sealed(world, tmp_path):
    def holding(secret: bytes) -> list[str]:
        return [file.name for file in tmp_path.iterdir() if secret in file.read_bytes()]

    alice = await world.join("alice")
    code = await world.accounts.create_invite(alice, BODY)
    [(code_hash, created_by, created_at, claimed_by, claimed_at)] = await world.rows(
        "SELECT code_hash, created_by, created_at, claimed_by, claimed_at FROM invites"
    )
    assert code != code_hash
    assert (created_by, created_at) == (alice.id, START)
    assert (claimed_by, claimed_at) == (None, None)
    assert holding(b"alice") != []
    assert holding(code.encode()) == holding(BODY.encode()) == holding(b"cake") == []


@pytest.mark.requirement("invite.claimed-at-registration", "invite.pending-message")
async def test_whoever_registers_with_a_code_claims_it_and_is_welcomed_in_the_same_transaction(
    world, alice
):
    code = await world.accounts.create_invite(alice, BODY)
    assert (await world.accounts.invitation(code)).state == "valid"
    welcomed: list[tuple[str, str | None, str | None]] = []

    async def welcome(tx: Tx, account: Account, inviter: str | None, pending: str | None) -> None:
        [(handle,)] = await tx.fetch("SELECT handle FROM users WHERE id = ?", (account.id,))
        welcomed.append((handle, inviter, pending))

    world.clock.advance(60)
    writes = world.store.writes
    new = await world.accounts.register("bobby", invite_code=f" {code}\n", also=welcome)
    assert world.store.writes == writes + 1
    assert welcomed == [("bobby", alice.id, BODY)]
    assert (await world.accounts.invitation(code)).state == "claimed"
    assert await world.rows("SELECT claimed_by, claimed_at, pending FROM invites") == [
        (new.account.id, START + 60, None)
    ]
    await world.accounts.register("carol", also=welcome)
    empty = await world.accounts.create_invite(alice, "")
    await world.accounts.register("david", invite_code=empty, also=welcome)
    assert welcomed[1:] == [("carol", None, None), ("david", alice.id, None)]


@pytest.mark.requirement("invite.bad-code-creates-nothing")
async def test_an_unknown_or_claimed_code_is_an_error_and_makes_no_account(world, alice):
    code = await world.accounts.create_invite(alice)
    await world.accounts.register("first", invite_code=code)
    with pytest.raises(e.InviteClaimed, match=r"^This invite has already been claimed\.$"):
        await world.accounts.register("second", invite_code=code)
    for wrong in (
        "ic_" + "a" * 32,
        code.upper() + "x",
        code[:-1],
        " ",
        "\0",
        "\ud800",
        "x" * 1_000_000,
    ):
        with pytest.raises(e.InviteUnknown, match=r"^Invalid invite code\.$"):
            await world.accounts.register("second", invite_code=wrong)
        assert (await world.accounts.invitation(wrong)).state == "unknown"
    assert await world.accounts.count() == 2
    await world.register("second")  # the name was not taken either


async def test_a_registration_that_fails_leaves_its_invite_unclaimed(world):
    async def welcome(tx: Tx, account: Account, inviter: str | None, pending: str | None) -> None:
        raise LookupError("changed my mind")

    alice = await world.join("alice")
    code = await world.accounts.create_invite(alice, BODY)
    await refused(world.accounts.register("alice", invite_code=code), e.HandleTaken)
    await refused(world.accounts.register("bobby", invite_code=code, also=welcome), LookupError)
    assert (await world.accounts.invitation(code)).state == "valid"
    assert await world.accounts.count() == 1
    await world.accounts.register("bobby", invite_code=code)


async def test_without_an_invite_nobody_learns_which_names_are_taken(world):
    await world.join("alice")
    for handle in ("alice", "nobody"):
        with pytest.raises(e.InviteUnknown):
            await world.with_policy("invite").register(handle, invite_code="ic_" + "a" * 32)


@pytest.mark.parametrize("message", ["x" * 26, "x" * 1_000_000, "half \ud83c"])
@pytest.mark.settings(max_message_characters=25)
async def test_a_pending_message_has_a_limit_and_is_valid_unicode(world, alice, message):
    await refused(world.accounts.create_invite(alice, message), e.ArgumentInvalid, "message")
    assert await world.rows("SELECT * FROM invites") == []
    await world.accounts.create_invite(alice, "\U0001f370" * 25)


@pytest.mark.settings(policy="invite")
async def test_the_operator_invites_without_having_an_account(world):
    code = await world.accounts.create_invite(None)
    await world.accounts.register("alice", invite_code=code)
    assert await world.rows("SELECT created_by FROM invites") == [(None,)]
