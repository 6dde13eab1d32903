"""Whose request begins next while the hub is busy."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from folkmoot.transports import connections
from folkmoot.transports.address import Addresses
from folkmoot.transports.connections import Metered, Turns, sign_in
from folkmoot.transports.limits import MIN_BEGUN_PER_TURN, USE_HALF_LIFE_SECONDS
from tests.clocks import StillClock
from tests.harness import served

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.types import Receive, Scope, Send


REQUEST = b"GET / HTTP/1.1\r\nhost: x\r\n\r\n"
MANY = 20


async def turned(loops: int) -> None:
    """Let the loop turn so many times."""
    for _ in range(loops):
        await asyncio.sleep(0)


class Waiting(Turns):
    """Turns where mallory has used much, and the requests that have begun."""

    def __init__(self) -> None:
        super().__init__()
        self.used["mallory"] = 0.5
        self.begun: list[str] = []

    def ask(self, who: str, number: int = 0) -> None:
        self.begin(who, lambda: self.begun.append(f"{who} {number}"))


@pytest.fixture
def waiting() -> Waiting:
    return Waiting()


async def test_a_request_begins_at_once_while_there_is_time(waiting):
    for number in range(3):
        waiting.ask("ann")
        assert len(waiting.begun) == number + 1
        await turned(3)


async def test_whoever_used_much_waits_behind_whoever_used_little(waiting):
    for number in range(MANY):
        waiting.ask("mallory", number)
    waiting.ask("ann")
    await turned(MANY)
    assert waiting.begun.index("ann 0") == MIN_BEGUN_PER_TURN
    assert waiting.begun[-1] == f"mallory {MANY - 1}", "everyone has a turn"


async def test_a_request_that_has_begun_waits_for_the_turn_of_whom_it_is_for(waiting):
    begun: list[str] = []

    async def forwarded(who: str) -> None:
        await waiting.wait(who)
        begun.append(who)

    async with asyncio.TaskGroup() as tasks:
        for _ in range(MANY):
            tasks.create_task(forwarded("mallory"))
        left = tasks.create_task(forwarded("eve"))
        tasks.create_task(forwarded("ann"))
        await asyncio.sleep(0)
        left.cancel()
    assert begun.index("ann") == MIN_BEGUN_PER_TURN
    assert begun.count("mallory") == MANY
    assert "eve" not in begun


async def test_the_more_wait_the_more_begin_in_a_turn(waiting):
    for number in range(400):
        waiting.ask("ann", number)
    await turned(30)
    assert waiting.begun == [f"ann {number}" for number in range(400)]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> StillClock:
    """The time of the turns."""
    made = StillClock()
    monkeypatch.setattr(connections, "monotonic", made.monotonic)
    return made


async def test_who_has_waited_long_enough_comes_before_newer_requests_of_others(clock, waiting):
    for _ in range(MIN_BEGUN_PER_TURN):
        waiting.ask("bob")
    waiting.ask("mallory")
    clock.seconds += 0.6
    waiting.ask("ann")
    await turned(3)
    assert waiting.begun[MIN_BEGUN_PER_TURN:] == ["mallory 0", "ann 0"]


async def test_what_was_used_is_forgotten_by_halves(clock, waiting):
    waiting.used["ann"] = 0.0005
    for _ in range(2):
        clock.seconds += USE_HALF_LIFE_SECONDS
        waiting.ask("ann")
        await turned(3)
    assert waiting.used == {"mallory": 0.125}


async def test_the_time_of_a_request_is_counted_as_its_sender_s_and_waiting_is_not(clock):
    async def work() -> None:
        clock.seconds += 0.25
        await asyncio.sleep(0)
        clock.seconds += 0.5
        raise ValueError

    async def others() -> None:
        clock.seconds += 7

    waiting = Turns()
    mine = asyncio.get_running_loop().create_task(Metered(work(), waiting, "ann"))
    await asyncio.gather(mine, others(), return_exceptions=True)
    assert isinstance(mine.exception(), ValueError)
    assert waiting.used == {"ann": 0.75}


async def test_a_request_can_be_cancelled_while_it_is_metered():
    ended = asyncio.Event()

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    task = asyncio.get_running_loop().create_task(Metered(work(), Turns(), "ann"))
    await turned(1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended.is_set()


async def answer(send: Send) -> None:
    await send({"type": "http.response.start", "status": 204, "headers": []})
    await send({"type": "http.response.body", "body": b""})


async def test_a_flood_from_one_address_leaves_the_others_their_turn():
    order: list[str] = []

    async def app(scope: Scope, _: Receive, send: Send) -> None:
        host = scope["client"][0]
        if host == "127.0.0.2":
            busy_until = asyncio.get_running_loop().time() + 0.002
            while asyncio.get_running_loop().time() < busy_until:
                pass
        order.append(host)
        await answer(send)

    async with served(app) as hub:

        async def connected(host: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
            return await asyncio.open_connection("127.0.0.1", hub.port, local_addr=(host, 0))

        flood = [await connected("127.0.0.2") for _ in range(MANY)]
        guest = await connected("127.0.0.3")
        for asking in (flood, [*flood, guest]):
            for _, writer in asking:
                writer.write(REQUEST)
            for reader, _ in asking:
                await reader.readuntil(b"\r\n\r\n")
        assert len(order) == 2 * MANY + 1
        assert order.index("127.0.0.3") < MANY + MANY // 2
        for _, writer in [*flood, guest]:
            writer.close()


async def test_clients_behind_one_proxy_have_turns_of_their_own():
    async def app(scope: Scope, _: Receive, send: Send) -> None:
        if scope["path"] == "/ann":
            sign_in(scope, "ann")
        await answer(send)

    addresses = Addresses(["127.0.0.1"])
    behind = {"address_of": addresses.of_peer, "locate": addresses.of}
    async with served(app, **behind) as hub:
        turns = hub.server._protocols.open_connections.turns
        begin, who = turns.begin, []

        def note(whose: str, start: Callable[[], object]) -> None:
            who.append(whose)
            begin(whose, start)

        turns.begin = note
        reader, writer = await asyncio.open_connection("127.0.0.1", hub.port)
        # The proxy has one connection for all.
        for path, client in (("/ann", "192.0.2.1"), ("/", "192.0.2.2"), ("/", "192.0.2.1")):
            head = f"GET {path} HTTP/1.1\r\nhost: x\r\nx-forwarded-for: {client}\r\n\r\n"
            writer.write(head.encode())
            await reader.readuntil(b"\r\n\r\n")
        writer.close()
    assert who == ["192.0.2.1", "192.0.2.2", "192.0.2.1"]
