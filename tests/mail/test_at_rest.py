"""Nothing that people wrote lies readable on the disk."""

from __future__ import annotations

import asyncio

import pytest

from folkmoot.keys import format_key
from tests.mail.support import KEY, opened, private_key_of, spellings

pytestmark = pytest.mark.sqlite("reads its files")

PLANTED = ("body", "subject", "reply", "pending", "delivered", "deleted")
MARKS = {name: f"PLANTED-{name.upper()}-{number}e7b1" for number, name in enumerate(PLANTED)}


@pytest.mark.requirement("rest.no-plaintext", "rest.data-key-wrapped", "crypto.private-key-sealed")
async def test_database_and_log_hold_no_body_subject_invite_or_key_in_any_spelling(tmp_path):
    secrets: list[bytes] = [mark.encode() for mark in MARKS.values()]
    files: dict[str, bytes] = {}

    def collect() -> None:
        for file in tmp_path.iterdir():
            files[file.name] = files.get(file.name, b"") + file.read_bytes()

    async with opened(tmp_path) as office:
        alice, bob = await office.people("alice", "bob")
        sent = await office.mail.send(alice, "bob", body=MARKS["subject"] + " and more")
        await office.mail.send(alice, "bob", body=MARKS["body"] * 3000, priority="urgent")
        await office.mail.reply(bob, sent.message_id, body=MARKS["reply"])
        gone = await office.mail.send(alice, "bob", body=MARKS["deleted"])
        for reader in (alice, bob):
            await office.mail.delete_message(reader, gone.message_id)
        await office.accounts.create_invite(alice, MARKS["pending"])
        code = await office.accounts.create_invite(alice, MARKS["delivered"])
        carol = await office.accounts.register("carol", invite_code=code, also=office.mail.welcome)
        assert await office.bodies(carol.account) == [MARKS["delivered"]]
        for account in (alice, bob, carol.account):
            [[sealed]] = await office.rows("SELECT private_key FROM users WHERE id = ?", account.id)
            secrets.append(bytes(private_key_of(office, account, sealed)))
        secrets.extend(text.encode() for text in (carol.token, carol.recovery_code, code))
        secrets.append(office.vault._key)
        await asyncio.to_thread(collect)
    collect()
    secrets += [KEY.secret(), format_key(KEY).encode()]
    assert len(files["folkmoot.db-wal"]) > 10_000
    assert len(files["folkmoot.db"]) > 10_000
    everything = b"".join(files.values())
    assert b"alice" in everything
    for secret in secrets:
        for spelling in spellings(secret):
            assert spelling not in everything
