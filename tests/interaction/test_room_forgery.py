"""What is not so, said in a room: nobody but its sender ever hears of it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.interaction.room_client import (
    Message,
    call,
    chat,
    message,
    notice,
    proposal,
)
from tests.interaction.room_ways import both_ways, mouth

RPC = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "mow"}}
WITHOUT_ID = {name: value for name, value in RPC.items() if name != "id"}


def asked(kind: str, payload: Any = RPC, **members: Any) -> Message:
    return message(kind, payload, **{"to": ["bob"], **members})


def read_of(uri: str) -> dict[str, Any]:
    return {**RPC, "method": "resources/read", "params": {"uri": uri}}


# The last has a letter of another alphabet.
FORGED_SENDERS = ["bob", "ann", "gateway", "system", "Mallory", "mallory ", "mall\u043ery"]


GATEWAYS_OWN = [
    "system.welcome",
    "system.error",
    "system.presence.join",
    "system.presence.leave",
    "system.proposal.expired",
    "system.anything",
    "room.invite-ack",
    "capability.grant-ack",
    "stream.open",
]

DISAGREEING = {
    "method": (asked("mcp.request.tools/list"), "method_mismatch"),
    "another case of the method": (asked("mcp.request.Tools/Call"), "method_mismatch"),
    "context": (asked("mcp.request.tools/call:rest"), "context_mismatch"),
    "another case of the context": (asked("mcp.request.tools/call:Mow"), "context_mismatch"),
    "a context that begins alike": (asked("mcp.request.tools/call:mow:er"), "context_mismatch"),
    "a context of another form": (
        asked("mcp.request.resources/read:docs://\u00e9", read_of("docs://e\u0301")),
        "context_mismatch",
    ),
    "a context nobody asks for": (
        asked("mcp.request.ping:mow", {**RPC, "method": "ping"}),
        "context_not_allowed",
    ),
    "case of the operation": (asked("mcp.Request.tools/call"), "kind_syntax"),
    "a trailing dot": (asked("mcp.request."), "kind_syntax"),
    "a notification's method": (
        asked("mcp.request.notifications/cancelled", {**RPC, "method": "notifications/cancelled"}),
        "wrong_operation",
    ),
    "format of chat": (
        message("chat.message.markdown", {"text": "x", "format": "plain"}),
        "format_mismatch",
    ),
    "method of a proposal": (
        message("mcp.proposal.tools/call", {"method": "tools/list"}),
        "method_mismatch",
    ),
    "context of a proposal": (
        message("mcp.proposal.tools/call:rest", WITHOUT_ID),
        "context_mismatch",
    ),
    "method of a notification": (
        {**notice(), "kind": "mcp.notification.notifications/cancelled"},
        "correlation_required",
    ),
}

BROADCASTS = {
    "without an id": (asked("mcp.request.tools/call", WITHOUT_ID, to=[]), "payload_id_invalid"),
    "with an id": (asked("mcp.request.tools/call", to=[]), "recipient_required"),
    "with null as its id": (
        asked("mcp.request.tools/call", {**RPC, "id": None}, to=[]),
        "payload_id_invalid",
    ),
    "as a notification": (asked("mcp.notification.tools/call", WITHOUT_ID), "wrong_operation"),
    "as a chat notification": (
        asked("mcp.notification.notifications/chat/message", WITHOUT_ID),
        "method_mismatch",
    ),
    "as chat": (message("chat.message", {**RPC, "text": "x"}), "payload_invalid"),
    "as a thought": (message("reasoning.thought", RPC), "payload_invalid"),
    "as a status": (message("participant.status", RPC), "payload_invalid"),
    "without a kind's method": (asked("mcp.request", RPC, to=[]), "kind_needs_method"),
}

RECIPIENTS = {
    "two": (["bob", "ann"], "recipient_required"),
    "the same twice": (["bob", "bob"], "recipient_invalid"),
    "the sender": (["mallory"], "recipient_invalid"),
    "someone unknown": (["nobody"], "recipient_unknown"),
    "another spelling of someone": (["Bob"], "recipient_unknown"),
    "someone who has an account and is not here": (["cat"], "recipient_unknown"),
    "no name": ([""], "invalid_envelope"),
}


PROPOSALS = {
    "correlated": ({**proposal(), "correlation_id": ["n-1"]}, "correlation_forbidden"),
    "answered": (message("mcp.proposal.tools/call", {**RPC, "result": {}}), "payload_invalid"),
    "rejected without a reason": (
        message("mcpx.reject.proposal", {}, correlation_id=["x"]),
        "reason_required",
    ),
}

FORGED: dict[str, dict[str, tuple[Message, str]]] = {
    "senders": {name: (chat(**{"from": name}), "sender_forged") for name in FORGED_SENDERS},
    "words of the gateway": {
        kind: (message(kind, {"you": {"id": "bob"}, "status": "granted"}), "kind_reserved")
        for kind in GATEWAYS_OWN
    },
    "kinds": DISAGREEING,
    "broadcasts": BROADCASTS,
    "recipients": {
        what: ({**call("bob"), "to": to}, code) for what, (to, code) in RECIPIENTS.items()
    },
    "proposals": PROPOSALS,
}


@pytest.mark.requirement("check.before-delivery", "wire.from-forged", "request.never-broadcast")
@both_ways
async def test_what_is_not_so_is_refused_and_nobody_but_its_sender_hears_of_it(there, way):
    await there.people("ann", "bob", "cat", "mallory")
    await there.room("ann", capabilities=["*"])
    async with there.seats("ann", "bob", "mallory") as (_, bob, mallory):
        mallory_by = mouth(there, mallory, way)
        await bob.news()
        for sort, attempts in FORGED.items():
            for what, (sent, code) in attempts.items():
                refusal = await mallory_by.refused(sent)
                assert refusal["error"] == code, (sort, what, refusal)
                assert refusal["message"].endswith("."), (sort, what)
        assert await bob.news() == []
        kept = [one["from"] for one in await there.history("ann")]
        assert set(kept) == {"gateway", "bob"}
