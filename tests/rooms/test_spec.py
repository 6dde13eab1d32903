from __future__ import annotations

from typing import Any

import pytest
from msgspec import UNSET

from folkmoot.core import errors as e
from folkmoot.rooms.model import RoomPolicy
from folkmoot.rooms.spec import RoomPatch, RoomSpec, check_rights, read_patch, read_spec

CONSTRAINED = {"kind": "mcp.request.tools/call", "payload": {"params": {"name": ["read", "list"]}}}
LONG = f"x.y.{'z' * 120}:{'c' * 1_000}"
WIDE = {"kind": "x.y", "payload": {"a": list(range(60))}}


def test_a_name_is_all_that_a_room_needs():
    assert read_spec({"name": "square"}) == RoomSpec(
        name="square",
        access="open",
        durable=True,
        capabilities=None,
        grants={},
        policy=RoomPolicy(),
    )


def test_a_whole_room_is_read():
    policy = {"quorum": 2, "proposal_seconds": 60, "request_seconds": 1.5}
    same = {"name": "the.2nd_square-b", "access": "private", "durable": False}
    held = ["chat.*", CONSTRAINED, "!chat.cancel"]
    spec = read_spec(
        {
            **same,
            "capabilities": held,
            "grants": {"@Alice": ["*"], "bob": []},
            "policy": {**policy, "keep_messages": 10, "keep_days": 30},
        }
    )
    assert spec == RoomSpec(
        **same,
        capabilities=tuple(held),
        grants={"alice": ("*",), "bob": ()},
        policy=RoomPolicy(2, 60.0, 1.5, 10, 30),
    )


@pytest.mark.parametrize("name", ["a", "7", "a" * 64, "a.b", "a_b-c", "0..0"])
def test_a_room_can_have_this_name(name):
    assert read_spec({"name": name}).name == name


@pytest.mark.parametrize(
    "name", ["", "a" * 65, "A", "-a", ".a", "_a", "a b", "a/b", "ä", "a\n", "a\x00", "..", "a:b"]
)
def test_no_room_can_have_this_name(name):
    with pytest.raises(e.RoomNameInvalid, match="A room's name is 1 to 64"):
        read_spec({"name": name})


INVALID: dict[str, list[Any]] = {
    "access": ["public", None, ["open"]],
    "capabilities": ["chat.*", ["chat.*"] * 65],
    "grants": [[], None, {"no handle": []}, {"a1": [], "@A1": []}, {"a1": None, "bob": []}],
    "grants.alice": ["*"],
    "policy": [None, [1]],
    "policy.colour": ["red"],
    "policy.quorum": [0, 1_001, 1.5, True, "1"],
    "policy.proposal_seconds": [-1],
    "policy.request_seconds": [86_401],
    "policy.keep_messages": [-1],
    "policy.keep_days": [10**30],
    "colour": ["red"],
}
WRONG: list[tuple[str, Any, type[e.FolkmootError]]] = [
    *((field, value, e.ArgumentInvalid) for field in INVALID for value in INVALID[field]),
    ("capabilities", ["not a pattern"], e.PatternSyntax),
    ("capabilities", [7], e.ConstraintSyntax),
    ("capabilities", [{"kind": "chat.*", "more": 1}], e.ConstraintSyntax),
    ("capabilities", ["system.*"], e.CapabilityReserved),
    ("capabilities", [WIDE] * 5, e.TooManyCapabilities),
    ("grants.alice", ["system.error"], e.CapabilityReserved),
]


@pytest.mark.parametrize(("field", "value", "error"), WRONG)
def test_what_is_wrong_is_refused_by_its_field_in_a_new_room_and_in_a_change(field, value, error):
    name, _, part = field.partition(".")
    members = {name: {part: value} if part else value}
    for read in (lambda: read_spec({"name": "square", **members}), lambda: read_patch(members)):
        with pytest.raises(error) as caught:
            read()
        assert caught.value.data["field"] == field
        assert field in caught.value.message
        assert caught.value.http in (400, 403)


@pytest.mark.parametrize(
    ("members", "field"),
    [
        ({}, "name"),
        ({"name": 7}, "name"),
        ({"name": "square", "durable": 1}, "durable"),
        ({"name": "square", "durable": None}, "durable"),
        ({"name": "square", "grants": {f"handle_{n}": [] for n in range(257)}}, "grants"),
        ({"name": "square", "capabilities": [LONG] * 64}, "capabilities"),
    ],
)
def test_what_no_new_room_can_be_is_refused_by_its_field(members, field):
    with pytest.raises(e.ArgumentInvalid, match=field) as caught:
        read_spec(members)
    assert caught.value.data["field"] == field


@pytest.mark.parametrize("field", ["name", "durable"])
def test_some_of_a_room_never_changes(field):
    with pytest.raises(e.ArgumentInvalid, match=field):
        read_patch({field: "square"})


def test_a_bound_is_told_in_words():
    words = r"^policy\.keep_messages must be a whole number from 0 to 1,000,000,000\.$"
    with pytest.raises(e.ArgumentInvalid, match=words):
        read_patch({"policy": {"keep_messages": -1}})


def test_what_a_change_leaves_out_stays():
    patch = read_patch({})
    assert patch == RoomPatch()
    assert patch.access is UNSET
    assert patch.capabilities is UNSET
    assert patch.change_policy(RoomPolicy(quorum=3)) == RoomPolicy(quorum=3)


@pytest.mark.parametrize("owners", [None, [], "ann", [7], ["no handle"], ["ann"] * 17])
def test_owners_are_a_list_of_handles_and_never_none(owners):
    with pytest.raises(e.ArgumentInvalid, match="owners"):
        read_patch({"owners": owners})
    assert read_patch({"owners": ["@Ann", "bob", "ann"]}).owners == ("ann", "bob")


def test_null_in_a_change_goes_back_to_the_default():
    patch = read_patch({"capabilities": None, "policy": {"quorum": None, "keep_days": 7}})
    assert patch.capabilities is None
    before = RoomPolicy(quorum=3, request_seconds=5.0, keep_days=1)
    assert patch.change_policy(before) == RoomPolicy(quorum=1, request_seconds=5.0, keep_days=7)


def test_null_for_a_new_room_is_the_default():
    spec = read_spec({"name": "square", "capabilities": None, "policy": {"quorum": None}})
    assert spec == RoomSpec(name="square")


def test_to_give_everyone_nothing_is_not_to_give_them_the_defaults():
    assert read_spec({"name": "square", "capabilities": []}).capabilities == ()


def test_nobody_is_given_more_by_a_room_than_anyone_can_hold():
    wide = (WIDE,) * 3
    check_rights(wide, {})
    check_rights(None, {"a1": wide, "a2": wide})
    with pytest.raises(e.TooManyCapabilities, match="grants"):
        check_rights(wide, {"a1": wide})
