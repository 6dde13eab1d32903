"""A hub that stops and starts again, as those in its rooms see it."""

from __future__ import annotations

import json
import signal
from contextlib import AsyncExitStack, suppress

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from folkmoot.core.closecodes import CloseCode
from tests.harness import run
from tests.process import Process
from tests.transports.rooms.support import ROOM, Seat, town

BURST = 300


async def seqs_until_end(seat: Seat) -> list[int]:
    """The `seq`s of what came until the hub closed the connection for its restart."""
    found = []
    with suppress(ConnectionClosed):
        while True:
            found.append((await seat.hear())["seq"])
    assert (await seat.ended()).code == CloseCode.RESTARTING
    return found


@pytest.mark.requirement("room.close-restarting", "room.resume")
@pytest.mark.parametrize("durable", [True, False])
async def test_a_planned_stop_closes_with_1012_after_all_that_is_stored_was_heard(
    tmp_path, durable
):
    async with AsyncExitStack() as clients:
        async with town(tmp_path) as there:
            ann, bob = await there.person("ann"), await there.person("bob")
            await there.room(ann, durable=durable)
            seat = await clients.enter_async_context(there.joined(ann.token))
            other = await clients.enter_async_context(there.joined(bob.token))
            for number in range(BURST):
                await seat.say(f"{number}", id=f"m-{number}")
        mine, theirs = await seqs_until_end(seat), await seqs_until_end(other)
    assert mine == list(range(1, len(mine) + 1))
    assert theirs == mine[1:]
    async with town(tmp_path) as there:
        query = {"after": mine[-1], "epoch": seat.welcome["epoch"]}
        async with there.joined(ann.token, **query) as again:
            assert again.welcome["resume"]["complete"] is durable
            if durable:
                # Nothing was stored that nobody heard, and to stop is not to leave.
                assert again.welcome["history"]["last_seq"] == mine[-1]
                assert {one["id"] for one in again.welcome["participants"]} == {"ann", "bob"}
                await again.say("again", id="again")
                told = await again.hear()
                assert (told["id"], told["seq"]) == ("again", mine[-1] + 1)


@pytest.mark.requirement("log.tokens-redacted", "room.guest-secret")
def test_no_token_of_a_room_is_in_what_the_process_writes(tmp_path):
    async def first() -> tuple[str, str]:
        async with town(tmp_path) as there:
            ann = await there.person("ann")
            await there.room(ann)
            invitation = await there.hub.rooms.invite(ann.visitor, ROOM, guest="gil")
            return ann.token, invitation.token or ""

    async def second(port: int, token: str, invitation: str) -> str:
        url = f"ws://127.0.0.1:{port}/ws?room={ROOM}&token="
        async with connect(url + invitation) as socket:
            credential: str = json.loads(await socket.recv())["payload"]["credential"]
        for given in (invitation, credential, token):
            async with connect(f"{url}{given}&conn={given[:40]}") as socket:
                with suppress(ConnectionClosed):
                    await socket.recv()
        return credential

    token, invitation = run(first())
    with Process(tmp_path, FOLKMOOT_LOG_REQUESTS="all", FOLKMOOT_LOG_LEVEL="debug") as hub:
        credential = run(second(hub.port, token, invitation))
        hub.signal(signal.SIGTERM)
        code, output = hub.ended()
    assert code == 0
    assert '"/ws"' in output
    for secret in (token, invitation, credential):
        assert secret[3:20] not in output
