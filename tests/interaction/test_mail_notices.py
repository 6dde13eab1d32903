"""Change notices instead of polling, in both eras and never across users."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from mcp.shared.exceptions import MCPError

from folkmoot.mail import PRIORITIES
from tests.interaction.test_invalid_tokens import streaming
from tests.mcp_harness import Meeting, Person, both_eras, meeting, modern, until

INBOX = "mmp://mailboxes/inbox"


class Notes:
    """What a client of the handshake era is told between its requests."""

    def __init__(self) -> None:
        self.uris: asyncio.Queue[str] = asyncio.Queue()
        self.metas: list[dict[str, Any]] = []

    async def __call__(self, message: Any) -> None:
        params: Any = getattr(message, "params", None)
        if getattr(message, "method", "") == "notifications/resources/updated":
            self.metas.append(dict(params.meta or {}))
            self.uris.put_nowait(str(params.uri))


async def digest(person: Person) -> Any:
    read = await person.client.read_resource(INBOX)
    (content,) = read.contents
    assert content.mime_type == "application/json"
    return json.loads(getattr(content, "text", ""))


@pytest.mark.requirement("notice.inbox-resource")
@both_eras
async def test_the_inbox_is_a_resource_with_the_digest(hub: Meeting) -> None:
    alice, bob = await hub.people("alice", "bob")
    await alice.call("msg/send", to="bob", body="Hello")
    assert await digest(bob) == await bob.call("msg/digest")
    assert (await digest(bob))["recent_senders"] == ["alice"]
    stranger = await hub.stranger()
    with pytest.raises(MCPError, match="Authentication required"):
        await stranger.client.read_resource(INBOX)
    for uri in ("mmp://mailboxes/alice", "ui://other", "file:///etc/passwd"):
        with pytest.raises(MCPError, match="Resource not found"):
            await bob.client.read_resource(uri)


async def streams(there: Meeting, people: int) -> bool:
    """Whether everyone's stream is open; what is told before that is lost."""
    sessions = there.hub.mcp._sessions._sessions.values()
    return sum(session.listens for session in sessions) == people


@pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")
@pytest.mark.requirement("notice.both-eras", "notice.own-only", "thread.muted-no-notice")
async def test_the_handshake_era_subscribes_to_its_own_inbox(hub: Meeting) -> None:
    alice = await hub.person("alice")
    made = [await hub.hub.accounts.register(handle) for handle in ("bob", "carol")]
    notes = [Notes(), Notes()]
    bob, carol = [
        await hub.returning(account.token, message_handler=note)
        for account, note in zip(made, notes, strict=True)
    ]
    await until(lambda: streams(hub, 3))
    for person in (bob, carol):
        await person.client.subscribe_resource(INBOX)
    sent = await alice.call("msg/send", to="bob", body="One")
    assert await notes[0].uris.get() == INBOX
    await alice.call("msg/send", to="carol", body="Two")
    assert await notes[1].uris.get() == INBOX
    await bob.call("msg/mute", thread_id=sent["thread_id"])
    assert await notes[0].uris.get() == INBOX
    await alice.call("msg/send", to="bob", body="Unheard", priority="urgent")
    await bob.call("msg/mute", thread_id=sent["thread_id"], undo=True)
    assert await notes[0].uris.get() == INBOX
    await bob.client.unsubscribe_resource(INBOX)
    await alice.call("msg/send", to="bob", body="Unheard too")
    await alice.call("msg/send", to="carol", body="Heard")
    assert await notes[1].uris.get() == INBOX
    assert notes[0].uris.empty()
    assert notes[1].uris.empty()
    with pytest.raises(MCPError, match="Resource not found"):
        await bob.client.subscribe_resource("ui://mmp-inbox")
    stranger = await hub.stranger()
    with pytest.raises(MCPError, match="Authentication required"):
        await stranger.client.subscribe_resource(INBOX)


@pytest.mark.requirement("mcp.listen", "notice.both-eras", "notice.own-only")
async def test_the_stateless_era_listens_to_its_own_inbox(tmp_path: Path) -> None:
    async with meeting(tmp_path, "stateless") as there:
        alice, bob, carol = await there.people("alice", "bob", "carol")
        heard: list[str] = []

        async def listen(person: Person, name: str, times: int) -> None:
            async with person.client.listen(resource_subscriptions=[INBOX]) as events:
                ready.release()
                async for event in events:
                    heard.append(f"{name} {event.uri}")
                    times -= 1
                    if not times:
                        return

        ready = asyncio.Semaphore(0)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(listen(bob, "bob", 1))
            tasks.create_task(listen(carol, "carol", 1))
            await ready.acquire()
            await ready.acquire()
            await alice.call("msg/send", to="bob", body="One")
            await until(lambda: has(heard, 1))
            await alice.call("msg/send", to="carol", body="Two")
        assert heard == [f"bob {INBOX}", f"carol {INBOX}"]
        stranger = await there.stranger()
        with pytest.raises(MCPError, match="Authentication required"):
            async with stranger.client.listen(resource_subscriptions=[INBOX]):
                pass


async def has(items: list[str], count: int) -> bool:
    return len(items) >= count


@pytest.mark.requirement("auth.old-token-stops")
async def test_a_listening_stream_ends_with_its_token_and_with_the_hub(tmp_path: Path) -> None:
    async with meeting(tmp_path, "stateless", http={"shutdown_seconds": 60}) as there:
        alice, bob, carol = await there.people("alice", "bob", "carol")
        async with bob.client.listen(resource_subscriptions=[INBOX]) as events:
            await there.hub.accounts.recover("bob", bob.recovery_code)
            await alice.call("msg/send", to="bob", body="Not for the old token")
            assert [event async for event in events] == []
        async with carol.client.listen(
            resource_subscriptions=[INBOX], tools_list_changed=True
        ) as events:
            there.hub.stop()
            assert [event async for event in events] == []


async def make_changes(alice: Person, device: Person, heard: asyncio.Queue[str]) -> None:
    """Change a mailbox on one device, as another hears of it: once each time, or not at all."""
    for body in ("One", "Two"):
        sent = await alice.call("msg/send", to="bob", body=body)
        assert await heard.get() == INBOX
    thread = {"thread_id": sent["thread_id"]}
    await device.call("msg/inbox", peek=True)
    await device.call("msg/digest")
    changes: tuple[tuple[str, dict[str, Any]], ...] = (
        ("msg/inbox", {"limit": 1}),
        ("msg/mark_read", thread),
        ("msg/star", thread),
        ("msg/delete_message", {"message_id": sent["message_id"]}),
        ("msg/delete_thread", thread),
    )
    for tool, arguments in changes:
        assert heard.empty(), tool
        await device.call(tool, **arguments)
        assert await heard.get() == INBOX, tool
    assert heard.empty()


@pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")
@pytest.mark.requirement("notice.changes", "notice.both-eras")
async def test_a_session_hears_what_another_device_reads_marks_and_deletes(hub: Meeting) -> None:
    alice, phone = await hub.people("alice", "bob")
    note = Notes()
    laptop = await hub.returning(phone.token, message_handler=note)
    await until(lambda: streams(hub, 3))
    await laptop.client.subscribe_resource(INBOX)
    await make_changes(alice, phone, note.uris)


@pytest.mark.requirement("notice.changes", "notice.both-eras")
async def test_a_stream_hears_what_another_device_reads_marks_and_deletes(tmp_path: Path) -> None:
    async with meeting(tmp_path, "stateless") as there:
        alice, phone = await there.people("alice", "bob")
        laptop = await there.returning(phone.token)
        heard: asyncio.Queue[str] = asyncio.Queue()
        async with laptop.client.listen(resource_subscriptions=[INBOX]) as events:

            async def listen() -> None:
                async for event in events:
                    heard.put_nowait(event.uri)

            listening = asyncio.create_task(listen())
            await make_changes(alice, phone, heard)
            listening.cancel()


@pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")
@pytest.mark.requirement("notice.urgent", "notice.both-eras")
async def test_the_notice_of_urgent_mail_says_so_in_both_eras(hub: Meeting) -> None:
    alice = await hub.person("alice")
    made, note = await hub.hub.accounts.register("bob"), Notes()
    bob = await hub.returning(made.token, message_handler=note)
    await until(lambda: streams(hub, 2))
    await bob.client.subscribe_resource(INBOX)
    message, headers = modern("subscriptions/listen")
    message["params"]["notifications"] = {"resourceSubscriptions": [INBOX]}
    query = f"?token={made.token}"
    async with streaming(hub, "POST", query, headers, message) as lines:
        metas = []
        async for line in lines:
            if "acknowledged" in line:
                break
        for priority in PRIORITIES:
            await alice.call("msg/send", to="bob", body="Look!", priority=priority)
            assert await note.uris.get() == INBOX
            async for line in lines:
                if "resources/updated" in line:
                    metas.append(json.loads(line.removeprefix("data: "))["params"]["_meta"])
                    break
    urgent = [priority == "urgent" for priority in PRIORITIES]
    assert [meta.get("folkmoot/urgent", False) for meta in note.metas] == urgent
    assert [meta.get("folkmoot/urgent", False) for meta in metas] == urgent
