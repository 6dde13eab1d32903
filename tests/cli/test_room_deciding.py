"""What waits for a decision, what the last lines say of it, and what a typed line comes to."""

from __future__ import annotations

from typing import Any

import pytest

from folkmoot.cli.options import read_arguments
from folkmoot.cli.room.proposals import MAX_PROPOSALS, Holder, WaitingProposals, doer, fulfilment
from folkmoot.cli.room.screen import Situation, card, status_line
from folkmoot.cli.room.slash import (
    SLASHES,
    Misused,
    Sending,
    method_of,
    offered,
    proposal,
    read,
    read_asked,
    sending,
)


def said(id_: str, kind: str, who: str = "bob", about: str = "", **payload: Any) -> dict[str, Any]:
    return {"seq": 7, "id": id_, "kind": kind, "from": who, "payload": payload,
            "correlation_id": [about] if about else []}  # fmt: skip


def proposed(id_: str, who: str = "bob") -> dict[str, Any]:
    return said(id_, "mcp.proposal.ping", who, method="ping")


def waiting(deciding: WaitingProposals) -> list[str]:
    return [each.id for each in deciding]


@pytest.mark.parametrize(
    "closing",
    [
        said("x", "mcp.request.ping", "cy", "one"),
        said("x", "mcpx.withdraw.proposal", "bob", "one"),
        said("x", "mcpx.reject.proposal", "cy", "one"),
        said("x", "system.proposal.expired", "gateway", "one"),
    ],
    ids=lambda it: it["kind"],
)
def test_a_proposal_waits_until_something_comes_of_it(closing):
    deciding = WaitingProposals("ada")
    deciding.see(proposed("one"))
    deciding.see(proposed("two"))
    assert deciding.next() is not None
    deciding.see(closing)
    assert waiting(deciding) == ["two"]
    assert deciding.shown is None


def test_ones_own_proposals_wait_for_others():
    deciding = WaitingProposals("ada")
    deciding.see(proposed("mine", "ada"))
    assert waiting(deciding) == []
    assert [each.id for each in deciding.mine] == ["mine"]
    deciding.see(said("x", "mcpx.reject.proposal", "bob", "mine"))
    assert list(deciding.mine) == []


def test_with_a_quorum_several_must_reject_and_nobody_is_asked_twice():
    deciding = WaitingProposals("ada", quorum=3)
    deciding.see(proposed("one"))
    deciding.see(proposed("two"))
    for _ in range(3):
        deciding.see(said("x", "mcpx.reject.proposal", "cy", "one"))
    assert waiting(deciding) == ["one", "two"]
    deciding.see(said("x", "mcpx.reject.proposal", "ada", "one"))
    assert waiting(deciding) == ["two"]
    for who in ("cy", "dee", "eve"):
        deciding.see(said("x", "mcpx.reject.proposal", who, "two"))
    assert waiting(deciding) == []


def test_what_is_shown_stays_though_others_come_and_go():
    deciding = WaitingProposals("ada")
    for id_ in ("one", "two", "three"):
        deciding.see(proposed(id_))
    deciding.next()
    shown = deciding.next()
    deciding.see(proposed("four"))
    deciding.see(said("x", "mcpx.withdraw.proposal", "bob", "one"))
    assert deciding.shown is shown
    assert (deciding.place(), len(deciding)) == (1, 3)
    assert [deciding.next().id for _ in range(3)] == ["three", "four", "two"]  # type: ignore[union-attr]


def test_no_more_are_kept_than_a_room_can_have():
    deciding = WaitingProposals("ada")
    for number in range(MAX_PROPOSALS + 10):
        deciding.see(proposed(str(number)))
    assert len(deciding) == MAX_PROPOSALS


def text_of(parts: Any) -> str:
    return "".join(part[1] for part in parts)


@pytest.mark.parametrize("width", [1, 5, 12, 20, 30, 40, 80, 200])
def test_the_status_line_fits_whatever_the_width(width):
    deciding = WaitingProposals("ada")
    deciding.see(proposed("one"))
    for live in (True, False):
        now = Situation("planning", "ada", here=12, live=live, waiting=3)
        line = text_of(status_line(now, deciding, width))
        assert len(line) <= width
        if width >= 40:
            assert ("live" if live else "reconnecting") in line
            assert "1 proposal: Tab" in line
        if width >= 50:
            assert ("3 to be sent" in line) is not live


def test_the_card_leaves_half_of_the_rows_to_the_rest():
    deciding = WaitingProposals("ada")
    params = {f"name {number}": number for number in range(50)}
    deciding.see(said("one", "mcp.proposal.ping", method="ping", params=params))
    deciding.next()
    lines = text_of(card(deciding, 80, 24)).splitlines()
    assert lines[0] == "Proposal #7, 1 of 1: bob asks for ping"
    assert lines[-2:] == ["  … all of it is printed above", lines[-1]]
    assert len(lines) <= 12 + 3
    deciding.hide()
    assert card(deciding, 80, 24) == []


@pytest.mark.requirement("proposal.exact-arguments")
def test_a_fulfilment_has_the_method_and_params_of_its_proposal_untouched():
    params = {"name": "f", "arguments": {"n": 1.0, "big": 2**80, "deep": [None, {"": []}]}}
    payload = {"method": "tools/call", "params": params, "expires_in": 5}
    proposal = {"id": "p", "kind": "mcp.proposal.tools/call:f", "payload": payload, "to": ["tools"]}
    made = fulfilment(proposal, "tools", "r")
    assert made == {
        "kind": "mcp.request.tools/call:f", "to": ["tools"], "correlation_id": ["p"],
        "payload": {"jsonrpc": "2.0", "id": "r", "method": "tools/call", "params": params},
    }  # fmt: skip
    assert doer(proposal, None) == "tools"
    assert doer({"to": ["a", "b"]}, None) is None
    assert doer({}, "a") == "a"


@pytest.mark.parametrize(
    ("line", "made"),
    [
        ("/grant @Bob 'a.b' c.*",
         Sending("capability.grant", {"recipient": "bob", "capabilities": ["a.b", "c.*"]})),
        ("/revoke bob", Sending("capability.revoke", {"recipient": "bob"})),
        ("/revoke 0b6f0d8e-7d0a-4a3c-9f59-0d5d8f7f6c11 a.b",
         Sending("capability.revoke", {"grant_id": "0b6f0d8e-7d0a-4a3c-9f59-0d5d8f7f6c11",
                                       "capabilities": ["a.b"]})),
        ("/invite @bob", Sending("room.invite", {"handle": "bob"})),
        ("/kick bob", Sending("room.kick", {"participant": "bob"})),
        ("/pause @Bob", Sending("participant.pause", {}, ("bob",))),
        ("/pause bob it is late", Sending("participant.pause", {"reason": "it is late"}, ("bob",))),
        ("/resume bob", Sending("participant.resume", {}, ("bob",))),
        ("/resume", Sending("participant.resume", {})),
    ],
)  # fmt: skip
def test_a_command_is_the_message_it_sends(line, made):
    assert sending(*read(line)) == made


F = {"name": "f", "arguments": {"a": "x y"}}


@pytest.mark.parametrize(
    ("rest", "kind", "params", "to"),
    [
        ("ping", "ping", {}, None),
        ('tools/call:f {"a": "x y"} @Files', "tools/call:f", F, "files"),
        ('f {"a": "x y"} @Files', "tools/call:f", F, "files"),
        ('f a="x y" @Files', "tools/call:f", F, "files"),
        ('f @files a="x y"', "tools/call:f", F, "files"),
        ("github:f", "tools/call:github:f", {"name": "github:f", "arguments": {}}, None),
        ("resources/read:docs://a/b", "resources/read:docs://a/b", {"uri": "docs://a/b"}, None),
    ],
)
def test_a_call_is_typed_by_its_tool_or_by_its_method(rest, kind, params, to):
    asked = read_asked("propose", rest)
    made = proposal(*method_of(asked.name), read_arguments(asked.words))
    assert (made.kind, made.payload["params"]) == (f"mcp.proposal.{kind}", params)
    assert asked.to == to


@pytest.mark.parametrize(
    ("held", "command", "is_offered"),
    [
        (("mcp.request.tools/list", "chat.*"), "approve", False),
        (("mcp.request.tools/call:read_*",), "approve", True),
        (({"kind": "mcp.request.tools/call:f", "to": "files"},), "approve", True),
        (("mcp.request.resources/read",), "approve", True),
        (("mcp.proposal.tools/call:f",), "propose", True),
        (("chat.*",), "propose", False),
        (("*",), "kick", True),
        (("*", "!room.kick"), "kick", False),
        (("chat.*",), "help", True),
    ],
)
def test_a_command_is_offered_to_those_who_may_use_it(held, command, is_offered):
    assert (command in offered(Holder(lambda: held))) is is_offered


@pytest.mark.parametrize("rest", ["", "  ", "f @a @b", "f 'a"])
def test_a_call_that_cannot_be_read_says_how_it_is_written(rest):
    with pytest.raises(Misused, match=r"Usage: /call TOOL"):
        read_asked("call", rest.strip())


@pytest.mark.parametrize(
    "line",
    ["/grant bob", "/grant 'bob", "/revoke", "/kick",
     "/kick a b", "/pause", "/resume a b", "/invite", "/unknown", "/", "/ who"],
)  # fmt: skip
def test_a_command_that_is_written_wrong_is_a_sentence(line):
    with pytest.raises(Misused):
        sending(*read(line))


def test_what_is_no_command_is_said():
    assert read("hello /who") == ("", "hello /who")
    assert read("//who") == ("", "/who")
    assert read("/who ") == ("who", "")
    assert all(command.usage.startswith(f"/{name}") for name, command in SLASHES.items())
