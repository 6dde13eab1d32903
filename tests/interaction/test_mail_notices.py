"""Change notices instead of polling, in both eras and never across users."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from mcp.shared.exceptions import MCPError

from folkmoot.mail import PRIORITIES
from tests.mcp_harness import Meeting, Person, both_eras, until
from tests.transports.mcp.gateway_support import wired

pytestmark = pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")

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
    (content,) = (await person.client.read_resource(INBOX)).contents
    assert content.mime_type == "application/json"
    return json.loads(getattr(content, "text", ""))


@pytest.mark.requirement("notice.inbox-resource")
@both_eras
async def test_the_inbox_is_a_resource_with_the_digest(hub):
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


@asynccontextmanager
async def following(there: Meeting, token: str) -> AsyncIterator[asyncio.Queue[str]]:
    """What one more device of someone's is told of their inbox."""
    notes = Notes()
    options: dict[str, Any] = {"message_handler": notes} if there.era == "handshake" else {}
    person = await there.enter(f"{there.url}?token={token}", **options)
    if there.era == "handshake":
        await until(lambda: all_stream(there))
        await person.client.subscribe_resource(INBOX)
        yield notes.uris
        await person.client.unsubscribe_resource(INBOX)
        return
    async with person.client.listen(resource_subscriptions=[INBOX]) as events:

        async def listen() -> None:
            async for event in events:
                notes.uris.put_nowait(event.uri)

        listening = asyncio.create_task(listen())
        yield notes.uris
        listening.cancel()


async def all_stream(there: Meeting) -> bool:
    """Whether everyone's stream is open; what is told before that is lost."""
    return all(session.listens for session in there.hub.mcp._sessions._sessions.values())


@both_eras
@pytest.mark.requirement(
    "notice.both-eras", "notice.own-only", "thread.muted-no-notice", "mcp.listen"
)
async def test_everyone_hears_of_their_own_inbox_alone(hub):
    alice, bob, carol = await hub.people("alice", "bob", "carol")
    async with following(hub, carol.token) as carols:
        async with following(hub, bob.token) as bobs:
            sent = await alice.call("msg/send", to="bob", body="One")
            assert await bobs.get() == INBOX
            await alice.call("msg/send", to="carol", body="Two")
            assert await carols.get() == INBOX
            await bob.call("msg/mute", thread_id=sent["thread_id"])
            assert await bobs.get() == INBOX
            await alice.call("msg/send", to="bob", body="Unheard", priority="urgent")
            await bob.call("msg/mute", thread_id=sent["thread_id"], undo=True)
            assert await bobs.get() == INBOX
        await alice.call("msg/send", to="bob", body="Unheard too")
        await alice.call("msg/send", to="carol", body="Heard")
        assert await carols.get() == INBOX
        assert bobs.empty()
        assert carols.empty()
    if hub.era == "handshake":
        with pytest.raises(MCPError, match="Resource not found"):
            await bob.client.subscribe_resource("ui://mmp-inbox")
    with pytest.raises(MCPError, match="Authentication required"):
        async with following(hub, ""):
            pass


@both_eras
@pytest.mark.requirement("notice.changes", "notice.both-eras")
async def test_a_device_hears_what_another_reads_marks_and_deletes(hub):
    alice, phone = await hub.people("alice", "bob")
    async with following(hub, phone.token) as heard:
        for body in ("One", "Two"):
            sent = await alice.call("msg/send", to="bob", body=body)
            assert await heard.get() == INBOX
        thread = {"thread_id": sent["thread_id"]}
        await phone.call("msg/inbox", peek=True)
        await phone.call("msg/digest")
        changes: tuple[tuple[str, dict[str, Any]], ...] = (
            ("msg/inbox", {"limit": 1}),
            ("msg/mark_read", thread),
            ("msg/star", thread),
            ("msg/delete_message", {"message_id": sent["message_id"]}),
            ("msg/delete_thread", thread),
        )
        for tool, arguments in changes:
            assert heard.empty(), tool
            await phone.call(tool, **arguments)
            assert await heard.get() == INBOX, tool
        assert heard.empty()


@pytest.mark.requirement("auth.old-token-stops")
@pytest.mark.parametrize("era", ["stateless"])
@pytest.mark.settings(http={"shutdown_seconds": 60})
async def test_a_listening_stream_ends_with_its_token_and_with_the_hub(hub):
    alice, bob, carol = await hub.people("alice", "bob", "carol")
    async with bob.client.listen(resource_subscriptions=[INBOX]) as events:
        await hub.hub.accounts.recover("bob", bob.recovery_code)
        await alice.call("msg/send", to="bob", body="Not for the old token")
        assert [event async for event in events] == []
    async with carol.client.listen(
        resource_subscriptions=[INBOX], tools_list_changed=True
    ) as events:
        hub.hub.stop()
        assert [event async for event in events] == []


@pytest.mark.requirement("notice.urgent", "notice.both-eras")
async def test_the_notice_of_urgent_mail_says_so_in_both_eras(hub):
    alice = await hub.person("alice")
    made, note = await hub.hub.accounts.register("bob"), Notes()
    bob = await hub.returning(made.token, message_handler=note)
    await until(lambda: all_stream(hub))
    await bob.client.subscribe_resource(INBOX)
    wire = await wired(hub, made.token, "stateless")
    wanted = {"notifications": {"resourceSubscriptions": [INBOX]}}
    metas = []
    listen = wire.message("subscriptions/listen", wanted, 1, None)
    async with wire.streamed(listen) as events:
        assert "acknowledged" in str(await anext(events))
        for priority in PRIORITIES:
            await alice.call("msg/send", to="bob", body="Look!", priority=priority)
            assert await note.uris.get() == INBOX
            metas.append((await anext(events))["params"]["_meta"])
    urgent = [priority == "urgent" for priority in PRIORITIES]
    assert [meta.get("folkmoot/urgent", False) for meta in note.metas] == urgent
    assert [meta.get("folkmoot/urgent", False) for meta in metas] == urgent
