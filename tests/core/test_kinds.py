"""The kind grammar and its table."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from folkmoot.core import errors as e
from folkmoot.core.kinds import KNOWN_KINDS, Kind, is_reserved, make, migrate, parse
from tests.core.strategies import kind_texts


def parts(text: str) -> tuple[str, str, str | None, str | None]:
    kind = parse(text)
    return kind.protocol, kind.operation, kind.method, kind.context


@pytest.mark.requirement(
    "kind.four-parts",
    "kind.adr-examples",
    "kind.slash-stays-in-method",
    "kind.two-levels-for-other-protocols",
    "kind.notification-is-its-own-operation",
)
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("mcp.request.tools/call", ("mcp", "request", "tools/call", None)),
        ("mcp.request.tools/call:read_file", ("mcp", "request", "tools/call", "read_file")),
        ("mcp.proposal.tools/call", ("mcp", "proposal", "tools/call", None)),
        ("mcp.response.tools/call", ("mcp", "response", "tools/call", None)),
        ("mcp.notification.notifications/x", ("mcp", "notification", "notifications/x", None)),
        ("mcpx.withdraw.proposal", ("mcpx", "withdraw", "proposal", None)),
        ("mcpx.reject.proposal", ("mcpx", "reject", "proposal", None)),
        ("system.welcome", ("system", "welcome", None, None)),
        ("system.welcome.participant", ("system", "welcome", "participant", None)),
        ("system.presence.join", ("system", "presence", "join", None)),
        ("system.error.capability", ("system", "error", "capability", None)),
        ("chat.message", ("chat", "message", None, None)),
        ("chat.message.text", ("chat", "message", "text", None)),
    ],
)
def test_a_kind_has_four_parts(text, expected):
    assert parts(text) == expected


@pytest.mark.requirement("kind.context-cut-at-first-colon", "kind.rest-split-at-first-two-dots")
@pytest.mark.parametrize(
    ("text", "method", "context"),
    [
        ("mcp.request.tools/call:github:create_issue", "tools/call", "github:create_issue"),
        ("mcp.request.tools/call:chat.say", "tools/call", "chat.say"),
        ("mcp.request.resources/read:docs://guides/intro", "resources/read", "docs://guides/intro"),
        ("mcp.request.a.b.c", "a.b.c", None),
        ("mcp.request.a.b:c.d", "a.b", "c.d"),
        ("mcp.request.a:b\u00a0 c", "a", "b\u00a0 c"),
    ],
)
def test_the_context_is_cut_off_first(text, method, context):
    assert parts(text)[2:] == (method, context)


@pytest.mark.requirement("kind.formats-back")
@given(kind_texts())
def test_any_kind_that_parses_formats_back_to_itself(text):
    kind = parse(text)
    assert str(kind) == text
    assert make(*parts(text)) == kind
    assert kind.base == text.partition(":")[0]


@pytest.mark.requirement("kind.own-errors-only")
@given(st.text(max_size=40) | st.text(st.sampled_from("ab.:/ \n\ud800"), max_size=12))
@example("a.b.c:\ud800")
def test_no_text_makes_it_raise_anything_but_its_own_errors(text):
    try:
        kind = parse(text)
    except e.KindError:
        return
    assert str(kind) == text


@pytest.mark.requirement(
    "kind.protocol-and-operation-letters",
    "kind.empty-part-refused",
    "kind.trailing-separator-refused",
    "kind.trailing-newline-refused",
    "kind.lookalike-letter-refused",
    "kind.one-level-refused",
    "kind.method-characters",
    "kind.context-without-control-characters",
)
@pytest.mark.parametrize(
    "text",
    [
        # Two of the lookalikes are Cyrillic letters, and one is a full-width letter.
        *("", ".", ":", "chat", "Chat.message", "chat.Message", "1chat.message", "chat.-message"),
        *("chat.mess_age", "chat..text", ".message", "chat.message.", "chat.message:"),
        *("chat.message:context", "mcp.request.tools/call:", "mcp.request.tools/call\n"),
        *("mcp.request.tools/call:read_file\n", "chat.message\n", " chat.message", "chat.message "),
        *("mcp.request.tools call", "mcp.request.töols", "m\u0441p.request.tools/call"),
        *("mcp.reque\u0455t.tools/call", "\uff4dcp.request.tools/call", "mcp.request.x:a\tb"),
        *("mcp.request.x:a\x00", "mcp.request.x:\x7f", "mcp.request.x:a\x85"),
        "mcp.request.x:\ud800",
    ],
)
def test_what_the_grammar_does_not_know_is_refused(text):
    with pytest.raises(e.KindSyntax):
        parse(text)


@pytest.mark.requirement(
    "kind.mcp-needs-method", "check.spoof-two-levels", "check.spoof-old-spelling"
)
def test_a_kind_of_mcp_needs_a_method_and_the_old_spelling_is_no_kind():
    for text in ("mcp.request", "mcp.response", "mcp.anything"):
        with pytest.raises(e.KindNeedsMethod):
            parse(text)
    with pytest.raises(e.KindSyntax):
        parse("mcp/request:tools/read")


@pytest.mark.requirement(
    "kind.protocol-and-operation-at-most-32",
    "kind.method-at-most-128",
    "kind.context-at-most-1024-bytes",
)
@pytest.mark.parametrize(
    ("template", "letter", "most"),
    [
        ("{}.message", "a", 32),
        ("chat.{}", "a", 32),
        ("chat.message.{}", "a", 128),
        ("mcp.request.x:{}", "a", 1024),
        ("mcp.request.x:{}", "é", 512),
        ("mcp.request.x:{}", "😀", 256),
    ],
)
def test_the_longest_part_passes_and_one_more_does_not(template, letter, most):
    assert parse(template.format(letter * most))
    with pytest.raises(e.KindTooLong):
        parse(template.format(letter * (most + 1)))


@pytest.mark.requirement("kind.whole-at-most-1280-bytes")
def test_a_kind_that_is_far_too_long_is_refused_at_once():
    with pytest.raises(e.KindTooLong, match="1,280"):
        parse("a" * 10_000_000)


@pytest.mark.requirement("kind.context-never-normalised")
def test_two_spellings_of_one_letter_are_two_contexts():
    composed, decomposed = (unicodedata.normalize(form, "é") for form in ("NFC", "NFD"))
    assert parse(f"mcp.request.x:{composed}") != parse(f"mcp.request.x:{decomposed}")


@pytest.mark.parametrize("arguments", [("a.b", "c"), ("a", "b", "c:d"), ("mcp", "x.y")])
def test_a_part_cannot_smuggle_a_separator(arguments):
    with pytest.raises(e.KindSyntax):
        make(*arguments)


@pytest.mark.requirement("kind.known-table")
def test_every_kind_of_the_protocol_is_in_the_table():
    named = {
        "mcp": "request response notification proposal",
        "mcpx": "begin.request withdraw.proposal reject.proposal",
        "system": "welcome serving presence error proposal participant",
        "chat": "message acknowledge cancel",
        "capability": "grant revoke grant-ack",
        "room": "invite invite-ack kick",
        "reasoning": "start thought conclusion cancel",
        "participant": "pause resume request-status status forget compact compact-done clear "
        "restart shutdown",
        "stream": "open",
    }
    kinds = [f"{protocol}.{rest}" for protocol, all_ in named.items() for rest in all_.split()]
    assert [known.kind for known in KNOWN_KINDS] == kinds
    assert all(known.meaning for known in KNOWN_KINDS)


@pytest.mark.parametrize(
    "text",
    ["system.anything", "room.invite-ack", "other.thing-ack", "stream.open", "stream.open.video"],
)
def test_some_kinds_are_the_gateways(text):
    assert is_reserved(parse(text))
    assert not is_reserved(parse("stream.data"))
    assert not is_reserved(parse("room.invite"))


@pytest.mark.requirement(
    "migrate.mcp",
    "migrate.mcp-context-kept",
    "migrate.system",
    "migrate.chat",
    "migrate.proposal-lifecycle",
)
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("mcp/request:tools/call", "mcp.request.tools/call"),
        ("mcp/proposal:tools/call", "mcp.proposal.tools/call"),
        ("mcp/response:tools/call", "mcp.response.tools/call"),
        ("mcp/notification:notifications/x", "mcp.notification.notifications/x"),
        ("mcp/request:tools/call:read_file", "mcp.request.tools/call:read_file"),
        ("mcp/request:tools/call:github:x", "mcp.request.tools/call:github:x"),
        ("system/welcome", "system.welcome"),
        ("system/presence", "system.presence"),
        ("system/error", "system.error"),
        ("chat", "chat.message"),
        ("proposal/withdraw", "mcpx.withdraw.proposal"),
        ("proposal/reject", "mcpx.reject.proposal"),
        ("mcp/proposal:withdraw", "mcpx.withdraw.proposal"),
        ("mcp/*", "mcp.*"),
        ("mcp/request:*", "mcp.request.*"),
        ("mcp/request:tools/*", "mcp.request.tools/*"),
        ("proposal/*", "mcpx.*"),
    ],
)
def test_an_old_spelling_has_a_present_one(old, new):
    assert migrate(old) == new
    assert migrate(new) == new
    assert "*" in new or isinstance(parse(new), Kind)


@pytest.mark.requirement("migrate.unknown-refused")
@pytest.mark.parametrize(
    "old", ["mcp/other:tools/call", "system/other", "proposal/accept", "mcp/request:"]
)
def test_an_old_spelling_outside_the_table_is_refused(old):
    with pytest.raises(e.KindSyntax):
        parse(migrate(old))
