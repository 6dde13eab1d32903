"""The ledger: what is remembered of keys and letters, whoever else writes to it."""

from __future__ import annotations

import sqlite3
import stat
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import TypeAlias

import pytest

from folkmoot.bridge import ledger as module
from folkmoot.bridge.ledger import (
    SLACK,
    Ledger,
    PinnedKey,
    SeenLetter,
)
from folkmoot.core import errors as e

ME = "my key"
Open: TypeAlias = Callable[..., Ledger]


@pytest.fixture
def open_ledger() -> Iterator[Open]:
    """Open ledgers that are closed at the end."""
    with ExitStack() as stack:

        def opened(path: Path, **options: int) -> Ledger:
            ledger = Ledger(path, **options)
            stack.callback(ledger.close)
            return ledger

        yield opened


def seen(message_id: str, box: str | None = None, peer: str = "bob") -> SeenLetter:
    return SeenLetter(box, message_id, "thread", peer, False, "")


def test_the_first_key_is_trusted_and_no_other_until_it_is_accepted(tmp_path, open_ledger):
    ledger = open_ledger(tmp_path / "new" / "bridge.db")
    assert ledger.is_new
    assert ledger.trust(ME, "bob", "one", 10).key == "one"
    assert ledger.trust(ME, "bob", "two", 20).key == "one"
    assert ledger.trust("another account", "bob", "two", 20).key == "two"
    ledger.accept(ME, "bob", "two", 30)
    assert ledger.pins_of(ME, "bob") == [
        PinnedKey("bob", "two", 30),
        PinnedKey("bob", "one", 10, 30),
    ]
    ledger.accept(ME, "bob", "", 40)
    assert ledger.pin_of(ME, "bob") == PinnedKey("bob", "", 40)
    assert ledger.trust(ME, "bob", "three", 50).key == "three"
    assert ledger.forget(ME, "bob") == 4
    assert ledger.pin_of(ME, "bob") is None
    assert stat.S_IMODE(ledger.path.stat().st_mode) == 0o600
    ledger.close()
    assert not open_ledger(ledger.path).is_new


def test_two_bridges_that_meet_someone_at_once_trust_one_key(tmp_path, open_ledger):
    ledgers = [open_ledger(tmp_path / "bridge.db") for _ in range(4)]

    def meet(number: int) -> list[str]:
        return [ledgers[number].trust(ME, f"p{n}", f"key {number}", 0).key for n in range(20)]

    with ThreadPoolExecutor(4) as pool:
        held = list(pool.map(meet, range(4)))
    assert held[0] == held[1] == held[2] == held[3]


def test_letters_are_remembered_up_to_a_bound_and_the_oldest_go_first(tmp_path, open_ledger):
    ledger = open_ledger(tmp_path / "bridge.db", most_letters=10)
    with ledger.changing():
        for n in range(SLACK + 20):
            ledger.note_seen(ME, seen(str(n), f"box {n}"))
    assert ledger.by_digest(ME, "box 0") is None
    newest = ledger.by_id(ME, str(SLACK + 19))
    assert newest is not None
    assert newest.digest == f"box {SLACK + 19}"
    with ledger.changing() as db:
        kept = db.execute("SELECT count(*) FROM letters").fetchone()[0]
    assert kept <= 10 + SLACK


def test_what_was_sent_is_known_before_and_after_it_has_a_place(tmp_path, open_ledger):
    ledger = open_ledger(tmp_path / "bridge.db")
    ledger.note_sent(ME, "box", "bob", "key")
    assert ledger.by_digest(ME, "box") == SeenLetter("box", None, None, "bob", True, "key")
    ledger.note_place(ME, "box", "id", "thread")
    ledger.note_place(ME, "box", "other", "thread")
    assert ledger.by_id(ME, "id") == SeenLetter("box", "id", "thread", "bob", True, "key")
    ledger.note_seen(ME, seen("later"))
    ledger.note_seen(ME, seen("later", "its box", "eve"))
    assert ledger.by_id(ME, "later") == seen("later", "its box")
    assert ledger.peers_in(ME, "thread") == {"bob"}
    ledger.hand_on(ME, "next key")
    assert ledger.by_id(ME, "id") is None
    assert ledger.by_id("next key", "id") is not None


def test_no_pin_is_given_up_for_another(tmp_path, open_ledger, monkeypatch):
    monkeypatch.setattr(module, "MAX_PINS", 3)
    ledger = open_ledger(tmp_path / "bridge.db")
    for n in range(3):
        ledger.trust(ME, f"p{n}", "key", 0)
    with pytest.raises(e.BridgeStateUnusable, match="forget some"):
        ledger.trust(ME, "p3", "key", 0)
    assert ledger.trust(ME, "p0", "other", 0).key == "key"


def test_pins_of_another_device_never_take_the_place_of_those_here(tmp_path, open_ledger):
    ledger = open_ledger(tmp_path / "bridge.db")
    ledger.trust(ME, "bob", "one", 0)
    assert not ledger.recall(ME, PinnedKey("bob", "two", 5))
    assert ledger.recall(ME, PinnedKey("bob", "one", 5))
    assert ledger.recall(ME, PinnedKey("eve", "three", 5))
    assert ledger.recall(ME, PinnedKey("eve", "old", 1, 5))
    assert {pin.key for pin in ledger.pins(ME)} == {"one", "three", "old"}


def test_a_ledger_that_cannot_be_used_is_told_of_in_one_line(tmp_path, open_ledger):
    open_to_all = tmp_path / "open.db"
    open_to_all.touch(0o644)
    open_to_all.chmod(0o644)
    with pytest.raises(e.BridgeStateUnusable, match="chmod 600"):
        Ledger(open_to_all)
    broken = tmp_path / "broken.db"
    broken.touch(0o600)
    broken.write_bytes(b"not a database, whatever it is called" * 100)
    with pytest.raises(e.BridgeStateUnusable, match="not a database"):
        Ledger(broken)
    for version in (1, 99):
        other = tmp_path / f"{version}.db"
        open_ledger(other)
        with sqlite3.connect(other) as db:
            db.execute(f"PRAGMA user_version = {version}")
        db.close()
        with pytest.raises(e.BridgeStateUnusable, match=r"another version.*move the file away"):
            Ledger(other)


def test_what_was_noted_of_a_pinned_key_is_known_after_a_restart_and_not_of_another_key(
    tmp_path, open_ledger
):
    path = tmp_path / "bridge.db"
    ledger = open_ledger(path)
    ledger.trust(ME, "bob", "key", 5)
    ledger.note_letters(ME, "bob", "key")
    ledger.note_verified(ME, "bob", "another key")
    assert ledger.pins(ME) == [PinnedKey("bob", "key", 5, letters=True)]
    ledger.note_verified(ME, "bob", "key")
    ledger.close()
    assert open_ledger(path).pins(ME) == [PinnedKey("bob", "key", 5, letters=True, verified=True)]


def test_what_is_known_of_a_key_goes_with_it_to_another_device_and_not_to_another_key(
    tmp_path, open_ledger
):
    ledger = open_ledger(tmp_path / "bridge.db")
    ledger.trust(ME, "bob", "one", 0)
    assert ledger.recall(ME, PinnedKey("bob", "one", 5, letters=True, verified=True))
    assert ledger.pin_of(ME, "bob") == PinnedKey("bob", "one", 0, letters=True, verified=True)
    ledger.accept(ME, "bob", "two", 10)
    assert ledger.pin_of(ME, "bob") == PinnedKey("bob", "two", 10)
    ledger.accept(ME, "bob", "one", 20)
    pin = ledger.pin_of(ME, "bob")
    assert pin is not None
    assert (pin.key, pin.verified) == ("one", True)


def test_messages_are_found_by_the_beginning_of_their_ids(tmp_path, open_ledger):
    ledger = open_ledger(tmp_path / "bridge.db")
    names = [f"0123456{n}-0000-4000-8000-00000000000{n}" for n in range(3)]
    for name in names:
        ledger.note_seen(ME, seen(name))
    assert ledger.beginning(ME, "01234561") == [seen(names[1])]
    assert len(ledger.beginning(ME, "0123456")) == 2
    assert ledger.beginning("another account", "01234561") == []
