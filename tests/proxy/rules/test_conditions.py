"""Which messages a rule is about."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from folkmoot.core import errors as e
from folkmoot.core.envelope import MessageDirection, MessageEnvelope
from folkmoot.core.mcpx import decode_mcpx
from folkmoot.core.message import Request
from folkmoot.core.policy import Principal, PrincipalType
from folkmoot.core.strict import encode
from folkmoot.core.verdict import Block
from tests.proxy.rules.support import (
    TO_CLIENT,
    TO_SERVER,
    Way,
    answer,
    at_once,
    blocked,
    blocks,
    call,
    envelope,
    loaded,
    notice,
    request,
)

READ = call("read_file", {"path": "/etc/passwd", "level": 9, "tags": ["a", "b"], "deep": {"x": 1}})


def is_about(when: str, message: Any = READ, *way: Any, **more: Any) -> bool:
    return blocks(Way(blocked(when), **more), message, *way)


@pytest.mark.parametrize(
    "when",
    [
        "",
        'direction = "client_to_server"',
        'type = "request"',
        'method = "tools/call"',
        'method = "tools/*"',
        'method = ["ping", "tools/call"]',
        'tool = "read_*"',
        'tool = ["x", "*file"]',
        'session = "s*"',
        'kind = "mcp.request.tools/call:read_*"',
        'kind = "mcp.*"',
        'kind = ["chat.*", "mcp.request.tools/*"]',
        'path = "$.params.arguments.path", is = "/etc/passwd"',
        'path = "$.params.arguments.path", matches = "/etc/*"',
        'path = "$.params.arguments.path", contains = "pass"',
        'path = "$.params.arguments.path", is_not = "/tmp"',
        'path = "$.params.arguments.nowhere", is_not = "/tmp"',
        'path = "$.params.arguments.level", gt = 8, lt = 10',
        'path = "$.params.arguments.level", ge = 9, le = 9.0',
        'path = "$.params.arguments.level", is = 9.0',
        'path = "$.params.arguments.level", in = [1, 9]',
        'path = "$.params.arguments.tags[*]", is = "b"',
        'path = "$.params.arguments.tags", contains = "a"',
        'path = "$.params.arguments.deep", contains = "x"',
        'path = "$.params.arguments.deep", is = { x = 1 }',
        'path = "$.params.arguments.level", exists = true',
        'path = "$.params.arguments.nowhere", exists = false',
        'all = [{ method = "tools/call" }, { tool = "read_*" }]',
        'any = [{ method = "ping" }, { tool = "read_*" }]',
        'not = { tool = "write_*" }',
        'not = { all = [{ tool = "read_*" }, { session = "other" }] }',
        'not = { any = [{ type = "response" }, { direction = "server_to_client" }] }',
    ],
)
def test_a_condition_holds(when):
    assert is_about(when)


@pytest.mark.parametrize(
    "when",
    [
        'direction = "server_to_client"',
        'type = "notification"',
        'method = "tools/list"',
        'tool = "read"',
        'tool = "Read_file"',
        'session = "s"',
        'kind = "mcp.request.tools/call:write_*"',
        'path = "$.params.arguments.path", is = "/etc"',
        'path = "$.params.arguments.path", gt = 1',
        'path = "$.params.arguments.level", is = true',
        'path = "$.params.arguments.level", is = "9"',
        'path = "$.params.arguments.level", gt = 5, lt = 8',
        'path = "$.params.arguments.tags[*]", is_not = "a"',
        'path = "$.params.arguments.nowhere", contains = "x"',
        'path = "$.result", exists = true',
        'all = [{ method = "tools/call" }, { tool = "write_*" }]',
        'any = [{ method = "ping" }, { tool = "write_*" }]',
        'not = { tool = "read_*" }',
        'tool = "read_*", session = "other"',
    ],
)
def test_a_condition_does_not_hold(when):
    assert not is_about(when)


def test_no_spelling_of_a_tool_slips_past():
    def canonical(name: str) -> str:
        return name.replace("_", "/", 1) if name.startswith("msg_") else name

    for when in ('tool = "msg/send"', 'tool = "msg_send"', 'tool = "msg/*"'):
        for spelling in ("msg/send", "msg_send"):
            assert is_about(when, call(spelling), canonical=canonical)
    assert is_about(
        'kind = "mcp.request.tools/call:msg/send"', call("msg_send"), canonical=canonical
    )


@pytest.mark.parametrize(
    "when",
    [
        'method = "tools/call"',
        'type = "response", tool = "read_*"',
        'kind = "mcp.response.tools/call:read_file"',
        'direction = "server_to_client", path = "$.result.n", gt = 1',
    ],
)
def test_an_answer_goes_by_what_it_answers(when):
    way = Way(blocked(f'type = "response", {when}' if "type" not in when else when))
    way.judge(READ)
    assert blocks(way, answer({"n": 2}), TO_CLIENT)
    way.judge(request("prompts/get", {"name": "other"}, number="1"))
    assert not blocks(way, answer({"n": 0}, "1"), TO_CLIENT)


def test_answers_are_told_apart_by_session_side_and_type_of_id():
    way = Way(blocked('type = "response", method = "tools/call"'))
    way.judge(call("x", number=1), TO_SERVER, "one")
    way.judge(request("ping", number=1), TO_SERVER, "two")
    way.judge(request("ping", number="1"), TO_SERVER, "one")
    way.judge(request("ping", number=1), TO_CLIENT, "one")
    for number, *where, stopped in (
        (1, TO_CLIENT, "two", False),
        ("1", TO_CLIENT, "one", False),
        (1, TO_SERVER, "one", False),
        (1, TO_CLIENT, "one", True),
        (1, TO_CLIENT, "one", False),
    ):
        assert blocks(way, answer({}, number), *where) is stopped


def test_a_message_made_here_is_of_the_direction_internal():
    assert is_about('direction = "internal"', notice("x"), MessageDirection.INTERNAL)
    assert not is_about('direction = "internal"', notice("x"), MessageDirection.UNKNOWN)


def test_a_call_that_names_nothing_is_no_tools():
    nameless = Request(id=1, method="tools/call", params={"arguments": {}})
    assert not is_about('tool = "x*"', nameless)
    assert is_about('kind = "mcp.request.tools/call"', nameless)


@pytest.mark.parametrize(
    ("when", "expected"),
    [
        ('kind = "mcp.proposal.tools/call:read_*"', True),
        ('kind = "chat.*"', False),
        ('method = "tools/call", tool = "read_file"', True),
        ('path = "$.params.arguments.level", gt = 8', True),
        ('type = "request"', False),
    ],
)
def test_a_rooms_message_is_looked_at_by_its_kind_and_payload(when, expected):
    payload = {"method": "tools/call", "params": READ.params}
    message = decode_mcpx(
        encode({"protocol": "mcpx/v1", "kind": "mcp.proposal.tools/call", "payload": payload})
    )
    assert is_about(when, message) is expected


@pytest.mark.parametrize(
    ("when", "who"),
    [
        ('caller = "ann"', {"ann"}),
        ('caller = "@Ann"', {"ann"}),
        ('caller = "b*"', {"bot"}),
        ('group = "staff"', {"ann"}),
        ('group = ["@staff", "others"]', {"ann"}),
        ('account = "person"', {"ann"}),
        ('account = ["agent", "guest"]', {"bot", "guest"}),
        ('account = "backend"', {"backend"}),
        ('account = "nobody"', {"nobody"}),
        ('not = { group = "staff" }', {"bot", "guest", "backend", "nobody", "unknown"}),
    ],
)
def test_who_asks(when, who):
    """A guest with the name of someone is not that one, and in none of their groups."""
    callers = {
        "ann": Principal("1", "ann"),
        "bot": Principal("2", "bot", PrincipalType.AGENT),
        "guest": Principal("guest:3", "ann", PrincipalType.GUEST),
        "backend": Principal("4", "ann", PrincipalType.BACKEND),
        "nobody": Principal("", "", PrincipalType.GUEST),
        "unknown": None,
    }
    groups = {"ann": ("staff",)}
    way = Way(blocked(when), groups=lambda caller: groups.get(caller.name, ()))

    def stops(caller: Principal | None) -> bool:
        asked = envelope(call("it"))
        shown = MessageEnvelope(asked.message, replace(asked.context, caller=caller))
        return isinstance(at_once(way.chain.judge(shown)).verdict, Block)

    assert {name for name, caller in callers.items() if stops(caller)} == who


@pytest.mark.parametrize("when", ['caller = "ann"', 'group = "staff"', 'account = "nobody"'])
def test_a_proxy_that_knows_nobody_refuses_rules_that_name_who_asks(when):
    with pytest.raises(e.RulesInvalid, match="a proxy does not know who asks"):
        loaded(blocked(when))


def test_an_account_of_no_kind_is_refused():
    with pytest.raises(e.RulesInvalid, match="'persn' is not known; did you mean 'person'"):
        loaded(blocked('account = "persn"'), groups=lambda _: ())
