"""Sessions of the handshake era when the hub is restarted, and those who would use another's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from folkmoot.clock import SystemClock
from tests.harness import Answer, run
from tests.interaction.test_mail_sessions import call, not_found, open_session, told
from tests.mcp_harness import Meeting, meeting, rpc

IN_MEMORY = "sessions are in the hub's memory alone, so a restart ends them"
goes_on = pytest.mark.xfail(strict=True, reason=IN_MEMORY)
YEARS = 400 * 24 * 3600.0


class Later(SystemClock):
    """A clock that is more than a year ahead."""

    def now(self) -> float:
        return super().now() + YEARS

    def monotonic(self) -> float:
        return super().monotonic() + YEARS


async def everywhere(there: Meeting, session_id: str, query: str = "") -> list[Answer]:
    """What a session id is answered with every verb."""
    headers = {"mcp-session-id": session_id}
    resumed = {**headers, "last-event-id": "0-57"}
    return [
        await call(there, session_id, query),
        await there.ask("GET", query=query, headers=headers),
        await there.ask("GET", query=query, headers=resumed),
        await there.ask("DELETE", query=query, headers=headers),
    ]


@goes_on
@pytest.mark.requirement("mcp.session-outlives-restart")
def test_a_session_goes_on_after_a_restart(tmp_path: Path) -> None:
    async def main() -> None:
        async with meeting(tmp_path) as there:
            alice = await there.person("alice")
            mine = f"?token={alice.token}"
            session_id = await open_session(there, mine)
        for _ in range(2):
            async with meeting(tmp_path) as there:
                assert told(await call(there, session_id, mine))["handle"] == "alice"
                listed = await call(there, session_id, mine, rpc("tools/list", {}, 3))
                assert listed.status == 200

    run(main())


@goes_on
@pytest.mark.requirement("mcp.session-outlives-restart")
def test_a_session_in_which_someone_registered_goes_on_after_a_restart(tmp_path: Path) -> None:
    async def main() -> None:
        register = rpc("tools/call", {"name": "msg_register", "arguments": {"handle": "alice"}})
        async with meeting(tmp_path) as there:
            session_id = await open_session(there)
            told(await call(there, session_id, message=register))
        async with meeting(tmp_path) as there:
            assert told(await call(there, session_id))["handle"] == "alice"

    run(main())


@goes_on
@pytest.mark.requirement("mcp.session-outlives-restart")
def test_a_client_that_never_initializes_again_goes_on_after_a_restart(tmp_path: Path) -> None:
    async def main() -> None:
        async with meeting(tmp_path) as there:
            made = await there.hub.accounts.register("alice")
            port = there.port
        async with meeting(tmp_path, port=port) as there:
            alice = await there.returning(made.token)
            there._people.clear()
            assert (await alice.call("msg_whoami"))["handle"] == "alice"
        async with meeting(tmp_path, port=port):
            try:
                assert (await alice.call("msg_whoami"))["handle"] == "alice"
            finally:
                await alice.leave()

    run(main())


def forged(session_id: str) -> Iterator[str]:
    """Ids that were never given, most of them made from one that was."""
    yield "0" * 32
    yield "A" * 203
    yield "AAAA.BBBB.CCCC"
    yield "x" * 5_000
    yield session_id[:-1]
    yield session_id + "A"
    yield session_id * 2
    yield session_id[::-1]
    for place in {0, len(session_id) // 3, len(session_id) // 2, len(session_id) - 1}:
        other = "0" if session_id[place] != "0" else "1"
        yield f"{session_id[:place]}{other}{session_id[place + 1 :]}"


@pytest.mark.requirement("mcp.unknown-session")
@pytest.mark.parametrize("restarted", [False, True])
def test_a_forged_id_opens_nothing(restarted: bool, tmp_path: Path) -> None:
    async def main() -> None:
        async with meeting(tmp_path) as there:
            made = await there.hub.accounts.register("alice")
            mine = f"?token={made.token}"
            session_id = await open_session(there, mine)
            if not restarted:
                await forged_open_nothing(there, session_id, mine)
        if restarted:
            async with meeting(tmp_path) as there:
                await forged_open_nothing(there, session_id, mine)

    run(main())


async def forged_open_nothing(there: Meeting, session_id: str, mine: str) -> None:
    for each in forged(session_id):
        assert not_found(await call(there, each, mine)), each
        assert not_found(await call(there, each)), each
    assert all(map(not_found, await everywhere(there, each, mine)))


@pytest.mark.requirement("mcp.unknown-session", "auth.session-id-alone")
def test_after_a_restart_another_cannot_take_a_session(tmp_path: Path) -> None:
    async def main() -> None:
        async with meeting(tmp_path) as there:
            alice = await there.hub.accounts.register("alice")
            bob = await there.hub.accounts.register("bob")
            session_id = await open_session(there, f"?token={alice.token}")
        async with meeting(tmp_path) as there:
            for query in (f"?token={bob.token}", "", "?token=nonsense", f"?token=sk_{'0' * 64}"):
                assert all(map(not_found, await everywhere(there, session_id, query))), query

    run(main())


@pytest.mark.requirement("mcp.unknown-session")
def test_a_session_of_another_hub_opens_nothing(tmp_path: Path) -> None:
    async def main() -> None:
        async with meeting(tmp_path / "other") as there:
            other = await there.hub.accounts.register("alice")
            with_token = await open_session(there, f"?token={other.token}")
            without = await open_session(there)
        async with meeting(tmp_path / "hub") as there:
            made = await there.hub.accounts.register("alice")
            for session_id in (with_token, without):
                for query in (f"?token={made.token}", ""):
                    assert all(map(not_found, await everywhere(there, session_id, query)))

    run(main())


@pytest.mark.requirement("mcp.unknown-session", "mcp.delete")
def test_a_session_that_was_closed_is_not_revived_by_a_restart(tmp_path: Path) -> None:
    async def main() -> None:
        async with meeting(tmp_path) as there:
            made = await there.hub.accounts.register("alice")
            mine = f"?token={made.token}"
            session_id = await open_session(there, mine)
            closed = await there.ask("DELETE", query=mine, headers={"mcp-session-id": session_id})
            assert closed.status == 200
            assert not_found(await call(there, session_id, mine))
        async with meeting(tmp_path) as there:
            assert all(map(not_found, await everywhere(there, session_id, mine)))

    run(main())


@pytest.mark.requirement("mcp.unknown-session", "auth.old-token-stops")
def test_a_session_ends_with_the_token_it_was_opened_with(tmp_path: Path) -> None:
    async def main() -> None:
        async with meeting(tmp_path) as there:
            made = await there.hub.accounts.register("alice")
            session_id = await open_session(there, f"?token={made.token}")
            again = await there.hub.accounts.recover("alice", made.recovery_code)
        async with meeting(tmp_path) as there:
            for token in (made.token, again.token):
                answers = await everywhere(there, session_id, f"?token={token}")
                assert all(map(not_found, answers)), answers

    run(main())


@pytest.mark.requirement("mcp.unknown-session")
def test_a_session_is_not_revived_long_after_it_was_used(tmp_path: Path) -> None:
    async def main() -> None:
        async with meeting(tmp_path) as there:
            made = await there.hub.accounts.register("alice")
            mine = f"?token={made.token}"
            session_id = await open_session(there, mine)
        async with meeting(tmp_path, clock=Later()) as there:
            assert all(map(not_found, await everywhere(there, session_id, mine)))

    run(main())
