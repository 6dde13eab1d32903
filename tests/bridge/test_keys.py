"""Device keys: where they are kept, how they change, and how they are taken elsewhere."""

from __future__ import annotations

import json
import stat
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import keyring
import pytest
from keyring.backend import KeyringBackend
from keyring.backends.fail import Keyring as NoKeyring

from folkmoot.bridge.crypto import (
    DeviceKey,
    fingerprint,
    seal,
    unseal,
)
from folkmoot.bridge.keys import Cost, KeyStore, pack, unpack
from folkmoot.bridge.ledger import PinnedKey
from folkmoot.bridge.limits import MAX_PREVIOUS_KEYS
from folkmoot.core import errors as e

HUB = "http://hub.example"
CHEAP = Cost(1, 8192)
WORDS = "five words picked at random"


class InMemory(KeyringBackend):
    """A keyring that can be trusted, for as long as a test."""

    priority = 5  # type: ignore[assignment]

    def __init__(self) -> None:
        self.kept: dict[tuple[str, str], str] = {}

    def set_password(self, service: str, username: str, password: str) -> None:
        self.kept[service, username] = password

    def get_password(self, service: str, username: str) -> str | None:
        return self.kept.get((service, username))


@pytest.fixture
def ring() -> Iterator[InMemory]:
    before, ring = keyring.get_keyring(), InMemory()
    keyring.set_keyring(ring)
    yield ring
    keyring.set_keyring(before)


def test_a_box_opens_for_the_two_it_is_between_and_for_nobody_else():
    ada, bob, eve = (DeviceKey.fresh() for _ in range(3))
    payload = seal(ada, bob.public, b"words")
    assert unseal(bob, ada.public, payload) == unseal(ada, bob.public, payload) == b"words"
    assert unseal(eve, ada.public, payload) is None
    assert unseal(bob, eve.public, payload) is None
    assert ada.written() not in repr(ada)
    assert fingerprint(ada.public) in repr(ada)


def test_a_key_is_made_once_in_a_file_that_only_its_owner_can_read(tmp_path):
    store = KeyStore(tmp_path / "new" / "keys.json")
    assert store.find(HUB, "ada") is None
    made = store.make(HUB, "ada", 1000.0)
    assert store.make(HUB, "ada", 2000.0).current.public == made.current.public
    assert store.make(HUB, "bob", 2000.0).current.public != made.current.public
    assert stat.S_IMODE(store.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(store.path.parent.stat().st_mode) == 0o700
    found = store.find_published(HUB, made.current.public)
    assert found is not None
    store.rename(found, "countess")
    assert store.find(HUB, "ada") is None
    renamed = store.find(HUB, "countess")
    assert renamed is not None
    assert renamed.current.written() == made.current.written()


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660])
def test_a_file_that_others_can_read_is_refused(tmp_path, mode):
    store = KeyStore(tmp_path / "keys.json")
    store.make(HUB, "ada", 0)
    store.path.chmod(mode)
    with pytest.raises(e.DeviceKeyUnusable, match="chmod 600"):
        store.find(HUB, "ada")
    with pytest.raises(e.DeviceKeyUnusable, match="chmod 600"):
        store.make(HUB, "bob", 0)


@pytest.mark.parametrize("content", ["", "[]", "{", '{"accounts": 1}', '{"version": 2}'])
def test_a_file_that_is_none_is_left_as_it_is(tmp_path, content):
    store = KeyStore(tmp_path / "keys.json")
    store.path.touch(0o600)
    store.path.write_text(content)
    with pytest.raises(e.DeviceKeyUnusable, match=r"keys\.json: "):
        store.make(HUB, "ada", 0)
    assert store.path.read_text() == content


def test_bridges_that_start_at_once_make_one_key(tmp_path):
    path = tmp_path / "keys.json"
    names = ["ada"] * 4 + [f"p{n}" for n in range(4)]
    with ThreadPoolExecutor(len(names)) as pool:
        made = list(pool.map(lambda name: KeyStore(path).make(HUB, name, 0), names))
    assert len({keys.current.public for keys in made}) == 5
    kept = json.loads(path.read_text())["accounts"]
    assert sorted(entry["handle"] for entry in kept) == ["ada", "p0", "p1", "p2", "p3"]


def test_earlier_keys_are_kept_for_old_mail_up_to_a_bound(tmp_path):
    store = KeyStore(tmp_path / "keys.json")
    first = store.make(HUB, "ada", 0).current
    for n in range(MAX_PREVIOUS_KEYS + 3):
        keys = store.rotate(HUB, "ada", DeviceKey.fresh(), n)
        assert len(keys.all) == min(n + 2, MAX_PREVIOUS_KEYS + 1)
        if n == 0:
            assert keys.own(first.public) is not None
    assert keys.own(first.public) is None
    with pytest.raises(e.DeviceKeyUnusable, match="no key of @eve"):
        store.rotate(HUB, "eve", DeviceKey.fresh(), 0)


def test_a_key_in_the_keyring_is_not_in_the_file(tmp_path, ring):
    store = KeyStore(tmp_path / "keys.json")
    made = store.make(HUB, "ada", 0, keyring=True)
    assert made.current.written() not in store.path.read_text()
    assert list(ring.kept.values()) == [made.current.written()]
    found = store.find(HUB, "ada")
    assert found is not None
    assert found.current.written() == made.current.written()
    assert store.rotate(HUB, "ada", DeviceKey.fresh(), 0).current.written() in ring.kept.values()
    ring.kept.clear()
    with pytest.raises(e.DeviceKeyUnusable, match="keyring no longer has"):
        store.find(HUB, "ada")


def test_a_computer_without_a_real_keyring_is_told_of(tmp_path, ring):
    keyring.set_keyring(NoKeyring())
    with pytest.raises(e.DeviceKeyUnusable, match="leave --keyring out"):
        KeyStore(tmp_path / "keys.json").make(HUB, "ada", 0, keyring=True)
    assert not (tmp_path / "keys.json").exists()


def test_keys_go_to_another_device_under_a_passphrase(tmp_path):
    here, there = KeyStore(tmp_path / "here.json"), KeyStore(tmp_path / "there.json")
    old = here.make(HUB, "ada", 0).current
    keys = here.rotate(HUB, "ada", DeviceKey.fresh(), 0)
    pins = [PinnedKey("bob", DeviceKey.fresh().public, 7)]
    content = pack(keys, pins, WORDS, CHEAP)
    for secret in (keys.current.written(), old.written(), WORDS):
        assert secret.encode() not in content
    brought = unpack(content, WORDS, "key.json")
    assert keys.current.written() not in repr(brought)
    before = there.make(HUB, "ada", 0).current
    taken = there.adopt(HUB, "ada", brought.opened(), 0)
    assert [key.public for key in taken.all] == [keys.current.public, old.public, before.public]
    assert brought.pins == pins


def test_a_wrong_passphrase_or_a_changed_file_is_told_plainly(tmp_path):
    content = pack(KeyStore(tmp_path / "keys.json").make(HUB, "ada", 0), [], WORDS, CHEAP)
    with pytest.raises(e.DeviceKeyUnusable, match="passphrase is wrong"):
        unpack(content, WORDS + "!", "key.json")
    export = json.loads(content)
    box = export["box"]
    for change, why in {
        "box": ("A" + box[1:] if box[0] != "A" else "B" + box[1:], "passphrase is wrong"),
        "format": ("another", "not an exported"),
        "salt": ("!", "not an exported"),
        "version": (2, "newer"),
        "memory": (2**34, "more memory"),
        "passes": (10**6, "more memory"),
    }.items():
        value, sentence = why
        with pytest.raises(e.DeviceKeyUnusable, match=sentence):
            unpack(json.dumps({**export, change: value}).encode(), WORDS, "key.json")
    with pytest.raises(e.DeviceKeyUnusable, match="not an exported"):
        unpack(b"{", WORDS, "key.json")


@pytest.mark.parametrize("weak", ["", "short", "aaaaaaaaaaaaaaaaaaaa", "abababababababab"])
def test_a_passphrase_that_is_soon_guessed_is_refused(tmp_path, weak):
    keys = KeyStore(tmp_path / "keys.json").make(HUB, "ada", 0)
    with pytest.raises(e.DeviceKeyUnusable, match="too easy to guess"):
        pack(keys, [], weak, CHEAP)
