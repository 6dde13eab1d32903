from __future__ import annotations

import base64
import re
import uuid
from hashlib import sha256
from pathlib import Path

import pytest
from nacl.public import PrivateKey

from folkmoot.accounts import Account, registration
from folkmoot.accounts.credentials import new_recovery_code, new_secret
from folkmoot.core import errors as e
from folkmoot.core.ports import Tx
from tests.accounts.support import DAY, START, refused

KEY = base64.b64encode(bytes(range(32))).decode()


def contents(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


@pytest.mark.requirement("tool.register.creates", "profile.defaults", "crypto.key-pair")
async def test_a_new_account_has_keys_credentials_and_an_open_profile(world, new):
    alice = new.account
    assert uuid.UUID(alice.id).version == 4
    assert (alice.handle, alice.display_name) == ("alice", "alice")
    assert (alice.bio, alice.status, alice.privacy) == ("", "", "public")
    assert alice.created_at == alice.updated_at == START
    assert re.fullmatch("sk_[0-9a-f]{64}", new.token)
    assert re.fullmatch("[A-HJ-NP-Z2-9]{4}(-[A-HJ-NP-Z2-9]{4}){2}", new.recovery_code)
    assert world.store.writes == 1
    assert await world.accounts.account(alice.id) == alice
    assert await world.accounts.account("nobody") is None


@pytest.mark.requirement("profile.account-type", "crypto.client-key")
async def test_the_account_type_and_the_clients_key_are_given_at_registration(world):
    alice = (await world.register("alice")).account
    robot = await world.accounts.register("robot", account_type="agent", client_public_key=KEY)
    assert (alice.account_type, alice.client_public_key) == ("person", None)
    seen = await world.accounts.lookup(alice, "robot")
    assert (seen.account_type, seen.client_public_key) == ("agent", KEY)
    assert seen == robot.account
    with pytest.raises(e.ArgumentInvalid, match="account_type"):
        await world.accounts.register("other", account_type="god")
    with pytest.raises(e.ArgumentInvalid, match="client_public_key"):
        await world.accounts.register("other", client_public_key="abc")
    assert await world.accounts.count() == 2


@pytest.mark.sqlite("reads its file")
@pytest.mark.requirement("auth.token-hashed", "recovery.code-hashed", "crypto.private-key-sealed")
async def test_the_database_holds_hashes_and_a_sealed_key_and_no_secret(world, new, tmp_path):
    [(recovery_hash, sealed)] = await world.rows("SELECT recovery_hash, private_key FROM users")
    [(token_hash,)] = await world.rows("SELECT hash FROM credentials")
    assert token_hash == sha256(new.token.encode()).hexdigest()
    assert recovery_hash == sha256(new.recovery_code.encode()).hexdigest()
    private = await world.store.read(lambda tx: world.accounts.private_key(tx, new.account.id))
    public = bytes(PrivateKey(private).public_key)
    assert base64.b64encode(public).decode() == new.account.public_key
    assert sealed != base64.b64encode(private).decode()
    bob = (await world.register("bobby")).account
    await world.inner.write(
        lambda tx: tx.execute("UPDATE users SET private_key = ? WHERE id = ?", (sealed, bob.id))
    )
    await refused(world.store.read(lambda tx: world.accounts.private_key(tx, bob.id)), e.SealBroken)
    with pytest.raises(e.UserNotFound):
        await world.store.read(lambda tx: world.accounts.private_key(tx, "nobody"))
    secrets = (new.token, new.recovery_code, base64.b64encode(private).decode())
    files = contents(tmp_path)
    assert len(files) > 1
    for name, content in files.items():
        for secret in (*[s.encode() for s in secrets], private):
            assert secret not in content, name


@pytest.mark.requirement("auth.token-never-logged", "crypto.private-key-never-out")
async def test_what_registering_answers_prints_no_secret(world, new):
    back = await world.accounts.recover("alice", new.recovery_code)
    for secret in (new.token, new.recovery_code, back.token):
        assert secret not in repr(new) + str(back)
    fields = set(Account.__struct_fields__)
    assert not {name for name in fields if "hash" in name or "private" in name}


@pytest.mark.requirement("auth.by-hash")
async def test_a_token_opens_its_own_account_and_any_other_text_none(world):
    alice, bob = await world.register("alice"), await world.register("bobby")
    authenticate = world.accounts.authenticate
    assert await authenticate(alice.token) == alice.account
    assert await authenticate(bob.token) == bob.account
    digest = sha256(alice.token.encode()).hexdigest()
    assert await world.accounts.still_valid(alice.credential_id) == alice.account
    for text in ("", digest, "c_" + "0" * 24):
        assert await world.accounts.still_valid(text) is None
    for text in ("", "alice", alice.token.upper(), alice.token + "\n", new_secret("sk"), digest):
        assert await authenticate(text) is None
    assert await authenticate("sk_" + digest) is None


@pytest.mark.requirement("auth.registration-open")
@pytest.mark.settings(policy="open")
async def test_with_open_registration_anyone_registers(world):
    assert world.accounts.policy == "open"
    await world.register("alice")
    assert await world.accounts.count() == 1


@pytest.mark.requirement("auth.registration-closed")
@pytest.mark.settings(policy="closed")
async def test_with_closed_registration_nobody_registers_not_even_the_invited(world):
    code = await world.accounts.create_invite(None)
    await refused(world.register("alice"), e.RegistrationClosed, "closed")
    await refused(world.accounts.register("alice", invite_code=code), e.RegistrationClosed)
    assert await world.accounts.count() == 0
    assert (await world.accounts.invitation(code)).state == "valid"


@pytest.mark.requirement("auth.registration-invite")
@pytest.mark.settings(policy="invite")
async def test_with_registration_by_invite_an_account_needs_a_code(world):
    for code in (None, ""):
        with pytest.raises(e.InviteRequired, match="invite code"):
            await world.accounts.register("alice", invite_code=code)
    code = await world.accounts.create_invite(None)
    new = await world.accounts.register("alice", invite_code=code)
    assert await world.accounts.authenticate(new.token) == new.account


@pytest.mark.requirement("recovery.new-token", "auth.old-token-stops", "recovery.code-stays")
async def test_a_recovery_code_gives_a_new_token_and_ends_the_old_one_every_time(world, new):
    token = new.token
    for _ in range(3):
        world.clock.advance(DAY)
        assert (await world.accounts.authenticate(token)) is not None
        back = await world.accounts.recover("@Alice", new.recovery_code)
        assert back.account.id == new.account.id
        assert re.fullmatch("sk_[0-9a-f]{64}", back.token)
        assert await world.accounts.authenticate(token) is None
        assert await world.accounts.authenticate(back.token) == back.account
        token = back.token


@pytest.mark.requirement("recovery.lenient-input")
async def test_a_recovery_code_is_accepted_as_people_write_it(world):
    code = (await world.register("alice")).recovery_code
    for written in (code, code.lower(), code.replace("-", ""), f" {code.lower()}\n"):
        assert (await world.accounts.recover("alice", written)).account.handle == "alice"


@pytest.mark.requirement("tool.recover.not-found", "tool.recover.wrong-code")
async def test_a_wrong_recovery_changes_nothing_and_never_makes_the_writer_work(world):
    new, bob = await world.register("alice"), await world.register("bobby")
    before = world.store.writes
    for handle in ("nobody", "", "not a handle", "\ud800"):
        with pytest.raises(e.HandleNotFound, match=r"^Handle not found\.$"):
            await world.accounts.recover(handle, new.recovery_code)
    wrong = [new_recovery_code() for _ in range(20)]
    for code in (bob.recovery_code, new.token, "", "A" * 1_000_000, "\ud800\0", *wrong):
        with pytest.raises(e.RecoveryCodeInvalid) as refused:
            await world.accounts.recover("alice", code)
        assert (refused.value.message, refused.value.data) == ("Invalid recovery code.", {})
    assert world.store.writes == before
    assert await world.accounts.authenticate(new.token) == new.account


@pytest.mark.requirement("recovery.constant-time")
async def test_recovery_codes_are_compared_by_the_comparison_that_tells_nothing_by_its_time(
    world, monkeypatch
):
    compared: list[tuple[str, str]] = []

    def compare(stored: str, given: str) -> bool:
        compared.append((stored, given))
        return registration_compare(stored, given)

    registration_compare = registration.compare_digest
    monkeypatch.setattr(registration, "compare_digest", compare)
    stored = sha256((await world.register("alice")).recovery_code.encode()).hexdigest()
    for guess in ("", "AAAA-AAAA-AAAA", new_recovery_code()):
        await refused(world.accounts.recover("alice", guess), e.RecoveryCodeInvalid)
    assert [(s, len(g)) for s, g in compared] == [(stored, 64)] * 3


@pytest.mark.requirement("health.users-counted")
async def test_accounts_are_counted_without_reading_them(world):
    assert await world.accounts.count() == 0
    people = [await world.register(name) for name in ("alice", "bobby", "carol")]
    await refused(world.register("alice"), e.HandleTaken)
    await world.accounts.delete(people[0].account)
    world.store.statements.clear()
    assert await world.accounts.count() == 2
    [(statement, _)] = world.store.statements
    assert "users u" not in statement
    assert await world.rows("SELECT COUNT(*) FROM users") == [(2,)]


@pytest.mark.requirement("auth.old-token-stops", "delete.account")
async def test_a_deleted_account_is_gone_with_all_that_was_its_own(world):
    accounts = world.accounts
    new, bob = await world.register("alice"), await world.join("bobby")
    alice = new.account
    await accounts.change_handle(alice, "alice_v2")
    await accounts.add_contact(alice, "bobby")
    await accounts.add_contact(bob, "alice_v2")
    await accounts.block(alice, "bobby")
    await accounts.block(bob, "alice_v2")
    code = await accounts.create_invite(alice, "come along")
    assert await accounts.authenticate(new.token) is not None
    heard: list[str] = []

    async def farewell(tx: Tx, account: Account) -> None:
        [(count,)] = await tx.fetch("SELECT COUNT(*) FROM users WHERE id = ?", (account.id,))
        heard.append(f"{account.handle} {count}")

    await accounts.delete(alice, also=farewell)
    assert heard == ["alice_v2 1"]
    assert await accounts.authenticate(new.token) is None
    assert await accounts.account(alice.id) is None
    assert await accounts.search(bob, "alice") == []
    assert (await accounts.contacts(bob)).contacts == []
    assert (await accounts.invitation(code)).state == "unknown"
    await refused(accounts.recover("alice_v2", new.recovery_code), e.HandleNotFound)
    for handle in ("alice", "alice_v2"):
        await refused(accounts.lookup(bob, handle), e.UserNotFound)
    for table in ("contacts", "blocks", "invites", "user_grams"):
        rows = await world.rows(f"SELECT * FROM {table}")
        assert alice.id not in {value for row in rows for value in row}, table
    assert await world.rows("SELECT user_id FROM handles WHERE kind <> 'live'") == [(None,)] * 2


@pytest.mark.requirement("delete.handle-reserved")
async def test_a_deleted_handle_stays_reserved_for_thirty_days(world):
    await world.accounts.delete(await world.join("alice"))
    bob = await world.join("bobby")
    world.clock.advance(30 * DAY - 1)
    await refused(world.register("alice"), e.HandleTaken)
    await refused(world.accounts.change_handle(bob, "alice"), e.HandleTaken)
    world.clock.advance(1)
    await world.register("alice")


async def test_if_what_joins_a_deletion_fails_nothing_is_deleted(world):
    async def farewell(tx: Tx, account: Account) -> None:
        await tx.execute("DELETE FROM user_grams")
        raise LookupError("changed my mind")

    new = await world.register("alice")
    await refused(world.accounts.delete(new.account, also=farewell), LookupError)
    assert await world.accounts.authenticate(new.token) == new.account
    assert [f.handle for f in await world.accounts.search(new.account, "alice")] == ["alice"]


async def test_whoever_was_deleted_meanwhile_does_nothing_more(world, alice):
    await world.join("bobby")
    accounts = world.accounts
    await accounts.delete(alice)
    for action in (
        accounts.add_contact(alice, "bobby"),
        accounts.block(alice, "bobby"),
        accounts.set_profile(alice, bio="x"),
        accounts.change_handle(alice, "another"),
        accounts.create_invite(alice),
        accounts.delete(alice),
    ):
        await refused(action, e.TokenInvalid)
    assert await accounts.belongings(alice.id) is None
    assert await accounts.count() == 1


async def test_everything_that_belongs_to_an_account_can_be_taken_away(world):
    accounts = world.accounts
    alice = await world.join("alice")
    for number in range(120):
        await world.register(f"user_{number:03}")
        await accounts.add_contact(alice, f"user_{number:03}")
    await accounts.block(alice, "user_007")
    code = await accounts.create_invite(alice, "hello")
    await accounts.register("invited", invite_code=code)
    change = await accounts.change_handle(alice, "alice_v2")
    found = await accounts.belongings(alice.id)
    assert world.store.long_reads == 1
    assert (found.account, found.redirects) == (change.account, {"alice": change.redirects_until})
    assert [contact.handle for contact in found.contacts] == [
        "invited",
        *(f"user_{number:03}" for number in range(120)),
    ]
    assert found.blocked == ["user_007"]
    assert [(i.created_at, i.claimed_at) for i in found.invites] == [(START, START)]
