"""Where secrets hide, and what strangers send to have a tape be slow or say less than it should."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from folkmoot.core.message import Request, encode_message
from folkmoot.core.transport import Headers
from tests.proxy.redaction.secrets import message, redacted, redactor, request

pytestmark = pytest.mark.requirement("proxy.record-no-secrets")

SECRET = "hunter2-and-more"
WORDS = "The boat is ready."


def arguments(given: Any, tool: str = "run") -> str:
    body = {"id": 1, "method": "tools/call", "params": {"name": tool, "arguments": given}}
    return json.dumps(redacted(body)["params"]["arguments"])


@pytest.mark.parametrize(
    "given",
    [
        {"args": ["--token", SECRET]},
        {"args": ["serve", "--api-key", SECRET, "--port", "80"]},
        {"command": f"serve --api_key {SECRET}"},
        {"command": f"serve --pass {SECRET} --auth {SECRET}"},
        {"command": f"serve --db-passwd {SECRET}"},
        {"page": f"<login><password>{SECRET}</password></login>"},
        {"page": f'<auth:token type="x">{SECRET}</auth:token>'},
    ],
)
def test_a_secret_behind_a_flag_or_in_an_element_is_found(given):
    assert SECRET not in arguments(given)


def test_what_only_follows_a_flag_stays():
    given = {"args": ["--token", "--port", "8080", "--monkey", "business", "-v"]}
    assert arguments(given) == json.dumps(given)


@pytest.mark.parametrize(
    "tool", ["folkmoot_msg_send", "folkmoot-msg_send", "MSG_SEND", "msgSend", " msg/send"]
)
def test_mail_is_known_however_its_tool_is_spelled(tool):
    assert WORDS not in arguments({"to": "bob", "Body": WORDS}, tool)
    result = {"content": [{"type": "text", "text": WORDS}]}
    asked = request(tool)
    assert WORDS not in json.dumps(redacted({"id": 1, "result": result}, answering=asked))


@pytest.mark.parametrize(
    "wrapped",
    [
        {"tool": "msg_send", "args": {"body": WORDS}},
        {"tool_name": "hub/msg/reply", "params": {"body": WORDS}},
        {"method": "msg/send", "input": {"body": WORDS}},
    ],
)
def test_mail_is_known_in_a_call_that_asks_for_another(wrapped):
    assert WORDS not in arguments(wrapped, "gateway_call")


def test_mail_that_is_read_as_a_resource_stays_out():
    contents = [
        {"uri": "mmp://mailboxes/inbox", "text": json.dumps({"messages": [{"body": WORDS}]})},
        {"uri": "mmp://mailboxes/inbox", "text": f"bob: {WORDS}"},
    ]
    asked = Request(id=1, method="resources/read", params={"uri": "mmp://mailboxes/inbox"})
    answer = redacted({"id": 1, "result": {"contents": contents}}, answering=asked)
    assert WORDS not in json.dumps(answer)
    assert "mmp://mailboxes/inbox" in json.dumps(answer)


def test_headers_that_repeat_arguments_say_nothing_that_the_message_does_not():
    headers = Headers.of(
        [
            ("mcp-param-ssn", "078-05-1120"),
            ("mcp-param-recovery-code", "ABCDEFGHJKMN"),
            ("mcp-name", "mmp://private/078-05-1120"),
        ]
    )
    told = str(redactor(paths=["$.params.uri"]).headers(headers).pairs)
    assert "078-05-1120" not in told
    assert "ABCDEFGHJKMN" not in told
    assert redactor().headers(headers).get("mcp-name") == "mmp://private/078-05-1120"


def test_nobody_has_a_method_or_a_tool_left_out_by_sending_it_as_a_credential():
    by = redactor()
    token = ("authorization", "Bearer delete_everything")
    by.headers(Headers.of([("mcp-session-id", "tools/call"), token]))
    call = {"name": "delete_everything", "arguments": {"why": "delete_everything"}}
    found = redacted({"id": 1, "method": "tools/call", "params": call}, by=by)
    assert (found["method"], found["params"]["name"]) == ("tools/call", "delete_everything")
    assert found["params"]["arguments"]["why"] != "delete_everything"


@pytest.mark.parametrize(
    "given",
    # Made when they are used: what is collected is in the memory of every process that runs tests.
    [
        lambda: "?code=a&" * 100_000,
        pytest.param(lambda: "token=a token=b " * 50_000, marks=pytest.mark.long),
        pytest.param(lambda: [f"sk_abcdefgh{n}" for n in range(50_000)], marks=pytest.mark.long),
        lambda: [{"password": n} for n in range(40_000)],
    ],
    ids=["codes", "tokens", "keys", "passwords"],
)
def test_so_many_secrets_that_it_would_take_long_go_as_a_whole(given):
    params = {"name": "x", "arguments": [given()]}
    many = message({"id": 1, "method": "tools/call", "params": params})
    raw, places = redactor().message(many)
    assert places
    assert len(raw) < 3 * len(encode_message(many))
    for left in (b"code=a", b"=b", b"sk_abcdefgh", b'"password":3'):
        assert left not in raw


def test_paths_cost_little_where_they_do_not_lead():
    many = message({"id": 1, "method": "x", "params": {"a": [{"b": n} for n in range(20_000)]}})
    by = redactor(paths=[f"$..x{n}..b{n}" for n in range(30)] + ["$.params.a[7].b"])
    before = time.process_time()
    _, places = by.message(many)
    assert time.process_time() - before < 3
    assert [place.path for place in places] == ["$.params.a[7].b"]
