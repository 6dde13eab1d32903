"""Pauses that the hub keeps to, and the guard against agents that only answer each other."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from folkmoot.core.policy import Principal, PrincipalType
from tests.rooms.machine.playbook import (
    SETTINGS,
    Play,
    answer,
    attached,
    call,
    chat,
    chat_notice,
    closed,
    does,
    expelled,
    joins,
    kick,
    leaves,
    logged,
    notice,
    proposal,
    refused,
    says,
    stored,
    waits,
    withdraw,
)

PAUSE, RESUME = "participant.pause", "participant.resume"
PAUSED, RESUMED = "system.participant.paused", "system.participant.resumed"
CHAT = "chat.message"
COMPACTED = "participant.compact-done"
REQUEST = "mcp.request.tools/call"


def pause(*to: str, **payload: Any) -> dict[str, Any]:
    return {"kind": PAUSE, "to": list(to), "payload": payload}


def resume(*to: str) -> dict[str, Any]:
    return {"kind": RESUME, "to": list(to)}


def stops(play: Play, who: str, whom: str, **payload: Any) -> Play:
    """Someone is paused by another: it is kept, said to everyone and logged."""
    id_ = f"z-{whom}"
    play >> says(who, pause(whom, **payload), id=id_) << stored(PAUSE, who, to=[whom])
    told = {"participant": whom, "by": who}
    play << stored(PAUSED, to=[whom], correlation_id=[id_], payload=told)
    return play << logged(PAUSE, who, whom)


@pytest.mark.requirement("participant.pause-enforced")
def test_who_is_paused_finishes_and_begins_nothing(play):
    play >> says("alice", call("files"), id="q1") << stored(REQUEST, "alice")
    play.proposes("files", proposal())
    stops(play, "alice", "files", reason="It is late.")
    begin = {"kind": "mcpx.begin.request", "correlation_id": ["q1"]}
    for begun in (chat(), chat_notice(), proposal(), {"kind": "reasoning.thought"}, begin):
        play >> says("files", begun) << refused("files", "participant_paused", by="alice")
    play >> says("files", chat())
    assert b"alice paused you: It is late." in play.waiting.pop().data
    progress = notice("notifications/progress", {"progress": 1}, "q1")
    play >> says("files", progress) << stored("mcp.notification.notifications/progress", "files")
    play >> says("files", answer("q1")) << stored("mcp.response.tools/call", "files")
    play >> says("files", withdraw("p1")) << stored("mcpx.withdraw.proposal", "files")
    play << logged("proposal.withdrawn", "files")
    status = {"kind": "participant.status", "payload": {"status": "paused"}}
    play >> says("files", status) << stored("participant.status", "files")
    play >> says("files", {"kind": COMPACTED}) << stored(COMPACTED, "files")
    play >> says("bob", chat()) << stored(CHAT, "bob")


@pytest.mark.requirement("participant.pause-enforced")
def test_a_pause_ends_by_a_resume_or_when_its_time_is_over(play):
    stops(play, "alice", "files")
    play >> says("files", resume("files")) << refused("files", "capability_denied")
    play >> says("alice", resume("files"), id="z2") << stored(RESUME, "alice")
    play << stored(RESUMED, correlation_id=["z2"], payload={"participant": "files", "by": "alice"})
    play << logged(RESUME, "alice", "files")
    play >> says("files", chat()) << stored(CHAT, "files")
    stops(play, "alice", "bob", timeout_seconds=20)
    play >> waits(19.5)
    play >> says("bob", chat()) << refused("bob", "participant_paused")
    play >> waits(0.5) << stored(RESUMED, payload={"participant": "bob", "by": "gateway"})
    play >> says("bob", chat()) << stored(CHAT, "bob")


def test_without_names_everyone_who_is_paused_goes_on(play):
    play >> says("alice", pause("files", "bob")) << stored(PAUSE, "alice")
    play << stored(PAUSED, to=["files"]) << stored(PAUSED, to=["bob"])
    play << logged(PAUSE, "alice", "files") << logged(PAUSE, "alice", "bob")
    play >> says("alice", resume()) << stored(RESUME, "alice")
    play << stored(RESUMED, to=["files"]) << stored(RESUMED, to=["bob"])
    play << logged(RESUME, "alice", "files") << logged(RESUME, "alice", "bob")
    play >> says("alice", resume("bob")) << stored(RESUME, "alice")


def test_a_second_pause_takes_the_place_of_the_first(play):
    stops(play, "alice", "files", timeout_seconds=20)
    play >> says("alice", pause("files")) << stored(PAUSE, "alice") << stored(PAUSED)
    play << logged(PAUSE, "alice", "files")
    play >> waits(60)
    play >> says("files", chat()) << refused("files", "participant_paused")


def test_a_pause_outlives_connections_and_a_welcome_tells_of_it(play):
    stops(play, "alice", "files", reason="late")
    play >> leaves("files") << stored("system.presence.leave")
    play >> joins("files")
    play << attached("files", you={"paused": {"by": "alice", "reason": "late"}})
    play << stored("system.presence.join")
    play >> says("files", chat()) << refused("files", "participant_paused")
    play.room = play.rebuilt()
    play >> joins("files") << attached("files")
    play >> says("files", chat()) << refused("files", "participant_paused")


def test_only_who_may_pauses_and_not_everyone_can_be_paused(stage):
    play = stage("alice", "bob", "carol", "files", account_rights={"account-bob": (PAUSE,)})
    play >> says("carol", pause("files")) << refused("carol", "capability_denied")
    play >> says("bob", pause("alice")) << refused("bob", "capability_denied")
    play >> says("bob", pause("bob")) << refused("bob", "recipient_invalid")
    play >> says("bob", pause("dora")) << refused("bob", "recipient_unknown")
    play >> says("bob", pause()) << refused("bob", "recipient_required")
    backend = Principal("backend:github", "github", PrincipalType.BACKEND)
    (
        play
        >> does(lambda room, now: room.set_backends([backend], now))
        << stored("system.presence.join")
    )
    play >> says("bob", pause("github")) << refused("bob", "recipient_invalid")
    wrong = [{"timeout_seconds": seconds} for seconds in (0, True, "5", 1e12)]
    for payload in (*wrong, {"reason": 7}, {"reason": "x" * 1025}):
        play >> says("bob", pause("files", **payload)) << refused("bob", "payload_invalid")
    stops(play, "bob", "files")
    play >> says("bob", resume("files")) << refused("bob", "capability_denied")


def test_who_is_kicked_is_no_longer_paused(play):
    stops(play, "alice", "bob")
    play >> says("alice", kick("bob")) << stored("room.kick", "alice")
    play << logged("room.kick", "alice", "bob") << expelled("bob", by="alice")
    play << closed("bob", 4403) << stored("system.presence.leave")
    play >> joins("bob") << attached("bob") << stored("system.presence.join")
    play >> says("bob", chat()) << stored(CHAT, "bob")


def test_there_are_only_so_many_pauses(stage):
    play = stage("alice", "bob", "files", bounds={"paused": 1})
    play >> says("alice", pause("bob", "files")) << refused("alice", "too_many_open")
    stops(play, "alice", "bob")
    play >> says("alice", pause("files")) << refused("alice", "too_many_open")


def agents(stage: Any, *names: str, **settings: Any) -> Play:
    """A room with alice, a person, and agents."""
    play: Play = stage("alice", chat={}, **settings)
    for name in names:
        who = Principal(f"account-{name}", name, PrincipalType.AGENT)
        play >> joins(name, who=who) << attached(name) << stored("system.presence.join")
    return play


def talk(play: Play, *names: str) -> None:
    for name in names:
        play >> says(name, chat()) << stored(CHAT, name)


@pytest.mark.requirement("room.loop-guard")
def test_agents_that_answer_each_other_are_held_until_a_person_speaks(stage):
    play = agents(stage, "ping", "pong", "other", loop_guard=4)
    talk(play, "ping", "pong", "ping", "pong")
    play >> says("ping", chat()) << stored(CHAT, "ping")
    for name in ("ping", "pong"):
        play << stored(PAUSED, to=[name], payload={"participant": name, "by": "gateway"})
    assert "answered each other 4 times" in play.last["payload"]["reason"]
    for name in ("ping", "pong"):
        play >> says(name, chat_notice()) << refused(name, "participant_paused", by="gateway")
    talk(play, "other")
    play >> says("alice", chat()) << stored(CHAT, "alice")
    for name in ("ping", "pong"):
        play << stored(RESUMED, payload={"participant": name, "by": "alice"})
    talk(play, "ping", "pong", "ping", "pong")


def test_the_guard_counts_from_the_beginning_when_a_person_says_something(stage):
    play = agents(stage, "ping", "pong", loop_guard=3)
    for _ in range(5):
        talk(play, "ping", "pong", "ping", "alice")


def test_one_agent_that_says_much_answers_nobody(stage):
    play = agents(stage, "ping", "pong", loop_guard=2)
    talk(play, *["ping"] * 20, "pong", *["pong"] * 20)


def test_a_person_releases_agents_and_an_agent_does_not(stage):
    rights = {"account-pong": (RESUME,), "account-boss": (RESUME,)}
    play = agents(stage, "ping", "pong", "boss", loop_guard=1, account_rights=rights)
    talk(play, "ping")
    play >> says("pong", chat()) << stored(CHAT, "pong") << stored(PAUSED) << stored(PAUSED)
    play >> says("pong", resume()) << refused("pong", "participant_paused")
    play >> says("boss", resume("ping")) << refused("boss", "capability_denied")
    play >> says("alice", resume("ping")) << stored(RESUME, "alice") << stored(RESUMED, to=["ping"])
    play << logged(RESUME, "alice", "ping")
    talk(play, "ping")
    play >> says("pong", chat()) << refused("pong", "participant_paused")


def test_a_persons_words_do_not_end_a_pause_that_a_person_made(stage):
    play = agents(stage, "ping", "pong", loop_guard=2)
    talk(play, "ping", "pong")
    stops(play, "alice", "ping")
    play >> says("pong", chat()) << stored(CHAT, "pong")
    play >> says("alice", chat()) << stored(CHAT, "alice")
    play >> says("ping", chat()) << refused("ping", "participant_paused", by="alice")


@pytest.mark.requirement("room.loop-guard")
def test_a_room_may_have_no_guard_and_to_end_it_releases_everyone(stage):
    play = agents(stage, "ping", "pong", loop_guard=0)
    talk(play, *["ping", "pong"] * 40)
    guarded = agents(stage, "ping", "pong", loop_guard=1)
    talk(guarded, "ping")
    guarded >> says("pong", chat()) << stored(CHAT, "pong") << stored(PAUSED) << stored(PAUSED)
    guarded.settings = msgspec.structs.replace(guarded.settings, loop_guard=0)
    guarded >> does(lambda room, now: room.configure(guarded.settings, now))
    guarded << stored(RESUMED, to=["ping"]) << stored(RESUMED, to=["pong"])


@pytest.mark.requirement("room.loop-guard")
def test_the_guard_is_on_by_default(stage):
    assert SETTINGS.loop_guard == 30
    play = agents(stage, "ping", "pong")
    play.rebuilds = False
    talk(play, *["ping", "pong"] * 15)
    play >> says("ping", chat()) << stored(CHAT, "ping") << stored(PAUSED) << stored(PAUSED)


def test_what_the_gateway_says_for_an_agent_counts_too(stage):
    say = ("mcp.request.tools/call:chat.say",)
    rights = {"account-ping": say, "account-pong": say}
    play = agents(stage, "ping", "pong", loop_guard=1, account_rights=rights)
    talk(play, "ping")
    said = call("gateway", "chat.say", {"text": "hello"})
    play >> says("pong", said) << stored(REQUEST, "pong")
    play << stored("mcp.notification.notifications/chat/message", "pong")
    play << stored(PAUSED) << stored(PAUSED) << stored("mcp.response.tools/call:chat.say")
    play >> says("ping", {**said, "payload": {**said["payload"], "id": 2}})
    play << refused("ping", "participant_paused")
