"""Guessing recovery codes and handles: strangers find out little, and lock nobody out."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest

from folkmoot.accounts import registration
from folkmoot.core.ports import SqlValue, Tx
from folkmoot.operations import dispatch
from tests.interaction.test_mail_rates import limited
from tests.mcp_harness import Meeting, call_tool, meeting, one_era, payload
from tests.transports.rest.test_passkeys import PATH as PASSKEYS
from tests.transports.rest.test_passkeys import add as add_passkey
from tests.transports.rest.test_passkeys import sign_in as sign_in_with_passkey
from tests.transports.rest.test_sessions import Browser

WRONG = "AAAA-AAAA-AAAA"


async def attempt(there: Meeting, handle: str, code: str, source: str) -> str:
    """What recovering an account from an address is answered: an error, or nothing."""
    return await use(there, "msg_recover", source, handle=handle, recovery_code=code)


async def use(there: Meeting, tool: str, source: str, **arguments: Any) -> str:
    answer = await call_tool(there.port, "", tool, source=source, **arguments)
    return payload(answer).get("error", "")


@pytest.mark.sqlite("counts by the clock of the test, and not by a server's")
@pytest.mark.requirement("recovery.five-failures")
@pytest.mark.settings(rate_limits="on")
async def test_a_stranger_does_not_lock_the_owner_out(hub, clock):
    code = (await hub.hub.accounts.register("alice")).recovery_code
    for spelled in ("alice", "@Alice", "ALICE", "alice", "@alice"):
        assert await attempt(hub, spelled, WRONG, "127.0.0.66") == ("Invalid recovery code.")
    for tried in (WRONG, code):
        told = await attempt(hub, "alice", tried, "127.0.0.66")
        assert told.startswith("Rate limit exceeded. Try again in 60 minutes.")
    assert await attempt(hub, "alice", code, "127.0.0.1") == ""
    clock.ahead = 3_601
    assert await attempt(hub, "alice", code, "127.0.0.66") == ""


@pytest.mark.requirement("recovery.five-failures")
@one_era
@pytest.mark.settings(rate_limits="on")
async def test_codes_guessed_at_the_same_moment_from_many_connections_are_counted_together(hub):
    alice = await hub.person("alice")
    guessers = [await hub.stranger() for _ in range(8)]
    guesses = [
        each.refused("msg/recover", handle=handle, recovery_code=f"AAAA-BBBB-CCC{letter}")
        for each in guessers
        for handle, letter in (("alice", "A"), ("@Alice", "B"), ("ALICE", "C"))
    ]
    told = await asyncio.gather(*guesses)
    assert told.count("Invalid recovery code.") == 5
    assert {sentence.partition(".")[0] for sentence in told} == {
        "Invalid recovery code",
        "Rate limit exceeded",
    }
    assert (await alice.call("msg/whoami"))["handle"] == "alice"


@pytest.mark.requirement("recovery.address-failures", "recovery.unknown-handle")
@pytest.mark.settings(rate_limits="on")
async def test_one_address_fails_twenty_times_an_hour_whatever_the_handles(hub):
    code = (await hub.hub.accounts.register("alice")).recovery_code
    for handle in (*["nobody1"] * 5, *(f"person{number}" for number in range(14))):
        assert await attempt(hub, handle, WRONG, "127.0.0.66") == "Handle not found."
    # After five failures a handle that nobody has is refused like any other.
    told = await attempt(hub, "nobody1", WRONG, "127.0.0.66")
    assert told.startswith("Rate limit exceeded.")
    assert await attempt(hub, "no handle!", WRONG, "127.0.0.66") == "Handle not found."
    told = await attempt(hub, "alice", code, "127.0.0.66")
    assert told.startswith("Rate limit exceeded.")
    assert await attempt(hub, "alice", code, "127.0.0.1") == ""


async def test_a_hub_that_is_restarted_remembers_the_failures(tmp_path):
    async def sign_in(there: Meeting) -> int:
        wrong = {"token": "sk_" + "0" * 64}
        return (await Browser(there.port).ask("POST", "/v1/session", wrong)).status

    async with meeting(tmp_path, rate_limits="on") as there:
        code = (await there.hub.accounts.register("alice")).recovery_code
        for _ in range(5):
            assert await attempt(there, "alice", WRONG, "127.0.0.66") == "Invalid recovery code."
        assert [await sign_in(there) for _ in range(21)][-2:] == [401, 429]
    async with meeting(tmp_path, rate_limits="on") as there:
        told = await attempt(there, "alice", code, "127.0.0.66")
        assert told.startswith("Rate limit exceeded.")
        assert await sign_in(there) == 429
        assert await attempt(there, "alice", code, "127.0.0.1") == ""


@pytest.mark.requirement("recovery.slowed")
@pytest.mark.settings(rate_limits="on", rates={"recover_handle_per_day": 6})
async def test_a_handle_that_many_addresses_guess_at_is_slowed_and_never_refused(hub, monkeypatch):
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        await asyncio.tasks.sleep(0)

    code = (await hub.hub.accounts.register("alice")).recovery_code
    monkeypatch.setattr(dispatch, "sleep", sleep)
    for number in range(10):
        told = await attempt(hub, "alice", WRONG, f"127.0.0.{60 + number}")
        assert told == "Invalid recovery code."
    assert slept == [2.0] * 4
    assert await attempt(hub, "alice", code, "127.0.0.1") == ""
    assert len(slept) == 5
    assert await attempt(hub, "nobody1", WRONG, "127.0.0.60") == "Handle not found."
    assert len(slept) == 5


@pytest.mark.sqlite("counts its statements")
@pytest.mark.requirement("recovery.unknown-handle", "recovery.constant-time")
async def test_an_unknown_handle_costs_the_same_work_as_a_wrong_code(hub, monkeypatch):
    work: Counter[str] = Counter()

    def counted(name: str) -> None:
        original = getattr(registration, name)

        def wrapper(*given: Any) -> Any:
            work[name] += 1
            return original(*given)

        monkeypatch.setattr(registration, name, wrapper)

    await hub.hub.accounts.register("alice")
    counted("hash_recovery_code")
    counted("compare_digest")
    real = hub.hub.store.read

    async def read(unit: Any, **options: Any) -> Any:
        async def seen(tx: Any) -> Any:
            return await unit(Counting(tx, work))

        return await real(seen, **options)

    monkeypatch.setattr(hub.hub.store, "read", read)
    done = []
    for handle in ("alice", "nobody1", "no handle!"):
        work.clear()
        await attempt(hub, handle, WRONG, "127.0.0.1")
        done.append(dict(work))
    assert done[0]["hash_recovery_code"] == done[0]["compare_digest"] == 1
    assert done[0]["statements"] == 2
    assert done == [done[0]] * 3


class Counting:
    """A transaction that counts what it is asked."""

    def __init__(self, tx: Tx, work: Counter[str]) -> None:
        self._tx = tx
        self._work = work

    async def fetch_one(self, sql: str, values: tuple[SqlValue, ...] = ()) -> Any:
        self._work["statements"] += 1
        return await self._tx.fetch_one(sql, values)


@pytest.mark.sqlite("counts by the clock of the test, and not by a server's")
@pytest.mark.settings(rate_limits="on", rates={"missed_handles_per_hour": 8})
async def test_no_tool_tells_without_end_which_handles_there_are(hub, clock):
    alice, bob = await hub.people("alice", "bob")
    await bob.call("msg/set_profile", privacy="private")
    for number, (tool, arguments, said) in enumerate(
        (
            ("msg/add_contact", {"handle": "nobody1"}, "User not found."),
            ("msg/block", {"handle": "nobody1"}, "User not found."),
            ("msg/block", {"handle": "x!", "action": "unblock"}, "User not found."),
            ("msg/lookup", {"handle": "bob"}, "User not found."),
            ("msg/remove_contact", {"handle": "bob"}, "Contact not found."),
            ("msg/send", {"to": "nobody1", "body": "x"}, "User not found."),
            ("msg/send", {"to": "bob", "body": "x"}, "Cannot send message to this user."),
            ("msg/change_handle", {"new_handle": "bob"}, "Handle already taken."),
        )
    ):
        # What succeeds does not count.
        await alice.call("msg/lookup", handle="alice")
        assert await alice.refused(tool, **arguments) == said, number
    for tool, arguments in (
        ("msg/add_contact", {"handle": "bob"}),
        ("msg/send", {"to": "nobody1", "body": "x"}),
        ("msg/lookup", {"handle": "bob"}),
        ("msg/block", {"handle": "nobody1"}),
        ("msg/remove_contact", {"handle": "bob"}),
        ("msg/change_handle", {"new_handle": "nobody1"}),
    ):
        assert await limited(alice, tool, **arguments) == "60 minutes."
    assert (await bob.call("msg/add_contact", handle="alice"))["contact"] == "alice"
    clock.ahead = 3_601
    assert await alice.refused("msg/lookup", handle="nobody1") == "User not found."


@pytest.mark.settings(rate_limits="on", rates={"refused_handles_per_hour": 3})
async def test_registering_tells_one_address_only_so_many_taken_handles(hub):
    await hub.hub.accounts.register("alice")
    for handle, said in (
        ("alice", "Handle already taken."),
        ("admin", "This handle needs an invite that was made for it."),
        ("@ALICE", "Handle already taken."),
    ):
        assert await use(hub, "msg_register", "127.0.0.66", handle=handle) == said
    for handle in ("alice", "free_one"):
        told = await use(hub, "msg_register", "127.0.0.66", handle=handle)
        assert told.startswith("Rate limit exceeded. Try again in 60 minutes.")
    assert await use(hub, "msg_register", "127.0.0.1", handle="free_one") == ""


@pytest.mark.settings(
    rate_limits="on", rates={"sign_in_per_hour": 3}, http={"trusted_proxies": ["127.0.0.1"]}
)
async def test_an_account_that_was_taken_over_guesses_no_faster_from_everywhere(hub):
    """The lockout per account and address; passkeys and tokens work on elsewhere."""
    made = await hub.hub.accounts.register("alice")
    taken_over, owner = Browser(hub.port), Browser(hub.port)
    await taken_over.sign_in(made.token)
    authenticator, passkey = await add_passkey(taken_over)
    path = f"{PASSKEYS}/{passkey['id']}"

    async def guess(number: int) -> int:
        there = {"x_forwarded_for": f"192.0.2.{number}"}
        return (await taken_over.ask("DELETE", path, folkmoot_confirm=WRONG, **there)).status

    assert [await guess(number) for number in range(5)] == [403, 403, 403, 429, 429]
    there = {"x_forwarded_for": "198.51.100.7"}
    assert (await sign_in_with_passkey(owner, authenticator)).status == 200
    given = {"token": made.token}
    assert (await Browser(hub.port).ask("POST", "/v1/session", given, **there)).status == 200


async def test_no_way_to_sign_in_tells_who_is_here(hub):
    """Enumeration: what names nobody and what was somebody's is answered alike."""
    accounts = hub.hub.accounts
    gone, here = (await accounts.register("gone"), await accounts.register("alice"))
    used = (await accounts.browsers.create_code(here.account)).code
    await accounts.browsers.use_code(used)
    await accounts.delete(gone.account)
    unknown = gone.token[:-1] + ("0" if gone.token[-1] != "0" else "1")
    for path, member, tried in (
        ("/v1/session", "token", (gone.token, unknown, "alice", "gone")),
        ("/v1/session/code", "code", (used, "oc_" + "0" * 64, "alice", "gone")),
        ("/v1/session/passkey", "ticket", ("alice", "gone", "x")),
    ):
        more = {"credential": "{}"} if member == "ticket" else {}
        told = [await Browser(hub.port).ask("POST", path, {member: it, **more}) for it in tried]
        assert len({(each.status, each.body) for each in told}) == 1
        assert told[0].status in (401, 403)
