"""Of a participant's connections one serves: it begins what the participant is asked, once."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from folkmoot.core.closecodes import CloseCode
from folkmoot.rooms.machine import Attach, Role, Room, Tell
from tests.rooms.machine.playbook import (
    SETTINGS,
    Expectation,
    Play,
    answer,
    attached,
    begin,
    call,
    closed,
    fulfil,
    grant,
    joins,
    leaves,
    logged,
    notice,
    principal,
    proposal,
    read,
    refused,
    reject,
    says,
    stored,
    told,
    waits,
)

REQUEST = "mcp.request.tools/call"
BEGIN = "mcpx.begin.request"
RETURN = SETTINGS.return_seconds


def serving(on: str, connection: str | None, *, you: bool = False, **more: Any) -> Expectation:
    """One of the participant's connections is told which of them serves."""
    return told(on, "system.serving", payload={"you": you, "connection": connection, **more})


def shown(on: str, **states: str) -> Expectation:
    """The one that serves is told what waits, and how it stands."""

    def expect(play: Play, effect: Any) -> None:
        assert isinstance(effect, Tell)
        assert effect.connection == on
        requests = read(effect.data)["payload"]["requests"]
        assert {one["id"]: one["state"] for one in requests} == states
        for one in requests:
            assert (one["requester"], one["kind"]) == ("alice", f"{REQUEST}:read")

    return expect


def welcomed(play: Play) -> dict[str, Any]:
    """What the last who came in was told."""
    (attach,) = [one for one in play.waiting if isinstance(one, Attach)]
    play.waiting.clear()
    return dict(read(attach.welcome)["payload"])


@pytest.fixture
def two(play: Play) -> Play:
    """The agent has two connections that offer tools, and the newer one serves."""
    one, other = {"you": True, "connection": "one"}, {"you": True, "connection": "two"}
    play >> joins("files", "f1", conn="one", serve=True) << attached("f1", serving=one)
    play << serving("files", "one")
    play >> joins("files", "f2", conn="two", serve=True) << attached("f2", serving=other)
    return play << serving("files", "two") << serving("f1", "two")


@pytest.fixture
def asked(two: Play) -> Play:
    """Alice has asked it something."""
    return two >> says("alice", call("files"), id="q1") << stored(REQUEST, "alice")


def left_amid(asked: Play) -> None:
    """The connection that began what was asked ends."""
    asked >> says("f2", begin("q1")) << stored(BEGIN, "files")
    asked >> leaves("f2") << serving("files", "one") << shown("f1", q1="running")


@pytest.mark.requirement("serving.newest")
def test_a_connection_that_offers_nothing_serves_nothing(play):
    nobody = {"you": False, "connection": None}
    play >> joins("files", "f1") << attached("f1", serving=nobody)
    play >> says("alice", call("files"), id="q1") << stored(REQUEST, "alice")
    play >> says("f1", begin("q1")) << refused("f1", "not_serving")


@pytest.mark.requirement("serving.newest", "serving.begun-once")
def test_only_the_newest_begins_what_is_asked_and_only_once(asked):
    asked >> says("f1", begin("q1")) << refused("f1", "not_serving")
    asked >> says("files", begin("q1")) << refused("files", "not_serving")
    asked >> says("f2", begin("q1")) << stored(BEGIN, "files", correlation_id=["q1"])
    asked >> says("f2", begin("q1")) << refused("f2", "request_begun")
    asked >> says("f1", answer("q1")) << stored("mcp.response.tools/call", "files")
    asked >> says("f2", begin("q1")) << refused("f2", "request_not_open")


def test_beginning_needs_no_capability_and_heeds_a_deny(asked):
    asked >> says("bob", begin("q1")) << refused("bob", "not_asked")
    denies = {"account-files": ("!mcpx.begin.request",)}
    denied = msgspec.structs.replace(SETTINGS, account_rights=denies)
    asked.ignore(lambda play: play.room.configure(denied, play.now))
    asked >> says("f2", begin("q1")) << refused("f2", "capability_denied")


@pytest.mark.parametrize("about", [[], ["q1", "q2"], ["q9"]])
def test_beginning_names_one_open_request(asked, about):
    code = "request_not_open" if about == ["q9"] else "correlation_required"
    asked >> says("f2", begin("q1"), correlation_id=about) << refused("f2", code)


def test_nobody_begins_by_a_message_that_comes_on_no_connection(asked):
    raw = msgspec.json.encode({"protocol": "mcpx/v1", **begin("q1")})
    with pytest.raises(Exception, match="Only the connection that serves"):
        asked.room.post(principal("files"), Role.MEMBER, raw, asked.now)


@pytest.mark.requirement("serving.take-over")
def test_the_next_takes_over_what_nobody_has_begun(asked):
    asked >> says("alice", call("files", n=2), id="q2") << stored(REQUEST, "alice")
    asked >> says("f2", begin("q1")) << stored(BEGIN, "files")
    asked >> leaves("f2") << serving("files", "one")
    asked << shown("f1", q1="running", q2="waiting")
    asked >> says("f1", begin("q1")) << refused("f1", "request_begun")
    asked >> says("f1", begin("q2")) << stored(BEGIN, "files")


@pytest.mark.requirement("serving.interrupted")
def test_what_was_begun_is_interrupted_when_its_connection_stays_away(asked):
    left_amid(asked)
    asked >> waits(RETURN - 1)
    asked >> waits(1) << shown("f1", q1="interrupted")
    asked >> says("f1", begin("q1")) << stored(BEGIN, "files")
    asked >> says("f1", begin("q1")) << refused("f1", "request_begun")


@pytest.mark.requirement("serving.interrupted")
def test_a_connection_that_comes_back_in_time_goes_on(asked):
    left_amid(asked)
    asked >> waits(RETURN - 1)
    asked >> joins("files", "f3", conn="two", serve=True)
    assert welcomed(asked)["waiting"]["requests"][0]["state"] == "running"
    asked >> waits(RETURN)
    asked >> says("f3", begin("q1")) << refused("f3", "request_begun")
    asked >> says("f3", answer("q1")) << stored("mcp.response.tools/call", "files")


def test_what_was_interrupted_runs_on_when_its_connection_comes_after_all(asked):
    left_amid(asked)
    asked >> waits(RETURN) << shown("f1", q1="interrupted")
    asked >> joins("files", "f3", conn="two", serve=True)
    assert welcomed(asked)["waiting"]["requests"][0]["state"] == "running"


def test_the_same_connection_coming_back_in_place_of_the_old_one_changes_nothing(asked):
    asked >> says("f2", begin("q1")) << stored(BEGIN, "files")
    asked >> joins("files", "f3", conn="two", serve=True) << closed("f2", CloseCode.REPLACED)
    asked << attached("f3", serving={"you": True, "connection": "two"})
    asked >> waits(RETURN)
    asked >> says("f3", begin("q1")) << refused("f3", "request_begun")


def test_one_that_comes_back_without_tools_hands_over(asked):
    asked >> joins("files", "f3", conn="two") << closed("f2", CloseCode.REPLACED)
    asked << attached("f3", serving={"you": False, "connection": "one"})
    asked << serving("files", "one") << shown("f1", q1="waiting")


def test_when_the_last_that_offers_tools_goes_nobody_serves(two):
    two >> leaves("f2") << serving("files", "one") << shown("f1")
    two >> leaves("f1") << serving("files", None)


def test_a_connection_without_an_id_of_its_own_serves_too(play):
    play >> joins("files", "f1", serve=True)
    assert all(welcomed(play)["serving"].values())
    play >> says("alice", call("files"), id="q1") << stored(REQUEST, "alice")
    play >> says("f1", begin("q1")) << stored(BEGIN, "files")
    play >> leaves("f1") << serving("files", None)
    play >> waits(RETURN)
    play >> joins("files", "f2", serve=True)
    (waiting,) = welcomed(play)["waiting"]["requests"]
    assert waiting["state"] == "interrupted"


@pytest.mark.requirement("room.welcome-waiting", "serving.interrupted")
def test_after_a_restart_the_welcome_says_what_is_owed_and_whether_it_was_begun(asked):
    asked >> says("alice", call("files", n=2), id="q2") << stored(REQUEST, "alice")
    asked >> says("f2", begin("q1")) << stored(BEGIN, "files")
    for snapshot in (None, asked.room.snapshot()):
        room: Room = asked.rebuilt(snapshot=snapshot)
        coming = {"conn": "three", "serve": True}
        (attach,) = room.join("g1", principal("files"), Role.MEMBER, asked.now, **coming)
        assert isinstance(attach, Attach)
        waiting = read(attach.welcome)["payload"]["waiting"]
        states = [(one["id"], one["state"]) for one in waiting["requests"]]
        assert states == [("q1", "running"), ("q2", "waiting")]
        effects = room.tick(asked.now + RETURN)
        (notice_,) = [one for one in effects if isinstance(one, Tell)]
        requests = read(notice_.data)["payload"]["requests"]
        assert [one["state"] for one in requests] == ["interrupted", "waiting"]


def test_whoever_leaves_owes_nothing_and_an_answer_ends_it(asked):
    asked >> says("f2", begin("q1")) << stored(BEGIN, "files")
    asked >> says("alice", notice("notifications/cancelled", about="q1"))
    asked.waiting.clear()
    asked >> leaves("f2") << serving("files", "one") << shown("f1")
    asked >> waits(RETURN)
    asked >> says("alice", call("files", n=3), id="q3") << stored(REQUEST, "alice")
    asked >> leaves("f1") << serving("files", None)
    asked >> leaves("files") << stored("system.presence.leave")
    asked << stored("mcp.response.tools/call:read")


@pytest.mark.requirement("room.welcome-waiting")
def test_a_welcome_lists_the_open_proposals_that_one_may_decide_on(play):
    play.proposes("bob", proposal(), to=["files"])
    play.proposes("bob", proposal("write"), "p2")

    def listed(name: str) -> list[str]:
        play >> joins(name, f"{name}-again")
        waiting = welcomed(play)["waiting"]
        assert not waiting["more"]
        return [one["id"] for one in waiting["proposals"]]

    assert listed("alice") == ["p1", "p2"]
    assert listed("bob") == listed("files") == []
    allowed: Any = {"kind": "mcp.request.tools/call:read", "payload": {"params": {"name": "read"}}}
    play >> says("alice", grant("files", allowed, "mcp.request.tools/list"))
    play.waiting.clear()
    assert listed("files") == ["p1"]
    play >> says("alice", reject("p1")) << stored("mcpx.reject.proposal", "alice")
    play << logged("proposal.rejected", "alice")
    play >> says("alice", fulfil("p2", tool="write")) << stored(REQUEST, "alice")
    play << logged("proposal.fulfilled", "alice")
    assert listed("alice") == listed("files")[:0]


def test_a_welcome_lists_so_many_and_says_that_there_are_more(stage):
    play = stage("alice", "files", bounds={"waiting": 2})
    for n in range(3):
        play >> joins("files", f"f{n}")
        assert not welcomed(play)["waiting"]["more"]
        play >> says("alice", call("files", n=n)) << stored(REQUEST, "alice")
    play >> joins("files", "f4")
    waiting = welcomed(play)["waiting"]
    assert len(waiting["requests"]) == 2
    assert waiting["more"]
