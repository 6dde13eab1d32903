"""Requests that are begun at one moment and end at another, or never."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from folkmoot.core.ports import Missed
from folkmoot.mail import subject_of_mailbox
from tests.harness import head, read_answer
from tests.interaction.test_mail_sessions import call, open_session, register, told
from tests.mcp_harness import BOTH, INITIALIZE, Meeting, meeting, modern, rpc, until
from tests.nodes import heard_everywhere
from tests.store.support import Gate, held


class Begun:
    """A POST whose head the hub has taken, and whose body it waits for."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def end(self, body: bytes) -> bytes:
        """Send the body, and answer what comes back."""
        self.writer.write(body)
        answer = await read_answer(self.reader)
        assert answer.status in {200, 401}
        if "content-length" in answer.headers:
            return answer.body
        return await self.reader.readexactly(int(await self.reader.readline(), 16))


@asynccontextmanager
async def begun(
    there: Meeting, body: bytes, headers: dict[str, str], query: str = ""
) -> AsyncIterator[Begun]:
    """Send the head of a request; the hub asks for its body once it knows who sent it."""
    reader, writer = await asyncio.open_connection("127.0.0.1", there.port)
    try:
        expecting = {"content-length": str(len(body)), "expect": "100-continue"}
        writer.write(head(f"/mcp{query}", "POST", **BOTH, **expecting, **headers))
        assert b" 100 " in await reader.readuntil(b"\r\n\r\n")
        yield Begun(reader, writer)
    finally:
        writer.close()


async def recover(there: Meeting, handle: str, code: str) -> None:
    await there.hub.accounts.recover(handle, code)
    await heard_everywhere(there.hub)


@pytest.mark.requirement("auth.old-token-stops", "auth.every-request")
async def test_a_token_must_hold_until_the_whole_request_has_come(hub):
    alice, bob = await hub.people("alice", "bob")
    message, headers = modern("tools/call", name="msg_send", arguments=LETTER)
    body = json.dumps(message).encode()
    async with begun(hub, body, headers, f"?token={alice.token}") as request:
        await recover(hub, "alice", alice.recovery_code)
        assert b"Authentication required." in await request.end(body)
    assert (await bob.call("msg/inbox"))["messages"] == []


LETTER = {"to": "bob", "body": "Not from alice any more"}


@pytest.mark.requirement("auth.old-token-stops", "auth.session-bound-while-valid")
async def test_a_session_must_hold_until_the_whole_request_has_come(hub):
    bob = await hub.person("bob")
    session_id = await open_session(hub)
    made = await register(hub, session_id)
    body = json.dumps(rpc("tools/call", {"name": "msg_send", "arguments": LETTER})).encode()
    async with begun(hub, body, {"mcp-session-id": session_id}) as request:
        await recover(hub, "alice", made["recovery_code"])
        assert b"Authentication required." in await request.end(body)
    assert (await bob.call("msg/inbox"))["messages"] == []


@pytest.mark.requirement("notice.own-only")
async def test_what_was_asked_for_as_one_user_is_not_heard_as_another(hub):
    carol = await hub.person("carol")
    session_id = await open_session(hub)

    bob = await hub.hub.accounts.register("bob")

    await register(hub, session_id)
    body = json.dumps(rpc("resources/subscribe", {"uri": "mmp://mailboxes/inbox"}, 7)).encode()
    async with begun(hub, body, {"mcp-session-id": session_id}) as request:
        recover = {"handle": "bob", "recovery_code": bob.recovery_code}
        message = rpc("tools/call", {"name": "msg_recover", "arguments": recover})
        assert told(await call(hub, session_id, message=message))["handle"] == "bob"
        await request.end(body)
    assert hub.hub.bus.subscriptions == 1
    await carol.call("msg/send", to="alice", body="For alice alone")
    # A request is whose the session is when its body is here. A follower of alice's
    # mailbox would have found that the session is no longer hers, and ended.
    for _ in range(100):
        await asyncio.sleep(0)
    assert hub.hub.bus.subscriptions == 1


@pytest.mark.parametrize("in_session", [False, True])
async def test_a_client_that_leaves_in_the_middle_of_its_request_leaves_nothing_behind(
    in_session, tmp_path, caplog
):
    with caplog.at_level(logging.INFO):
        async with meeting(tmp_path) as there:
            headers = {"mcp-session-id": await open_session(there)} if in_session else {}
            before = there.hub.mcp.open_sessions
            body = json.dumps(INITIALIZE).encode()
            async with begun(there, body, headers) as request:
                request.writer.write(body[:10])
            await until(
                lambda: any(getattr(record, "status", 0) == 499 for record in caplog.records)
            )
            assert there.hub.mcp.open_sessions == before
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


@pytest.mark.sqlite("stops its writer")
@pytest.mark.requirement("notice.both-eras")
async def test_a_message_is_announced_also_when_its_sender_gave_up_waiting(hub):
    alice = await hub.person("alice")
    bob = (await hub.hub.accounts.register("bob")).account
    query = f"?token={alice.token}"
    headers = {"mcp-session-id": await open_session(hub, query)}
    news = await hub.hub.bus.subscribe(subject_of_mailbox(bob.id))
    store = hub.hub.store

    def waiting() -> int:
        return store.stats().write_queue_depth

    async with asyncio.TaskGroup() as tasks:
        last = Gate()
        async with held(store.write):
            letter = rpc("tools/call", {"name": "msg_send", "arguments": LETTER}, 9)
            tasks.create_task(hub.post(letter, query=query, headers=headers))
            await until(waiting, 1)
            tasks.create_task(store.write(last.unit))
            await until(waiting, 2)
        # Now the letter is written, and its commit waits for the last of its batch.
        await last.entered()
        given_up = {"method": "notifications/cancelled", "params": {"requestId": 9}}
        await hub.post({"jsonrpc": "2.0", **given_up}, query=query, headers=headers)
        await hub.post(rpc("ping", {}, 10), query=query, headers=headers)
        last.open()
    assert not isinstance(await anext(aiter(news)), Missed)
    await news.close()
