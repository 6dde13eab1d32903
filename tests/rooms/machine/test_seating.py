"""Servers behind the hub in a room: they answer what they are asked, and do nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from folkmoot.core import errors as e
from folkmoot.core import strict
from folkmoot.rooms.backends import backend_principal
from folkmoot.rooms.machine import AskBackend, CancelBackendCall, Effect, Role
from tests.rooms.machine.playbook import (
    SETTINGS,
    START,
    Expectation,
    Play,
    Step,
    answer,
    attached,
    call,
    chat,
    closed,
    does,
    fulfil,
    grant,
    joins,
    kick,
    logged,
    notice,
    principal,
    proposal,
    refused,
    says,
    stored,
    waits,
)

TOOL = "github:create_issue"


def seats(*namespaces: str, anew: bool = False) -> Step:
    backends = [backend_principal(name) for name in namespaces]
    return does(lambda room, now: room.set_backends(backends, now, anew=anew))


def comes(name: str = "github") -> Expectation:
    shown = {"id": name, "type": "backend", "role": "backend"}
    return stored("system.presence.join", payload={"participant": shown})


def asks(id_: str, by: str, *to: str) -> Expectation:
    def expect(play: Play, effect: Effect) -> None:
        assert isinstance(effect, AskBackend), effect
        assert (effect.id, effect.by, effect.to) == (id_, f"account-{by}", to or (by,))
        assert effect.backend == backend_principal("github")
        assert effect.kind == f"mcp.response.tools/call:{TOOL}"
        assert effect.payload["params"]["name"] == TOOL

    return expect


def asked(play: Play, id_: str, n: int = 1) -> None:
    """Alice asks the server something."""
    play >> says("alice", call("github", TOOL, n=n), id=id_)
    play << stored("mcp.request.tools/call", "alice") << asks(id_, "alice")


def ceases(id_: str) -> Expectation:
    def expect(play: Play, effect: Effect) -> None:
        assert effect == CancelBackendCall(id_)

    return expect


def answers(envelope: dict[str, Any]) -> Step:
    def step(play: Play) -> list[Effect]:
        raw = strict.encode({"protocol": "mcpx/v1", **envelope})
        return play.room.post(backend_principal("github"), Role.BACKEND, raw, play.now)

    return step


@pytest.fixture
def play(stage: Any) -> Play:
    """Alice and bob are in a room with a server."""
    play: Play = stage("alice", "bob")
    return play >> seats("github") << comes()


def test_a_backend_is_here_while_it_is_seated_and_is_told_of_once(play):
    play >> seats("github") >> seats("github", "files") << comes("files")
    play >> joins("carol") << attached("carol", participants_total=5)
    play << stored("system.presence.join")
    play >> seats("files") << stored("system.presence.leave", payload={"event": "leave"})
    play >> seats() << stored("system.presence.leave")
    assert play.room.present == 3


def test_what_a_backend_is_asked_is_an_effect_and_its_answer_goes_to_whoever_asked(play):
    asked(play, "q1")
    play >> answers({**answer("q1"), "to": ["alice"]})
    play << stored("mcp.response.tools/call", "github", to=["alice"])
    play >> says("alice", chat()) << stored("chat.message", "alice")


def test_a_fulfilment_asks_in_the_name_of_the_fulfiller_and_answers_both(play):
    play.proposes("bob", proposal(TOOL), to=["github"])
    play >> says("alice", fulfil("p1", to="github", tool=TOOL), id="q1")
    play << stored("mcp.request.tools/call", "alice") << logged("proposal.fulfilled", "alice")
    play << asks("q1", "alice", "alice", "bob")


def test_nobody_waits_for_a_request_that_was_cancelled_timed_out_or_left_behind(play):
    for number, id_ in enumerate(("q1", "q2", "q3")):
        asked(play, id_, n=number)
    play >> says("alice", notice("notifications/cancelled", about="q1"))
    play << stored("mcp.notification.notifications/cancelled", "alice") << ceases("q1")
    play.now = START + SETTINGS.request_seconds - 1
    asked(play, "q4", n=9)
    play >> waits(1)
    for id_ in ("q2", "q3"):
        timed_out = {"error": {"data": {"code": "request_timed_out"}}}
        play << stored(f"mcp.response.tools/call:{TOOL}", payload=timed_out) << ceases(id_)
    play >> seats() << stored("system.presence.leave")
    left = {"error": {"data": {"code": "target_left"}}}
    play << stored(f"mcp.response.tools/call:{TOOL}", payload=left) << ceases("q4")


def test_a_loaded_room_answers_what_its_backends_were_asked_in_an_earlier_life(play):
    asked(play, "q1")
    play.room = play.rebuilt()
    play >> seats("github", anew=True)
    lost = {"error": {"data": {"code": "target_left"}}}
    play << stored(f"mcp.response.tools/call:{TOOL}", to=["alice"], payload=lost)
    # It is no ghost that has to come back, and came before.
    play >> waits(SETTINGS.return_seconds)
    play << stored("system.presence.leave", payload={"participant": {"id": "alice"}})
    play << stored("system.presence.leave", payload={"participant": {"id": "bob"}})


def test_a_backend_is_not_kicked_and_holds_nothing(play):
    play >> says("alice", kick("github")) << refused("alice", "recipient_invalid")
    play >> says("alice", grant("github", "chat.*")) << refused("alice", "recipient_invalid")


def test_only_the_backend_answers_for_the_backend(play):
    asked(play, "q1")
    play >> says("bob", answer("q1")) << refused("bob", "not_asked")
    play >> says("bob", answer("q1"), from_="github") << refused("bob", "sender_forged")
    play >> says("alice", answer("q1")) << refused("alice", "not_asked")


def test_nobody_keeps_a_backend_out_by_a_name_like_its_own_but_an_owner_does(stage):
    play = stage("alice", "g1thub")
    play >> seats("github") << closed("g1thub", 4403) << stored("system.presence.leave") << comes()
    with pytest.raises(e.NameRefused):
        play.room.join("x", principal("g1thub"), Role.MEMBER, play.now)
    play = stage()
    play >> joins("g1thub", role=Role.OWNER) << attached("g1thub")
    play << stored("system.presence.join")
    play >> seats("github")


def test_backends_take_no_place_of_anyone_who_comes(stage):
    play = stage("alice", bounds={"participants": 2})
    play >> seats("github", "files") << comes() << comes("files")
    play >> joins("bob") << attached("bob") << stored("system.presence.join")
    with pytest.raises(e.RoomFull):
        play.room.join("x", principal("carol"), Role.MEMBER, play.now)
