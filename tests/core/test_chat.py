"""Chat and its spellings."""

from __future__ import annotations

import pytest

from folkmoot.core import errors as e
from folkmoot.core.chat import check_body, replaced_by, spellings
from folkmoot.core.kinds import parse

CALL = "mcp.request.tools/call"
NOTE = "mcp.notification.notifications/chat/message"
PLAIN = {NOTE, "chat.message.plain", "chat.message.text"}
MARKDOWN = {NOTE, "chat.message.markdown"}
MARKED = {"text": "x", "format": "markdown"}


@pytest.mark.parametrize(
    ("kind", "payload", "expected"),
    [
        ("chat.message", {"text": "x"}, PLAIN),
        ("chat.message", None, PLAIN),
        ("chat.message.text", {"text": "x"}, PLAIN),
        ("chat.message", MARKED, MARKDOWN),
        ("chat.message.markdown", {"text": "x"}, MARKDOWN),
        (NOTE, {"params": {"text": "x"}}, PLAIN),
        (NOTE, {"params": MARKED}, MARKDOWN),
        (NOTE, {"params": None}, PLAIN),
        (NOTE, {"params": {"format": ["markdown"]}}, PLAIN | MARKDOWN),
        (NOTE, {"params": {"format": "html"}}, PLAIN | MARKDOWN),
        (f"{CALL}:chat.say", {"params": {"arguments": MARKED}}, MARKDOWN),
        ("mcp.proposal.tools/call:chat.say", {"params": {"arguments": MARKED}}, MARKDOWN),
        (f"{CALL}:chat.say", {}, PLAIN),
        (f"{CALL}:chat.say", {"params": {"arguments": 1}}, PLAIN),
        (f"{CALL}:other", {}, set()),
        ("chat.cancel", {}, set()),
        ("mcp.request.tools/list", {}, set()),
    ],
)
def test_chat_has_several_spellings(kind, payload, expected):
    assert {str(spelling) for spelling, _ in spellings(parse(kind), payload)} == expected


@pytest.mark.parametrize(
    ("kind", "payload"),
    [
        ("chat.message", MARKED),
        (NOTE, {"params": MARKED}),
        (f"{CALL}:chat.say", {"params": {"arguments": MARKED}}),
    ],
)
def test_each_spelling_has_the_body_where_it_keeps_it(kind, payload):
    spelled = {str(spelling): shown for spelling, shown in spellings(parse(kind), payload)}
    assert spelled["chat.message.markdown"] == MARKED
    assert spelled[NOTE]["params"] == MARKED


def test_a_body_is_text_and_maybe_a_known_format():
    for body in (None, [], {}, {"text": None}, {"text": "x", "format": "html"}):
        with pytest.raises(e.PayloadInvalid):
            check_body(body)
    for said in (None, "plain", "text", "markdown"):
        check_body({"text": "x", "format": said})


@pytest.mark.parametrize("text", ["", " ", "\t\n", "\u2003"])
def test_a_text_of_nothing_or_white_space_is_refused(text):
    with pytest.raises(e.PayloadInvalid, match="must not be empty"):
        check_body({"text": text})
    check_body({"text": f"{text}."})


@pytest.mark.parametrize(
    ("kind", "payload", "replaced"),
    [
        ("chat.message", {"replaces": "a"}, "a"),
        ("chat.message.markdown", {"replaces": "a"}, "a"),
        (NOTE, {"params": {"replaces": "a"}}, "a"),
        (NOTE, {"replaces": "a"}, None),
        ("chat.message", {"replaces": 1}, None),
        ("chat.message", [], None),
        (f"{CALL}:chat.say", {"params": {"arguments": {"replaces": "a"}}}, None),
        ("chat.cancel", {"replaces": "a"}, None),
    ],
)
def test_chat_names_the_message_that_it_takes_the_place_of(kind, payload, replaced):
    assert replaced_by(parse(kind), payload) == replaced
