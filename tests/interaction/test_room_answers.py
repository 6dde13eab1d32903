"""Requests in a room: who is believed about them, and who is not."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.interaction.room_client import Message, answer, call, message, square
from tests.interaction.room_ways import both_ways, mouth

RESULT: dict[str, Any] = {"content": []}


def about(method: str, asked: Message, params: dict[str, Any], **members: Any) -> Message:
    """A notification about a request."""
    payload = {"jsonrpc": "2.0", "method": f"notifications/{method}", "params": params}
    told = {"correlation_id": [asked["id"]], **members}
    return message(f"mcp.notification.notifications/{method}", payload, **told)


def progress(asked: Message, **members: Any) -> Message:
    return about("progress", asked, {"progressToken": "t", "progress": 1}, **members)


def cancelled(asked: Message, **members: Any) -> Message:
    return about("cancelled", asked, {"requestId": asked["payload"]["id"]}, **members)


@pytest.mark.requirement(
    "request.response-only-from-target",
    "request.response-same",
    "request.response-once",
    "request.response-needs-open",
    "request.response-to-requester",
    "request.response-needs-no-capability",
)
@both_ways
async def test_only_who_was_asked_answers_and_only_what_was_asked_and_once(
    tmp_path: Path, way: str
) -> None:
    async with square(tmp_path) as there:
        await there.people("ann", "bob", "mallory")
        await there.room("ann", capabilities=["chat.*"])
        async with (
            there.seat("ann") as ann,
            there.seat("bob") as bob,
            there.seat("mallory") as mallory,
        ):
            bob_by, mallory_by = mouth(there, bob, way), mouth(there, mallory, way)
            asked = await ann.said(call("bob", payload_id=7))
            payload = {"jsonrpc": "2.0", "id": 7, "result": RESULT}
            wrong = {
                "an id of another type": (
                    answer(asked, payload={**payload, "id": "7"}),
                    "response_mismatch",
                ),
                "another id": (
                    answer(asked, payload={**payload, "id": 8}),
                    "response_mismatch",
                ),
                "a number that is none": (
                    answer(asked, payload={**payload, "id": 7.0}),
                    "payload_id_invalid",
                ),
                "another method": (
                    {**answer(asked), "kind": "mcp.response.tools/list"},
                    "response_mismatch",
                ),
                "another context": (
                    {**answer(asked), "kind": "mcp.response.tools/call:rest"},
                    "response_mismatch",
                ),
                "another recipient": (answer(asked, to=["mallory"]), "recipient_invalid"),
                "one recipient more": (
                    answer(asked, to=["ann", "mallory"]),
                    "recipient_invalid",
                ),
                "no recipient": (answer(asked, to=[]), "recipient_required"),
                "another request": (
                    answer(asked, correlation_id=["nothing"]),
                    "request_not_open",
                ),
                "result and error": (
                    answer(asked, payload={**payload, "error": {"code": 1, "message": "x"}}),
                    "result_xor_error",
                ),
            }
            for what, (sent, code) in wrong.items():
                assert (await bob_by.refused(sent))["error"] == code, what
            assert (await mallory_by.refused(answer(asked)))["error"] == "not_asked"
            assert (await ann.refused(answer(asked)))["error"] == "not_asked"
            await bob_by.said(answer(asked))
            again = await bob_by.refused(answer(asked))
            assert again["error"] == "request_not_open"
            responses = [
                one["from"]
                for one in await there.history("ann")
                if one["kind"].startswith("mcp.response")
            ]
            assert responses == ["bob"]


@pytest.mark.requirement("request.response-once")
async def test_of_answers_that_come_at_once_on_two_connections_one_counts(tmp_path: Path) -> None:
    async with square(tmp_path) as there:
        await there.people("ann", "bob")
        await there.room("ann")
        async with (
            there.seat("ann") as ann,
            there.seat("bob") as phone,
            there.seat("bob") as desk,
        ):
            for _ in range(10):
                asked = await ann.said(call("bob"))
                sent = [answer(asked), answer(asked)]
                await asyncio.gather(phone.send(sent[0]), desk.send(sent[1]))
                told = await asyncio.gather(
                    phone.outcome(sent[0]["id"]), desk.outcome(sent[1]["id"])
                )
                kinds = sorted(one["kind"] for one in told)
                assert kinds == ["mcp.response.tools/call", "system.error"]


@pytest.mark.requirement("request.progress-from-target", "request.cancelled-from-requester")
@both_ways
async def test_progress_and_cancellation_are_believed_from_the_parties_alone(
    tmp_path: Path, way: str
) -> None:
    async with square(tmp_path) as there:
        await there.people("ann", "bob", "mallory")
        await there.room("ann", capabilities=["*"])
        async with (
            there.seat("ann") as ann,
            there.seat("bob") as bob,
            there.seat("mallory") as mallory,
        ):
            mallory_by = mouth(there, mallory, way)
            sent = call("bob")
            sent["payload"]["params"]["_meta"] = {"progressToken": "t"}
            asked = await ann.said(sent)
            refusals = [
                (await mallory_by.refused(progress(asked)), "not_asked"),
                (await mallory_by.refused(cancelled(asked)), "not_requester"),
                (await ann.refused(progress(asked)), "not_asked"),
                (await bob.refused(cancelled(asked)), "not_requester"),
                (await bob.refused(progress(asked, to=["mallory"])), "recipient_invalid"),
                (await bob.refused(progress({"id": "nothing"})), "request_not_open"),
                (await bob.refused(progress(asked, correlation_id=[])), "correlation_required"),
            ]
            for refusal, code in refusals:
                assert refusal["error"] == code
            lie = about("progress", asked, {"progressToken": "u", "progress": 1})
            assert (await bob.refused(lie))["error"] == "response_mismatch"
            lie = about("cancelled", asked, {"requestId": str(asked["payload"]["id"])})
            assert (await ann.refused(lie))["error"] == "response_mismatch"
            # What a party says of it goes to the other, whoever else hears it.
            assert (await bob.said(progress(asked)))["to"] == ["ann"]
            assert (await ann.said(cancelled(asked)))["to"] == ["bob"]
            assert (await bob.refused(answer(asked)))["error"] == "request_not_open"
            assert (await bob.refused(progress(asked)))["error"] == "request_not_open"


async def test_who_leaves_is_answered_for_and_who_comes_back_cannot_answer_any_more(
    tmp_path: Path,
) -> None:
    async with square(tmp_path) as there:
        await there.people("ann", "bob", "mallory")
        await there.room("ann", capabilities=["*"])
        async with there.seat("ann") as ann:
            async with there.seat("bob"), there.seat("bob"):
                await ann.kind("system.presence.join")
                asked = await ann.said(call("bob"))
            told = await ann.kind("mcp.response.tools/call:mow")
            assert told["from"] == "gateway"
            assert told["correlation_id"] == [asked["id"]]
            assert told["payload"]["error"]["data"]["code"] == "target_left"
            async with there.seat("bob") as bob, there.seat("mallory") as mallory:
                late = await bob.refused(answer(asked))
                assert late["error"] == "request_not_open"
                assert (await mallory.refused(answer(asked)))["error"] == "request_not_open"


@pytest.mark.requirement("request.response-same")
async def test_requests_are_told_apart_by_type_and_value_of_their_ids(tmp_path: Path) -> None:
    async with square(tmp_path) as there:
        await there.people("ann", "bob")
        await there.room("ann")
        async with there.seat("ann") as ann, there.seat("bob") as bob:
            one = await ann.said(call("bob", payload_id=1))
            text = await ann.said(call("bob", payload_id="1"))
            for same in (1, "1"):
                again = await ann.refused(call("bob", payload_id=same))
                assert again["error"] == "request_id_open"
            crossed = answer(one, correlation_id=[text["id"]])
            assert (await bob.refused(crossed))["error"] == "response_mismatch"
            both = answer(one, correlation_id=[one["id"], text["id"]])
            assert (await bob.refused(both))["error"] == "request_not_open"
            await bob.said(answer(text))
            await bob.said(answer(one))
            await ann.said(call("bob", payload_id=1))
