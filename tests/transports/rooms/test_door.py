"""Who is let into a room, as a client none of us wrote sees it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from folkmoot.clock import SystemClock
from folkmoot.core import errors as e
from folkmoot.core.closecodes import CLOSE_REASONS, CloseCode
from folkmoot.ratelimits import RateLimits
from folkmoot.rooms import Visitor
from folkmoot.transports.address import Addresses
from folkmoot.transports.rooms import RoomDoor, door
from folkmoot.transports.websocket import Refusal, UpgradeRequest
from tests.harness import run
from tests.transports.rooms.support import ROOM, Town, ending, town

STRANGER = "sk_" + "ab" * 32


async def refusal(there: Town, token: str = "", **query: object) -> tuple[int, str]:
    """The code and reason with which a connection is closed that nobody lets in."""
    async with connect(there.url(token, **query)) as socket:
        end = await ending(socket)
        return end.code, end.reason


@pytest.mark.requirement("room.join", "room.welcome-first", "wire.own-message-back")
async def test_whoever_joins_is_welcomed_and_hears_their_own_words_with_a_seq(
    tmp_path: Path,
) -> None:
    async with town(tmp_path) as there:
        ann = await there.person("ann")
        await there.room(ann)
        async with there.joined(ann.token) as seat:
            assert seat.welcome["you"]["id"] == "ann"
            assert seat.welcome["room"] == ROOM
            assert (await seat.hear())["kind"] == "system.presence.join"
            await seat.say("hello", id="one")
            echo = await seat.hear()
            assert (echo["id"], echo["from"], echo["seq"]) == ("one", "ann", 2)


@pytest.mark.requirement("room.join", "room.topic")
async def test_the_token_may_be_in_the_header_and_the_room_under_its_older_name(
    tmp_path: Path,
) -> None:
    async with town(tmp_path) as there:
        ann = await there.person("ann")
        await there.room(ann)
        headers = {"Authorization": f"Bearer {ann.token}"}
        url = there.url().replace("room=", "topic=")
        async with connect(url, additional_headers=headers) as socket:
            assert '"system.welcome"' in str(await socket.recv())


@pytest.mark.requirement("room.close-bad-request")
async def test_a_query_that_cannot_be_understood_is_closed_as_a_bad_request(tmp_path: Path) -> None:
    async with town(tmp_path) as there:
        ann = await there.person("ann")
        await there.room(ann)
        for query in (
            {"room": ""},
            {"topic": "square"},
            {"after": "-1"},
            {"conn": "x" * 65},
            {"room": "Not a name!"},
        ):
            code, reason = await refusal(there, ann.token, **query)
            assert code == CloseCode.BAD_REQUEST, query
            assert reason
        headers = {"Authorization": f"Bearer {STRANGER}"}
        async with connect(there.url(ann.token), additional_headers=headers) as socket:
            end = await ending(socket)
        assert end.code == CloseCode.BAD_REQUEST
        assert ann.token not in end.reason


@pytest.mark.requirement("room.close-not-authenticated")
@pytest.mark.parametrize("token", ["", STRANGER, "hello", "gk_" + "ab" * 32, "gi_" + "ab" * 32])
async def test_a_token_that_is_nobodys_is_closed_as_not_authenticated(
    tmp_path: Path, token: str
) -> None:
    async with town(tmp_path) as there:
        await there.room(await there.person("ann"))
        code, reason = await refusal(there, token)
        assert code == CloseCode.NOT_AUTHENTICATED
        assert "ab" not in reason


@pytest.mark.requirement("room.close-no-room")
async def test_a_room_that_is_not_there_or_not_to_be_known_of_is_not_found(tmp_path: Path) -> None:
    async with town(tmp_path) as there:
        ann, bob = await there.person("ann"), await there.person("bob")
        await there.room(ann, "secret", access="private")
        absent = await refusal(there, bob.token, room="nowhere")
        hidden = await refusal(there, bob.token, room="secret")
        assert absent == hidden
        assert absent[0] == CloseCode.NO_SUCH_ROOM


@pytest.mark.requirement("room.close-not-allowed")
async def test_a_room_for_those_who_were_invited_lets_nobody_else_in(tmp_path: Path) -> None:
    async with town(tmp_path) as there:
        ann, bob = await there.person("ann"), await there.person("bob")
        await there.room(ann, access="invite")
        assert (await refusal(there, bob.token))[0] == CloseCode.NOT_ALLOWED
        await there.hub.rooms.invite(ann.visitor, ROOM, handle="bob")
        async with there.joined(bob.token) as seat:
            assert seat.welcome["you"]["id"] == "bob"


async def test_one_who_has_as_many_connections_as_one_may_have_is_told_so(tmp_path: Path) -> None:
    async with town(tmp_path) as there:
        ann = await there.person("ann")
        await there.room(ann)
        sockets = [await connect(there.url(ann.token)) for _ in range(16)]
        code, reason = await refusal(there, ann.token)
        assert code == CloseCode.NOT_ALLOWED
        assert reason.endswith(".")
        await asyncio.gather(*(socket.close() for socket in sockets))


@pytest.mark.requirement("room.guest-once")
async def test_a_guest_comes_in_with_an_invitation_once_and_then_with_its_credential(
    tmp_path: Path,
) -> None:
    async with town(tmp_path) as there:
        ann = await there.person("ann")
        await there.room(ann)
        async with there.joined(ann.token) as host:
            invitation = await there.hub.rooms.invite(ann.visitor, ROOM, guest="gil")
            assert invitation.token is not None
            async with there.joined(invitation.token) as seat:
                credential = seat.welcome["credential"]
                assert seat.welcome["you"]["id"] == "gil"
                await seat.say("hello")
                await host.heard("hello")
            again = await refusal(there, invitation.token)
            assert again[0] == CloseCode.NOT_AUTHENTICATED
            async with there.joined(credential) as seat:
                assert seat.welcome["you"]["id"] == "gil"
                assert "credential" not in seat.welcome
            assert (await refusal(there, credential, room="other"))[0] in (
                CloseCode.NO_SUCH_ROOM,
                CloseCode.NOT_ALLOWED,
            )


@pytest.mark.requirement("room.guest-once")
async def test_of_two_who_use_one_invitation_at_once_one_comes_in(tmp_path: Path) -> None:
    async with town(tmp_path) as there:
        ann = await there.person("ann")
        await there.room(ann)
        invitation = await there.hub.rooms.invite(ann.visitor, ROOM, guest="gil")
        url = there.url(invitation.token or "")
        async with connect(url) as one, connect(url) as two:
            first = await asyncio.gather(one.recv(), two.recv(), return_exceptions=True)
            welcomes = [told for told in first if isinstance(told, str)]
            assert len(welcomes) == 1


@pytest.mark.parametrize("change", ["delete", "recover"])
async def test_whose_token_is_void_before_they_are_in_is_put_out_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    async with town(tmp_path) as there:
        ann = await there.person("ann")
        registered = await there.hub.accounts.register("bob")
        await there.room(ann)
        enter = there.hub.rooms.enter

        async def late(visitor: Visitor, name: str) -> Any:
            if change == "delete":
                await there.hub.accounts.delete(registered.account)
            else:
                await there.hub.accounts.recover("bob", registered.recovery_code)
            return await enter(visitor, name)

        monkeypatch.setattr(there.hub.rooms, "enter", late)
        async with connect(there.url(registered.token)) as socket:
            assert (await ending(socket)).code == CloseCode.NOT_AUTHENTICATED


async def test_a_page_of_another_origin_gets_no_websocket(tmp_path: Path) -> None:
    async with town(tmp_path) as there:
        ann = await there.person("ann")
        await there.room(ann)
        with pytest.raises(InvalidStatus) as refused:
            await connect(there.url(ann.token), origin="https://evil.example")  # type: ignore[arg-type]
        assert refused.value.response.status_code == 403


async def test_whoever_guesses_invitations_is_stopped_and_told_when_to_go_on(
    tmp_path: Path,
) -> None:
    async with town(tmp_path, rate_limits="on", rates={"guest_per_hour": 2}) as there:
        ann = await there.person("ann")
        await there.room(ann)
        real = await there.hub.rooms.invite(ann.visitor, ROOM, guest="zoe")
        for guess in ("0", "1"):
            code, _ = await refusal(there, "gi_" + guess * 64)
            assert code == CloseCode.NOT_AUTHENTICATED
        code, reason = await refusal(there, real.token or "")
        assert code == CloseCode.OVER_RATE
        assert reason.startswith("Rate limit exceeded.")
        async with there.joined(ann.token):
            pass


class Broken:
    """Rooms behind a database that does not answer, or not well."""

    changes = 0

    def __init__(self, error: Exception | None) -> None:
        self._error = error

    async def authenticate(self, token: str) -> Visitor:
        if self._error is None:
            await asyncio.Event().wait()
        raise self._error or AssertionError


async def refused_by(rooms: Any) -> object:
    request = UpgradeRequest({"headers": []}, {"room": [ROOM], "token": [STRANGER]})
    unasked: Any = None
    limits = RateLimits(SystemClock(), {})
    door = RoomDoor(rooms, unasked, limits=limits, addresses=Addresses())
    return await door.accept(request)


def test_a_failure_of_the_hubs_own_is_told_without_its_particulars() -> None:
    broken = Broken(e.DatabaseUnwritable("/var/lib/hub/folkmoot.db cannot be written."))
    expected = Refusal(CloseCode.INTERNAL, CLOSE_REASONS[CloseCode.INTERNAL])
    assert run(refused_by(broken)) == expected


def test_whoever_would_wait_too_long_is_told_to_try_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(door, "ENTER_SECONDS", 0.05)
    assert run(refused_by(Broken(None))) == door.TOO_LONG
    assert door.TOO_LONG.code == CloseCode.INTERNAL
