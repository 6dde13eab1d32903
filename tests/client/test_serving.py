"""Several connections of one account: one of them serves, and each call is run once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import msgspec
import pytest

from folkmoot.client import Gap, Message, OpenProposal, OpenRequest, Room
from folkmoot.core import errors as e
from tests.client.hub import CuttingHub, cutting_hub
from tests.client.support import SOON, enter, eventually, outcome_of
from tests.transports.rooms.support import ROOM, Person, Town


class Agent:
    """A program with tools, and what it ran."""

    def __init__(self, room: Room, **tool: Any) -> None:
        self.room = room
        self.ran: list[int] = []
        self.free = asyncio.Event()
        self.free.set()

        @room.tool(**tool)
        async def act(n: int) -> str:
            self.ran.append(n)
            await self.free.wait()
            return str(n)


def serving(room: Room) -> bool:
    return room._service._serving


@pytest.mark.requirement("serving.newest", "serving.begun-once")
async def test_of_two_connections_of_one_account_the_newest_runs_a_call_and_runs_it_once(
    hub, alice
):
    first, second = Agent(enter(hub, "bob")), Agent(enter(hub, "bob"))
    async with first.room:
        assert (await alice.call("bob", "act", {"n": 1})).text == "1"
        async with second.room:
            assert (await alice.call("bob", "act", {"n": 2})).text == "2"
        await eventually(lambda: serving(first.room))
        assert (await alice.call("bob", "act", {"n": 3})).text == "3"
    assert (first.ran, second.ran) == ([1, 3], [2])


@pytest.mark.requirement("serving.begun-once")
async def test_a_call_that_is_running_is_not_begun_by_the_one_that_comes(hub, alice):
    first, second = Agent(enter(hub, "bob")), Agent(enter(hub, "bob"))
    first.free.clear()
    async with first.room, asyncio.TaskGroup() as tasks:
        calling = tasks.create_task(alice.call("bob", "act", {"n": 1}))
        await eventually(lambda: first.ran == [1])
        async with second.room:
            first.free.set()
            assert (await calling).text == "1"
            assert second.ran == []


@pytest.mark.requirement("serving.take-over")
async def test_the_next_takes_over_what_the_first_had_not_begun(hub, alice):
    standby = Agent(enter(hub, "bob"))
    first = Agent(enter(hub, "bob", calls_at_once=1))
    first.free.clear()
    async with standby.room, asyncio.TaskGroup() as tasks:
        async with first.room:
            calls = [
                tasks.create_task(outcome_of(alice.call("bob", "act", {"n": n}))) for n in range(3)
            ]
            await eventually(lambda: first.ran == [0])
            await eventually(lambda: len(first.room._service._running) == 3)
        assert [await call for call in calls] == ["interrupted", "1", "2"]
        assert (first.ran, sorted(standby.ran)) == ([0], [1, 2])


@pytest.mark.requirement("serving.interrupted")
@pytest.mark.parametrize("decided", [None, True, False])
async def test_a_call_that_was_interrupted_is_run_again_only_if_the_author_says_so(decided):
    async with interrupted() as (calling, standby):
        asked: list[Message] = []
        if decided is not None:

            @standby.room.on_interrupted
            async def decide(request: Message) -> bool | None:
                asked.append(request)
                return decided

        assert await calling == ("1" if decided else "interrupted")
        assert standby.ran == ([1] if decided else [])
        assert [one.payload["params"]["arguments"] for one in asked] == [{"n": 1}] * len(asked)
        assert len(asked) == (decided is not None)


async def test_an_author_may_answer_an_interrupted_call_by_hand():
    async with interrupted() as (calling, standby):
        asked: asyncio.Queue[Message] = asyncio.Queue()

        @standby.room.on_interrupted
        def decide(request: Message) -> None:
            asked.put_nowait(request)

        request = await asked.get()
        found = {"content": [{"type": "text", "text": "it was done"}]}
        await standby.room.respond(request, result=found)
        assert await calling == "it was done"


async def test_an_author_whose_function_fails_has_the_call_answered_with_an_error(caplog):
    async with interrupted() as (calling, standby):

        @standby.room.on_interrupted
        def decide(request: Message) -> bool:
            raise ZeroDivisionError

        assert await calling == "interrupted"
    assert "nothing was decided" in caplog.text


@pytest.mark.requirement("serving.interrupted")
async def test_a_call_of_an_idempotent_tool_runs_again():
    async with interrupted(idempotent=True) as (calling, standby):
        assert await calling == "1"
        assert standby.ran == [1]
        (listed,) = [tool.listed for tool in standby.room.tools.values()]
        assert listed["annotations"] == {"idempotentHint": True}


@asynccontextmanager
async def interrupted(**tool: Any) -> AsyncIterator[tuple[asyncio.Task[Any], Agent]]:
    """Alice has called bob, who was cut off for good while the call ran; another is there."""
    async with cutting_hub() as there, enter(there, "alice") as alice:
        standby, first = Agent(enter(there, "bob"), **tool), Agent(enter(there, "bob"), **tool)
        first.free.clear()
        async with standby.room, asyncio.TaskGroup() as tasks:
            async with first.room:
                calling = tasks.create_task(outcome_of(alice.call("bob", "act", {"n": 1})))
                await eventually(lambda: first.ran == [1])
            await eventually(lambda: serving(standby.room))
            asyncio.get_running_loop().call_soon(there.tick)
            yield calling, standby


@pytest.mark.settings(return_seconds=30.0)
@pytest.mark.parametrize("moment", ["before", "after", "told bob"])
async def test_a_call_is_run_once_wherever_the_connection_is_lost_while_it_is_begun(
    hub, alice, moment
):
    agent, standby = Agent(enter(hub, "bob")), Agent(enter(hub, "bob"))
    async with standby.room, agent.room:
        hub.cut_once(moment, "mcpx.begin.request")
        called = await alice.call("bob", "act", {"n": 1}, timeout=30)
        assert called.text == "1"
        assert sorted(agent.ran + standby.ran) == [1]


async def test_offering_the_first_tool_after_coming_in_is_told_to_the_hub(hub, alice):
    async with enter(hub, "bob") as room:
        assert "serve" not in hub.joins[-1]
        agent = Agent(room)
        assert (await alice.call("bob", "act", {"n": 1})).text == "1"
        assert hub.joins[-1]["serve"] == "1"
        assert hub.joins[-1]["conn"] == hub.joins[-2]["conn"]
        assert agent.ran == [1]
        assert hub.kinds().count("system.presence.join") == 2


async def test_a_hub_that_knows_nothing_of_serving_is_served_as_before(hub, alice):
    hub.knows_serving = False
    agent = Agent(enter(hub, "bob"))
    async with agent.room:
        assert (await alice.call("bob", "act", {"n": 1})).text == "1"
    assert not [kind for kind in hub.kinds() if kind.startswith("mcpx.begin")]


async def test_what_cannot_be_fetched_is_said_in_the_log_and_ends_nothing(
    hub: CuttingHub, alice: Room, caplog: pytest.LogCaptureFixture
):
    # This hub has no REST.
    async with enter(hub, "bob") as watching:
        asking = asyncio.ensure_future(outcome_of(alice.call("bob", "act", {"n": 1})))
        await eventually(lambda: watching.last_seq >= 3)
        agent = Agent(enter(hub, "bob"))
        async with agent.room:
            await eventually(lambda: "could not be fetched" in caplog.text)
            assert (await alice.call("bob", "act", {"n": 2})).text == "2"
        asking.cancel()


class Square(NamedTuple):
    """A room of a real hub, its owner and an agent's account."""

    there: Town
    owner: Person
    account: Person

    def enter(self, who: Person, **more: Any) -> Room:
        return Room(self.there.hub.base_url, room=ROOM, token=who.token, backoff=SOON, **more)


@pytest.fixture
async def square(town: Town) -> AsyncIterator[Square]:
    owner, account = await town.person("alice"), await town.person("rob")
    await town.room(owner, capabilities=None)
    yield Square(town, owner, account)  # noqa: PT022 - as async fixtures are


@pytest.mark.requirement("room.welcome-waiting")
async def test_a_program_that_comes_later_runs_what_was_asked_and_never_begun(square: Square):
    # Someone is there under the agent's name, and offers nothing.
    async with (
        square.enter(square.owner) as alice,
        square.enter(square.account) as watching,
        asyncio.TaskGroup() as tasks,
    ):
        calls = [tasks.create_task(alice.call("rob", "act", {"n": n})) for n in range(3)]
        await eventually(lambda: watching.last_seq >= 5)
        waiting = await watching.list_waiting()
        assert [one.state for one in waiting if isinstance(one, OpenRequest)] == ["waiting"] * 3
        agent = Agent(square.enter(square.account))
        async with agent.room as room:
            assert [(await call).text for call in calls] == ["0", "1", "2"]
            assert sorted(agent.ran) == [0, 1, 2]
            assert len(room.waiting.requests) == 3


@pytest.mark.requirement("room.welcome-waiting", "proposal.decided-by-id")
async def test_a_program_learns_what_it_may_decide_and_decides_by_the_id(square):
    async with square.enter(square.account) as rob:
        call = {"name": "chat.say", "arguments": {"text": "Lunch!"}}
        proposal = await rob.propose("tools/call", call, to="gateway", reason="It is noon.")
        async with square.enter(square.owner) as alice:
            (waiting,) = alice.waiting.proposals
            found = (waiting.id, waiting.proposer, waiting.to)
            assert found == (proposal.id, "rob", ("gateway",))
            (listed,) = await alice.list_waiting()
            assert isinstance(listed, OpenProposal)
            assert listed.message
            told = (listed.reason, listed.message["payload"]["params"])
            assert told == ("It is noon.", call)
            outcome = await alice.approve(listed.id)
            assert (outcome.is_done, outcome.by) == (True, "alice")
            assert outcome.result["structuredContent"]["status"] == "broadcasted"
            assert (await proposal.outcome()).by == "alice"
            with pytest.raises(e.ProposalClosed):
                await alice.approve(listed.id)
            with pytest.raises(e.ProposalUnknown):
                await alice.approve("none")


async def test_a_program_reads_what_was_said_before_it_came(square):
    async def texts(*, count: int, **where: Any) -> list[str]:
        found: list[str] = []
        async with square.enter(square.account, **where) as rob:
            async for message in rob:
                if message.text:
                    found.append(message.text)
                if len(found) == count:
                    break
        return found

    async with square.enter(square.owner) as alice:
        first = await alice.say("one", mentions=["rob"], thread_id="t", reply_to="m")
        await alice.say("two")
        epoch = alice.epoch
        assert (first.mentions, first.thread_id, first.reply_to) == (("rob",), "t", "m")
    assert await texts(after=0, count=2) == ["one", "two"]
    assert await texts(after=first.seq, count=1, epoch=epoch) == ["two"]
    async with square.enter(square.account) as rob:
        page = await rob.history(limit=10)
        assert [m.text for m in page if m.text] == ["one", "two"]
        assert page[0].mentions == ()
        odd = msgspec.structs.replace(page[0], kind="chat.message", payload={"mentions": 7})
        assert (odd.mentions, odd.reply_to, odd.thread_id) == ((), None, None)
        (one,) = await rob.history(after=first.seq, limit=1)
        assert one.text == "two"
    async with square.enter(square.account, after=0, epoch="another") as rob:
        gap = await anext(rob)
        assert isinstance(gap, Gap)
        assert gap.reason == "epoch_changed"


async def test_a_program_lists_the_tools_of_others_with_what_they_say_of_themselves(square):
    async with square.enter(square.owner) as alice:
        agent = square.enter(square.account)

        @agent.tool(title="Look", read_only=True, open_world=False)
        def look() -> None:
            """See."""

        @agent.tool(destructive=True, idempotent=True)
        def wipe() -> None:
            """Remove all."""

        async with agent:
            listed = await alice.list_tools()
            assert listed == await alice.list_tools("rob")
            assert {tool.name: tool.definition["annotations"] for tool in listed} == {
                "look": {"title": "Look", "readOnlyHint": True, "openWorldHint": False},
                "wipe": {"destructiveHint": True, "idempotentHint": True},
            }
            assert {tool.by for tool in listed} == {"rob"}
            assert await agent.list_tools() == []
