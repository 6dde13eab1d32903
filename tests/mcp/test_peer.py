"""The peer: open requests of one link, and whom what the other side says is for."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from folkmoot.core import errors as e
from folkmoot.core.message import Notification, Request, Response
from folkmoot.mcp import peer as peers
from folkmoot.mcp.peer import (
    AskEffect,
    CallState,
    DropEffect,
    DropReason,
    Effect,
    PassEffect,
    Peer,
    PeerCall,
    ResolveEffect,
    Tag,
    TellEffect,
)
from folkmoot.mcp.wire import (
    ACKNOWLEDGED,
    ASKING,
    LEVELS,
    LISTEN,
    LOGGED,
    PROGRESS,
    SUBSCRIPTION_KEY,
)

FORM = {"elicitation": {"form": {}}}
CALL = "tools/call"


def asked(peer: Peer, id_: int, method: str = CALL, **options: Any) -> PeerCall:
    return peer.request(Request(id=id_, method=method), options.pop("now", 0.0), **options)


def answer(id_: Any) -> Response:
    return Response(id=id_, result={})


def log(level: str = "info") -> Notification:
    return Notification(method=LOGGED, params={"level": level, "data": "x"})


def progress(token: Any) -> Notification:
    return Notification(method=PROGRESS, params={"progressToken": token, "progress": 1})


def changed(id_: Any, method: str = "notifications/tools/list_changed") -> Notification:
    return Notification(method=method, params={"_meta": {SUBSCRIPTION_KEY: id_}})


def question(id_: int = 1) -> Request:
    return Request(id=id_, method="elicitation/create", params={"message": "?"})


def heard(effect: Effect) -> PeerCall | DropReason | None:
    """Whom an effect is for, or why it is for nobody."""
    if isinstance(effect, DropEffect):
        return effect.why
    return None if isinstance(effect, PassEffect) else effect.call


def test_a_call_is_answered_once():
    peer = Peer()
    call = asked(peer, 1)
    assert peer.receive(answer(1), None, 0) == ResolveEffect(call, answer(1))
    assert call.state is CallState.DONE
    assert heard(peer.receive(answer(1), None, 0)) is DropReason.UNASKED
    assert heard(peer.receive(Response(id=None, result={}), None, 0)) is DropReason.UNASKED
    assert len(peer) == 0


@given(st.sampled_from([1.0, True, "1", None, [1], {"a": 1}, 2]))
def test_ids_and_tokens_are_told_apart_with_their_type(token):
    peer = Peer()
    asked(peer, 1, token=1)
    listen = asked(peer, 3, LISTEN)
    assert heard(peer.receive(progress(token), None, 0)) is DropReason.UNASKED
    named = 3.0 if token == 1 else token
    assert heard(peer.receive(changed(named, ACKNOWLEDGED), None, 0)) is None
    assert listen.state is CallState.OPEN


def test_progress_and_log_messages_go_to_their_call_by_token_and_by_tag():
    peer = Peer()
    one, two = asked(peer, 1, token=1, level="info"), asked(peer, 2, token="t", level="error")
    assert heard(peer.receive(progress("t"), 1, 0)) is two
    assert heard(peer.receive(log(), 1, 0)) is one
    assert heard(peer.receive(log("debug"), 1, 0)) is DropReason.UNWANTED
    assert heard(peer.receive(log("no such level"), 2, 0)) is two
    assert heard(peer.receive(log(), 2, 0)) is DropReason.UNWANTED
    assert heard(peer.receive(log(), None, 0)) is DropReason.UNTIED
    assert heard(peer.receive(log(), 99, 0)) is DropReason.UNTIED


def test_what_is_said_of_a_cancelled_call_reaches_nobody_until_it_is_answered():
    peer = Peer()
    left = asked(peer, 1, owner="ann", level="debug", token=1)
    peer.cancel(left, 5)
    other = asked(peer, 2, owner="bob", level="debug", capabilities=FORM)
    assert heard(peer.receive(log(), None, 6)) is DropReason.UNTIED
    assert heard(peer.receive(log(), 1, 6)) is DropReason.CANCELLED
    assert heard(peer.receive(progress(1), None, 6)) is DropReason.CANCELLED
    assert heard(peer.receive(question(), None, 6)) is None
    assert (peer.stale(6), peer.stale(5 + peers.ANSWER_SECONDS)) == (False, True)
    assert heard(peer.receive(answer(1), None, 6)) is DropReason.CANCELLED
    assert heard(peer.receive(log(), None, 6)) is other
    assert heard(peer.receive(question(), None, 6)) is other
    assert not peer.stale(1000)


def test_a_log_message_of_one_of_several_calls_goes_to_the_person_if_all_are_of_one():
    peer = Peer()
    asked(peer, 1, owner="ann", level="error")
    wanting = asked(peer, 2, owner="ann", level="info")
    asked(peer, 3, owner="ann")
    assert heard(peer.receive(log(), None, 0)) is wanting
    asked(peer, 4, owner="bob", level="debug")
    assert heard(peer.receive(log(), None, 0)) is DropReason.UNTIED
    assert [call.id for call in peer.bereft(log())] == [2, 4]
    assert [call.id for call in peer.bereft(log("error"))] == [1]


def test_a_question_is_put_to_the_call_on_whose_stream_it_came():
    peer = Peer()
    asked(peer, 1, owner="ann")
    two = asked(peer, 2, owner="bob")
    assert heard(peer.receive(question(), 2, 0)) is two
    assert heard(peer.receive(question(), None, 0)) is None
    peer.park(two)
    assert heard(peer.receive(question(), 2, 0)) is two
    peer.cancel(two, 0)
    assert heard(peer.receive(question(), 2, 0)) is None


def test_among_the_calls_of_one_owner_the_one_whose_client_can_answer_is_asked():
    peer = Peer()
    able = asked(peer, 1, owner="ann", capabilities=FORM)
    asked(peer, 2, owner="ann")
    asked(peer, 3, "tools/list")
    assert heard(peer.receive(question(), None, 0)) is able
    asked(peer, 4, "completion/complete", owner="bob")
    assert heard(peer.receive(question(), None, 0)) is None


def test_a_parked_call_hears_nothing_until_it_is_taken_up_again():
    peer = Peer()
    call = asked(peer, 1, owner="ann", token=1, level="info", seconds=5)
    peer.park(call)
    assert peer.parked
    assert peer.late(100) == ([], None)
    assert heard(peer.receive(progress(1), 1, 0)) is DropReason.UNWANTED
    peer.resume(call, 100, level=None, capabilities=FORM, seconds=5, slot="again")
    assert heard(peer.receive(progress(1), 1, 101)) is call
    assert heard(peer.receive(log(), 1, 101)) is DropReason.UNWANTED
    assert (call.slot, peer.parked) == ("again", False)
    assert peer.late(103) == ([], 106)


def test_a_subscription_hears_what_names_it_from_when_it_was_agreed_to():
    peer = Peer()
    listen = asked(peer, 1, LISTEN)
    other = asked(peer, 2, level="info")
    assert heard(peer.receive(changed(1), None, 0)) is DropReason.CANCELLED
    assert heard(peer.receive(log(), None, 0)) is DropReason.UNTIED
    assert heard(peer.receive(changed(1, ACKNOWLEDGED), None, 0)) is listen
    assert heard(peer.receive(changed(1), None, 0)) is listen
    assert heard(peer.receive(log(), None, 0)) is other
    assert heard(peer.receive(changed(2), None, 0)) is None
    peer.cancel(listen, 0)
    assert heard(peer.receive(changed(1), None, 0)) is None
    assert len(peer) == 1


def test_progress_extends_the_time_of_a_call_but_not_for_ever():
    peer = Peer()
    call = asked(peer, 1, token=1, seconds=2)
    asked(peer, 2)
    assert peer.late(1) == ([], 2)
    for now in range(1, 30):
        peer.receive(progress(1), None, now)
    assert peer.late(19.5) == ([], 20)
    assert peer.late(20) == ([call], None)


def test_an_answer_made_here_leaves_the_call_remembered_if_the_other_side_may_be_at_work():
    peer = Peer()
    for id_, lingers in ((1, True), (2, False)):
        call = asked(peer, id_, owner="ann")
        peer.failed(call, e.ServerUnreachable("It broke."), lingers=lingers)
        assert heard(peer.receive(answer(id_), None, 0)) is call
        assert isinstance(call.error, e.ServerUnreachable)
    asked(peer, 3, owner="bob")
    assert heard(peer.receive(question(), None, 0)) is None
    assert heard(peer.receive(answer(1), None, 0)) is DropReason.CANCELLED
    assert heard(peer.receive(question(), None, 0)) is not None


def test_on_a_link_of_one_owner_everything_is_theirs():
    peer = Peer(one_owner=True)
    asked(peer, 1, level="info")
    two = asked(peer, 2, level="debug", capabilities=FORM)
    gone = asked(peer, 3, level="debug")
    peer.cancel(gone, 0)
    assert heard(peer.receive(log("debug"), None, 0)) is two
    assert heard(peer.receive(question(), None, 0)) is two
    assert len(peer) == 2


def test_only_so_many_requests_are_open_and_cancelled_ones(monkeypatch):
    monkeypatch.setattr(peers, "MOST_OPEN", 2)
    monkeypatch.setattr(peers, "MOST_CANCELLED", 1)
    peer = Peer()
    calls = [asked(peer, id_) for id_ in (1, 2)]
    with pytest.raises(e.TooManyInFlight):
        asked(peer, 3)
    for call in calls:
        assert not peer.too_many_cancelled
        peer.cancel(call, 0)
    assert peer.too_many_cancelled
    asked(peer, 3)


OWNERS = ("", "ann", "bob", "eve")
METHODS = (CALL, "tools/list", "completion/complete", "prompts/get")


class Talk(RuleBasedStateMachine):
    """Two sides of one link. The other side knows of what it speaks, and tells it or not."""

    def __init__(self) -> None:
        super().__init__()
        self.peer = Peer()
        self.now = 0.0
        # What the other side has not answered.
        self.known: dict[int, PeerCall] = {}
        self.ids = 0

    def _pick(self, which: int) -> PeerCall:
        return list(self.known.values())[which % len(self.known)]

    @rule(
        owner=st.sampled_from(OWNERS),
        method=st.sampled_from(METHODS),
        level=st.sampled_from((None, "debug", "error")),
        token=st.booleans(),
        able=st.booleans(),
    )
    def asks(self, owner: str, method: str, level: str | None, token: bool, able: bool) -> None:
        self.ids += 1
        offers = {"token": self.ids if token else None, "capabilities": FORM if able else {}}
        told = {"owner": owner, "level": level, "now": self.now, **offers}
        self.known[self.ids] = asked(self.peer, self.ids, method, **told)

    @precondition(lambda self: self.known)
    @rule(which=st.integers(0, 20), how=st.sampled_from(("leaves", "parks", "comes back")))
    def changes(self, which: int, how: str) -> None:
        call = self._pick(which)
        if how == "leaves":
            self.peer.cancel(call, self.now)
        elif how == "parks":
            self.peer.park(call)
        else:
            self.peer.resume(call, self.now, level="debug", capabilities=FORM, seconds=1, slot=None)

    @precondition(lambda self: self.known)
    @rule(which=st.integers(0, 20))
    def answers(self, which: int) -> None:
        call = self._pick(which)
        del self.known[int(call.id)]
        left = call.state is CallState.CANCELLED
        effect = self.peer.receive(answer(call.id), None, self.now)
        assert heard(effect) is (DropReason.CANCELLED if left else call)

    @precondition(lambda self: self.known)
    @rule(which=st.integers(0, 20), tagged=st.booleans(), level=st.sampled_from(LEVELS))
    def logs(self, which: int, tagged: bool, level: str) -> None:
        call = self._pick(which)
        tag: Tag = call.id if tagged else None
        effect = self.peer.receive(log(level), tag, self.now)
        wanted = call.wants(LEVELS.index(level))
        if tagged or len(self.known) == 1:
            assert isinstance(effect, TellEffect) is wanted
        if isinstance(effect, TellEffect) and effect.call is call:
            assert wanted
        elif isinstance(effect, TellEffect):
            # What belongs to one call may be told to the same person in another.
            assert call.owner == effect.call.owner != ""

    @precondition(lambda self: self.known)
    @rule(which=st.integers(0, 20))
    def tells_progress(self, which: int) -> None:
        call = self._pick(which)
        effect = self.peer.receive(progress(call.id), None, self.now)
        waits = call.state is CallState.OPEN and call.token is not None
        assert heard(effect) is call if waits else isinstance(effect, DropEffect)

    @precondition(lambda self: any(call.method in ASKING for call in self.known.values()))
    @rule(which=st.integers(0, 20), tagged=st.booleans())
    def wonders(self, which: int, tagged: bool) -> None:
        asking = [call for call in self.known.values() if call.method in ASKING]
        call = asking[which % len(asking)]
        effect = self.peer.receive(question(), call.id if tagged else None, self.now)
        assert isinstance(effect, AskEffect)
        there = call.state in peers.WORKING
        if tagged:
            assert effect.call is (call if there else None)
        elif effect.call is not None:
            # Whoever is asked is the owner of the call that the question is of.
            assert effect.call.owner == call.owner
            assert effect.call is call or call.owner
            assert effect.call.state in peers.WORKING
        elif there:
            # Nobody is asked only where someone else could be meant.
            others = [each for each in self.known.values() if each.owner != call.owner]
            assert others or (not call.owner and len(self.known) > 1)

    @rule(by=st.floats(0, 10))
    def time_passes(self, by: float) -> None:
        self.now += by

    @invariant()
    def what_is_open_is_what_the_other_side_has_not_answered(self) -> None:
        assert len(self.peer) == len(self.known)
        for call in self.known.values():
            assert self.peer.get(call.id) is call


TestTalk = Talk.TestCase
