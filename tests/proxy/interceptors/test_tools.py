"""Which tools there are."""

from __future__ import annotations

import pytest

from folkmoot.core.verdict import CONTINUE, Block
from tests.proxy.rules.support import Way, call, request, used

LISTED = [{"name": "read_file"}, {"name": "delete_file"}, {"name": "msg_send"}]


@pytest.mark.parametrize(
    ("options", "left"),
    [
        ('deny = ["delete_*"]', ["read_file", "msg_send"]),
        ('allow = ["read_*"]', ["read_file"]),
        ('allow = ["*_file"], deny = ["delete_*"]', ["read_file"]),
        ("allow = []", []),
        ('deny = ["msg/send"]', ["read_file", "delete_file"]),
        ('deny = ["msg_send"]', ["read_file", "delete_file"]),
        ('deny = ["msg_*"]', ["read_file", "delete_file"]),
        ('deny = ["msg/*"]', ["read_file", "delete_file"]),
        ('deny = ["other"]', ["read_file", "delete_file", "msg_send"]),
    ],
)
def test_what_is_not_allowed_is_neither_listed_nor_called(options, left):
    def canonical(name: str) -> str:
        return {"msg_send": "msg/send"}.get(name, name)

    way = Way(used("tools", options), canonical=canonical)
    ruling = way.asked(request("tools/list"), {"tools": LISTED, "nextCursor": "n"})
    tools = [tool for tool in LISTED if tool["name"] in left]
    assert ruling.envelope.message.result == {"tools": tools, "nextCursor": "n"}
    for tool in LISTED:
        verdict = way.judge(call(tool["name"])).verdict
        assert (verdict is CONTINUE) is (tool["name"] in left)
        if isinstance(verdict, Block):
            assert "is not allowed here" in verdict.error.message


def test_a_list_of_which_nothing_is_left_out_keeps_its_bytes():
    ruling = Way(used("tools", 'deny = ["x"]')).asked(request("tools/list"), {"tools": LISTED})
    assert ruling.envelope.message.raw is not None


def test_a_call_that_is_changed_into_a_denied_one_is_stopped():
    text = used("tools", 'deny = ["delete_*"]') + (
        '[[rule]]\nname = "careless"\naction = "modify"\n'
        'set = { "$.params.name" = "delete_file" }\n'
    )
    assert isinstance(Way(text).judge(call("read_file")).verdict, Block)
