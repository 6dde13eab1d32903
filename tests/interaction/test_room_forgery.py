"""What is not so, said in a room: nobody but its sender ever hears of it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.harness import run
from tests.interaction.room_client import (
    Message,
    call,
    chat,
    grant,
    message,
    notice,
    proposal,
    square,
    turned_away,
)
from tests.interaction.room_ways import both_ways, mouth

RPC = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "mow"}}
WITHOUT_ID = {name: value for name, value in RPC.items() if name != "id"}


def asked(kind: str, payload: Any = RPC, **members: Any) -> Message:
    return message(kind, payload, **{"to": ["bob"], **members})


def read_of(uri: str) -> dict[str, Any]:
    return {**RPC, "method": "resources/read", "params": {"uri": uri}}


FORGED_SENDERS = ["bob", "ann", "gateway", "system", "Mallory", "mallory ", "mall\u043ery"]
"""The last has a letter of another alphabet."""

MISTAKABLE = ["gateway", "GATEWAY", "g\u0430teway", "system", "ann", "Ann", "\u0430nn"]

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


async def check_refusals(folder: Path, way: str, attempts: dict[str, tuple[Message, str]]) -> None:
    """Someone who may do everything is refused each time, and nobody else hears of it."""
    async with square(folder) as there:
        await there.people("ann", "bob", "cat", "mallory")
        await there.room("ann", capabilities=["*"])
        async with (
            there.seat("ann"),
            there.seat("bob") as bob,
            there.seat("mallory") as mallory,
        ):
            mallory_by = mouth(there, mallory, way)
            await bob.news()
            for what, (sent, code) in attempts.items():
                refusal = await mallory_by.refused(sent)
                assert refusal["error"] == code, (what, refusal)
                assert refusal["message"].endswith("."), what
            assert await bob.news() == []
            assert [one["from"] for one in await mallory.news() if one["from"] != "gateway"] == [
                "bob",
                "bob",
            ]
            kept = [one["from"] for one in await there.history("ann")]
            assert set(kept) == {"gateway", "bob", "mallory"}
            assert kept.count("mallory") == 1


@pytest.mark.requirement("wire.from-forged")
@both_ways
def test_nobody_speaks_as_somebody_else(tmp_path: Path, way: str) -> None:
    forged = {name: (chat(**{"from": name}), "sender_forged") for name in FORGED_SENDERS}
    run(check_refusals(tmp_path, way, forged))


@pytest.mark.requirement("check.before-delivery", "room.invite-kinds", "capability.default-owner")
@both_ways
def test_nobody_speaks_for_the_gateway_however_much_they_may(tmp_path: Path, way: str) -> None:
    payload = {"you": {"id": "bob", "capabilities": ["*"]}, "status": "granted"}
    forged = {kind: (message(kind, payload), "kind_reserved") for kind in GATEWAYS_OWN}
    run(check_refusals(tmp_path, way, forged))


@pytest.mark.requirement("check.before-delivery")
@both_ways
def test_kind_and_payload_say_the_same_or_nobody_hears_it(tmp_path: Path, way: str) -> None:
    run(check_refusals(tmp_path, way, DISAGREEING))


@pytest.mark.requirement("request.never-broadcast")
@both_ways
def test_there_is_no_way_to_broadcast_a_request(tmp_path: Path, way: str) -> None:
    run(check_refusals(tmp_path, way, BROADCASTS))


@pytest.mark.requirement("request.target-present", "request.never-broadcast")
@both_ways
def test_a_request_has_one_recipient_who_is_someone_else_and_here(tmp_path: Path, way: str) -> None:
    attempts = {what: ({**call("bob"), "to": to}, code) for what, (to, code) in RECIPIENTS.items()}
    run(check_refusals(tmp_path, way, attempts))


@pytest.mark.requirement("capability.effective-kind", "capability.deny-wins")
@both_ways
async def test_a_context_that_is_left_out_does_not_escape_a_deny(tmp_path: Path, way: str) -> None:
    rights = ["*", "!mcp.request.tools/call:rm", "!mcp.*.resources/*:secret://*"]
    async with square(tmp_path) as there:
        await there.people("ann", "bob", "mallory")
        await there.room("ann", capabilities=rights)
        async with there.seat("bob") as bob, there.seat("mallory") as mallory:
            by = mouth(there, mallory, way)
            secret = read_of("secret://plans")
            await bob.news()
            for kind in ("mcp.request.tools/call", "mcp.request.tools/call:rm"):
                # What is denied may still be proposed.
                refusal = await by.refused({**call("bob", "rm"), "kind": kind})
                assert refusal["error"] == "proposal_required", kind
            for kind in (
                "mcp.request.resources/read",
                "mcp.request.resources/read:secret://plans",
                "mcp.proposal.resources/read",
            ):
                refusal = await by.refused(asked(kind, secret))
                assert refusal["error"] == "capability_denied", kind
            assert await bob.news() == []
            for tool in ("rm2", "Rm", "rm/", "r"):
                await by.said(call("bob", tool))


@pytest.mark.requirement("wire.id-used-before", "wire.id-retry-safe")
@both_ways
async def test_an_id_is_used_once_and_only_its_sender_is_told_where(
    tmp_path: Path, way: str
) -> None:
    async with square(tmp_path) as there:
        await there.people("ann", "bob")
        await there.room("ann")
        async with there.seat("ann") as ann, there.seat("bob") as bob:
            ours, theirs = mouth(there, ann, way), mouth(there, bob, way)
            first = await ours.said(chat(id="one"))
            again = await ours.refused(chat("something else", id="one"))
            assert (again["error"], again["seq"]) == ("id_used", first["seq"])
            other = await theirs.refused(chat(id="one"))
            assert other["error"] == "id_used"
            assert "seq" not in other
            # The gateway's own ids are taken as well.
            presence = (await there.history("ann"))[0]
            taken = await theirs.refused(chat(id=presence["id"]))
            assert taken["error"] == "id_used"
            assert "seq" not in taken


@pytest.mark.requirement("wire.id-used-before")
async def test_of_several_who_use_an_id_at_once_one_is_heard(tmp_path: Path) -> None:
    async with square(tmp_path) as there:
        await there.people("ann", "bob")
        await there.room("ann")
        async with there.seat("ann") as ann, there.seat("bob") as bob:
            for number in range(10):
                sent = [chat(f"{name}", id=f"id-{number}") for name in ("ann", "bob")]
                told = await asyncio.gather(
                    *(ann.send(sent[0]), bob.send(sent[1])),
                    *(ann.outcome(f"id-{number}"), bob.outcome(f"id-{number}")),
                )
                kinds = sorted(one["kind"] for one in told[2:])
                assert kinds == ["chat.message", "system.error"]
            heard = [one["id"] for one in await there.history("ann")]
            assert len(heard) == len(set(heard)) == 12


@pytest.mark.requirement("capability.grant-at-most-own", "capability.grant-kinds")
@both_ways
async def test_nobody_gives_themselves_or_others_what_they_do_not_hold(
    tmp_path: Path, way: str
) -> None:
    held = ["chat.*", "capability.grant", "mcp.request.tools/call:mow"]
    async with square(tmp_path) as there:
        await there.people("ann", "bob", "mallory")
        await there.room("ann", capabilities=held)
        async with there.seat("bob") as bob, there.seat("mallory") as mallory:
            by = mouth(there, mallory, way)
            await bob.news()
            for more in (
                "*",
                "mcp.*",
                "mcp.request.tools/call",
                "mcp.request.tools/call:m*",
                "capability.*",
                "room.kick",
                "!chat.message",
            ):
                refusal = await by.refused(grant("bob", "chat.message", more))
                assert refusal["error"] == "grant_exceeds_rights", more
            reserved = await by.refused(grant("bob", "system.*"))
            assert reserved["error"] == "capability_reserved"
            own = await by.refused(grant("mallory", "chat.message"))
            assert own["error"] == "recipient_invalid"
            ack = {"recipient": "mallory", "capabilities": ["*"], "own": [True]}
            forged = message("capability.grant-ack", ack, correlation_id=["n-0"])
            assert (await by.refused(forged))["error"] == "kind_reserved"
            assert await bob.news() == []
            assert (await bob.refused(call("mallory", "rm")))["error"] == "capability_denied"
            less = {"kind": held[2], "payload": {"params": {"name": "mow"}}}
            await by.said(grant("bob", less))


@pytest.mark.requirement("room.guest-once", "room.close-not-authenticated")
async def test_nobody_comes_in_under_a_name_that_could_be_anothers(tmp_path: Path) -> None:
    async with square(tmp_path) as there:
        await there.people("ann", "bob")
        await there.room("ann", access="private")
        async with there.seat("ann") as ann:
            for name in MISTAKABLE:
                sent = message("room.invite", {"guest": name})
                assert (await ann.refused(sent))["error"] == "name_refused", name
            await ann.send(sent := message("room.invite", {"guest": "kim"}))
            ack = await ann.kind("room.invite-ack")
            assert ack["correlation_id"] == [sent["id"]]
            token = ack["payload"]["token"]
            assert await turned_away(there.port, token, "another") == 4401
            codes = await asyncio.gather(
                *(_enter(there.port, token) for _ in range(5)),
            )
            assert sorted(codes) == [0, 4401, 4401, 4401, 4401]
            assert token not in str(await there.history("ann"))
        assert await turned_away(there.port, there.tokens["bob"]) == 4404


async def _enter(port: int, token: str) -> int:
    """The code of the close, or 0 for one who came in."""
    try:
        return await turned_away(port, token)
    except AssertionError:
        return 0


def test_proposals_cannot_carry_what_they_do_not_say(tmp_path: Path) -> None:
    correlates = ({**proposal(), "correlation_id": ["n-1"]}, "correlation_forbidden")
    answered = (message("mcp.proposal.tools/call", {**RPC, "result": {}}), "payload_invalid")
    reasonless = (message("mcpx.reject.proposal", {}, correlation_id=["x"]), "reason_required")
    attempts = {"correlates": correlates, "answered": answered, "reasonless": reasonless}
    run(check_refusals(tmp_path, "websocket", attempts))
