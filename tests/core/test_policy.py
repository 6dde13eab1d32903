"""Policy."""

from __future__ import annotations

from typing import Any

import pytest

from folkmoot.core.capability import Rights
from folkmoot.core.errors import CapabilityDenied, ContextMismatch, ProposalRequired
from folkmoot.core.kinds import parse
from folkmoot.core.mcpx import decode_mcpx
from folkmoot.core.message import Notification, Request, Response
from folkmoot.core.policy import (
    ALLOWED,
    Decision,
    Principal,
    PrincipalType,
    Verdict,
    decide,
    judge,
)
from folkmoot.core.strict import encode

ALICE = Principal("account-1", "alice")
GATEWAY = Principal("gateway", "gateway", PrincipalType.GATEWAY)
CALL = "mcp.request.tools/call:rm"
NOTE = "mcp.notification.notifications/chat/message"
MEMBER = [
    "chat.*",
    "mcp.notification.notifications/chat/*",
    "mcp.proposal.*",
    "mcp.request.tools/call:chat.say",
]


def verdict(rights: list[Any], kind: str, payload: Any = None, who: Principal = ALICE) -> Verdict:
    return judge(who, Rights(rights), parse(kind), payload)


@pytest.mark.requirement("policy.allow")
def test_what_a_right_covers_is_allowed() -> None:
    assert verdict(["mcp.*"], CALL) is ALLOWED
    assert verdict(["*"], "chat.message", {"text": "x"}) is ALLOWED


@pytest.mark.requirement("policy.default-deny", "policy.deny-says-why")
def test_what_no_right_covers_is_denied_with_a_reason() -> None:
    refused = verdict(["chat.*", "!chat.cancel"], CALL)
    assert refused.decision is Decision.DENY
    assert isinstance(refused.error, CapabilityDenied)
    assert refused.error.code == "capability_denied"
    assert CALL in str(refused.error)
    assert refused.error.data == {
        "attempted_kind": CALL,
        "your_capabilities": ["chat.*", "!chat.cancel"],
    }
    assert verdict([], CALL).decision is Decision.DENY


@pytest.mark.requirement("policy.propose")
@pytest.mark.parametrize(
    "rights",
    [["mcp.proposal.*"], ["mcp.proposal.tools/call:rm"], ["mcp.*", "!mcp.request.tools/call:rm"]],
)
def test_who_may_propose_is_told_so(rights: list[str]) -> None:
    refused = verdict(rights, CALL)
    assert refused.decision is Decision.PROPOSE
    assert isinstance(refused.error, ProposalRequired)
    assert refused.error.data["attempted_kind"] == CALL


@pytest.mark.requirement("policy.propose-only-for-requests")
@pytest.mark.parametrize(
    "kind",
    ["chat.message", "mcp.notification.notifications/x", "mcpx.reject.proposal", "room.kick"],
)
def test_nothing_but_a_request_can_be_proposed(kind: str) -> None:
    assert verdict(["mcp.proposal.*"], kind).decision is Decision.DENY
    assert verdict(["mcp.proposal.tools/list"], CALL).decision is Decision.DENY


@pytest.mark.requirement("policy.system-denied")
def test_system_is_the_gateways_alone() -> None:
    assert verdict(["*"], "system.welcome").decision is Decision.DENY
    assert verdict([], "system.welcome", who=GATEWAY) is ALLOWED
    assert verdict([], CALL, who=GATEWAY) is ALLOWED


def test_an_open_request_is_the_right_to_answer() -> None:
    assert verdict([], "mcp.response.tools/call:rm") is ALLOWED
    assert verdict(["!mcp.response.*"], "mcp.response.tools/call:rm").decision is Decision.DENY


CHATS = [
    ("chat.message", {"text": "x"}),
    ("chat.message.text", {"text": "x"}),
    (NOTE, {"params": {"text": "x"}}),
    (
        "mcp.request.tools/call:chat.say",
        {"params": {"name": "chat.say", "arguments": {"text": "x"}}},
    ),
]


@pytest.mark.requirement("chat.deny-both")
@pytest.mark.parametrize(
    "deny", ["!chat.message", "!chat.*", f"!{NOTE}", "!mcp.notification.*", "!chat.message.plain"]
)
@pytest.mark.parametrize(("kind", "payload"), CHATS, ids=[kind for kind, _ in CHATS])
def test_a_deny_on_one_spelling_of_chat_denies_them_all(deny: str, kind: str, payload: Any) -> None:
    assert verdict(MEMBER, kind, payload) is ALLOWED
    assert verdict([*MEMBER, deny], kind, payload).decision is not Decision.ALLOW


@pytest.mark.parametrize(("kind", "payload"), CHATS, ids=[kind for kind, _ in CHATS])
def test_a_deny_on_another_format_or_another_thing_leaves_chat_alone(
    kind: str, payload: Any
) -> None:
    for deny in "!chat.message.markdown", "!chat.cancel", "!mcp.request.tools/call:other":
        assert verdict([*MEMBER, deny], kind, payload) is ALLOWED


def in_room(kind: str, name: str) -> bytes:
    payload = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name}}
    return encode({"protocol": "mcpx/v1", "kind": kind, "to": ["files"], "payload": payload})


@pytest.mark.requirement("capability.effective-kind")
def test_a_whole_message_is_judged_by_what_it_does() -> None:
    rights = Rights(["mcp.request.tools/call:read"])
    bare = "mcp.request.tools/call"
    assert decide(ALICE, rights, decode_mcpx(in_room(bare, "read"))) is ALLOWED
    assert decide(ALICE, rights, decode_mcpx(in_room(bare, "rm"))).decision is Decision.DENY
    with pytest.raises(ContextMismatch):
        decide(ALICE, rights, decode_mcpx(in_room(f"{bare}:read", "rm")))


def test_a_plain_message_is_judged_by_the_same_rights() -> None:
    rights = Rights(["mcp.request.tools/call:read", "mcp.notification.*"])
    assert (
        decide(ALICE, rights, Request(id=1, method="tools/call", params={"name": "read"}))
        is ALLOWED
    )
    refused = decide(ALICE, rights, Request(id=1, method="tools/call", params={"name": "rm"}))
    assert refused.decision is Decision.DENY
    assert decide(ALICE, rights, Notification(method="notifications/x")) is ALLOWED
    assert decide(ALICE, Rights(), Response(id=1, result={})) is ALLOWED
