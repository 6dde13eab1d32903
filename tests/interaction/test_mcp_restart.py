"""Sessions of the handshake era when the hub is restarted, and those who would use another's."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from folkmoot.clock import SystemClock
from folkmoot.core.verdict import CONTINUE, Verdict
from folkmoot.transports.mcp.notices import INBOX
from folkmoot.transports.mcp.session_ids import short_hash
from tests.harness import Answer, reached
from tests.interaction.test_mail_sessions import (
    WHOAMI,
    call,
    not_found,
    open_session,
    register,
    told,
)
from tests.mcp_harness import INITIALIZE, Meeting, meeting, rpc, settings, until
from tests.nodes import running
from tests.ports import free_port
from tests.stores import OneHeld
from tests.transports.mcp.gateway_support import Wire, session_stream

YEARS = 400 * 24 * 3600.0
DECLARED = {"extensions": {"x": {"y": "z" * 740}}, "elicitation": {"form": {}}}


class Later(SystemClock):
    """A clock that is more than a year ahead."""

    def now(self) -> float:
        return super().now() + YEARS

    def monotonic(self) -> float:
        return super().monotonic() + YEARS


async def everywhere(there: Meeting, session_id: str, query: str = "") -> list[Answer]:
    """What a session id is answered with every verb."""
    headers = {"mcp-session-id": session_id}
    return [
        await call(there, session_id, query),
        await there.ask("GET", query=query, headers=headers),
        await there.ask("GET", query=query, headers={**headers, "last-event-id": "0-57"}),
        await there.ask("DELETE", query=query, headers=headers),
    ]


async def alices_session(folder: Path) -> tuple[str, str]:
    """The query with alice's token, and a session of hers at a hub that has stopped."""
    async with meeting(folder) as there:
        mine = f"?token={(await there.hub.accounts.register('alice')).token}"
        return mine, await open_session(there, mine)


async def test_a_client_that_never_initializes_again_goes_on_after_a_restart(tmp_path):
    port = free_port()
    async with meeting(tmp_path, port=port) as there:
        alice = await there.person("alice")
        there._people.clear()
        assert (await alice.call("msg_whoami"))["handle"] == "alice"
    async with meeting(tmp_path, port=port):
        try:
            assert (await alice.call("msg_whoami"))["handle"] == "alice"
        finally:
            await alice.leave()


def forged(session_id: str) -> Iterator[str]:
    """Ids that were never given, most of them made from one that was."""
    yield from ("0" * 32, "A" * 203, "AAAA.BBBB.CCCC", "x" * 5_000)
    yield from (session_id[:-1], session_id + "A", session_id * 2, session_id[::-1])
    for place in {0, len(session_id) // 3, len(session_id) // 2, len(session_id) - 1}:
        other = "0" if session_id[place] != "0" else "1"
        yield f"{session_id[:place]}{other}{session_id[place + 1 :]}"


@pytest.mark.requirement("mcp.unknown-session", "auth.session-id-alone", "mcp.delete")
async def test_after_a_restart_a_session_goes_on_for_its_owner_and_opens_for_nobody_else(tmp_path):
    async with meeting(tmp_path / "other") as there:
        other = await there.hub.accounts.register("alice")
        foreign = [await open_session(there, f"?token={other.token}"), await open_session(there)]
    async with meeting(tmp_path / "hub") as there:
        alice, bob, carol = [
            await there.hub.accounts.register(handle) for handle in ("alice", "bob", "carol")
        ]
        mine, carols = f"?token={alice.token}", f"?token={carol.token}"
        session_id, closed = await open_session(there, mine), await open_session(there, mine)
        await there.ask("DELETE", query=mine, headers={"mcp-session-id": closed})
        of_a_dead_token = await open_session(there, carols)
        fresh = await there.hub.accounts.recover("carol", carol.recovery_code)
    wrong = [
        *((each, mine) for each in (*forged(session_id), *foreign, closed)),
        *((each, "") for each in (*foreign, session_id)),
        *((session_id, f"?token={token}") for token in (bob.token, "no", f"sk_{'0' * 64}")),
        *((of_a_dead_token, query) for query in (carols, f"?token={fresh.token}")),
    ]
    for _ in range(2):
        async with meeting(tmp_path / "hub") as there:
            for id_, query in wrong:
                assert all(map(not_found, await everywhere(there, id_, query))), (id_, query)
            assert told(await call(there, session_id, mine))["handle"] == "alice"
            assert (await call(there, session_id, mine, rpc("tools/list", {}, 3))).status == 200
    async with meeting(tmp_path / "hub", clock=Later()) as there:
        assert all(map(not_found, await everywhere(there, session_id, mine)))


async def test_many_requests_at_once_adopt_a_session_once(tmp_path):
    mine, session_id = await alices_session(tmp_path)
    async with meeting(tmp_path) as there:
        calls = [{**WHOAMI, "id": number} for number in range(8)]
        answers = await asyncio.gather(*(call(there, session_id, mine, m) for m in calls))
        assert [told(answer)["handle"] for answer in answers] == ["alice"] * 8
        assert there.hub.mcp.open_sessions == 1
        assert all(map(not_found, await everywhere(there, session_id)))
        closing = there.ask("DELETE", query=mine, headers={"mcp-session-id": session_id})
        calls_too = (call(there, session_id, mine, m) for m in calls)
        assert (await asyncio.gather(closing, *calls_too))[0].status == 200
        assert there.hub.mcp.open_sessions == 0
        assert all(map(not_found, await everywhere(there, session_id, mine)))
    async with meeting(tmp_path) as there:
        assert all(map(not_found, await everywhere(there, session_id, mine)))


@pytest.mark.long
@pytest.mark.requirement("mcp.unknown-session")
async def test_a_session_that_was_adopted_and_then_idle_is_not_adopted_again(tmp_path):
    mine, session_id = await alices_session(tmp_path)
    async with meeting(tmp_path, mcp={"session_idle_seconds": 1}) as there:
        assert told(await call(there, session_id, mine))["handle"] == "alice"
        await until(lambda: there.hub.mcp.open_sessions == 0)
        assert all(map(not_found, await everywhere(there, session_id, mine)))


@pytest.mark.one_node("looks at the sessions of one node")
async def test_sessions_are_adopted_within_the_limits(tmp_path):
    async with meeting(tmp_path) as there:
        made = await there.hub.accounts.register("alice")
        mine = f"?token={made.token}"
        nobodys = [await open_session(there) for _ in range(3)]
        alices = [await open_session(there, mine) for _ in range(3)]
    bounds = {"max_anonymous_sessions": 2}
    async with meeting(tmp_path, mcp=bounds, quotas={"sessions_per_account": 2}) as there:
        assert [(await call(there, each)).status for each in nobodys] == [200, 200, 429]
        for each in alices:
            assert told(await call(there, each, mine))["handle"] == "alice"
        assert there.hub.mcp.open_sessions == 4
        # Her longest unused made room, and stays closed.
        assert not_found(await call(there, alices[0], mine))
    async with meeting(tmp_path, mcp={"max_sessions": 1}) as there:
        assert told(await call(there, alices[1], mine))["handle"] == "alice"
        assert (await call(there, alices[2], mine)).status == 503
        # What was refused for want of room is still there.
        headers = {"mcp-session-id": alices[1]}
        assert (await there.ask("DELETE", query=mine, headers=headers)).status == 200
        assert told(await call(there, alices[2], mine))["handle"] == "alice"


@pytest.mark.requirement("mcp.unknown-session", "auth.session-bound-while-valid")
async def test_a_session_in_which_someone_registered_ends_with_the_token_made_there(tmp_path):
    async with meeting(tmp_path) as there:
        session_id = await open_session(there)
        made = await register(there, session_id)
        bob = await there.hub.accounts.register("bob")
    async with meeting(tmp_path) as there:
        for query in (f"?token={bob.token}", "?token=nonsense"):
            assert all(map(not_found, await everywhere(there, session_id, query)))
        assert told(await call(there, session_id, f"?token={made['token']}"))["handle"] == "alice"
        again = await there.hub.accounts.recover("alice", made["recovery_code"])
    async with meeting(tmp_path) as there:
        for query in ("", f"?token={made['token']}"):
            assert all(map(not_found, await everywhere(there, session_id, query)))
        await there.hub.accounts.delete(again.account)
        assert await there.hub.store.read(lambda tx: tx.fetch("SELECT * FROM mcp_sessions")) == []


@pytest.mark.one_node("looks into the session")
async def test_what_a_session_chose_last_is_stored_last(hub):
    made = await hub.hub.accounts.register("alice")
    session_id = await open_session(hub, f"?token={made.token}")
    session = hub.hub.mcp._sessions._sessions[session_id]
    stored = hub.hub.mcp._stored
    held = stored._rows.store = OneHeld(hub.hub.store)
    session.log_level = "debug"
    first = asyncio.ensure_future(stored.keep(session))
    await reached(lambda: held.begun == 1)
    first.cancel()
    session.log_level = "error"
    second = asyncio.ensure_future(stored.keep(session))
    await asyncio.sleep(0.01)
    assert held.begun == 1
    held.go_on.set()
    await second
    state, _ = await stored._rows.read(session_id)
    assert state.log_level == "error"
    assert not stored._keeping


@pytest.mark.one_node("looks into the session")
async def test_what_a_session_declared_and_chose_goes_on(tmp_path):
    params = {**INITIALIZE["params"], "capabilities": DECLARED}
    set_level = rpc("logging/setLevel", {"level": "error"}, 3)
    subscribe = rpc("resources/subscribe", {"uri": INBOX}, 4)
    async with meeting(tmp_path) as there:
        made = await there.hub.accounts.register("alice")
        mine = f"?token={made.token}"
        opened = await there.post({**INITIALIZE, "params": params}, query=mine)
        long_id = opened.headers["mcp-session-id"]
        assert len(long_id) < 256
        session_id = await open_session(there, mine)
        for message in (set_level, subscribe):
            assert (await call(there, session_id, mine, message)).json()["result"] == {}
        again = rpc("initialize", {**INITIALIZE["params"], "protocolVersion": "2025-06-18"}, 5)
        assert (await call(there, session_id, mine, again)).status == 200
    for _ in range(2):
        async with meeting(tmp_path) as there:
            for each in (long_id, session_id):
                assert told(await call(there, each, mine))["handle"] == "alice"
            sessions = there.hub.mcp._sessions._sessions
            assert sessions[long_id].capabilities == DECLARED
            assert sessions[session_id].version == "2025-06-18"
            assert sessions[session_id].log_level == "error"
            assert there.hub.mcp._parts.subscribed(sessions[session_id]) == (INBOX,)
    async with meeting(tmp_path) as there:
        bob = await there.person("bob")
        wire = Wire(there, made.token, session_id)
        async with session_stream(wire) as events:
            await bob.call("msg/send", to="alice", body="Hello")
            assert (await anext(events))["params"]["uri"] == INBOX
        await wire.leave()


async def test_the_id_of_a_session_is_in_no_file_and_in_no_envelope(tmp_path, caplog):
    shown: list[str] = []

    class Seen:
        name = "seen"
        guards = False

        async def intercept(self, envelope: Any) -> Verdict:
            context = envelope.context
            shown.append(str(context.session.session_id))
            shown.append(repr(context.transport.metadata.headers.pairs))
            return CONTINUE

    recording = settings(tmp_path / "hub", record={"folder": str(tmp_path / "tapes")})
    caplog.set_level("DEBUG")
    async with running(recording, interceptors=[Seen()]) as hub:
        there = Meeting(hub, "handshake")
        mine = f"?token={(await hub.accounts.register('alice')).token}"
        session_id = await open_session(there, mine)
        await call(there, session_id, mine, rpc("logging/setLevel", {"level": "error"}, 3))
        assert told(await call(there, session_id, mine))["handle"] == "alice"
        await there.ask("DELETE", query=mine, headers={"mcp-session-id": session_id})
    assert short_hash(session_id) in shown
    assert session_id not in "".join(shown)
    logged = [each for each in caplog.records if each.name.startswith("folkmoot")]
    assert logged
    assert not any(session_id in str(vars(each)) for each in logged)
    files = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert not any(session_id.encode() in content for content in files)


async def test_a_stranger_s_session_is_not_written_down_whatever_is_done_in_it(tmp_path):
    """Anyone can open sessions, so a write for each would be anyone's to cause."""
    long = {**INITIALIZE, "params": {**INITIALIZE["params"], "capabilities": DECLARED}}
    async with meeting(tmp_path) as there:
        session_id = (await there.post(long)).headers["mcp-session-id"]
        set_level = rpc("logging/setLevel", {"level": "error"}, 3)
        assert (await call(there, session_id, "", set_level)).status == 200
        assert (await there.ask("DELETE", headers={"mcp-session-id": session_id})).status == 200
        assert not_found(await call(there, session_id))
        assert await there.hub.store.read(lambda tx: tx.fetch("SELECT * FROM mcp_sessions")) == []
