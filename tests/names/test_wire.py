from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from folkmoot.names import RESERVED_NAMESPACES, WireNames, safe_name

SAFE = re.compile(r"[A-Za-z0-9_-]{1,64}")
NAMESPACES = st.from_regex(r"[a-z][a-z0-9]{2,19}", fullmatch=True)
TOOLS = st.from_regex(r"[a-z][a-z0-9_]{1,90}", fullmatch=True)
OURS = st.builds("{}/{}".format, st.sampled_from(sorted(RESERVED_NAMESPACES)), TOOLS)
THEIRS = st.builds("{}:{}".format, NAMESPACES, TOOLS)
NAMES = st.one_of(OURS, THEIRS, st.text(min_size=1, max_size=200))


@pytest.mark.parametrize(
    ("canonical", "safe"),
    [
        ("msg/send", "msg_send"),
        ("msg/search_users", "msg_search_users"),
        ("folkmoot/call_tool", "folkmoot_call_tool"),
        ("github:create_issue", "github_create_issue"),
        ("files:a", "files_a"),
    ],
)
@pytest.mark.requirement("wire-name.reserved-namespaces", "wire-name.first-underscore-splits")
def test_the_separator_becomes_an_underscore(canonical, safe):
    assert safe_name(canonical) == safe
    namespace, _, tool = safe.partition("_")
    separator = "/" if namespace in RESERVED_NAMESPACES else ":"
    assert f"{namespace}{separator}{tool}" == canonical


@pytest.mark.parametrize("odd", ["github/create", "msg:send", "send", "a:b:c", "a/b/c", "ö:x", ""])
def test_a_name_that_would_not_split_back_gets_a_mark_of_its_own(odd):
    assert re.fullmatch(r"[A-Za-z0-9_-]*_[0-9a-f]{8}", safe_name(odd))


@pytest.mark.requirement("wire-name.shortened", "wire-name.model-api-safe")
def test_a_long_name_is_shortened_and_stays_the_same():
    long = "github:" + "a" * 80
    assert safe_name(long) == safe_name(long)
    assert len(safe_name(long)) == 64
    assert safe_name(long) == "github_" + "a" * 48 + "_8118f064"
    assert safe_name(long + "a") != safe_name(long)
    assert safe_name("github:" + "a" * 57) == "github_" + "a" * 57


@pytest.mark.requirement("wire-name.bijection", "wire-name.model-api-safe", "wire-name.prompts")
@given(st.sets(NAMES, max_size=30))
def test_every_catalogue_has_one_spelling_for_each_name(names):
    wire = WireNames(names)
    spelled = {name: wire.spell(name, "safe") for name in names}
    assert len(set(spelled.values())) == len(names)
    for name, safe in spelled.items():
        assert SAFE.fullmatch(safe)
        assert wire.canonical(name) == name
        assert wire.spell(name, "canonical") == name
        assert wire.canonical(safe) == name


def test_a_name_made_to_collide_takes_no_spelling_from_its_owner():
    long = "github:" + "a" * 80
    taken = safe_name(long)
    thief = taken.replace("_", ":", 1)
    wire = WireNames([long, thief])
    assert wire.spell(thief, "safe") == taken
    assert wire.canonical(taken) == thief
    other = wire.spell(long, "safe")
    assert other != taken
    assert SAFE.fullmatch(other)
    assert wire.canonical(other) == long


@pytest.mark.requirement("wire-name.bijection", "wire-name.model-api-safe")
def test_names_made_to_take_every_spelling_of_another_do_not_push_it_past_the_limit():
    names = {"github:" + "a" * 80}
    for _ in range(20):
        wire = WireNames(names)
        taken = {wire.spell(name, "safe") for name in names}
        assert all(SAFE.fullmatch(name) for name in taken)
        assert {wire.canonical(name) for name in taken} == names
        names |= {name.replace("_", ":", 1) for name in taken}
    assert len(names) == 21


@pytest.mark.requirement("wire-name.first-underscore-splits")
@given(st.one_of(OURS, THEIRS).filter(lambda name: len(name) <= 64))
def test_the_first_underscore_of_a_plain_spelling_splits_it_again(name):
    namespace, _, tool = WireNames([name]).spell(name, "safe").partition("_")
    if name.partition(":")[0] not in RESERVED_NAMESPACES:
        assert name in {f"{namespace}/{tool}", f"{namespace}:{tool}"}


@pytest.mark.requirement("wire-name.reserved-namespaces")
@pytest.mark.parametrize("namespace", sorted(RESERVED_NAMESPACES))
def test_no_server_takes_a_spelling_of_the_hubs_own_tools(namespace):
    ours, theirs = f"{namespace}/send", f"{namespace}:send"
    assert safe_name(ours) == f"{namespace}_send"
    assert safe_name(theirs) != safe_name(ours)
    wire = WireNames([theirs, ours])
    assert wire.canonical(f"{namespace}_send") == ours
    assert wire.canonical(wire.spell(theirs, "safe")) == theirs


@pytest.mark.requirement("wire-name.prompts")
def test_prompts_are_spelled_by_the_same_table_as_tools():
    prompts = ["github:review_code", "github:" + "plan_" * 20, "notes:daily"]
    wire = WireNames(prompts)
    assert wire.spell("github:review_code", "safe") == "github_review_code"
    assert wire.spell("github:review_code", "canonical") == "github:review_code"
    for name in prompts:
        assert wire.spell(name, "safe") == safe_name(name)
        assert wire.canonical(wire.spell(name, "safe")) == name


def test_a_name_that_looks_like_a_spelling_keeps_its_own():
    wire = WireNames(["msg/send", "msg_send"])
    assert wire.canonical("msg_send") == "msg_send"
    assert wire.canonical(wire.spell("msg/send", "safe")) == "msg/send"


def test_a_spelling_that_is_nobodys_is_nothing():
    wire = WireNames(["msg/send"])
    for unknown in ("", "msg", "msg/inbox", "msg_inbox", "msg:send", "Msg_send", "msg_send "):
        assert wire.canonical(unknown) is None
