"""Proposals: the one thing that comes of each, whatever races for it."""

from __future__ import annotations

import pytest

from folkmoot.core import errors as e
from folkmoot.core.strict import encode
from folkmoot.rooms.machine import TRANSITIONS, Facts, Known, LookupNeeded, ProposalStatus, Role
from tests.rooms.machine.playbook import (
    Play,
    answer,
    call,
    closed,
    does,
    expelled,
    fulfil,
    kick,
    leaves,
    logged,
    principal,
    proposal,
    refused,
    reject,
    says,
    stored,
    waits,
    withdraw,
)

REQUEST = "mcp.request.tools/call"
PROPOSAL = "mcp.proposal.tools/call"
ARGUMENTS = {"path": "a", "n": 1, "deep": [{"x": 1.0, "y": True}]}


@pytest.fixture
def proposed(play: Play) -> Play:
    """Bob has proposed to read something."""
    return play.proposes("bob", proposal("read", ARGUMENTS))


def state(play: Play, id_: str = "p1") -> ProposalStatus:
    return next(one.state for one in play.room.proposals() if one.id == id_)


@pytest.mark.requirement("proposal.fulfilled-by-request", "proposal.logged", "proposal.states")
def test_a_proposal_is_fulfilled_by_an_equal_request(proposed):
    assert state(proposed) is ProposalStatus.OPEN
    proposed >> says("alice", fulfil("p1", tool="read", arguments=ARGUMENTS), id="q1")
    proposed << stored(REQUEST, "alice", correlation_id=["p1"])
    proposed << logged("proposal.fulfilled", "alice", "p1", request="q1")
    assert state(proposed) is ProposalStatus.FULFILLED


@pytest.mark.requirement("proposal.response-to-both", "request.response-to-requester")
@pytest.mark.parametrize("to", [["alice"], ["alice", "bob"], ["bob", "alice"]])
def test_the_answer_to_a_fulfilment_is_for_fulfiller_and_proposer(proposed, to):
    proposed >> says("alice", fulfil("p1", tool="read", arguments=ARGUMENTS), id="q1")
    proposed.waiting.clear()
    proposed >> says("files", answer("q1", to=["bob"])) << refused("files", "recipient_invalid")
    proposed >> says("files", answer("q1", to=to)) << stored("mcp.response.tools/call", "files")
    assert {*proposed.last["to"]} == {"alice", "bob"}
    assert b'"payload":{"jsonrpc":"2.0","id":1,"result":{"content":[]}}' in proposed.stored[-1].data


@pytest.mark.requirement("proposal.exact-arguments")
@pytest.mark.parametrize(
    "altered",
    [
        {**ARGUMENTS, "n": 1.0},
        {**ARGUMENTS, "n": True},
        {**ARGUMENTS, "n": "1"},
        {**ARGUMENTS, "n": 2},
        {**ARGUMENTS, "path": "A"},
        {**ARGUMENTS, "more": None},
        {**ARGUMENTS, "deep": [{"x": 1, "y": True}]},
        {**ARGUMENTS, "deep": [{"x": 1.0, "y": 1}]},
        {"path": "a", "n": 1},
        None,
    ],
)
def test_a_fulfilment_with_altered_arguments_is_refused(proposed, altered):
    for request in (
        fulfil("p1", tool="read", arguments=altered),
        fulfil("p1", tool="write", arguments=ARGUMENTS),
    ):
        proposed >> says("alice", request) << refused("alice", "proposal_altered")
    assert state(proposed) is ProposalStatus.OPEN


@pytest.mark.requirement("proposal.exact-arguments")
def test_integers_are_compared_exactly_and_the_order_of_members_does_not_matter(play):
    play.proposes("bob", proposal("read", {"a": 2**53, "b": 10**30}))
    for other in ({"a": 2**53 + 1, "b": 10**30}, {"a": 2**53, "b": 10**30 + 1}):
        altered = fulfil("p1", tool="read", arguments=other)
        play >> says("alice", altered) << refused("alice", "proposal_altered")
    same = fulfil("p1", tool="read", arguments={"b": 10**30, "a": 2**53})
    play >> says("alice", same) << stored(REQUEST, "alice")
    play << logged("proposal.fulfilled", "alice")


@pytest.mark.requirement("proposal.progress-token-left-out")
@pytest.mark.parametrize("asks", [{}, {"progressToken": 1}, {"progressToken": "other"}, None])
@pytest.mark.parametrize("meta", [None, {}, {"progressToken": 2}, {"trace": 1}])
def test_the_progress_token_is_left_out_of_the_comparison(play, meta, asks):
    envelope = proposal("read")
    if meta is not None:
        envelope["payload"]["params"]["_meta"] = meta
    play.proposes("bob", envelope)
    request = fulfil("p1", tool="read")
    rest = {name: it for name, it in (meta or {}).items() if name != "progressToken"}
    request["payload"]["params"]["_meta"] = {**rest, "other": 1, "progressToken": 1}
    play >> says("alice", request) << refused("alice", "proposal_altered")
    del request["payload"]["params"]["_meta"]
    if rest or asks is not None:
        request["payload"]["params"]["_meta"] = {**rest, **(asks or {})}
    play >> says("alice", request) << stored(REQUEST, "alice")
    play << logged("proposal.fulfilled", "alice")


@pytest.mark.requirement("proposal.same-recipient")
def test_where_a_proposal_names_a_recipient_the_request_goes_there(play):
    play.proposes("bob", proposal("read"), to=["files"])
    play >> says("alice", fulfil("p1", to="bob")) << refused("alice", "proposal_altered")
    play >> says("alice", fulfil("p1", to="files")) << stored(REQUEST, "alice")
    play << logged("proposal.fulfilled", "alice")


@pytest.mark.requirement("proposal.not-own")
def test_the_proposer_cannot_fulfil_their_own(play):
    play.proposes("alice", proposal())
    play >> says("alice", fulfil("p1")) << refused("alice", "proposal_own")
    play >> says("alice", reject("p1")) << refused("alice", "proposal_own")


def test_a_fulfilment_needs_the_right_to_the_request(proposed):
    request = fulfil("p1", tool="read", arguments=ARGUMENTS)
    proposed >> says("files", request, to=["alice"]) << refused("files", "proposal_required")
    assert state(proposed) is ProposalStatus.OPEN


def test_a_request_fulfils_one_proposal_at_a_time(play):
    play.proposes("bob", proposal())
    play.proposes("bob", proposal(), "p2")
    both = {**call("files"), "correlation_id": ["p1", "p2"]}
    play >> says("alice", both) << refused("alice", "proposal_altered")


@pytest.mark.requirement("proposal.withdraw-own", "proposal.logged")
def test_only_the_proposer_withdraws_and_only_what_is_open(proposed):
    kind = "mcpx.withdraw.proposal"
    proposed >> says("alice", withdraw("p1")) << refused("alice", "proposal_not_own")
    proposed >> says("bob", withdraw("p2")) << refused("bob", "proposal_unknown")
    proposed >> says("bob", withdraw("p1")) << stored(kind, "bob")
    proposed << logged("proposal.withdrawn", "bob", "p1")
    proposed >> says("bob", withdraw("p1")) << refused("bob", "proposal_closed", state="withdrawn")


@pytest.mark.requirement("proposal.reject-others", "proposal.reject-closes", "proposal.logged")
def test_a_rejection_closes_someone_elses_proposal(proposed):
    kind = "mcpx.reject.proposal"
    proposed >> says("alice", reject("p1", " ")) << refused("alice", "reason_required")
    proposed >> says("files", reject("p1")) << refused("files", "capability_denied")
    proposed >> says("alice", reject("p1", "not now")) << stored(kind, "alice")
    proposed << logged("proposal.rejected", "alice", "p1", state="rejected")
    proposed >> says("alice", reject("p1")) << refused("alice", "proposal_closed", state="rejected")


@pytest.mark.requirement("proposal.quorum")
def test_with_a_quorum_so_many_different_participants_must_reject(stage):
    rights = {f"account-{name}": ("*",) for name in ("carol", "dora")}
    play = stage("alice", "bob", "carol", "dora", "files", quorum=2, account_rights=rights)
    play.proposes("bob", proposal())
    kind = "mcpx.reject.proposal"
    play >> says("carol", reject("p1")) << stored(kind, "carol")
    play << logged("proposal.rejected", "carol", "p1", state="open", rejections=1, quorum=2)
    play >> says("carol", reject("p1")) << refused("carol", "rejected_already")
    assert state(play) is ProposalStatus.OPEN
    play >> says("dora", reject("p1")) << stored(kind, "dora")
    play << logged("proposal.rejected", "dora", "p1", state="rejected", rejections=2)
    play >> says("alice", fulfil("p1")) << refused("alice", "proposal_closed")


@pytest.mark.requirement("proposal.expiry", "proposal.logged")
def test_a_proposal_expires_after_an_hour(proposed):
    proposed >> waits(3599)
    assert state(proposed) is ProposalStatus.OPEN
    proposed >> waits(1) << stored("system.proposal.expired", correlation_id=["p1"])
    proposed << logged("proposal.expired", "gateway", "p1")
    request = fulfil("p1", tool="read", arguments=ARGUMENTS)
    proposed >> says("alice", request) << refused("alice", "proposal_closed", state="expired")


@pytest.mark.requirement("proposal.expiry-shortened")
@pytest.mark.parametrize(("asked", "seconds"), [(60, 60), (0.5, 0.5), (7200, 3600), (10**40, 3600)])
def test_the_proposer_shortens_the_expiry_and_never_lengthens_it(play, asked, seconds):
    play.proposes("bob", proposal(expires_in=asked))
    assert play.room.due == play.now + seconds
    play >> waits(seconds) << stored("system.proposal.expired")
    play << logged("proposal.expired", "gateway")


@pytest.mark.parametrize("asked", [0, -1, "60", True, [60]])
def test_an_expiry_that_is_none_is_refused(play, asked):
    play >> says("bob", proposal(expires_in=asked)) << refused("bob", "payload_invalid")


def test_a_proposal_that_is_due_cannot_be_fulfilled_before_the_tick(proposed):
    proposed.now += 3600
    raw = encode({"protocol": "mcpx/v1", **fulfil("p1", tool="read", arguments=ARGUMENTS)})
    with pytest.raises(e.ProposalClosed, match="expired"):
        proposed >> does(lambda room, now: room.post(principal("alice"), Role.OWNER, raw, now))


@pytest.mark.requirement("proposal.states")
def test_every_step_leads_from_open_to_an_end_of_its_own():
    ends = {step: transition.leads_to.value for step, transition in TRANSITIONS.items()}
    assert ends.pop("kick") == ends["withdraw"]
    assert sorted(ends.values()) == ["expired", "fulfilled", "rejected", "withdrawn"]


@pytest.mark.requirement("proposal.states", "proposal.first-wins")
@pytest.mark.parametrize("first", ["withdraw", "reject", "fulfil", "expire"])
def test_a_closed_proposal_never_changes_again(play, first):
    play.proposes("bob", proposal())
    steps = {
        "withdraw": says("bob", withdraw("p1")),
        "reject": says("alice", reject("p1")),
        "fulfil": says("alice", fulfil("p1")),
        "expire": waits(3600),
    }
    play >> steps[first]
    play.waiting.clear()
    ended = state(play)
    assert ended is TRANSITIONS[first].leads_to  # type: ignore[index]
    for step in ("withdraw", "reject", "fulfil"):
        play >> steps[step]
        play.waiting = play.waiting[-1:]
        who = "bob" if step == "withdraw" else "alice"
        play << refused(who, "proposal_closed", state=ended.value)
        assert state(play) is ended


def test_the_number_of_proposals_is_bounded(stage):
    bounds = {"open_proposals": 3, "open_proposals_each": 2, "closed_proposals": 1}
    play = stage("alice", "bob", "carol", bounds=bounds)
    play.proposes("bob", proposal(), "p1")
    play.proposes("bob", proposal(), "p2")
    play >> says("bob", proposal()) << refused("bob", "too_many_open")
    play.proposes("carol", proposal(), "p3")
    play >> says("carol", proposal()) << refused("carol", "too_many_open")
    for id_ in ("p1", "p2"):
        play >> says("bob", withdraw(id_)) << stored("mcpx.withdraw.proposal", "bob")
        play << logged("proposal.withdrawn", "bob")
    play >> says("bob", withdraw("p2")) << refused("bob", "proposal_closed")
    play >> says("bob", withdraw("p1")) << refused("bob", "proposal_unknown")


@pytest.mark.requirement("proposal.kicked")
def test_the_proposals_of_who_is_kicked_close(stage):
    play = stage("alice", "bob", "carol", "files")
    play.proposes("bob", proposal("read"))
    play.proposes("bob", proposal("write"), "p2")
    play.proposes("carol", proposal(), "p3")
    play >> says("alice", kick("bob")) << stored("room.kick", "alice")
    play << logged("room.kick", "alice", "bob") << expelled("bob", by="alice")
    for id_ in ("p1", "p2"):
        told = {"proposal": id_, "state": "withdrawn", "reason": "kicked"}
        play << stored("system.proposal.withdrawn", correlation_id=[id_], payload=told)
        play << logged("proposal.withdrawn", "alice", id_, reason="kicked")
    play << closed("bob", 4403) << stored("system.presence.leave")
    states = {one.id: (one.state.value, one.closed_by) for one in play.room.proposals()}
    gone = ("withdrawn", "account-alice")
    assert states == {"p1": gone, "p2": gone, "p3": ("open", None)}
    late = fulfil("p1", tool="read")
    play >> says("alice", late) << refused("alice", "proposal_closed", state="withdrawn")


@pytest.mark.requirement("proposal.kicked")
def test_the_proposals_of_who_is_kicked_close_also_when_they_are_not_here(play):
    play.proposes("bob", proposal("read"))
    play >> leaves("bob") << stored("system.presence.leave")
    play.room = play.rebuilt()
    play.rebuilds = False
    facts = Facts(names={"bob": Known("account-bob", Role.MEMBER)})
    raw, alice = encode({"protocol": "mcpx/v1", **kick("bob")}), principal("alice")
    with pytest.raises(LookupNeeded):
        play.room.post(alice, Role.OWNER, raw, play.now)
    play >> does(lambda room, now: room.post(alice, Role.OWNER, raw, now, facts))
    play << stored("room.kick", "alice")
    play << logged("room.kick", "alice", "bob") << expelled("bob", by="alice")
    play << stored("system.proposal.withdrawn", correlation_id=["p1"])
    play << logged("proposal.withdrawn", "alice", "p1")
    assert state(play) is ProposalStatus.WITHDRAWN
