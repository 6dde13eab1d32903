"""Rights in a room: defaults, grants, revocations and what hangs on them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from folkmoot.core.policy import Principal, PrincipalType
from folkmoot.rooms.machine import DEFAULT_RIGHTS, Known, Role
from tests.rooms.machine.playbook import (
    SETTINGS,
    Play,
    attached,
    call,
    chat,
    chat_notice,
    does,
    grant,
    joins,
    kick,
    leaves,
    logged,
    proposal,
    read,
    refused,
    revoke,
    says,
    stored,
    told,
)

GRANT = "capability.grant"
REVOKE = "capability.revoke"
REQUEST = "mcp.request.tools/call"
READ = "mcp.request.tools/call:read"
LONG = "x.y.z:" + "*a" * 500


@pytest.fixture
def chain(stage: Any) -> Play:
    """Alice gave bob the right to read and to grant; bob passed reading on to carol."""
    play: Play = stage("alice", "bob", "carol", "files")
    play.gives("alice", "bob", READ, GRANT, id_="r1")
    play.gives("bob", "carol", READ, id_="r2")
    play >> says("carol", call("files")) << stored(REQUEST, "carol")
    return play


@pytest.mark.requirement("capability.target")
def test_a_grant_meant_for_one_participant_opens_no_other(stage):
    play = stage("alice", "bob", "files", "calc", "carol")
    aimed = {"kind": "mcp.request.tools/call", "to": "files"}
    play.gives("alice", "bob", aimed, GRANT, id_="r1")
    play >> says("bob", call("files")) << stored(REQUEST, "bob")
    play >> says("bob", call("calc")) << refused("bob", "proposal_required")
    wider = grant("carol", "mcp.request.tools/call")
    play >> says("bob", wider) << refused("bob", "grant_exceeds_rights")
    elsewhere = grant("carol", {**aimed, "to": ["files", "calc"]})
    play >> says("bob", elsewhere) << refused("bob", "grant_exceeds_rights")
    play.gives("bob", "carol", {**aimed, "to": "files"}, id_="r2")
    play >> says("carol", call("files")) << stored(REQUEST, "carol")
    play.takes("alice", "bob", "carol", grant_id="r1")
    play >> says("carol", call("files", n=2)) << refused("carol", "proposal_required")


@pytest.mark.requirement("capability.target")
def test_a_right_to_propose_may_name_whom_to_ask(stage):
    rights = {Role.MEMBER: ({"kind": "mcp.proposal.*", "to": "files"},)}
    play = stage("bob", "files", "calc", rights={**DEFAULT_RIGHTS, **rights})
    play.proposes("bob", proposal(), to=["files"])
    for to in ([], ["calc"], ["files", "calc"]):
        play >> says("bob", proposal(), to=to) << refused("bob", "capability_denied")
    play >> says("bob", call("files")) << refused("bob", "proposal_required")
    play >> says("bob", call("calc")) << refused("bob", "capability_denied")


@pytest.mark.requirement("capability.default-owner")
def test_an_owner_holds_everything_but_what_is_the_gateways(play):
    assert DEFAULT_RIGHTS[Role.OWNER] == ("*",)
    play >> says("alice", {"kind": "other.thing"}) << stored("other.thing", "alice")
    play >> says("alice", {"kind": "system.anything"}) << refused("alice", "kind_reserved")
    reserved = grant("bob", "system.*")
    play >> says("alice", reserved) << refused("alice", "capability_reserved")


MEMBERS = "chat.* mcp.notification.notifications/chat/* mcp.proposal.* mcp.request.tools/list "
MEMBERS += "mcpx.withdraw.proposal reasoning.* participant.status participant.compact-done"


@pytest.mark.requirement("capability.default-member")
def test_a_member_chats_proposes_thinks_aloud_and_says_how_it_is(play):
    assert DEFAULT_RIGHTS[Role.MEMBER] == tuple(MEMBERS.split())
    play >> says("bob", chat()) << stored("chat.message", "bob")
    play >> says("bob", chat_notice()) << stored(chat_notice()["kind"], "bob")
    for kind in ("reasoning.thought", "participant.status", "participant.compact-done"):
        play >> says("bob", {"kind": kind, "payload": {}}) << stored(kind, "bob")
    for kind in ("participant.pause", "room.invite", "room.kick", "other.thing"):
        play >> says("bob", {"kind": kind, "payload": {}}) << refused("bob", "capability_denied")
    play >> says("bob", call("files")) << refused("bob", "proposal_required")


@pytest.mark.requirement("capability.default-guest")
def test_a_guest_chats_and_does_nothing_else(play):
    play >> joins("guest-kim") << attached("guest-kim") << stored("system.presence.join")
    play >> says("guest-kim", chat()) << stored("chat.message", "guest-kim")
    play >> says("guest-kim", chat_notice()) << stored(chat_notice()["kind"], "guest-kim")
    for envelope in (proposal(), call("files"), kick("bob"), {"kind": "reasoning.start"}):
        play >> says("guest-kim", envelope) << refused("guest-kim", "capability_denied")


@pytest.mark.requirement("capability.grant-kinds", "capability.change-rewelcomes")
def test_a_grant_is_acknowledged_and_its_recipient_welcomed_on_every_connection(play):
    play >> joins("bob", on="bob-2") << attached("bob-2")
    play.gives("alice", "bob", READ, id_="r1")
    you = {"you": {"capabilities": [*DEFAULT_RIGHTS[Role.MEMBER], READ]}}
    play << told("bob-2", "system.welcome", payload=you)


@pytest.mark.requirement("capability.change-at-next-message")
def test_grant_and_revocation_hold_from_the_next_message_on(play):
    play >> says("bob", call("files")) << refused("bob", "proposal_required")
    play.gives("alice", "bob", READ, id_="r1")
    play >> says("bob", call("files")) << stored(REQUEST, "bob")
    play >> says("bob", call("files", "write", n=2)) << refused("bob", "proposal_required")
    play.takes("alice", "bob", grant_id="r1")
    play >> says("bob", call("files", n=2)) << refused("bob", "proposal_required")


@pytest.mark.requirement("capability.grant-at-most-own")
@pytest.mark.parametrize("more", [REQUEST, "mcp.request.tools/call:*", "*", "!chat.message"])
def test_a_grant_that_goes_further_is_refused_as_a_whole(play, more):
    play.gives("alice", "files", READ, GRANT, id_="r1")
    play >> says("files", grant("bob", READ, more)) << refused("files", "grant_exceeds_rights")
    assert [one.recipient_name for one in play.room.grants()] == ["files"]
    play >> says("bob", call("files")) << refused("bob", "proposal_required")


@pytest.mark.parametrize(
    "payload",
    [
        {},
        {"recipient": "bob"},
        {"recipient": "bob", "capabilities": []},
        {"recipient": "bob", "capabilities": "chat.*"},
        {"recipient": 7, "capabilities": ["chat.*"]},
        {"recipient": "bob", "capabilities": ["chat.*"] * 65},
    ],
)
def test_a_grant_that_says_too_little_or_too_much_is_refused(play, payload):
    play >> says("alice", {"kind": GRANT, "payload": payload})
    play << refused("alice", "payload_invalid")


def test_a_grant_is_to_someone_else_who_is_known_here(play):
    play >> says("alice", grant("carol", READ)) << refused("alice", "recipient_unknown")
    play >> says("alice", grant("gateway", READ)) << refused("alice", "recipient_unknown")
    play >> says("alice", grant("alice", READ)) << refused("alice", "recipient_invalid")
    play >> says("alice", grant("bob", "a b")) << refused("alice", "pattern_syntax")
    play >> says("bob", grant("files", "chat.*")) << refused("bob", "capability_denied")


def test_someone_who_is_away_is_granted_rights_and_holds_them_on_coming(play):
    play.absent = {"kim": Known("guest:kim", Role.GUEST), "dee": Known("account-dee", Role.MEMBER)}
    kim = Principal("guest:kim", "kim", PrincipalType.GUEST)
    for name, who in (("kim", {"who": kim, "role": Role.GUEST}), ("dee", {})):
        play >> says("alice", grant(name, READ), id=f"g-{name}") << stored(GRANT, "alice")
        play << stored("capability.grant-ack", to=["alice", name]) << logged(GRANT, "alice", name)
        play >> joins(name, **who)
        assert READ in read(play.waiting.pop(0).welcome)["payload"]["you"]["capabilities"]
        play << stored("system.presence.join")
        play >> says(name, call("files"), id=f"c-{name}") << stored(REQUEST, name)
    play >> says("alice", grant("nobody", READ)) << refused("alice", "recipient_unknown")
    assert play.looked_up == ["kim", "dee", "nobody"]


def test_a_grant_may_constrain_the_payload(play):
    narrow = {"kind": REQUEST, "payload": {"params": {"arguments": {"path": "notes/*"}}}}
    play.gives("alice", "bob", narrow, id_="r1")
    play >> says("bob", call("files", "read", {"path": "notes/a"})) << stored(REQUEST, "bob")
    other = call("files", "read", {"path": "b"}, 2)
    play >> says("bob", other) << refused("bob", "proposal_required")


@pytest.mark.requirement("capability.grant-bound-to-account")
def test_a_grant_follows_the_account_and_not_the_name(play):
    play.gives("alice", "bob", READ, id_="r1")
    play >> leaves("bob") << stored("system.presence.leave")
    renamed = Principal("account-bob", "robert")
    play >> joins("robert", who=renamed) << attached("robert") << stored("system.presence.join")
    play >> says("robert", call("files")) << stored(REQUEST, "robert")
    heir = Principal("account-heir", "bob")
    play >> joins("bob", who=heir) << attached("bob") << stored("system.presence.join")
    play >> says("bob", call("files")) << refused("bob", "proposal_required")
    play >> says("alice", revoke(recipient="bob")) << refused("alice", "grant_unknown")
    play.takes("alice", "robert", grant_id="r1")


@pytest.mark.requirement("capability.revoke-by-granter")
def test_the_granter_revokes_without_any_other_right(chain):
    chain.takes("bob", "carol", grant_id="r2")
    chain >> says("carol", call("files", n=2)) << refused("carol", "proposal_required")
    chain >> says("bob", revoke(grant_id="r2")) << refused("bob", "grant_unknown")


@pytest.mark.requirement("capability.revoke-by-owner")
def test_the_owner_revokes_any_grant(chain):
    chain.takes("alice", "carol", grant_id="r2")
    chain >> says("carol", call("files", n=2)) << refused("carol", "proposal_required")


def test_a_history_that_revokes_what_had_ended_can_be_read(chain):
    chain.takes("alice", "carol", grant_id="r2")
    # As if the grant had ended with its granter before it was revoked.
    chain.stored = [
        one for one in chain.stored if one.about != "account-carol" or one.kind == REVOKE
    ]
    assert [one.id for one in chain.rebuilt().grants()] == ["r1"]


@pytest.mark.requirement("capability.revoke-by-right")
def test_whoever_holds_the_right_revokes_and_nobody_else(chain):
    chain >> says("files", revoke(grant_id="r2")) << refused("files", "capability_denied")
    chain >> says("carol", revoke(grant_id="r1")) << refused("carol", "capability_denied")
    chain.gives("alice", "files", {"kind": REVOKE, "payload": {"recipient": "carol"}}, id_="r3")
    bobs = revoke(grant_id="r1", recipient="bob")
    chain >> says("files", bobs) << refused("files", "capability_denied")
    lie = revoke(grant_id="r1", recipient="carol")
    chain >> says("files", lie) << refused("files", "grant_unknown")
    chain.takes("files", "carol", grant_id="r2", recipient="carol")


def test_a_deny_stops_the_granter_too(stage):
    rights = {"account-bob": (READ, GRANT, "!capability.revoke")}
    play = stage("alice", "bob", "carol", account_rights=rights)
    play.gives("bob", "carol", READ, id_="r1")
    play >> says("bob", revoke(grant_id="r1")) << refused("bob", "capability_denied")


@pytest.mark.requirement("capability.revoke-cascades")
def test_what_was_granted_from_a_grant_goes_with_it(chain):
    chain.takes("alice", "bob", "carol", grant_id="r1")
    assert list(chain.room.grants()) == []
    for name in ("bob", "carol"):
        chain >> says(name, call("files", n=2)) << refused(name, "proposal_required")


@pytest.mark.requirement("capability.revoke-cascades")
def test_two_who_gave_each_other_the_same_right_do_not_keep_it(stage):
    play = stage("alice", "bob", "carol", "files")
    play.gives("alice", "bob", READ, GRANT, id_="r1")
    play.gives("bob", "carol", READ, GRANT, id_="r2")
    play.gives("carol", "bob", READ, id_="r3")
    play.takes("alice", "bob", "carol", grant_id="r1")
    assert list(play.room.grants()) == []


def test_what_hangs_on_another_grant_or_on_ones_own_right_stays(stage):
    rights = {"account-bob": ("mcp.request.ping", GRANT)}
    play = stage("alice", "bob", "carol", "files", account_rights=rights)
    play.gives("alice", "bob", READ, id_="r1")
    play.gives("alice", "bob", "mcp.request.tools/*", id_="r2")
    play.gives("bob", "carol", READ, "mcp.request.ping", id_="r3")
    play.takes("alice", "bob", grant_id="r1")
    play >> says("carol", call("files")) << stored(REQUEST, "carol")
    play.takes("alice", "bob", "carol", grant_id="r2")
    play >> says("carol", call("files", n=2)) << refused("carol", "proposal_required")
    assert [one.capabilities for one in play.room.grants()] == [("mcp.request.ping",)]


def test_a_part_of_a_grant_can_be_taken_back(play):
    play.gives("alice", "bob", READ, "mcp.request.ping", id_="r1")
    play.gives("alice", "bob", READ, id_="r2")
    play >> says("alice", revoke(recipient="bob", capabilities=["x.y"]))
    play << refused("alice", "grant_unknown")
    play.takes("alice", "bob", recipient="bob", capabilities=[READ])
    assert [one.capabilities for one in play.room.grants()] == [("mcp.request.ping",)]
    play.takes("alice", "bob", recipient="bob")
    assert list(play.room.grants()) == []


@pytest.mark.parametrize("payload", [{}, {"grant_id": 7}, {"recipient": "bob", "capabilities": []}])
def test_a_revocation_that_says_too_little_is_refused(play, payload):
    play >> says("alice", revoke(**payload)) << refused("alice", "payload_invalid")


def test_a_grant_to_someone_who_left_can_be_taken_back(play):
    play.gives("alice", "bob", READ, id_="r1")
    play >> leaves("bob") << stored("system.presence.leave")
    play.takes("alice", recipient="bob")
    play >> joins("bob") << attached("bob") << stored("system.presence.join")
    play >> says("bob", call("files")) << refused("bob", "proposal_required")


def test_settings_that_change_change_rights_at_once(play):
    quiet = {**DEFAULT_RIGHTS, Role.MEMBER: ("mcp.proposal.*",)}
    play.settings = msgspec.structs.replace(SETTINGS, rights=quiet)
    play >> does(lambda room, now: room.configure(play.settings, now))
    play << told("bob", "system.welcome") << told("files", "system.welcome")
    play >> says("bob", chat()) << refused("bob", "capability_denied")
    play >> says("alice", chat()) << stored("chat.message", "alice")


def test_a_role_that_changes_changes_rights_at_once(play):
    play >> joins("bob", on="bob2", role=Role.OWNER)
    play << told("bob", "system.welcome", payload={"you": {"role": "owner", "capabilities": ["*"]}})
    play << attached("bob2")
    play >> says("bob", b'{"protocol":"mcpx/v1","kind":"x.y"}') << stored("x.y", "bob")


@pytest.mark.parametrize(
    ("bounds", "first", "second"),
    [
        ({"grants": 3, "grants_each": 2}, [["x.a"], ["x.a"]], ["x.a"]),
        ({"granted": 5, "granted_each": 3}, [["x.a", "x.b", "x.c"]], ["x.a", "x.b"]),
        ({"granted_bytes": 2_000}, [], [LONG]),
    ],
    ids=["grants", "capabilities", "bytes"],
)
def test_what_is_granted_in_all_is_bounded_so_that_no_revocation_takes_long(
    stage, bounds, first, second
):
    play = stage("alice", "bob", "files", bounds=bounds)
    for number, capabilities in enumerate(first):
        play.gives("alice", "bob", *capabilities, id_=f"r{number}")
    if first:
        play >> says("alice", grant("bob", "x.d")) << refused("alice", "too_many_open")
    play.gives("alice", "files", *second, id_="last")
    play >> says("alice", grant("files", LONG)) << refused("alice", "too_many_open")
    play >> says("alice", grant("bob", *[LONG] * 9)) << refused("alice", "payload_invalid")


def test_nobody_is_granted_more_than_anyone_can_hold(play):
    wide = {"kind": "x.y", "payload": {"a": list(range(60))}}
    for n in range(4):
        play.gives("alice", "bob", wide, id_=f"r{n}")
    play >> says("alice", grant("bob", wide)) << refused("alice", "too_many_capabilities")
