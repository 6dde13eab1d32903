"""Scopes: words, and what they stand for."""

from __future__ import annotations

import pytest

from folkmoot.core import errors as e
from folkmoot.core.capability import Rights
from folkmoot.core.kinds import parse
from folkmoot.core.policy import Decision, Principal, judge
from folkmoot.core.scopes import SCOPES, WHOLE, row_of, scope

CALL = parse("mcp.request.tools/call:msg/send")


def test_a_scope_has_what_it_names_for_all_or_for_one():
    narrow = scope("mail.read  rooms:square tools")
    assert narrow.text == "mail.read rooms:square tools"
    for named in (["mail.read"], ["tools", "github"], ["rooms", "square"]):
        assert narrow.has(*named), named
    for other in (
        ["rooms"],
        ["rooms", "kitchen"],
        ["rooms", "square x"],
        ["mail"],
        ["mail.read.x"],
    ):
        assert not narrow.has(*other), other
    assert narrow.may_have("rooms")
    assert not narrow.may_have("decide")
    assert not narrow.is_whole


def test_to_run_the_hub_must_be_named():
    assert WHOLE.is_whole
    assert WHOLE.has("account")
    assert WHOLE.has("rooms", "square")
    assert not WHOLE.has("operate")
    assert not WHOLE.may_have("operate")
    assert not scope("operate*").has("operate")
    assert scope("* mail.read").text == "*"
    both = scope("operate *")
    assert both.text == "* operate"
    assert both.has("operate")
    assert both.is_whole


@pytest.mark.parametrize(
    ("parent", "less", "more"),
    [
        ("*", ["*", "mail.read rooms:square"], ["operate", "* operate"]),
        ("* operate", ["operate"], []),
        ("mail.read rooms", ["rooms:square"], []),
        ("mail.read rooms:square", [], ["rooms"]),
        ("rooms:square", [], ["rooms:kitchen"]),
        ("mail.read", ["mail.read"], ["*"]),
    ],
)
def test_a_scope_covers_what_has_nothing_more(parent, less, more):
    assert all(map(scope(parent).covers, map(scope, less)))
    assert not any(map(scope(parent).covers, map(scope, more)))


def test_a_word_of_a_scope_has_a_row_if_it_is_for_what_it_can_be_for():
    assert [row_of(row.name) for row in SCOPES] == list(SCOPES)
    assert row_of("rooms:square") is row_of("rooms")
    for wrong in ("unknown", "unknown:x", "*", "mail.read:me", "rooms:", "rooms:../x", "tools:A"):
        assert row_of(wrong) is None, wrong


class Lacking(Rights):
    """Rights that someone came with who lacks a scope."""

    def allows(self, *_: object) -> bool:
        return False

    def missing(self, *_: object) -> str:
        return "mail.send"


def test_a_refusal_names_the_scope_that_is_missing():
    ann = Principal("a", "ann", scope="mail.read")
    verdict = judge(ann, Lacking(["*"]), CALL)
    assert verdict.decision is Decision.DENY
    assert isinstance(verdict.error, e.ScopeMissing)
    assert verdict.error.code == "scope_missing"
    assert verdict.error.message == "Your token lacks the scope mail.send."
    assert verdict.error.data == {
        "attempted_kind": str(CALL),
        "scope_needed": "mail.send",
        "your_scope": "mail.read",
    }


def test_plain_rights_miss_no_scope_and_list_what_they_allow():
    rights = Rights(["mcp.request.tools/call:msg/*"])
    assert rights.missing(CALL) == ""
    assert rights.lists(CALL)
    assert not rights.lists(parse("mcp.request.tools/call:room/say"))


def test_a_principal_is_the_same_one_whatever_they_came_with():
    ann = Principal("a", "ann")
    assert ann.whole is ann
    assert Principal("a", "ann", scope="rooms").whole == ann
