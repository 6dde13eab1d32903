"""The vault: sealing, the wrapped data key, and the change of the master key."""

from __future__ import annotations

import base64
import pickle
from collections.abc import AsyncIterator

import pytest

from folkmoot.core import errors as e
from folkmoot.core.ports import Row, Tx
from folkmoot.keys import MasterKey
from folkmoot.store import SqliteStore
from folkmoot.store.meta import MASTER_KEY_ID, put
from folkmoot.vault import Vault, hold

OLD = MasterKey(b"o" * 32)
NEW = MasterKey(b"n" * 32)
VAULT = Vault(b"d" * 32, OLD.id)


@pytest.fixture
async def vault(store: SqliteStore) -> AsyncIterator[Vault]:
    """The vault of a new database."""
    yield await Vault.load(store, OLD)  # noqa: PT022 - async fixtures are generators


async def wraps(tx: Tx) -> list[Row]:
    return await tx.fetch("SELECT key, value FROM meta WHERE key LIKE 'data_key.%' ORDER BY key")


def test_what_is_sealed_opens_again_and_is_not_readable():
    sealed = VAULT.seal("subject", "row", b"hello")
    assert VAULT.open("subject", "row", sealed) == b"hello"
    assert b"hello" not in base64.b64decode(sealed)


def test_the_same_thing_is_sealed_differently_each_time():
    assert VAULT.seal("subject", "row", b"x") != VAULT.seal("subject", "row", b"x")


@pytest.mark.parametrize(
    ("purpose", "row"), [("subject", "other"), ("body", "row"), ("subjectr", "ow")]
)
def test_what_is_moved_to_another_place_does_not_open(purpose, row):
    with pytest.raises(e.SealBroken):
        VAULT.open(purpose, row, VAULT.seal("subject", "row", b"hello"))


@pytest.mark.requirement("crypto.tampering-detected")
def test_what_was_changed_does_not_open_and_the_error_tells_nothing_of_it():
    raw = bytearray(base64.b64decode(VAULT.seal("subject", "row", b"hello")))
    for place in range(len(raw)):
        changed = raw.copy()
        changed[place] ^= 1
        with pytest.raises(e.SealBroken) as caught:
            VAULT.open("subject", "row", base64.b64encode(changed).decode())
        assert "hello" not in caught.value.message


@pytest.mark.parametrize("sealed", ["", "AAAA", "not base64", "\N{SNOWMAN}", "A" * 31, "=" * 64])
def test_what_was_never_sealed_does_not_open(sealed):
    with pytest.raises(e.SealBroken):
        VAULT.open("subject", "row", sealed)


@pytest.mark.requirement("crypto.tampering-detected")
def test_what_is_sealed_has_one_spelling():
    sealed = VAULT.seal("subject", "row", b"hello")
    letters = sealed.rstrip("=")
    for last in "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/":
        other = letters[:-1] + last + "=" * (len(sealed) - len(letters))
        if other != sealed:
            with pytest.raises(e.SealBroken):
                VAULT.open("subject", "row", other)


def test_a_vault_shows_no_key_and_is_not_pickled():
    assert repr(VAULT) == f"<Vault of master key {OLD.id}>"
    with pytest.raises(TypeError):
        pickle.dumps(VAULT)


@pytest.mark.requirement("rest.data-key-wrapped")
async def test_the_data_key_is_made_once_and_found_again(store, vault):
    sealed = vault.seal("subject", "row", b"hello")
    assert (await Vault.load(store, OLD)).open("subject", "row", sealed) == b"hello"
    assert len(await store.read(wraps)) == 1


@pytest.mark.requirement("rest.data-key-wrapped")
async def test_another_master_key_opens_nothing_and_changes_nothing(store):
    await Vault.load(store, OLD)
    before = await store.read(wraps)
    with pytest.raises(e.KeyMismatch):
        await Vault.load(store, NEW)
    assert await store.read(wraps) == before


async def test_a_database_bound_to_a_key_before_it_had_a_vault_takes_no_other(store):
    await store.write(lambda tx: put(tx, MASTER_KEY_ID, OLD.id))
    with pytest.raises(e.KeyMismatch):
        await Vault.load(store, NEW)
    assert (await Vault.load(store, OLD)).master_id == OLD.id


async def test_a_wrapped_key_that_was_changed_is_refused(store):
    async def spoil(tx: Tx) -> None:
        await tx.execute(
            "UPDATE meta SET value = ? WHERE key = ?",
            (VAULT.seal("data_key", OLD.id, b"k" * 32), f"data_key.{OLD.id}"),
        )

    await Vault.load(store, OLD)
    await store.write(spoil)
    with pytest.raises(e.SealBroken):
        await Vault.load(store, OLD)


@pytest.mark.requirement("rest.rotate-master")
async def test_the_master_key_is_changed_while_the_vault_is_in_use(store, vault):
    sealed = vault.seal("subject", "row", b"hello")
    await vault.admit(store, NEW)
    await vault.settle_on(store, NEW)
    assert vault.open("subject", "row", sealed) == b"hello"
    assert vault.master_id == NEW.id
    assert (await Vault.load(store, NEW)).open("subject", "row", sealed) == b"hello"
    with pytest.raises(e.KeyMismatch):
        await Vault.load(store, OLD)


@pytest.mark.requirement("rest.rotate-master")
@pytest.mark.parametrize(("found", "lost"), [(OLD, NEW), (NEW, OLD)])
async def test_a_change_that_was_cut_short_ends_with_whichever_key_is_found(
    store, vault, found, lost
):
    sealed = vault.seal("subject", "row", b"hello")
    await vault.admit(store, NEW)
    assert (await Vault.load(store, found)).open("subject", "row", sealed) == b"hello"
    assert [row[0] for row in await store.read(wraps)] == [f"data_key.{found.id}"]
    with pytest.raises(e.KeyMismatch):
        await Vault.load(store, lost)


@pytest.mark.requirement("rest.rotate-master")
async def test_no_key_is_settled_on_that_was_not_admitted(store, vault):
    with pytest.raises(e.KeyMismatch):
        await vault.settle_on(store, NEW)
    assert vault.master_id == OLD.id
    await Vault.load(store, OLD)
    with pytest.raises(e.KeyMismatch):
        await store.write(lambda tx: hold(tx, NEW.id))


@pytest.mark.requirement("rest.rotate-master")
async def test_a_key_that_is_awaited_outlives_starts_with_the_present_one(store, vault):
    sealed = vault.seal("subject", "row", b"hello")
    await vault.admit(store, NEW, awaited=True)
    for _ in range(2):
        again = await Vault.load(store, OLD)
        assert (again.master_id, again.awaited_id) == (OLD.id, NEW.id)
    ended = await Vault.load(store, NEW)
    assert (ended.master_id, ended.awaited_id) == (NEW.id, None)
    assert ended.open("subject", "row", sealed) == b"hello"
    with pytest.raises(e.KeyMismatch):
        await Vault.load(store, OLD)


@pytest.mark.requirement("rest.rotate-master")
async def test_a_key_that_is_withdrawn_opens_nothing_any_more(store, vault):
    await vault.admit(store, NEW, awaited=True)
    await vault.withdraw(store)
    assert vault.awaited_id is None
    with pytest.raises(e.KeyMismatch) as caught:
        await Vault.load(store, NEW)
    assert caught.value.data == {"key_id": NEW.id, "recorded": OLD.id}
    assert (await Vault.load(store, OLD)).awaited_id is None


@pytest.mark.requirement("rest.rotate-master")
@pytest.mark.parametrize("awaited", [False, True])
async def test_a_key_that_is_admitted_takes_the_place_of_one_that_was(store, vault, awaited):
    third = MasterKey(b"t" * 32)
    await vault.admit(store, third, awaited=True)
    await vault.admit(store, NEW, awaited=awaited)
    ids = [row[0] for row in await store.read(wraps)]
    assert ids == sorted([f"data_key.{OLD.id}", f"data_key.{NEW.id}"])
    assert vault.awaited_id == (NEW.id if awaited else None)
    with pytest.raises(e.KeyMismatch):
        await Vault.load(store, third)


@pytest.mark.sqlite("reads its file")
@pytest.mark.requirement("rest.rotate-master")
async def test_a_way_to_the_data_key_that_was_dropped_is_not_left_in_the_file(
    store, vault, tmp_path
):
    [[_, dropped]] = await store.read(wraps)
    await vault.admit(store, NEW)
    await vault.settle_on(store, NEW)
    await store.close()
    assert str(dropped).encode() not in (tmp_path / "folkmoot.db").read_bytes()


@pytest.mark.sqlite("reads its file")
async def test_what_can_be_told_of_a_database_names_every_key_that_opens_it(store, vault):
    await vault.admit(store, NEW, awaited=True)
    info = await store.info()
    assert info.opened_by == tuple(sorted([OLD.id, NEW.id]))
    assert (info.master_key_id, info.awaited_key_id) == (OLD.id, NEW.id)
    await vault.settle_on(store, NEW)
    info = await store.info()
    assert (info.opened_by, info.master_key_id) == ((NEW.id,), NEW.id)
    assert info.awaited_key_id is None


def test_a_derived_key_is_the_same_each_time_and_another_for_each_purpose():
    again = Vault(b"d" * 32, NEW.id)
    assert VAULT.derive("audit") == again.derive("audit")
    assert VAULT.derive("audit") != VAULT.derive("input")
    assert VAULT.derive("audit") != Vault(b"e" * 32, OLD.id).derive("audit")
