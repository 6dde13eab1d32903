from __future__ import annotations

import logging
from types import NoneType
from typing import Any

import msgspec
import pytest

from folkmoot.accounts import Account
from folkmoot.clock import SystemClock
from folkmoot.core import errors as e
from folkmoot.core.policy import Principal
from folkmoot.core.scopes import OPERATE
from folkmoot.operations import (
    OPERATIONS,
    Absent,
    Arguments,
    Call,
    Caller,
    Operation,
    Services,
    ToolCatalogue,
    row,
)
from folkmoot.operations.dispatch import Dispatcher, check_caller
from folkmoot.ratelimits import MINUTE, Limit, RateLimits
from tests.harness import run

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


def dispatcher(most: int = 1_000) -> Dispatcher:
    limits = RateLimits(SystemClock(), {"say": Limit(most, MINUTE)})
    nobody: Any = None
    services = Services(accounts=nobody, mail=nobody, rooms=nobody, limits=limits)
    tool = Operation(
        name="msg/say",
        description="Say a word.",
        takes=Say,
        gives=msgspec.Struct,
        handler=say,
        scope="mail.send",
        limits=(row.OperationLimit("say", lambda caller, _: caller.address, NoneType),),
        routes=Absent("a test"),
        commands=Absent("a test"),
    )
    return Dispatcher(services, ToolCatalogue([tool]))


def call(hub: Dispatcher, arguments: Any, name: str = "msg/say", **who: Any) -> tuple[Any, bool]:
    caller = Caller(**{"account": ALICE, "address": "here", **who})
    tool = hub.catalogue.find(name)
    assert tool is not None
    result = run(hub.call(tool, arguments, caller))
    return msgspec.json.decode(result.text()), result.is_error


def test_a_call_is_answered_with_one_object():
    assert call(dispatcher(), {"word": "hello"}) == ({"said": "hello"}, False)


def test_authentication_comes_before_arguments_and_arguments_before_limits():
    hub = dispatcher(most=1)
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
    for operation in (each for each in OPERATIONS if each.who == "operator"):
        if error is None:
            check_caller(operation, caller)
        else:
            with pytest.raises(error):
                check_caller(operation, caller)


def test_errors_are_told_as_far_as_they_concern_the_caller(caplog):
    hub = dispatcher()
    assert call(hub, {"word": "tool error"}) == ({"error": "word is not nice."}, True)
    told, is_error = call(hub, {"word": "room error"})
    assert is_error
    assert told == {
        "error": "The proposal is already expired.",
        "code": "proposal_closed",
        "state": "expired",
    }
    told, _ = call(hub, {"word": "store error"})
    assert told == {
        "error": "More writes are waiting than `store.queue` allows; try again in a moment."
    }
    told, _ = call(hub, {"word": "fault"})
    assert "secret" not in told["error"]
    assert told["error"].rstrip(".").rpartition(" ")[2] in {
        getattr(record, "id", "") for record in caplog.records
    }


def test_what_does_not_count_is_given_back():
    hub = dispatcher(most=1)
    for _ in range(3):
        assert call(hub, {"word": "tool error"})[0] == {"error": "word is not nice."}
    assert call(hub, {"word": "one"}) == ({"said": "one"}, False)


@pytest.mark.requirement("wire-name.resolved-first", "wire-name.canonical-inside")
def test_a_name_is_canonical_before_limits_and_log_see_it(caplog):
    hub = dispatcher(most=2)
    with caplog.at_level(logging.DEBUG, "folkmoot.operations"):
        assert call(hub, {"word": "one"}, "msg_say") == ({"said": "one"}, False)
        assert call(hub, {"word": "two"}, "msg/say") == ({"said": "two"}, False)
        for name in ("msg_say", "msg/say"):
            assert call(hub, {"word": "three"}, name)[1]
    tools = [getattr(record, "tool", "") for record in caplog.records]
    assert tools == ["msg/say"] * 4


def test_a_name_that_is_nobodys_is_not_found():
    assert dispatcher().catalogue.find("msg/shout") is None


def test_whoever_asks_too_late_hears_that_a_caller_has_left():
    caller = Caller()
    caller.has_left = True
    assert caller.leaving.is_set()
    assert not Caller().leaving.is_set()
