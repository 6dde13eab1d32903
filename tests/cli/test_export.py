"""`folkmoot export`: all of a person's data, whether the hub runs or not."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

from folkmoot.accounts import Account
from folkmoot.app import Hub
from folkmoot.operations.rooms.messages import envelope
from folkmoot.rooms import Visitor, read_spec, visitor_of
from folkmoot.settings import load
from tests.cli.conftest import let_run
from tests.operator import ask_here

WORDS = [f"word {number}" for number in range(130)]
SPOKEN = [f"spoken {number}" for number in range(70)]


def make_mail(folder: Path) -> None:
    """Two people with a long conversation, a contact, a block and an invite, and a third one."""

    async def write(hub: Hub) -> None:
        accounts, mail = hub.accounts, hub.mail
        ada, bob, cyd = [(await accounts.register(name)).account for name in ("ada", "bob", "cyd")]
        for words in WORDS:
            await mail.send(ada, "bob", body=words)
        await mail.send(cyd, "ada", body="Hello from Cyd", priority="urgent")
        await mail.send(bob, "cyd", body="Not Ada's business")
        await accounts.add_contact(ada, "bob", "Bobby")
        await accounts.block(ada, "cyd")
        await accounts.create_invite(ada, "Come")
        await talk(hub, ada, bob)

    let_run(folder, write)


async def talk(hub: Hub, ada: Account, bob: Account) -> None:
    """Rooms that ada made, was asked into, left, was put out of and never knew of."""
    ada_here, bob_here = visitor_of(ada), visitor_of(bob)

    async def say(visitor: Visitor, room: str, text: str) -> None:
        await hub.rooms.post(visitor, room, envelope("chat.message", {"text": text}))

    for owner, spec in (
        (ada_here, {"name": "adas"}),
        (bob_here, {"name": "asked", "access": "private", "grants": {"ada": ["mcp.request.*"]}}),
        (bob_here, {"name": "left"}),
        (bob_here, {"name": "kicked"}),
        (bob_here, {"name": "bobs"}),
    ):
        await hub.rooms.create(owner, read_spec(spec))
    for words in SPOKEN:
        await say(ada_here, "adas", words)
        await say(bob_here, "adas", "Bob's business")
    await hub.rooms.mark_read(ada_here, "adas")
    for room in ("left", "kicked"):
        await say(ada_here, room, f"said in {room}")
    await hub.rooms.depart(ada_here, "left")
    await hub.rooms.visit(ada_here, "kicked")
    await hub.rooms.post(bob_here, "kicked", envelope("room.kick", {"participant": "ada"}))
    await say(bob_here, "bobs", "Bob's business")


def check_rooms(told: dict[str, Any]) -> None:
    rooms = {it["name"]: it for it in told["rooms"]}
    assert {name: (it["role"], it["state"], it["granted"]) for name, it in rooms.items()} == {
        "adas": ("owner", "member", []),
        "asked": ("member", "invited", ["mcp.request.*"]),
        "left": (None, None, []),
        "kicked": ("member", "banned", []),
    }
    assert [name for name, it in rooms.items() if it["created_by_you"]] == ["adas"]
    assert [name for name, it in rooms.items() if it["read_seq"]] == ["adas"]
    said = {
        name: [it["payload"]["text"] for it in room["messages"]] for name, room in rooms.items()
    }
    outside = {name: [f"said in {name}"] for name in ("left", "kicked")}
    assert said == {"adas": SPOKEN, "asked": [], **outside}
    assert {it["from"] for room in rooms.values() for it in room["messages"]} == {"ada"}


def check(export: Path) -> dict[str, Any]:
    assert stat.S_IMODE(export.stat().st_mode) == 0o600
    told: dict[str, Any] = json.loads(export.read_text())
    assert (told["format"], told["account"]["handle"]) == ("folkmoot-export/1", "ada")
    assert [(it["handle"], it["nickname"]) for it in told["contacts"]] == [("bob", "Bobby")]
    assert told["blocked"] == ["cyd"]
    assert [it["claimed_at"] for it in told["invites"]] == [None]
    threads = {it["other_handle"]: it for it in told["threads"]}
    assert [it["body"] for it in threads["bob"]["messages"]] == WORDS[::-1]
    assert [it["body"] for it in threads["cyd"]["messages"]] == ["Hello from Cyd"]
    assert "Ada's business" not in export.read_text()
    assert "Bob's business" not in export.read_text()
    check_rooms(told)
    assert "private" not in told["account"]
    return threads


def test_a_person_gets_all_of_it_while_the_hub_does_not_run(cli, tmp_path):
    make_mail(tmp_path / ".folkmoot")
    ran = cli("export", "@Ada", "-o", "ada.json")
    assert ran.code == 0, ran.err
    assert ran.out == (
        "Exported the data of @ada, with 131 messages in 2 conversations and 72 "
        f"messages in 4 rooms, to {tmp_path / 'ada.json'}.\n"
    )
    assert "holds decrypted mail" in ran.err
    assert check(tmp_path / "ada.json")["cyd"]["unread_count"] == 1

    cli.fails("export", "ada", "-o", "ada.json", told="--overwrite replaces it")
    assert cli("export", "ada", "-o", "ada.json", "--overwrite").code == 0
    # Nothing was marked as read by reading it.
    assert check(tmp_path / "ada.json")["cyd"]["unread_count"] == 1
    cli.fails("export", "dora", "-o", "dora.json", told="folkmoot: error: User not found.\n")
    assert {it.name for it in tmp_path.iterdir()} == {".folkmoot", "ada.json"}


def test_how_far_it_is_is_told_while_it_is_written(tmp_path):
    folder = tmp_path / "data"
    make_mail(folder)
    loaded = load(None, options={"data": str(folder)}, environ={})
    told: list[dict[str, Any]] = []
    wanted = {"handle": "ada", "path": str(tmp_path / "ada.json")}
    made = ask_here(loaded, "folkmoot/export_person", wanted, told.append)
    assert made == {"handle": "ada", "threads": 2, "messages": 131, "rooms": 4, "said": 72}
    check(tmp_path / "ada.json")
    assert told[-1] == {"done": 2, "total": 2}
    assert [it["done"] for it in told] == sorted(it["done"] for it in told)
