"""Who is let into a room, as a client none of us wrote sees it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from folkmoot.core import errors as e
from folkmoot.core.closecodes import CLOSE_REASONS, CloseCode
from folkmoot.rooms import Visitor
from folkmoot.transports.rooms import door
from tests.transports.rooms.support import ROOM, Town, ending

STRANGER = "sk_" + "ab" * 32


async def refusal(there: Town, token: str = "", **query: object) -> tuple[int, str]:
    """The code and reason with which a connection is closed that nobody lets in."""
    async with connect(there.url(token, **query)) as socket:
        end = await ending(socket)
        return end.code, end.reason


@pytest.mark.requirement("room.join", "room.welcome-first", "wire.own-message-back")
async def test_whoever_joins_is_welcomed_and_hears_their_own_words_with_a_seq(seat):
    assert (seat.welcome["you"]["id"], seat.welcome["room"]) == ("ann", ROOM)
    assert (await seat.hear())["kind"] == "system.presence.join"
    await seat.say("hello", id="one")
    echo = await seat.hear()
    assert (echo["id"], echo["from"], echo["seq"]) == ("one", "ann", 2)


@pytest.mark.requirement("room.join", "room.topic")
async def test_the_token_may_be_in_the_header_and_the_room_under_its_older_name(hub, ann):
    headers = {"Authorization": f"Bearer {ann.token}"}
    url = hub.url().replace("room=", "topic=")
    async with connect(url, additional_headers=headers) as socket:
        assert '"system.welcome"' in str(await socket.recv())


@pytest.mark.requirement("room.close-bad-request")
async def test_a_query_that_cannot_be_understood_is_closed_as_a_bad_request(hub, ann):
    for query in ({"room": ""}, {"after": "-1"}, {"room": "Not a name!"}):
        code, reason = await refusal(hub, ann.token, **query)
        assert code == CloseCode.BAD_REQUEST, query
        assert reason
    headers = {"Authorization": f"Bearer {STRANGER}"}
    async with connect(hub.url(ann.token), additional_headers=headers) as socket:
        end = await ending(socket)
    assert end.code == CloseCode.BAD_REQUEST
    assert ann.token not in end.reason


@pytest.mark.requirement("room.close-not-authenticated")
async def test_a_token_that_is_nobodys_is_closed_as_not_authenticated(hub, ann):
    for token in ("", STRANGER, "hello", "gk_" + "ab" * 32, "gi_" + "ab" * 32):
        code, reason = await refusal(hub, token)
        assert code == CloseCode.NOT_AUTHENTICATED
        assert "ab" not in reason


@pytest.mark.requirement("room.close-no-room", "room.close-not-allowed")
async def test_a_room_that_is_not_there_or_not_to_be_known_of_is_not_found(hub, ann, bob):
    await hub.room(ann, "secret", access="private")
    absent = await refusal(hub, bob.token, room="nowhere")
    assert absent == await refusal(hub, bob.token, room="secret")
    assert absent[0] == CloseCode.NO_SUCH_ROOM
    await hub.room(ann, "club", access="invite")
    assert (await refusal(hub, bob.token, room="club"))[0] == CloseCode.NOT_ALLOWED
    await hub.hub.rooms.invite(ann.visitor, "club", handle="bob")
    async with hub.joined(bob.token, room="club") as seat:
        assert seat.welcome["you"]["id"] == "bob"


async def test_one_who_has_as_many_connections_as_one_may_have_is_told_so(hub, ann):
    sockets = [await connect(hub.url(ann.token)) for _ in range(16)]
    assert (await refusal(hub, ann.token))[0] == CloseCode.NOT_ALLOWED
    await asyncio.gather(*(socket.close() for socket in sockets))


@pytest.mark.requirement("room.guest-once")
async def test_a_guest_comes_in_with_an_invitation_once_and_then_with_its_credential(
    hub, ann, seat
):
    invitation = await hub.hub.rooms.invite(ann.visitor, ROOM, guest="gil")
    assert invitation.token is not None
    async with hub.joined(invitation.token) as guest:
        credential = guest.welcome["credential"]
        assert guest.welcome["you"]["id"] == "gil"
        await guest.say("hello")
        await seat.heard("hello")
    assert (await refusal(hub, invitation.token))[0] == CloseCode.NOT_AUTHENTICATED
    async with hub.joined(credential) as guest:
        assert guest.welcome["you"]["id"] == "gil"
        assert "credential" not in guest.welcome
    elsewhere, _ = await refusal(hub, credential, room="other")
    assert elsewhere in (CloseCode.NO_SUCH_ROOM, CloseCode.NOT_ALLOWED)


@pytest.mark.parametrize("change", ["delete", "recover"])
async def test_whose_token_is_void_before_they_are_in_is_put_out_at_once(
    hub, ann, monkeypatch, change
):
    rooms, accounts = hub.hub.rooms, hub.hub.accounts
    registered = await accounts.register("bob")
    enter = rooms.enter

    async def late(visitor: Visitor, name: str) -> Any:
        if change == "delete":
            await accounts.delete(registered.account)
        else:
            await accounts.recover("bob", registered.recovery_code)
        return await enter(visitor, name)

    monkeypatch.setattr(rooms, "enter", late)
    assert (await refusal(hub, registered.token))[0] == CloseCode.NOT_AUTHENTICATED


async def test_a_page_of_another_origin_gets_no_websocket(hub, ann):
    with pytest.raises(InvalidStatus) as refused:
        await connect(hub.url(ann.token), origin="https://evil.example")  # type: ignore[arg-type]
    assert refused.value.response.status_code == 403


@pytest.mark.settings(rate_limits="on", rates={"guest_per_hour": 2})
async def test_whoever_guesses_invitations_is_stopped_and_told_when_to_go_on(hub, ann):
    real = await hub.hub.rooms.invite(ann.visitor, ROOM, guest="zoe")
    for guess in ("0", "1"):
        code, _ = await refusal(hub, "gi_" + guess * 64)
        assert code == CloseCode.NOT_AUTHENTICATED
    code, reason = await refusal(hub, real.token or "")
    assert code == CloseCode.OVER_RATE
    assert reason.startswith("Rate limit exceeded.")
    async with hub.joined(ann.token):
        pass


async def test_a_failure_of_the_hubs_own_is_told_without_its_particulars(hub, ann, monkeypatch):
    async def broken(_: str) -> Visitor:
        raise e.DatabaseUnwritable("/var/lib/hub/folkmoot.db cannot be written.")

    monkeypatch.setattr(hub.hub.rooms, "authenticate", broken)
    internal = CloseCode.INTERNAL
    assert await refusal(hub, ann.token) == (internal, CLOSE_REASONS[internal])


async def test_whoever_would_wait_too_long_is_told_to_try_again(hub, ann, monkeypatch):
    async def hanging(_: str) -> Visitor:
        return await asyncio.get_running_loop().create_future()

    monkeypatch.setattr(door, "ENTER_SECONDS", 0.05)
    monkeypatch.setattr(hub.hub.rooms, "authenticate", hanging)
    assert await refusal(hub, ann.token) == (CloseCode.INTERNAL, door.TOO_LONG.reason)
