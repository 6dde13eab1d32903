"""A room as those in it find it: the same for everyone, now, later and after a restart."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest

from tests.interaction.room_client import (
    Message,
    Posting,
    call,
    chat,
    message,
    notice,
    proposal,
    say,
    square,
)

DOCS = Path(__file__).parents[2] / "docs"
ALL_SAID = ("SELECT count(*) FROM room_messages", "SELECT count(*) FROM room_snapshots")


def everything_said(to: str) -> list[Message]:
    """One message of each sort."""
    return [
        chat("to all"),
        chat("to one", to=[to]),
        notice(to=[to]),
        say(),
        call(to),
        proposal(to=[to]),
        message("reasoning.thought", {"text": "hm"}, to=[to]),
        message("weather.report", {"rain": True}, to=[to]),
    ]


@pytest.mark.requirement(
    "wire.everyone-sees", "wire.own-message-back", "room.several-connections", "wire.broadcast"
)
async def test_everyone_on_every_connection_hears_everything_whoever_it_is_for(there):
    await there.people("ann", "bob", "cat")
    await there.room("ann", capabilities=["*"])
    async with there.seats("ann", "bob", "bob", "cat") as (ann, phone, desk, cat):
        for sent in everything_said("bob"):
            await ann.said(sent)
        last = (await ann.said(chat("last")))["id"]
        for seat in (phone, desk, cat):
            await seat.until(lambda told: told["id"] == last)
        everything = await there.history("cat")
        assert ann.heard == everything
        # Each has all from its own coming on; a second connection is no coming.
        for seat, missed in ((phone, 1), (desk, 2), (cat, 2)):
            assert seat.heard == everything[missed:], seat.name
        here = [one["payload"]["participant"]["id"] for one in everything[:3]]
        assert here == ["ann", "bob", "cat"]


@pytest.mark.requirement("chat.replay", "room.resume")
async def test_the_chat_is_rebuilt_from_the_history_also_after_a_restart(tmp_path):
    def talk(heard: list[Message]) -> list[tuple[str, str]]:
        return [
            (one["from"], one["payload"].get("text") or one["payload"]["params"]["text"])
            for one in heard
            if one["kind"] in ("chat.message", "mcp.notification.notifications/chat/message")
        ]

    async with square(tmp_path) as there:
        await there.people("ann", "bob")
        await there.room("ann")
        async with there.seat("ann") as ann, there.seat("bob") as bob:
            for number in range(20):
                await ann.said(chat(f"short {number}"))
                await bob.said(notice(f"long {number}"))
            await ann.said(say("by the tool"))
            await ann.kind("mcp.notification.notifications/chat/message")
            seen = talk(ann.heard)
            everything = await there.history("bob")
    assert len(seen) == 41
    async with square(tmp_path, tokens=there.tokens) as there:
        kept = await there.history("bob")
        assert kept[: len(everything)] == everything
        async with there.seat("bob", after=0, epoch=ann.welcome["epoch"]) as bob:
            assert bob.welcome["resume"]["complete"] is True
            await bob.until(lambda told: told["seq"] == kept[-1]["seq"])
        assert talk(bob.heard) == talk(kept) == seen


def on_disk(folder: Path) -> bytes:
    """All that is in the files of a hub."""
    return b"".join(file.read_bytes() for file in folder.iterdir() if file.is_file())


@pytest.mark.sqlite("reads its file")
@pytest.mark.requirement("room.memory-only", "room.resume-epoch")
async def test_a_room_in_memory_leaves_nothing_on_the_disk_and_is_another_after_a_restart(tmp_path):
    secret = "words that are not to be kept"
    async with square(tmp_path) as there:
        await there.people("ann", "bob")
        await there.room("ann", durable=False)
        async with there.seat("ann") as ann, there.seat("bob") as bob:
            await ann.said(chat(secret))
            await bob.kind("chat.message")
            assert secret in str(await there.history("bob"))
        with closing(apsw.Connection(str(tmp_path / "folkmoot.db"))) as disk:
            assert [disk.execute(sql).get for sql in ALL_SAID] == [0, 0]
        assert secret.encode() not in on_disk(tmp_path)
    async with square(tmp_path, tokens=there.tokens) as there:
        last, epoch = ann.heard[-1]["seq"], ann.welcome["epoch"]
        async with there.seat("ann", after=last, epoch=epoch) as again:
            assert again.welcome["epoch"] != epoch
            assert again.welcome["resume"]["reason"] == "epoch_changed"
            assert again.welcome["resume"]["complete"] is False
        assert secret not in str(await there.history("ann"))


@pytest.mark.sqlite("reads its file")
@pytest.mark.requirement("room.operator-can-read")
async def test_what_is_said_lies_readable_on_the_disk_and_the_page_for_operators_says_so(tmp_path):
    async with square(tmp_path) as there:
        await there.people("ann")
        await there.room("ann", access="private")
        async with there.seat("ann") as ann:
            await ann.said(chat("words that anyone with the database can read"))
    assert b"words that anyone with the database can read" in on_disk(tmp_path)
    page = (DOCS / "operations/rooms.md").read_text(encoding="utf-8")
    assert "**Room messages are stored unencrypted.**" in page


@pytest.mark.requirement("migrate.setting-off-by-default")
@pytest.mark.parametrize("accepted", [None, False, True])
async def test_old_kinds_are_read_only_where_the_setting_says_so(tmp_path, accepted):
    values: Any = {} if accepted is None else {"kinds": {"accept_old_spellings": accepted}}
    async with square(tmp_path, **values) as there:
        await there.people("ann", "bob")
        await there.room("ann")
        async with there.seat("ann") as ann, there.seat("bob") as bob:
            for by in (ann, Posting(there, "ann")):
                old = {**call("bob"), "kind": "mcp/request:tools/call"}
                if not accepted:
                    assert (await by.refused(old))["error"] == "kind_syntax"
                    continue
                told = await by.said(old)
                # Everyone hears the new kind alone, so nobody need know the old ones.
                assert told["kind"] == "mcp.request.tools/call"
                assert await bob.kind(told["kind"]) == told
