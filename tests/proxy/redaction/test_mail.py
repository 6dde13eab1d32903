"""Mail is not on the tape."""

from __future__ import annotations

import json
from typing import Any

import pytest

from folkmoot.proxy.redaction import PLACEHOLDER
from tests.proxy.redaction.secrets import redacted, redactor, request

pytestmark = pytest.mark.requirement("proxy.record-no-secrets")

WORDS = "The boat is ready."
SEALED = {"ciphertext": "c2VhbGVk", "nonce": "bm9uY2U=", "sender_public_key": "a2V5"}
MAIL = {"id": "m1", "from_handle": "bob", "body": WORDS, "encryption_mode": "server_assisted"}
THREAD = {"id": "t1", "subject": WORDS, "last_message_body": WORDS, "unread_count": 1}


def sent(tool: str, arguments: Any) -> Any:
    body = {"id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}
    return redacted(body)["params"]["arguments"]


@pytest.mark.parametrize(
    "tool", ["msg/send", "msg_send", "msg/reply", "hub:msg_send", "hub__msg_reply", "a/msg/send"]
)
def test_what_is_sent_stays_out_of_the_call(tool):
    where = {"message_id": "m0"} if "reply" in tool else {"to": "bob", "reply_to": "m0"}
    arguments = {**where, "body": WORDS, "priority": "normal"}
    found = sent(tool, arguments)
    assert found["body"].startswith("[redacted:mail:")
    assert (found, list(found)) == ({**arguments, "body": found["body"]}, list(arguments))
    sealed = sent(tool, {"to": "bob", "body": None, "encrypted_payload": SEALED})
    assert sealed["body"] is None
    assert all(map(PLACEHOLDER.fullmatch, sealed["encrypted_payload"].values()))


def test_a_call_of_another_tool_keeps_its_words():
    for tool in ("commit_msg", "send", "commit_msg_check"):
        assert sent(tool, {"body": WORDS, "message": WORDS}) == {"body": WORDS, "message": WORDS}


def test_a_call_of_mail_inside_of_something_else_is_known():
    inner = {"name": "msg_send", "arguments": {"to": "bob", "body": WORDS}}
    found = sent("room/propose", {"params": json.dumps({"params": inner})})
    assert WORDS not in found["params"]
    assert "bob" in found["params"]


@pytest.mark.parametrize("tool", ["msg/inbox", "msg_thread"])
def test_what_is_read_stays_out_of_the_answer(tool):
    result = {"messages": [MAIL], "threads": [THREAD], "message": "Here you are."}
    both = {
        "content": [{"type": "text", "text": json.dumps(result, indent=2)}],
        "structuredContent": result,
    }
    found = redacted({"id": 1, "result": both}, answering=request(tool))["result"]
    assert WORDS not in json.dumps(found)
    inside = found["structuredContent"]
    assert inside == json.loads(found["content"][0]["text"])
    assert inside["message"] == "Here you are."
    assert inside["messages"][0]["from_handle"] == "bob"
    assert inside["messages"][0]["body"] == inside["threads"][0]["subject"]
    assert inside["messages"][0]["body"] == sent("msg/send", {"body": WORDS})["body"]


def test_an_answer_in_words_is_mail_unless_it_is_an_error():
    said = {"id": 1, "result": {"content": [{"type": "text", "text": f"bob says: {WORDS}"}]}}
    found = redacted(said, answering=request("msg/inbox"))
    assert found["result"]["content"][0]["text"].startswith("[redacted:mail:")
    failed = {"id": 1, "result": {"content": [{"type": "text", "text": "No."}], "isError": True}}
    assert redacted(failed, answering=request("msg/inbox"))["result"] == failed["result"]


def test_mail_is_known_by_itself_where_nobody_knows_what_was_asked():
    for result in ({"messages": [MAIL]}, [THREAD], json.dumps(MAIL)):
        assert WORDS not in json.dumps(redacted({"id": 1, "result": result}))


def test_mail_can_be_let_on_the_tape():
    by = redactor(mail=False)
    body = {"id": 1, "result": {"messages": [MAIL]}}
    assert redacted(body, by=by, answering=request("msg/inbox")) == {"jsonrpc": "2.0", **body}
    call = {"id": 1, "method": "tools/call", "params": request("msg/send", {"body": WORDS}).params}
    assert redacted(call, by=by)["params"]["arguments"]["body"] == WORDS


@pytest.mark.parametrize("tool", ["msg/send", "hub__msg_send", "msgSend", "folkmoot_msg_reply"])
def test_what_is_said_in_an_argument_that_nobody_knows_is_mail(tool):
    found = sent(tool, {"to": "bob", "note": WORDS, "parts": [{"to": [WORDS], "n": 1}], "limit": 5})
    assert WORDS not in json.dumps(found)
    assert found["limit"] == 5
    assert found["note"].startswith("[redacted:mail:")
    for arguments in (WORDS, [WORDS], json.dumps({"note": WORDS}), {"handle": WORDS}):
        assert WORDS not in json.dumps(sent(tool, arguments))


def test_nothing_that_a_tool_of_mail_takes_or_says_is_known_if_the_tool_is_not():
    assert WORDS not in json.dumps(sent("msg/forward", {"to": WORDS, "more": {"to": WORDS}}))
    inner = {"tool": "msg_forward", "input": {"to": WORDS}}
    assert WORDS not in json.dumps(sent("gateway_call", inner))
    result = {
        "content": [{"type": "text", "text": json.dumps({"quoted": WORDS})}],
        "structuredContent": {"quoted": [WORDS], "n": 1},
    }
    for asked in (request("msg/forward"), request("gateway_call", {**inner})):
        found = redacted({"id": 7, "result": result}, answering=asked)
        assert WORDS not in json.dumps(found)
        assert (found["id"], found["result"]["content"][0]["type"]) == (7, "text")


def test_a_code_in_a_call_of_mail_is_a_code():
    found = sent("msg/recover", {"handle": "bob", "recovery_code": "AB3K-9TW2-HNPQ"})
    assert found["handle"] == "bob"
    assert found["recovery_code"].startswith("[redacted:code:")
