"""Coming, going, resuming and restarting; who gets in, and who is put out."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from folkmoot.core import errors as e
from folkmoot.core.closecodes import CloseCode
from folkmoot.core.kinds import KNOWN_KINDS
from folkmoot.core.mcpx import decode_mcpx
from folkmoot.core.policy import Principal, PrincipalType
from folkmoot.core.strict import encode
from folkmoot.rooms.machine import Role
from folkmoot.rooms.machine.acts import ACTS
from tests.rooms.machine.playbook import (
    SETTINGS,
    answer,
    attached,
    call,
    chat,
    closed,
    does,
    expelled,
    grant,
    invited,
    joins,
    kick,
    leaves,
    logged,
    principal,
    proposal,
    refused,
    revoke,
    says,
    stored,
    told,
    waits,
)

JOIN = "system.presence.join"
LEAVE = "system.presence.leave"


@pytest.mark.requirement("room.welcome-first", "room.welcome-shape", "room.presence")
def test_who_comes_in_is_welcomed_and_everyone_is_told(stage):
    play = stage("alice")
    bob = {"id": "bob", "type": "person", "role": "member"}
    play >> joins("bob")
    play << attached(
        "bob",
        you={**bob, "capabilities": list(SETTINGS.rights[Role.MEMBER])},
        participants=[{"id": "alice", "type": "person", "role": "owner"}, bob],
        participants_total=2,
        room="square",
        epoch="e1",
        history={"enabled": True, "first_seq": 1, "last_seq": 1},
    )
    play << stored(JOIN, seq=2, payload={"event": "join", "participant": bob})
    assert [who["id"] for who in play.room.participants()] == ["alice", "bob"]


@pytest.mark.requirement("room.presence")
def test_presence_tells_of_the_first_connection_and_the_last(play):
    play >> joins("bob", on="bob-2") << attached("bob-2")
    play >> says("bob-2", chat()) << stored("chat.message", "bob")
    play >> leaves("bob")
    play >> says("bob-2", chat()) << stored("chat.message", "bob")
    play >> leaves("bob-2") << stored(LEAVE, payload={"participant": {"id": "bob"}})
    play >> leaves("bob-2")


@pytest.mark.requirement("room.presence")
def test_a_page_that_comes_back_soon_never_left_and_one_that_does_not_left_later(stage):
    play = stage("alice")
    play >> joins("bob", linger=True) << attached("bob") << stored(JOIN)
    for number in range(3):
        play >> leaves("bob" if not number else f"bob-{number}")
        play >> waits(SETTINGS.return_seconds / 2)
        again = f"bob-{number + 1}"
        play >> joins("bob", on=again, linger=True) << attached(again, participants_total=2)
    play >> waits(SETTINGS.return_seconds * 2)
    play >> leaves("bob-3")
    assert play.room.due == play.now + SETTINGS.return_seconds
    play >> waits(SETTINGS.return_seconds + 1)
    play << stored(LEAVE, payload={"participant": {"id": "bob"}})
    # The last connection of an agent is its leaving, also where a page was there before.
    play >> joins("bob", linger=True) << attached("bob") << stored(JOIN)
    play >> joins("bob", on="agent") << attached("agent")
    play >> leaves("bob")
    play >> leaves("agent") << stored(LEAVE)


def test_who_is_put_out_while_their_page_is_away_has_left(stage):
    play = stage("alice")
    play >> joins("bob", linger=True) << attached("bob") << stored(JOIN)
    play >> leaves("bob")
    gone = does(lambda room, now: room.remove("account-bob", CloseCode.NOT_ALLOWED, now))
    play >> gone << stored(LEAVE)
    play >> waits(SETTINGS.return_seconds * 2)


@pytest.mark.requirement("room.close-replaced")
def test_a_connection_id_that_comes_back_replaces_its_connection(stage):
    play = stage("alice")
    play >> joins("bob", on="old", conn="phone") << attached("old") << stored(JOIN)
    play >> joins("bob", on="new", conn="phone") << closed("old", 4009) << attached("new")
    play >> says("old", chat())
    play >> leaves("old")
    play >> says("new", chat()) << stored("chat.message", "bob")
    play >> joins("alice", on="alices", conn="phone") << attached("alices")


def test_to_resume_replays_what_was_missed_up_to_the_moment_of_joining(play):
    play >> leaves("bob") << stored(LEAVE)
    play >> says("alice", chat()) << stored("chat.message", "alice")
    resume = {"after": 3, "complete": True, "reason": None}
    play >> joins("bob", after=3, epoch="e1")
    play << attached("bob", after=3, resume=resume, history={"last_seq": 5})
    play << stored(JOIN, seq=6)


@pytest.mark.requirement("room.resume-too-old", "room.resume-epoch")
@pytest.mark.parametrize(
    ("after", "epoch", "reason"),
    [
        (3, "e0", "epoch_changed"),
        (1, "e1", "history_gone"),
        (99, "e1", "seq_unknown"),
        (-1, "e1", "seq_unknown"),
    ],
)
def test_when_nothing_can_be_replayed_the_welcome_says_so(play, after, epoch, reason):
    play.room.trim(3)
    play >> joins("bob", on="bob-2", after=after, epoch=epoch)
    play << attached("bob-2", resume={"after": after, "complete": False, "reason": reason})


def test_what_the_history_just_reaches_back_to_is_replayed(play):
    play.room.trim(3)
    play >> joins("bob", on="bob-2", after=2)
    play << attached("bob-2", after=2, history={"first_seq": 3})


@pytest.mark.parametrize(
    "names",
    [
        ["gateway", "gatevvay", "gate-way", "g4teway"],
        ["system", "5ystem", "folkmoot", "f0lkm00t"],
        ["", "b", "x" * 33, "1bob"],
        ["Bob", "bob ", "böb", "bob\n", "me@x"],
    ],
)
def test_a_name_that_is_none_or_the_hubs_is_refused(play, names):
    for name in names:
        with pytest.raises(e.NameRefused):
            play >> joins("x", who=Principal("account-x", name))
    assert len(play.room.participants()) == 3


@pytest.mark.parametrize("name", ["a1ice", "allce", "al-ice", "b0b", "bo_b", "fi1es"])
def test_a_name_that_could_be_mistaken_for_anothers_is_refused(play, name):
    with pytest.raises(e.NameRefused, match="mistaken for another"):
        play >> joins("x", who=Principal("account-x", name))
    play >> leaves({"a": "alice", "b": "bob", "f": "files"}[name[0]]) << stored(LEAVE)
    play >> joins("x", who=Principal("account-x", name)) << attached("x") << stored(JOIN)


def test_who_comes_back_under_another_name_is_one_participant(play):
    renamed = Principal("account-bob", "robert")
    play >> joins("bob-2", who=renamed) << stored(LEAVE) << stored(JOIN)
    play << told("bob", "system.welcome") << attached("bob-2")
    play >> says("bob", chat()) << stored("chat.message", "robert")
    assert sorted(who["id"] for who in play.room.participants()) == ["alice", "files", "robert"]


def test_a_room_has_room_for_so_many(stage):
    play = stage("alice", bounds={"participants": 2, "connections_each": 2, "listed": 1})
    play >> joins("bob") << attached("bob", participants_total=2) << stored(JOIN)
    with pytest.raises(e.RoomFull):
        play >> joins("carol")
    play >> joins("bob", on="bob-2", conn="c") << attached("bob-2")
    with pytest.raises(e.TooManyConnections):
        play >> joins("bob", on="bob-3", conn="d")
    play >> joins("bob", on="bob-3", conn="c") << closed("bob-2", 4009) << attached("bob-3")


@pytest.mark.requirement("room.invite-kinds")
def test_who_is_kicked_is_closed_and_everyone_is_told(play):
    play >> says("alice", call("bob"), id="q1") << stored("mcp.request.tools/call", "alice")
    play >> joins("bob", on="bob-2") << attached("bob-2")
    play >> says("alice", kick("bob")) << stored("room.kick", "alice")
    play << logged("room.kick", "alice", "bob") << expelled("bob", by="alice")
    play << closed("bob", CloseCode.NOT_ALLOWED) << closed("bob-2", CloseCode.NOT_ALLOWED)
    play << stored(LEAVE) << stored("mcp.response.tools/call:read", correlation_id=["q1"])
    play >> says("bob", chat())
    play >> leaves("bob-2")


@pytest.mark.requirement("wire.context-printable")
@pytest.mark.parametrize("context", ["a\x00b", "a\nb", "\x7f", "\x9b31m"])
def test_control_characters_in_a_context_are_refused(play, context):
    play >> says("bob", chat(), context=context) << refused("bob", "invalid_envelope")
    play >> says("bob", chat(), context="draft 2 — é\u2028") << stored("chat.message", "bob")


WRONG = (None, True, 7, 0.5, "", "nobody", [], ["bob"], {}, {"id": "bob"}, [[]], "x" * 2000)
ACTED_ON = sorted(
    {
        *(kind for kind in ACTS if not kind.startswith("mcp.notification.")),
        "mcp.notification.notifications/cancelled",
        "chat.acknowledge",
    }
)


@pytest.mark.parametrize("value", WRONG, ids=str)
@pytest.mark.parametrize("root", ACTED_ON)
def test_a_payload_of_the_wrong_type_is_refused_or_kept_and_never_breaks_the_room(
    play, root, value
):
    names = "participant handle guest recipient grant_id capabilities reason timeout_seconds "
    names += "expires_in method params id result text"
    play.rebuilds = False
    method = {"mcp": ".ping", "mcpx": ".proposal"}.get(root.partition(".")[0], "")
    for name in names.split():
        for base in ({}, {"jsonrpc": "2.0", "method": "ping", "id": 1, "reason": "x"}):
            kind = root if root.count(".") > 1 else root + method
            envelope = {"kind": kind, "payload": {**base, name: value}, "to": ["files"]}
            play >> says("alice", envelope)
            play.waiting.clear()


@pytest.mark.parametrize("wrong", [None, 7, ["bob"], {"id": "bob"}, ""])
def test_a_kick_that_names_nobody_is_refused(play, wrong):
    for payload in ({"participant": wrong}, {"participant": "bob", "reason": ["x"]}):
        envelope = {"kind": "room.kick", "payload": payload}
        play >> says("alice", envelope) << refused("alice", "payload_invalid")


def test_an_owner_is_not_kicked_nor_is_oneself(stage):
    play = stage("alice", "bob", account_rights={"account-bob": ("*",)})
    play >> says("bob", kick("alice")) << refused("bob", "capability_denied")
    play >> says("bob", kick("bob")) << refused("bob", "recipient_invalid")
    play >> says("bob", kick("gateway")) << refused("bob", "recipient_unknown")


@pytest.mark.requirement("room.invite-kinds")
def test_the_answer_to_an_invitation_is_for_the_inviter_alone(play):
    guest = {"kind": "room.invite", "payload": {"guest": "guest-kim"}}
    play >> says("alice", guest, id="i1") << stored("room.invite", "alice")
    play << logged("room.invite", "alice", "guest-kim") << invited("alice", "i1", guest="guest-kim")
    ack = {"token": "secret"}
    play >> does(lambda room, now: room.answer_invite("alice", "i1", ack, now))
    play << told("alice", "room.invite-ack", correlation_id=["i1"], payload=ack)
    assert not any(b"secret" in one.data for one in play.stored)
    play >> does(lambda room, now: room.answer_invite("gone", "i1", ack, now))


@pytest.mark.parametrize(
    ("code", "payloads"),
    [
        ("payload_invalid", [{}, {"handle": "x", "guest": "y"}, {"handle": 7}, {"guest": 7}]),
        ("name_refused", [{"guest": "gateway"}, {"guest": "a1ice"}]),
    ],
)
def test_an_invitation_names_one_who_could_come_in(play, code, payloads):
    for payload in payloads:
        play >> says("alice", {"kind": "room.invite", "payload": payload}) << refused("alice", code)


def test_an_account_is_invited_by_its_handle(play):
    handle = {"kind": "room.invite", "payload": {"handle": "carol"}}
    play >> says("alice", handle, id="i1") << stored("room.invite", "alice")
    play << logged("room.invite", "alice", "carol") << invited("alice", "i1", handle="carol")


def test_who_lost_their_account_is_put_out(play):
    play >> does(lambda room, now: room.remove("account-bob", CloseCode.NOT_AUTHENTICATED, now))
    play << closed("bob", 4401) << stored(LEAVE)
    assert play.room.remove("account-bob", CloseCode.NOT_ALLOWED, play.now) == []


@pytest.mark.requirement("room.reasoning-kinds", "room.participant-kinds", "room.unknown-protocol")
@pytest.mark.parametrize(
    "kind",
    [
        known.kind
        for known in KNOWN_KINDS
        if known.kind.split(".")[0] in ("reasoning", "participant")
        and known.kind not in ("participant.pause", "participant.resume")
    ]
    + ["weather.report", "weather.report.daily:berlin"],
)
def test_kinds_that_are_only_carried_need_the_capability(play, kind):
    envelope = {"kind": kind, "payload": {"n": 1}}
    play >> says("alice", envelope) << stored(kind, "alice", payload={"n": 1})
    if not kind.startswith(("reasoning", "participant.status", "participant.compact-done")):
        play >> says("bob", envelope) << refused("bob", "capability_denied")


@pytest.mark.parametrize(
    ("name", "first", "second"),
    [
        ("bob", proposal(), proposal("delete")),
        ("alice", call("files"), call("bob")),
        ("alice", grant("bob", "x.y"), grant("files", "x.y")),
    ],
    ids=["proposal", "request", "grant"],
)
def test_nothing_stands_in_place_of_what_is_open_and_whose_message_is_gone(
    play, name, first, second
):
    play.ignore(says(name, first, id="m1"))
    play.rebuilds = False
    play.room.trim(play.room.seq + 1)
    play >> says(name, second, id="m1") << refused(name, "id_used", "m1")


def test_who_is_not_here_may_post(play):
    carol = principal("carol")
    raw = encode({"protocol": "mcpx/v1", **chat(), "id": "m1"})
    play >> does(lambda room, now: room.post(carol, Role.MEMBER, raw, now))
    play << stored("chat.message", "carol", id="m1")
    for who, said, error in (
        (Principal("account-x", "a1ice"), chat(), e.NameRefused),
        (carol, {**chat(), "from": "bob"}, e.SenderForged),
        (carol, kick("bob"), e.CapabilityDenied),
    ):
        with pytest.raises(error):
            play.room.post(who, Role.MEMBER, encode({"protocol": "mcpx/v1", **said}), play.now)


def test_a_post_is_judged_by_the_role_it_comes_with(play):
    raw = encode({"protocol": "mcpx/v1", **kick("bob")})
    with pytest.raises(e.CapabilityDenied):
        play.room.post(principal("alice"), Role.GUEST, raw, play.now)


def test_what_was_decoded_and_what_was_refused_before_the_room_is_taken_too(play):
    message = decode_mcpx(encode({"protocol": "mcpx/v1", **chat(), "id": "m1"}))
    blocked = e.BlockedByInterceptor("No.")
    play >> does(lambda room, now: room.refuse("bob", message, blocked, now))
    play << refused("bob", "blocked", "m1", attempted_kind="chat.message")
    play >> does(lambda room, now: room.receive("bob", [message], now)[0])
    play << stored("chat.message", "bob")
    assert play.room.refuse("gone", message, blocked, play.now) == []


def test_a_rebuilt_room_goes_on_where_the_stored_history_ends(play):
    play >> says("alice", call("files"), id="q1") << stored("mcp.request.tools/call", "alice")
    play >> says("bob", chat(), id="lost") << stored("chat.message", "bob")
    play.stored.pop()
    play.room = play.rebuilt()
    assert play.room.seq == 4
    play >> joins("alice") << attached("alice")
    play >> joins("files", after=4, epoch="e1") << attached("files", after=4)
    play >> joins("bob") << attached("bob")
    play >> says("alice", chat(), id="q1") << refused("alice", "id_used", seq=4)
    play >> says("bob", chat(), id="lost") << stored("chat.message", "bob", seq=5)
    play >> says("files", answer("q1")) << stored("mcp.response.tools/call", "files")
    play >> waits(60)


def test_who_does_not_come_back_after_a_restart_has_left(play):
    play >> says("alice", call("files"), id="q1") << stored("mcp.request.tools/call", "alice")
    play.room = play.rebuilt()
    play >> joins("alice") << attached("alice", participants_total=3)
    play >> joins("bob") << attached("bob")
    play >> waits(29.9)
    play >> waits(0.1) << stored(LEAVE, payload={"participant": {"id": "files", "type": "agent"}})
    play << stored("mcp.response.tools/call:read", correlation_id=["q1"])


def test_a_guest_is_rebuilt_as_one(stage):
    play = stage("guest-kim")
    guest = {"id": "guest-kim", "type": "guest", "role": "guest", "offers_tools": False}
    assert play.rebuilt().participants() == [guest]


def test_an_append_knows_the_accounts_and_does_not_tell_them(play):
    play >> says("alice", call("files")) << stored("mcp.request.tools/call", "alice")
    kept = play.stored[-1]
    assert (kept.account, kept.about) == ("account-alice", "account-files")
    assert not any(b"account-" in one.data for one in play.stored)


PROMISED = ("mcp.proposal.*", {"kind": "mcp.request.tools/call:read", "to": "files"})
KIM = Principal("guest:1", "kim", PrincipalType.GUEST)


def endowed(by: str, *capabilities: Any, id_: str = "i1") -> Any:
    return does(
        lambda room, now: room.apply_guest_grants(KIM, f"account-{by}", capabilities, id_, now)
    )


def test_a_guest_holds_from_the_start_what_its_invitation_says(play):
    guest = {"guest": "kim", "capabilities": list(PROMISED)}
    play >> says("alice", {"kind": "room.invite", "payload": guest}, id="i1")
    play << stored("room.invite", "alice") << logged("room.invite", "alice", "kim")
    play << invited("alice", "i1", guest="kim", capabilities=PROMISED)
    play >> endowed("alice", *PROMISED)
    granted = {"recipient": "kim", "capabilities": list(PROMISED), "own": [True, True]}
    play << stored(
        "capability.grant-ack", to=["alice", "kim"], correlation_id=["i1"], payload=granted
    )
    play << logged("capability.grant", "alice", "kim", grant="i1")
    play >> joins("kim", role=Role.GUEST, who=KIM) << attached("kim") << stored(JOIN)
    play >> says("kim", call("files")) << stored("mcp.request.tools/call", "kim")
    play >> says("kim", call("bob")) << refused("kim", "proposal_required")
    play >> says("alice", revoke(grant_id="i1")) << stored("capability.revoke", "alice")
    play << logged("capability.revoke", "alice") << told("kim", "system.welcome")
    play >> says("kim", call("files", n=2)) << refused("kim", "capability_denied")


def test_nobody_promises_a_guest_what_they_do_not_hold(stage):
    play = stage("alice", "bob", account_rights={"account-bob": ("room.invite", "mcp.proposal.*")})

    def inviting(**payload: Any) -> dict[str, Any]:
        return {"kind": "room.invite", "payload": payload}

    handle = inviting(handle="carol", capabilities=["mcp.proposal.*"])
    play >> says("bob", handle) << refused("bob", "payload_invalid")
    for wrong, code in (
        (["mcp.request.*"], "grant_exceeds_rights"),
        ("mcp.proposal.*", "payload_invalid"),
        ([], "payload_invalid"),
        (["x"] * 65, "payload_invalid"),
        (["system.*"], "capability_reserved"),
    ):
        play >> says("bob", inviting(guest="kim", capabilities=wrong)) << refused("bob", code)
    # Meanwhile the inviter lost one of the two.
    play >> endowed("bob", "mcp.proposal.*", "chat.*", "mcp.request.*")
    play << stored("capability.grant-ack", payload={"capabilities": ["mcp.proposal.*", "chat.*"]})
    play << logged("capability.grant", "bob", "kim")
    play >> endowed("bob", "mcp.request.*", id_="i2")
    play >> endowed("bob", "mcp.proposal.*", id_="i1")


def test_what_a_guest_was_granted_goes_when_it_is_kicked(play):
    play >> endowed("alice", "*") << stored("capability.grant-ack")
    play << logged("capability.grant", "alice", "kim")
    play >> joins("kim", role=Role.GUEST, who=KIM) << attached("kim") << stored(JOIN)
    play.gives("kim", "bob", "mcp.request.*", id_="r1")
    play >> says("alice", kick("kim")) << stored("room.kick", "alice")
    play << logged("room.kick", "alice", "kim")
    play.waiting.pop(0)
    play << closed("kim", CloseCode.NOT_ALLOWED) << stored(LEAVE) << told("bob", "system.welcome")
    assert not list(play.room.grants())


def test_owners_change_with_the_settings_whatever_the_shell_believed(stage):
    both = msgspec.structs.replace(SETTINGS, owners=frozenset(("account-alice", "account-bob")))
    play = stage("alice", "bob", "carol")
    # Who owns a room is in its record, which the messages do not tell.
    play.rebuilds = False
    play.gives("alice", "carol", "room.kick", id_="r1")
    play.settings = both
    play >> does(lambda room, now: room.configure(both, now))
    play << told("bob", "system.welcome", payload={"you": {"role": "owner"}})
    play >> says("carol", kick("bob")) << refused("carol", "capability_denied")
    handed = play.settings = msgspec.structs.replace(SETTINGS, owners=frozenset(("account-bob",)))
    play >> does(lambda room, now: room.configure(handed, now))
    play << told("alice", "system.welcome", payload={"you": {"role": "member"}})
    play << told("carol", "system.welcome")
    play >> says("alice", kick("carol")) << refused("alice", "capability_denied")
    play >> leaves("alice") << stored(LEAVE)
    play >> joins("alice", role=Role.OWNER)
    play << attached("alice", you={"role": "member"}) << stored(JOIN)
