from __future__ import annotations

import logging
from types import NoneType
from typing import Any

import msgspec
import pytest

from folkmoot.accounts import Account
from folkmoot.core import errors as e
from folkmoot.core.policy import Principal
from folkmoot.core.scopes import OPERATE
from folkmoot.operations import OPERATIONS, Arguments, Call, Caller, row
from folkmoot.operations.dispatch import Dispatcher, check_caller
from folkmoot.ratelimits import MINUTE, Limit
from tests.harness import run
from tests.operations.support import dispatcher, operation

ALICE = Account("id", "alice", "alice", "", "public", "", "person", "key", None, 0, 0)


class Say(Arguments, frozen=True, kw_only=True):
    word: str


OUTCOMES: dict[str, Exception] = {
    "tool error": e.ArgumentInvalid("word is not nice.", field="word"),
    "room error": e.ProposalClosed("The proposal is already expired.", state="expired"),
    "store error": e.StoreOverloaded("/secret/path is full"),
    "fault": ValueError("secret detail"),
}


async def say(call: Call[Say]) -> dict[str, Any]:
    if error := OUTCOMES.get(call.arguments.word):
        raise error
    return {"said": call.arguments.word}


def saying(most: int = 1_000) -> Dispatcher:
    """A hub of one tool, which may be called so often in a minute."""
    counted = (row.OperationLimit("say", lambda caller, _: caller.address, NoneType),)
    tool = operation("msg/say", say, takes=Say, scope="mail.send", limits=counted)
    return dispatcher(tool, limits={"say": Limit(most, MINUTE)})


def call(hub: Dispatcher, arguments: Any, name: str = "msg/say", **who: Any) -> tuple[Any, bool]:
    caller = Caller(**{"account": ALICE, "address": "here", **who})
    tool = hub.catalogue.find(name)
    assert tool is not None
    result = run(hub.call(tool, arguments, caller))
    return msgspec.json.decode(result.text()), result.is_error


def test_a_call_is_answered_with_one_object():
    assert call(saying(), {"word": "hello"}) == ({"said": "hello"}, False)


def test_authentication_comes_before_arguments_and_arguments_before_limits():
    hub = saying(most=1)
    sentence = {"error": "Authentication required."}
    assert call(hub, {"nonsense": 1}, account=None) == (sentence, True)
    assert call(hub, {}) == ({"error": "Missing argument: word."}, True)
    assert call(hub, {"word": "one"}) == ({"said": "one"}, False)
    assert call(hub, {}) == ({"error": "Missing argument: word."}, True)
    assert call(hub, {"word": "two"})[0]["retry_after"] == 60


@pytest.mark.parametrize(
    ("caller", "error"),
    [
        (Caller(), e.AuthenticationRequired),
        (Caller(account=ALICE, principal=Principal("id", "alice")), e.CapabilityDenied),
        (Caller(account=ALICE, principal=Principal("id", "alice", scope=OPERATE)), None),
        (Caller(operator=True), None),
    ],
    ids=["a stranger", "a whole token", "a token that operates", "the socket"],
)
def test_what_is_for_operators_is_refused_to_everyone_else(caller, error):
    for one in (each for each in OPERATIONS if each.who == "operator"):
        if error is None:
            check_caller(one, caller)
        else:
            with pytest.raises(error):
                check_caller(one, caller)


def test_errors_are_told_as_far_as_they_concern_the_caller(caplog):
    hub = saying()
    assert call(hub, {"word": "tool error"}) == ({"error": "word is not nice."}, True)
    closed = {"code": "proposal_closed", "state": "expired"}
    told = {"error": "The proposal is already expired.", **closed}
    assert call(hub, {"word": "room error"}) == (told, True)
    told, _ = call(hub, {"word": "store error"})
    waits = "More writes are waiting than `store.queue` allows; try again in a moment."
    assert told == {"error": waits}
    told, _ = call(hub, {"word": "fault"})
    assert "secret" not in told["error"]
    logged = {getattr(record, "id", "") for record in caplog.records}
    assert told["error"].rstrip(".").rpartition(" ")[2] in logged


def test_what_does_not_count_is_given_back():
    hub = saying(most=1)
    for _ in range(3):
        assert call(hub, {"word": "tool error"})[0] == {"error": "word is not nice."}
    assert call(hub, {"word": "one"}) == ({"said": "one"}, False)


@pytest.mark.requirement("wire-name.resolved-first", "wire-name.canonical-inside")
def test_a_name_is_canonical_before_limits_and_log_see_it(caplog):
    hub = saying(most=2)
    with caplog.at_level(logging.DEBUG, "folkmoot.operations"):
        assert call(hub, {"word": "one"}, "msg_say") == ({"said": "one"}, False)
        assert call(hub, {"word": "two"}, "msg/say") == ({"said": "two"}, False)
        for name in ("msg_say", "msg/say"):
            assert call(hub, {"word": "three"}, name)[1]
    tools = [getattr(record, "tool", "") for record in caplog.records]
    assert tools == ["msg/say"] * 4


def test_a_name_that_is_nobodys_is_not_found():
    assert saying().catalogue.find("msg/shout") is None


def test_whoever_asks_too_late_hears_that_a_caller_has_left():
    caller = Caller()
    caller.has_left = True
    assert caller.leaving.is_set()
    assert not Caller().leaving.is_set()
