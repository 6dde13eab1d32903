"""Quotas: what one account and the whole hub may store, through every way in."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from folkmoot.quotas import (
    NEAR,
    QuotaUse,
    differences,
    in_bytes,
    warning,
)
from folkmoot.rooms.budget import MemoryBudget
from folkmoot.rooms.history import MemoryHistory
from folkmoot.rooms.machine import Append
from tests.harness import ask
from tests.mcp_harness import INITIALIZE, Meeting, Person
from tests.transports.rest.support import ROOMS, Asker, done, house, refused
from tests.transports.rooms.support import town

BODY = "x" * 3_000
# What such a message takes at most.
BODY_BYTES = 4_600
THOUGHT = {"protocol": "mcpx/v1", "kind": "reasoning.thought", "payload": {"text": "x" * 10_000}}


NO_QUOTAS = dict.fromkeys(
    (
        *("mail_bytes_per_account", "mail_bytes", "room_bytes_per_account", "all_rooms_bytes"),
        *("invites_per_account", "min_free_disk_bytes"),
    ),
    0,
)


async def send_until_refused(
    sender: Person, to: str, *, deleting: bool = False
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """What was sent, and the refusal that ended it."""
    sent: list[dict[str, Any]] = []
    while len(sent) < 50:
        answer, is_error = await sender.result("msg/send", {"to": to, "body": BODY})
        if is_error:
            return sent, answer
        sent.append(answer)
        if deleting:
            await sender.call("msg/delete_message", message_id=answer["message_id"])
    raise AssertionError("nothing was refused")


@pytest.mark.requirement("hub.quota-mail", "hub.quota-told")
@pytest.mark.settings(quotas={"mail_bytes_per_account": 50000})
async def test_mail_counts_for_its_sender_until_the_sender_has_deleted_it(hub):
    ann, bob, eve = await hub.people("ann", "bob", "eve")
    sent, answer = await send_until_refused(eve, "ann")
    assert (answer["code"], answer["quota"]) == ("quota_exceeded", "mail_bytes_per_account")
    assert (answer["limit"], answer["used"] > 50_000) == (50_000, True)
    assert "Delete some of it, or ask the operator" in answer["error"]
    assert "quota_warning" not in sent[0]
    assert sent[-1]["quota_warning"].startswith("You have used ")
    used = (await eve.call("msg/whoami"))["quotas"]["mail"]
    assert 0.8 * used["limit"] < used["used"] <= used["limit"]
    # Neither the mailbox that was written to nor anyone else is full.
    await bob.call("msg/send", to="ann", body=BODY)
    await ann.call("msg/send", to="eve", body=BODY)
    first = sent[0]["message_id"]
    await eve.call("msg/delete_message", message_id=first)
    await eve.call("msg/send", to="ann", body=BODY)
    _, is_error = await eve.result("msg/send", {"to": "ann", "body": BODY})
    assert is_error
    await eve.call("msg/delete_thread", thread_id=sent[0]["thread_id"], confirm=True)
    # One more was sent than ann has room to keep.
    assert (await eve.call("msg/whoami"))["quotas"]["mail"]["used"] < BODY_BYTES
    assert await hub.hub.store.read(differences, long=True) == []
    # What ann keeps is still hers to read, and takes nothing from what she may send.
    page = await ann.call("msg/thread", thread_id=sent[0]["thread_id"], peek=True)
    assert first in {each["id"] for each in page["messages"]}
    assert (await ann.call("msg/whoami"))["quotas"]["mail"]["used"] < 2 * BODY_BYTES
    await ann.call("msg/delete_account", confirm="ann")
    assert await hub.hub.store.read(differences, long=True) == []


@pytest.mark.requirement("hub.quota-mail")
@pytest.mark.settings(quotas={"mail_bytes_per_account": 20000})
async def test_nobody_fills_the_hub_by_sending_and_deleting(hub):
    ann, eve = await hub.people("ann", "eve")
    sent, _ = await send_until_refused(eve, "ann", deleting=True)
    # As much as two accounts may store, and no more.
    assert len(sent) <= 40_000 // 4_500
    assert (await hub.hub.quotas.refresh(hub.hub.store)).mail.used <= 40_000 + BODY_BYTES
    # Ann makes room by deleting, and is not hindered herself.
    await ann.call("msg/send", to="eve", body=BODY)
    for each in sent:
        await ann.call("msg/delete_message", message_id=each["message_id"])
    await eve.call("msg/send", to="ann", body=BODY)
    await eve.call("msg/delete_account", confirm="eve")
    assert await hub.hub.store.read(differences, long=True) == []


@pytest.mark.requirement("hub.quota-mail")
@pytest.mark.settings(quotas={"mail_bytes": 30000})
async def test_all_mail_of_the_hub_is_bounded_too(hub):
    _, eve = await hub.people("ann", "eve")
    _, answer = await send_until_refused(eve, "ann")
    assert answer["quota"] == "mail_bytes"


async def post_until_refused(who: Asker, room: str) -> tuple[int, dict[str, Any]]:
    """How much was posted, and the refusal that ended it."""
    for count in range(60):
        answer = await who.post(room, THOUGHT)
        if answer.status != 201:
            return count, refused(answer, 507, "quota_exceeded")
    raise AssertionError("nothing was refused")


@pytest.mark.requirement("hub.quota-rooms", "hub.quota-told")
async def test_what_one_account_says_in_all_rooms_is_bounded_and_others_go_on(tmp_path):
    async with house(tmp_path, quotas={"room_bytes_per_account": 300_000}) as here:
        ada, bob, eve = await here.people("ada", "bob", "eve")
        for who, room in ((ada, "one"), (bob, "two")):
            await who.create(room, access="open")
        for room in ("one", "two"):
            for _ in range(9):
                done(await eve.post(room, THOUGHT), 201)
        count, told = await post_until_refused(eve, "one")
        assert 0 < count < 20
        assert (told["quota"], told["limit"]) == ("room_bytes_per_account", 300_000)
        assert told["used"] > 300_000
        assert told["message"].startswith("Your messages in rooms take 29")
        done(await bob.post("two", THOUGHT), 201)
        assert (await bob.ask("DELETE", f"{ROOMS}/two")).status == 204
        done(await eve.post("one", THOUGHT), 201)
        assert await here.hub.store.read(differences, long=True) == []


@pytest.mark.requirement("hub.quota-rooms")
async def test_the_rooms_of_one_account_are_bounded_whoever_speaks_there(tmp_path):
    async with house(tmp_path, quotas={"room_bytes_per_account": 300_000}) as here:
        ada, bob, eve = await here.people("ada", "bob", "eve")
        await ada.create("one", access="open")
        await bob.create("two", access="open")
        for _ in range(14):
            for who in (bob, eve):
                done(await who.post("one", THOUGHT), 201)
        _, told = await post_until_refused(bob, "one")
        assert told["message"].startswith("The rooms of this room's owner take ")
        done(await bob.post("two", THOUGHT), 201)


@pytest.mark.requirement("hub.quota-rooms")
async def test_all_rooms_of_the_hub_are_bounded_too(tmp_path):
    async with house(tmp_path, quotas={"all_rooms_bytes": 100_000}) as here:
        ada = await here.person("ada")
        await ada.create("one")
        _, told = await post_until_refused(ada, "one")
        assert told["quota"] == "all_rooms_bytes"


@pytest.mark.requirement("hub.quota-told", "hub.quota-rooms")
async def test_whoever_comes_into_a_room_near_a_quota_is_told_and_refused_on_a_websocket(tmp_path):
    async with town(tmp_path, quotas={"room_bytes_per_account": 100_000}) as there:
        ann = await there.person("ann")
        await there.room(ann)
        async with there.joined(ann.token) as seat:
            assert "quota_warning" not in seat.welcome
            for number in range(10):
                await seat.send({**THOUGHT, "id": f"t{number}"})
            told = await seat.hear()
            while told["kind"] != "system.error":
                told = await seat.hear()
            assert told["payload"]["error"] == "quota_exceeded"
            assert told["payload"]["limit"] == 100_000
        async with there.joined(ann.token) as seat:
            assert "of what you can store in rooms" in seat.welcome["quota_warning"]


@pytest.mark.requirement("hub.quota-memory-rooms")
async def test_rooms_in_memory_share_the_memory_of_their_owner_and_of_the_hub(tmp_path):
    quotas = {
        "memory_room_bytes": 200_000,
        "memory_bytes_per_account": 300_000,
        "memory_bytes": 400_000,
    }
    async with house(tmp_path, quotas=quotas) as here:
        ada, bob = await here.people("ada", "bob")
        memory = here.hub.rooms.memory
        for number in range(4):
            await ada.create(f"a{number}", durable=False)
            for _ in range(25):
                done(await ada.post(f"a{number}", THOUGHT), 201)
            assert memory.used <= 300_000
        await bob.create("b", durable=False)
        for _ in range(15):
            done(await bob.post("b", THOUGHT), 201)
        assert 300_000 < memory.used <= 400_000
        # Who has less than others keeps it.
        assert len((await bob.get(f"{ROOMS}/b/messages?limit=100"))["messages"]) == 15
        for number in range(4):
            assert (await ada.ask("DELETE", f"{ROOMS}/a{number}")).status == 204
        assert memory.used < 200_000


def message(seq: int, account: str, size: int) -> Append:
    return Append(seq, f"m{seq}", 0.0, "reasoning.thought", b"x" * size, account)


@pytest.mark.requirement("hub.quota-memory-rooms")
def test_one_message_larger_than_the_budget_leaves_nothing_and_hangs_nobody():
    told: list[tuple[int, int]] = []
    budget = MemoryBudget(room=1_000, account=900, total=800)
    history = MemoryHistory(
        10, lambda first, oldest, _: told.append((first, oldest)), budget=budget
    )
    history.extend([message(1, "ann", 5_000)])
    assert (history.bytes, budget.used, told[-1]) == (0, 0, (2, 2))
    history.extend([message(2, "ann", 100)])
    assert budget.used == history.bytes == 356


@pytest.mark.requirement("hub.quota-counts", "hub.quota-told")
@pytest.mark.settings(
    quotas={"invites_per_account": 2, "guests_per_account": 2, "sessions_per_account": 3}
)
async def test_invites_guests_and_sessions_are_counted(hub):
    ann = await hub.person("ann")
    codes = [(await ann.call("msg/invite"))["invite_code"] for _ in range(2)]
    answer, is_error = await ann.result("msg/invite", {})
    assert is_error
    assert (answer["code"], answer["quota"]) == ("quota_exceeded", "invites_per_account")
    assert (answer["limit"], answer["used"]) == (2, 3)
    await hub.person("bob", invite_code=codes[0])
    await ann.call("msg/invite")
    await ann.call("room/create", name="tea")
    for name in ("kim", "lee"):
        await ann.call("room/invite", room="tea", guest=name)
    answer, _ = await ann.result("room/invite", {"room": "tea", "guest": "mia"})
    assert answer["quota"] == "guests_per_account"
    for _ in range(6):
        signed = {"authorization": f"Bearer {ann.token}"}
        assert (await hub.post(INITIALIZE, headers=signed)).status == 200
    assert hub.hub.mcp.open_sessions == 3 + 1


@pytest.mark.requirement("hub.quota-disk", "hub.quota-told")
async def test_with_a_disk_nearly_full_nothing_new_is_stored_and_deleting_goes_on(hub):
    ann, bob = await hub.people("ann", "bob")
    sent = await ann.call("msg/send", to="bob", body="hello")
    await ann.call("room/create", name="tea")
    await fill_disk(hub, 1_000)
    for name, arguments in (
        ("msg/send", {"to": "bob", "body": "more"}),
        ("msg/reply", {"message_id": sent["message_id"], "body": "more"}),
        ("msg/invite", {}),
        ("msg/add_contact", {"handle": "bob"}),
        ("msg/set_profile", {"bio": "full"}),
        ("room/create", {"name": "more"}),
        ("room/say", {"room": "tea", "text": "more"}),
        ("room/invite", {"room": "tea", "guest": "kim"}),
    ):
        answer, is_error = await ann.result(name, arguments)
        assert is_error, name
        assert answer["code"] == "quota_exceeded", name
        assert (answer["quota"], answer["used"]) == ("min_free_disk_bytes", 1_000)
    assert (await bob.call("msg/inbox"))["messages"][0]["body"] == "hello"
    await bob.call("msg/delete_message", message_id=sent["message_id"])
    await ann.call("msg/delete_account", confirm="ann")
    await fill_disk(hub, 1 << 40)
    await bob.call("msg/invite")


async def fill_disk(there: Meeting, free: int) -> None:
    """Let the hub find so many bytes free on its disk."""
    disk = there.hub.quotas.disk
    disk.free = lambda: free  # type: ignore[method-assign]


@pytest.mark.requirement("hub.quota-told")
@pytest.mark.settings(quotas={"mail_bytes_per_account": 20000, "mail_bytes": 100000})
async def test_the_metrics_tell_what_is_used_and_who_is_near(hub):
    _, eve = await hub.people("ann", "eve")
    await send_until_refused(eve, "ann")
    await hub.hub.quotas.refresh(hub.hub.store)
    text = (await ask(hub.port, "/metrics")).text
    lines = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    assert 20_000 * NEAR < float(lines['folkmoot_quota_used_bytes{what="mail"}']) <= 20_000
    assert float(lines['folkmoot_quota_limit_bytes{what="mail"}']) == 100_000
    assert float(lines['folkmoot_quota_accounts_near_limit{what="mail"}']) == 1
    assert float(lines['folkmoot_quota_accounts_near_limit{what="rooms"}']) == 0
    assert float(lines['folkmoot_quota_refusals_total{quota="mail_bytes_per_account"}']) == 1
    assert float(lines["folkmoot_disk_free_bytes"]) > 0
    assert re.search(r"\beve\b", json.dumps(lines)) is None


@pytest.mark.settings(quotas=NO_QUOTAS)
async def test_a_quota_of_0_is_none(hub):
    ann, _ = await hub.people("ann", "bob")
    await fill_disk(hub, 0)
    await ann.call("msg/send", to="bob", body=BODY)
    await ann.call("room/create", name="tea")
    await ann.call("room/say", room="tea", text="hello")
    await ann.call("msg/invite")


@pytest.mark.requirement("hub.quota-told")
def test_a_warning_comes_at_80_and_says_what_to_do_at_90_percent():
    assert warning("mail_bytes_per_account", QuotaUse(799, 1_000)) is None
    assert warning("mail_bytes_per_account", QuotaUse(900, 0)) is None
    told = "You have used 80% of what you can store as mail: 800 bytes of 1000 bytes."
    assert warning("mail_bytes_per_account", QuotaUse(800, 1_000)) == told
    urgent = warning("mail_bytes_per_account", QuotaUse(900, 1_000))
    assert urgent.endswith("Delete what you no longer need, or ask the operator to raise it.")


@pytest.mark.parametrize(
    ("size", "told"),
    [
        (0, "0 bytes"),
        (1_023, "1023 bytes"),
        (1_536, "1.5 KiB"),
        (1 << 30, "1.0 GiB"),
        (5 << 40, "5.0 TiB"),
    ],
)
def test_amounts_are_told_as_people_read_them(size, told):
    assert in_bytes(size) == told
