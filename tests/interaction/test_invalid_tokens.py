"""A wrong or dead token: every way in says so, and what it had opened ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.harness import Answer, ask
from tests.interaction.room_client import Closed, joined
from tests.interaction.test_mail_sessions import WHOAMI, call, open_session, register, told
from tests.mcp_harness import (
    INITIALIZE,
    Meeting,
    both_eras,
    modern,
    rpc,
    sse_json,
    until,
)
from tests.transports.mcp.gateway_support import session_stream, wired

NEVER_ONE = f"sk_{'0' * 64}"
WRONG = (NEVER_ONE, "nonsense", "${FOLKMOOT_TOKEN}")
SAID = "Authentication required. The token is not valid"


async def dead_token(there: Meeting, handle: str = "alice") -> tuple[str, str]:
    """A token that was someone's until they recovered their account, and the recovery code."""
    made = await there.hub.accounts.register(handle)
    await there.hub.accounts.recover(handle, made.recovery_code)
    return made.token, made.recovery_code


def is_told(answer: Answer) -> bool:
    """Whether a request was refused because of its token, in words and as a code."""
    error = answer.json()["error"]
    return (
        answer.status == 401
        and error["message"].startswith(SAID)
        and error["data"]["code"] == "token_invalid"
        and answer.headers["www-authenticate"].startswith('Bearer error="invalid_token"')
    )


STATELESS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("resources/read", {"uri": "ui://mmp-inbox"}),
    ("subscriptions/listen", {"notifications": {"toolsListChanged": True}}),
    ("tools/call", {"name": "msg_whoami", "arguments": {}}),
    ("tools/call", {"name": "folkmoot_find_tool", "arguments": {"query": "mail"}}),
    ("tools/call", {"name": "no_such_tool", "arguments": {}}),
    ("ping", {}),
)
# What a client asks for while it connects.
SHOWN = ("server/discover", "resources/list", "resources/templates/list", "prompts/list")


@pytest.mark.requirement("auth.invalid-token-stateless")
async def test_a_stateless_request_with_a_wrong_or_dead_token_is_answered_401(hub):
    dead, _ = await dead_token(hub)
    for token in (dead, *WRONG):
        for method, params in STATELESS:
            message, headers = modern(method, **params)
            answer = await hub.post(message, query=f"?token={token}", headers=headers)
            assert is_told(answer), (method, answer)
            assert answer.json()["id"] == message["id"]
    message, headers = modern("tools/call", name="msg_whoami", arguments={})
    headers["authorization"] = f"Bearer {dead}"
    assert is_told(await hub.post(message, headers=headers))
    for body in (b"", b"[]", b"nonsense"):
        assert is_told(await hub.post(body, query=f"?token={dead}", headers=headers))


async def test_a_stateless_client_with_a_dead_token_connects_and_is_told_there(hub):
    dead, _ = await dead_token(hub)
    for method in SHOWN:
        message, headers = modern(method)
        to_nobody = (await hub.post(message, headers=headers)).json()["result"]
        for token in (dead, NEVER_ONE, "sk_cut"):
            answer = await hub.post(message, query=f"?token={token}", headers=headers)
            assert answer.status == 200
            found = answer.json()["result"]
            if method == "server/discover":
                assert found["instructions"].startswith(SAID)
                assert found["instructions"].endswith(to_nobody["instructions"])
                found["instructions"] = to_nobody["instructions"]
            assert found == to_nobody
        # What was never a token of this hub is for another way to sign in.
        for token in WRONG[1:]:
            shown = {**headers, "authorization": f"Bearer {token}"}
            assert is_told(await hub.post(message, headers=shown)), method


async def test_whose_account_is_suspended_is_told_so_when_they_connect(hub):
    made = await hub.hub.accounts.register("alice")
    account = await hub.hub.accounts.authenticate(made.token)
    assert account is not None
    await hub.hub.accounts.suspend(account, suspended=True)
    query = f"?token={made.token}"
    message, headers = modern("server/discover")
    answer = (await hub.post(message, query=query, headers=headers)).json()
    for told_ in (answer["result"], sse_json(await hub.post(INITIALIZE, query=query))["result"]):
        assert "This account is suspended" in told_["instructions"]


@pytest.mark.requirement("auth.invalid-token-handshake")
async def test_a_handshake_session_with_a_wrong_or_dead_token_is_told_so(hub):
    dead, _ = await dead_token(hub)
    for token in (dead, NEVER_ONE):
        query = f"?token={token}"
        opened = sse_json(await hub.post(INITIALIZE, query=query))
        assert opened["result"]["instructions"].startswith(SAID)
        session_id = await open_session(hub, query)
        for message in (WHOAMI, rpc("tools/call", {"name": "no_such_tool"}, 3)):
            result = (await call(hub, session_id, query, message)).json()["result"]
            assert result["isError"]
            assert result["content"][0]["text"].startswith(f'{{"error":"{SAID}')
        for method in ("resources/list", "prompts/list", "resources/templates/list"):
            refused = (await call(hub, session_id, query, rpc(method, id_=4))).json()
            assert refused["id"] == 4
            assert refused["error"]["message"].startswith(SAID)
        read = rpc("resources/read", {"uri": "ui://mmp-inbox"})
        for message in (read, rpc("resources/subscribe", {"uri": "mmp://mailboxes/inbox"})):
            refused = (await call(hub, session_id, query, message)).json()
            assert refused["error"]["data"] == {"code": "token_invalid"}
        named = {"mcp-session-id": session_id, "accept": "text/event-stream"}
        assert is_told(await hub.ask("GET", query=query, headers=named))
    assert SAID not in sse_json(await hub.post(INITIALIZE))["result"]["instructions"]


@both_eras
@pytest.mark.requirement("auth.invalid-token-list")
async def test_a_dead_token_lists_only_what_it_may_call(hub):
    dead, _ = await dead_token(hub)
    client = (await hub.returning(dead)).client
    tools = (await client.list_tools()).tools
    assert [tool.name for tool in tools] == ["msg_register", "msg_recover"]
    assert all((tool.description or "").startswith(SAID) for tool in tools)


@both_eras
@pytest.mark.requirement("auth.invalid-token-recovers")
async def test_registering_and_recovering_work_with_a_dead_token(hub):
    dead, code = await dead_token(hub)
    old = await hub.returning(dead)
    assert (await old.refused("msg/whoami")).startswith(SAID)
    made = await old.call("msg/recover", handle="alice", recovery_code=code)
    again = await hub.returning(made["token"])
    assert (await again.call("msg/whoami"))["handle"] == "alice"
    other = await hub.returning(NEVER_ONE)
    inner = {"name": "msg/register", "arguments": {"handle": "carol"}}
    made = await other.call("folkmoot/call_tool", **inner)
    assert made["handle"] == "carol"


@pytest.mark.requirement("auth.invalid-token-recovers", "auth.session-bound-at-register")
async def test_a_session_opened_with_a_dead_token_is_bound_by_recovering(hub):
    dead, code = await dead_token(hub)
    mine = f"?token={dead}"
    session_id, other_id = await open_session(hub, mine), await open_session(hub, mine)
    arguments = {"handle": "alice", "recovery_code": code}
    recover = rpc("tools/call", {"name": "msg_recover", "arguments": arguments})
    fresh = told(await call(hub, session_id, mine, recover))["token"]
    assert told(await call(hub, session_id, mine))["handle"] == "alice"
    assert told(await call(hub, session_id, f"?token={fresh}"))["handle"] == "alice"
    # Neither the session's id alone, nor the dead token elsewhere, opens anything.
    assert (await call(hub, session_id)).status == 404
    assert SAID in (await call(hub, other_id, mine)).text
    await hub.hub.accounts.recover("alice", code)
    assert SAID in (await call(hub, session_id, mine)).text


@pytest.mark.requirement("auth.invalid-token-recovers", "auth.says-what-next")
async def test_a_session_opened_with_a_dead_token_is_bound_by_registering(hub):
    mine = f"?token={(await dead_token(hub))[0]}"
    session_id = await open_session(hub, mine)
    made = await register(hub, session_id, "carol", mine)
    assert made["next"].startswith("You are signed in as @carol")
    assert told(await call(hub, session_id, mine))["handle"] == "carol"


@pytest.mark.requirement("auth.session-registers-once")
async def test_registering_again_in_a_bound_session_is_refused(hub):
    session_id = await open_session(hub)

    first = await register(hub, session_id, "alice")
    again = await register(hub, session_id, "mallory")
    assert again["error"].startswith("This session is already signed in as @alice.")
    assert told(await call(hub, session_id))["handle"] == "alice"
    assert await hub.hub.accounts.count() == 1
    # Its token is replaced elsewhere: then the session is nobody's, and may be again.
    await hub.hub.accounts.recover("alice", first["recovery_code"])
    assert (await register(hub, session_id, "alicia"))["handle"] == "alicia"
    assert told(await call(hub, session_id))["handle"] == "alicia"


@pytest.mark.requirement("auth.invalid-token-elsewhere")
async def test_rest_and_websockets_say_that_a_token_is_not_valid(hub):
    dead, _ = await dead_token(hub)
    for token in (dead, *WRONG[:2]):
        answer = await ask(hub.port, "/v1/rooms", headers={"authorization": f"Bearer {token}"})
        assert (answer.status, answer.json()["error"]["code"]) == (401, "token_invalid")
        assert answer.json()["error"]["message"].startswith(SAID)
        assert answer.headers["www-authenticate"].startswith('Bearer error="invalid_token"')
        with pytest.raises(Closed) as end:
            async with joined(hub.port, token, "tea"):
                pass
        assert end.value.code == 4401
        assert end.value.reason.startswith(SAID)


async def to_the_end(events: AsyncIterator[Any]) -> list[Any]:
    return [event async for event in events]


ENDINGS = pytest.mark.parametrize("ending", ["recover", "delete"])


async def end_token(there: Meeting, handle: str, code: str, ending: str) -> None:
    """Make the token of an account invalid."""
    recovered = await there.hub.accounts.recover(handle, code)
    if ending == "delete":
        await there.hub.accounts.delete(recovered.account)


@ENDINGS
@pytest.mark.requirement("auth.streams-end")
async def test_the_streams_of_a_dead_token_end_at_once_in_both_eras(ending, hub):
    alice, bob = await hub.people("alice", "bob")
    mine, theirs = [await wired(hub, person) for person in (alice, bob)]
    stateless = await wired(hub, alice, "stateless")
    wanted = {"notifications": {"toolsListChanged": True}}
    listen = stateless.message("subscriptions/listen", wanted, 1, None)
    async with (
        session_stream(mine) as session_events,
        session_stream(theirs) as other_events,
        stateless.streamed(listen) as listen_events,
    ):
        assert "acknowledged" in str(await anext(listen_events))
        waiting = asyncio.create_task(to_the_end(other_events))
        # A change that leaves the token valid ends nothing.
        account = await hub.hub.accounts.authenticate(alice.token)
        await hub.hub.accounts.change_handle(account, "alicia")
        gone = asyncio.gather(to_the_end(session_events), to_the_end(listen_events))
        await asyncio.sleep(0)
        assert not gone.done()
        await end_token(hub, "alicia", alice.recovery_code, ending)
        await gone
        assert not waiting.done()
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)


@pytest.mark.requirement("auth.streams-end")
async def test_the_stream_of_a_session_bound_later_ends_with_its_token(hub):
    wire = await wired(hub, "")
    async with session_stream(wire) as events:
        made = await register(hub, wire.session)
        await hub.hub.accounts.recover("alice", made["recovery_code"])
        await to_the_end(events)


@both_eras
@pytest.mark.requirement("auth.streams-end")
async def test_a_call_that_waits_ends_with_its_token(hub):
    alice = await hub.person("alice")
    await alice.call("room/create", name="tea")
    before = (await alice.call("room/read", room="tea"))["last_seq"]
    waiting = asyncio.gather(
        alice.refused("msg/inbox", wait=55),
        alice.refused("room/read", room="tea", after=before, wait=55),
    )
    headers = {"authorization": f"Bearer {alice.token}"}
    path = f"/v1/rooms/tea/messages?after={before}&wait=55"
    over_rest = asyncio.create_task(ask(hub.port, path, headers=headers))
    await until(lambda: len(hub.hub.mcp._exchanges) > 1 and bool(hub.hub.rest._waiting._callers))
    await hub.hub.accounts.recover("alice", alice.recovery_code)
    assert all(sentence.startswith(SAID) for sentence in await waiting)
    assert (await over_rest).json()["error"]["code"] == "token_invalid"
