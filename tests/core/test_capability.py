"""Capabilities and rights."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from folkmoot.core import capability as module
from folkmoot.core import errors as e
from folkmoot.core.capability import (
    Rights,
    capability,
    covers,
)
from folkmoot.core.kindcheck import check
from folkmoot.core.kinds import parse
from folkmoot.core.limits import MAX_CACHED_VERDICTS, MAX_CAPABILITIES, MAX_CONSTRAINED
from tests.core.strategies import kind_texts, small_kinds, small_patterns

SIGNED = st.builds(lambda deny, pattern: "!" * deny + pattern, st.booleans(), small_patterns())
SETS = st.lists(SIGNED, max_size=5)


def allows(patterns: list[Any], kind: str, payload: Any = None) -> bool:
    return Rights(patterns).allows(parse(kind), payload)


@pytest.mark.requirement(
    "capability.everything",
    "capability.subtree",
    "capability.star-in-part",
    "capability.star-in-context",
    "capability.star-many",
    "capability.below",
    "capability.not-beside",
    "capability.star-includes-parent",
    "capability.adr-intents",
)
@pytest.mark.parametrize(
    # In these rows "~" stands for "mcp.request.tools".
    ("pattern", "yes", "no"),
    [
        ("*", "chat.message ~/call:x other.thing", "system.welcome system.error.x"),
        ("mcp.*", "mcp.request.x mcp.proposal.tools/call:y", "mcpx.withdraw.proposal chat.message"),
        ("mcp", "mcp.request.x", "mcpx.withdraw.proposal"),
        ("mcp.request.*", "~/call:x", "mcp.response.x mcp.proposal.x"),
        ("~/*", "~/call:x ~/list", "mcp.request.prompts/get"),
        ("mcpx.withdraw.*", "mcpx.withdraw.proposal", "mcpx.reject.proposal"),
        ("chat.*", "chat.message chat.cancel chat.message.text", "mcp.request.x"),
        ("~/call", "~/call:read_file ~/call", "~/callback"),
        ("chat.message", "chat.message.text chat.message", "chat.cancel"),
        ("chat.message.*", "chat.message chat.message.text", "chat.acknowledge"),
        ("chat.message.text", "chat.message.text", "chat.message chat.message.texts"),
        ("~/call:github:*", "~/call:github:a.b/c:d", "~/call:gitlab:x"),
        ("~/call:*issue*s", "~/call:github:issue_lists", "~/call:issue"),
        ("~/call:*", "~/call:x ~/call", "~/list"),
        ("mcp.*.tools/call", "~/call mcp.proposal.tools/call:x", "~/list"),
        ("mcp.re*", "mcp.request.x mcp.response.x", "mcp.notification.x"),
        ("*.message", "chat.message", "chat.cancel system.message"),
        ("mcp.request.a.b", "mcp.request.a.b", "mcp.request.a mcp.request.axb"),
    ],
)
def test_a_pattern_covers_what_lies_below_it_and_nothing_beside(pattern, yes, no):
    pattern, yes, no = (each.replace("~", "mcp.request.tools") for each in (pattern, yes, no))
    for kind in yes.split():
        assert allows([pattern], kind), kind
        assert not allows(["*", f"!{pattern}"], kind), kind
    for kind in no.split():
        assert not allows([pattern], kind), kind


@pytest.mark.requirement("capability.deny", "capability.deny-wins")
@pytest.mark.parametrize(
    "patterns", [["mcp.*", "!mcp.request.tools/call:rm"], ["!mcp.request.tools/call:rm", "mcp.*"]]
)
def test_a_deny_wins_whatever_the_order(patterns):
    assert not allows(patterns, "mcp.request.tools/call:rm")
    assert allows(patterns, "mcp.request.tools/call:ls")
    assert Rights(patterns).denies(parse("mcp.request.tools/call:rm"))
    assert not Rights(patterns).denies(parse("mcp.request.tools/call:ls"))


@pytest.mark.requirement("capability.effective-kind")
@pytest.mark.parametrize(
    "patterns", [["mcp.*", "!mcp.request.tools/call:rm"], ["mcp.request.tools/call:ls"]]
)
def test_leaving_the_context_out_gains_nothing(patterns):
    payload = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "rm"}}
    effective = check(parse("mcp.request.tools/call"), payload, ["files"])
    assert not Rights(patterns).allows(effective, payload)


@pytest.mark.requirement("capability.system-not-held")
@pytest.mark.parametrize("pattern", ["system.*", "system.welcome", "system", "system.error.x"])
def test_nobody_can_hold_system(pattern):
    with pytest.raises(e.CapabilityReserved):
        capability(pattern)
    for wide in "*", "s*.*", "*.welcome", "sys*":
        assert not allows([wide], "system.welcome")
        assert not capability(wide).matches(parse("system.welcome"))
    assert not allows([f"!{pattern}", "*"], "system.welcome")


@pytest.mark.requirement("capability.syntax")
@pytest.mark.parametrize(
    "pattern",
    [
        *("", "a b.c", "a.b.c d", "a.b.c:\n", "a\n", "a.b\n"),
        *["!", "!!a.b", ".", "a.", "a..b", ".b", "A.b", "a.B", "a.b.", "a.b.é", "a.b:c", "a.b.c:"],
        *("a" * 33, "a.b." + "c" * 129, "a" * 2000),
    ],
)
def test_a_pattern_that_cannot_be_read_is_refused_by_name(pattern):
    with pytest.raises(e.PatternSyntax) as caught:
        capability(pattern)
    assert repr(pattern[:80])[:-1] in str(caught.value)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    "source", [None, 1, ["a.b"], {}, {"payload": {}}, {"kind": "a.b", "other": 1}]
)
def test_a_capability_is_a_pattern_or_an_object(source):
    with pytest.raises(e.ConstraintSyntax):
        capability(source)
    with pytest.raises(e.PatternSyntax):
        capability({"kind": 1})


@given(st.text(max_size=30) | st.text(st.sampled_from("ab*.:!/"), max_size=10))
def test_no_text_makes_the_compiler_raise_anything_but_its_own_errors(text):
    try:
        capability(text)
    except e.CapabilityError:
        return


LIMITED = {
    "kind": "mcp.request.tools/call:read",
    "payload": {"params": {"arguments": {"path": "docs/*"}}},
}


def reading(path: str) -> dict[str, Any]:
    return {"params": {"name": "read", "arguments": {"path": path}}}


@pytest.mark.requirement("capability.payload-and", "capability.cache-not-for-payload")
def test_a_constraint_is_asked_of_every_payload_anew():
    rights = Rights([LIMITED])
    kind = parse("mcp.request.tools/call:read")
    for path, allowed in [("docs/a", True), ("etc/passwd", False), ("docs/b", True)]:
        assert rights.allows(kind, reading(path)) is allowed
    assert not rights.allows(parse("mcp.request.tools/call:write"), reading("docs/a"))
    assert not rights.allows(kind)


def test_a_deny_may_have_a_constraint_too():
    rights = Rights(
        ["mcp.*", {"kind": "!mcp.request.tools/call:read", "payload": reading("etc/*")}]
    )
    kind = parse("mcp.request.tools/call:read")
    assert rights.allows(kind, reading("docs/a"))
    assert not rights.allows(kind, reading("etc/passwd"))
    assert rights.denies(kind, reading("etc/passwd"))


CALL = parse("mcp.request.tools/call:read")


@pytest.mark.requirement("capability.target")
@pytest.mark.parametrize(
    ("target", "yes", "no"),
    [
        ("files", [["files"]], [["calc"], ["files-2"], ["files", "calc"], []]),
        ("files-*", [["files-1"], ["files-1", "files-2"]], [["files"], ["calc"], []]),
        (["files", "notes*"], [["files"], ["notes-2"], ["files", "notes"]], [["calc"], []]),
        ("*", [["files"], ["gateway"]], [[]]),
    ],
)
def test_a_right_with_a_target_opens_nobody_else(target, yes, no):
    rights = Rights([{"kind": "mcp.request.tools/call", "to": target}])
    for to in yes:
        assert rights.allows(CALL, {}, to), to
    for to in no:
        assert not rights.allows(CALL, {}, to), to


@pytest.mark.requirement("capability.target")
def test_a_deny_with_a_target_holds_for_whatever_may_reach_it():
    rights = Rights(["mcp.*", {"kind": "!mcp.proposal.*", "to": ["files", "calc-*"]}])
    kind = parse("mcp.proposal.tools/call:read")
    for to in (["files"], ["calc-1"], ["notes", "files"], []):
        assert rights.denies(kind, {}, to), to
        assert not rights.allows(kind, {}, to), to
    assert rights.allows(kind, {}, ["notes"])
    assert not rights.denies(CALL, {}, ["files"])


@pytest.mark.requirement("capability.target")
def test_a_target_and_a_constraint_must_both_fit():
    rights = Rights([{**LIMITED, "to": "files"}])
    assert rights.allows(CALL, reading("docs/a"), ["files"])
    assert not rights.allows(CALL, reading("etc/a"), ["files"])
    assert not rights.allows(CALL, reading("docs/a"), ["calc"])


def test_a_deny_of_chat_with_a_target_holds_for_what_everyone_hears():
    rights = Rights(["*", {"kind": "!chat.message", "to": "kim"}])
    payload = {"text": "x", "params": {"text": "x"}}
    for kind in ("chat.message", "mcp.notification.notifications/chat/message"):
        for to, allowed in ((["kim"], False), ([], False), (["bob"], True)):
            assert rights.allows(parse(kind), payload, to) is allowed
    said = {"params": {"name": "chat.say", "arguments": {"text": "x"}}}
    assert not rights.allows(parse("mcp.request.tools/call:chat.say"), said, ["gateway"])


@pytest.mark.parametrize(
    "target", [None, 1, "", [], [["files"]], "Files", "@files", "a b", "x" * 65]
)
def test_a_target_that_names_nobody_is_refused(target):
    with pytest.raises(e.ConstraintSyntax, match='"to" must be'):
        capability({"kind": "mcp.request.*", "to": target})
    with pytest.raises(e.ConstraintSyntax):
        capability({"kind": "mcp.request.*", "to": ["files"] * 65})


@pytest.mark.requirement("capability.matching-total")
@given(SETS, kind_texts() | small_kinds())
def test_a_verdict_is_always_yes_or_no(patterns, kind):
    assert allows(patterns, kind) in (True, False)


@pytest.mark.requirement("capability.index-agrees")
@given(SETS, st.lists(small_kinds(), min_size=1, max_size=4))
def test_the_index_says_what_trying_every_pattern_would(patterns, kinds):
    rights = Rights(patterns)
    for kind in map(parse, kinds * 2):
        speaking = [held for held in rights.capabilities if held.matches(kind)]
        expected = bool(speaking) and not any(held.denies for held in speaking)
        assert rights.allows(kind) is expected
        assert rights.denies(kind) is any(held.denies for held in speaking)


@pytest.mark.requirement("policy.adding-allow-never-denies", "policy.adding-deny-never-allows")
@given(SETS, small_patterns(), small_kinds())
def test_more_allows_never_deny_and_more_denies_never_allow(patterns, more, kind):
    before = allows(patterns, kind)
    assert allows([*patterns, more], kind) >= before
    assert allows([*patterns, f"!{more}"], kind) <= before


@pytest.mark.requirement("capability.covers-agrees")
@given(small_patterns(), small_patterns(), small_kinds())
def test_what_a_covered_pattern_allows_is_allowed(a, b, kind):
    if covers(a, b) and capability(b).matches(parse(kind)):
        assert capability(a).matches(parse(kind))


@pytest.mark.requirement("capability.covers", "capability.covers-agrees")
@given(SETS, small_patterns(), small_kinds())
def test_what_rights_cover_they_allow(patterns, pattern, kind):
    if Rights(patterns).covers(pattern) and capability(pattern).matches(parse(kind)):
        assert allows(patterns, kind)


def aimed(to: Any, deny: str = "") -> dict[str, Any]:
    return {"kind": f"{deny}mcp.request.*", "to": to}


TARGETS = st.sampled_from(["a", "b", "a*", "*", ["a", "b"], ["a*", "b"], "ab"])
RECIPIENTS = st.lists(st.sampled_from(["a", "b", "ab", "c"]), max_size=2)


@pytest.mark.requirement("capability.target", "capability.covers-agrees")
@given(
    st.lists(st.builds(aimed, TARGETS, st.sampled_from(["", "!"])), max_size=4), TARGETS, RECIPIENTS
)
def test_what_rights_with_targets_cover_they_allow(held, asked, to):
    rights = Rights(held)
    if rights.covers(aimed(asked)) and capability(aimed(asked)).matches(CALL, {}, to):
        assert rights.allows(CALL, {}, to)


@pytest.mark.parametrize(
    ("held", "known"),
    [
        *((held, True) for held in (["*"], ["chat.*"], ["chat.message"])),
        (["chat.*", {"kind": "chat.*", "to": "a"}], True),
        *((held, False) for held in ([], ["mcp.*"], ["*", "!chat.message"])),
        (["*", "!mcp.notification.notifications/chat/*"], False),
        (["*", {"kind": "!chat.*", "payload": {"text": "x"}}], False),
        ([{"kind": "chat.*", "payload": {"text": "x"}}], False),
        ([{"kind": "chat.*", "to": "a"}], False),
    ],
)
def test_a_kind_is_allowed_with_every_payload_where_nothing_depends_on_it(held, known):
    rights, kind = Rights(held), parse("chat.message")
    assert rights.allows_all(kind) is known
    assert rights.allows_all(kind) is known, "asked again"
    if known:
        assert rights.allows(kind, {"text": "x"}, ["a"])
        assert rights.allows(kind, {}, [])


@pytest.mark.requirement("capability.covers", "capability.target")
@pytest.mark.parametrize(
    ("held", "covered", "more"),
    [
        (["*"], ["*"], ["!c.d"]),
        (["mcp.*"], ["mcp.request.tools/call:x", LIMITED, aimed("files")], []),
        (["mcp.request.tools/call:x"], [], ["mcp.request.tools/call"]),
        (["chat.message.*"], ["chat.message"], []),
        (["*", "!mcp.request.tools/call:rm"], [], ["mcp.request.*"]),
        (
            ["*", "!mcp.request.tools/call:rm*"],
            ["mcp.request.tools/call:read"],
            ["mcp.request.tools/call:*"],
        ),
        (
            ["*", "!chat.message"],
            ["mcp.request.tools/call:read"],
            [
                "mcp.request.tools/call:chat.say",
                "mcp.notification.notifications/chat/message",
                "mcp.proposal.*",
            ],
        ),
        (["chat.*", "!mcp.notification.notifications/chat/*"], ["chat.cancel"], ["chat.message"]),
        ([], [], ["a.b"]),
        (
            [LIMITED],
            [LIMITED, {"kind": LIMITED["kind"], "payload": reading("docs/x")}],
            ["mcp.request.tools/call:read", {"kind": LIMITED["kind"], "payload": reading("*")}],
        ),
        (["*", {"kind": "!a.b", "payload": {"x": 1}}], [], ["a.b"]),
        ([aimed("files")], [aimed("files")], ["mcp.request.*", aimed("calc"), aimed("f*")]),
        ([aimed("f*")], [aimed("files")], []),
        ([aimed(["files", "notes*"])], [aimed(["notes-1", "files"])], [aimed(["files", "calc"])]),
        ([aimed("files"), aimed("calc")], [], [aimed(["files", "calc"])]),
        (["*", aimed("calc", "!")], [aimed("files")], ["mcp.request.*"]),
        (["*", aimed("f*", "!")], [], [aimed("files")]),
    ],
)
def test_nobody_grants_what_they_do_not_have(held, covered, more):
    assert all(map(Rights(held).covers, covered))
    assert not any(map(Rights(held).covers, more))


@pytest.mark.requirement("capability.cache-bounded")
def test_the_cache_has_a_bound():
    rights = Rights(["*"])
    for n in range(3 * MAX_CACHED_VERDICTS):
        assert rights.allows(parse(f"mcp.request.made-up-{n}"))
        assert len(rights._cache) <= MAX_CACHED_VERDICTS


@pytest.mark.requirement("capability.cache-not-thrashed")
def test_made_up_contexts_take_no_room_in_the_cache(monkeypatch):
    judged: list[str] = []
    original = Rights._judge
    monkeypatch.setattr(
        Rights, "_judge", lambda self, kind: judged.append(kind.base) or original(self, kind)
    )
    rights = Rights(["chat.*", "mcp.request.tools/call:read_*"])
    assert rights.allows(parse("chat.message"))
    for n in range(3 * MAX_CACHED_VERDICTS):
        assert rights.allows(parse(f"mcp.request.tools/call:read_{n}"))
    assert rights.allows(parse("chat.message"))
    assert judged == ["chat.message", "mcp.request.tools/call"]


@pytest.mark.requirement("capability.cache-dropped")
def test_other_rights_judge_anew():
    kind = parse("chat.message")
    before = Rights(["chat.*"])
    assert before.allows(kind)
    assert not Rights([*before, "!chat.message"]).allows(kind)
    assert before.allows(kind)


def test_rights_tell_how_they_were_written():
    assert list(Rights(["chat.*", LIMITED, capability("!a.b")])) == ["chat.*", LIMITED, "!a.b"]


def test_rights_have_a_limit():
    with pytest.raises(e.TooManyCapabilities):
        Rights("a.b" for _ in range(MAX_CAPABILITIES + 1))
    wide = {"kind": "a.b", "payload": {"x": list(range(60))}}
    assert Rights([wide] * (MAX_CONSTRAINED // 62))
    with pytest.raises(e.TooManyCapabilities):
        Rights([wide] * (MAX_CONSTRAINED // 62 + 1))
    with pytest.raises(e.TooManyCapabilities):
        Rights([aimed(["a"] * 64)] * (MAX_CONSTRAINED // 64 + 1))


def test_a_text_too_long_to_be_searched_slips_past_no_deny():
    kind = parse("mcp.request.tools/call:read")
    long = reading("x" * 100_000 + "etc")
    assert not Rights(["mcp.*", {"kind": "!mcp.*", "payload": reading("*etc*")}]).allows(kind, long)
    assert not Rights([{"kind": "mcp.*", "payload": reading("*etc*")}]).allows(kind, long)


def test_plain_contexts_are_looked_up():
    rights = Rights(
        [f"mcp.request.tools/call:t{n}" for n in range(1000)] + ["!mcp.request.tools/call:t7"]
    )
    assert rights.allows(parse("mcp.request.tools/call:t999"))
    assert not rights.allows(parse("mcp.request.tools/call:t7"))
    assert not rights.allows(parse("mcp.request.tools/call:t1000"))
    undecided = rights._cache["mcp.request.tools/call"]
    assert isinstance(undecided, module._Undecided)
    assert not undecided._allows


def test_rights_know_whether_they_deny_anything():
    assert Rights(["*", "!chat.*"]).has_denies
    assert not Rights(["*"]).has_denies


@pytest.mark.parametrize(
    ("held", "allowed"),
    [
        ([], False),
        (["mcp.request.tools/call:read"], True),
        (["mcp.request.tools/call:write"], False),
        ([{"kind": "mcp.request.*", "payload": {"params": {"name": "read"}}}], True),
        (["mcp.*", "!mcp.request.tools/call:read"], False),
        (["mcp.*", {"kind": "!mcp.request.*", "payload": {"params": {"n": 1}}}], True),
        (["*", "!mcp"], False),
    ],
)
def test_some_payload_may_be_allowed(held, allowed):
    assert Rights(held).may_allow(parse("mcp.request.tools/call:read")) is allowed
