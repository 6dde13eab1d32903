"""A message named by the beginning of its id."""

from __future__ import annotations

import pytest

from folkmoot.core import errors as e
from tests.mail.support import refused


async def test_the_beginning_of_an_id_names_a_message_of_ones_own_alone(office, alice, bob, carol):
    name = (await office.mail.send(alice, "bob", body="hello")).message_id
    for whose in (alice, bob):
        for given in (name[:8], f" {name[:9].upper()}", name[:35]):
            assert await office.mail.resolve_id_prefix(whose, given) == name
    await refused(office.mail.resolve_id_prefix(carol, name[:8]), e.MessageNotFound)
    # Too little to name a message, and what is no beginning, are left to whoever looks it up.
    for given in (name[:7], name, "nothing", ""):
        assert await office.mail.resolve_id_prefix(bob, given) == given


async def test_what_names_two_messages_names_none(office, monkeypatch):
    names = iter([f"01234567-89ab-4def-8000-00000000000{n}" for n in range(3)])
    monkeypatch.setattr("folkmoot.mail.sending.new_id", lambda: next(names))
    alice, bob = await office.people("alice", "bob")
    sent = [await office.mail.send(alice, "bob", body="hello") for _ in range(2)]
    with pytest.raises(e.ArgumentInvalid, match="Several of your messages begin with 01234567;"):
        await office.mail.resolve_id_prefix(bob, "01234567")
    await office.mail.delete_message(bob, sent[0].message_id)
    assert await office.mail.resolve_id_prefix(bob, "01234567") == sent[1].message_id
