"""Interceptors of rooms: they see what comes, may stop or hold it, and never change a word."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from folkmoot.core.envelope import MessageEnvelope
from folkmoot.core.kinds import parse
from folkmoot.core.mcpx import McpxMessage, decode_mcpx
from folkmoot.core.transport import FrameType, WebSocketMetadata
from folkmoot.core.verdict import CONTINUE, Modify, Verdict
from folkmoot.rooms.ports import Said
from tests.interaction.room_client import Message, Posting, call, chat, message, square
from tests.interaction.room_ways import both_ways, mouth

Envelope = MessageEnvelope[Any]


class Notes:
    """Keeps what it is shown."""

    name = "notes"
    guards = False

    def __init__(self) -> None:
        self.seen: list[Envelope] = []

    async def intercept(self, envelope: Envelope) -> Verdict:
        self.seen.append(envelope)
        return CONTINUE


class Rewrites:
    """Does something to the messages of rooms."""

    name = "rewrites"
    guards = False

    def __init__(self, change: Callable[[McpxMessage], McpxMessage]) -> None:
        self._change = change

    async def intercept(self, envelope: Envelope) -> Verdict:
        if not isinstance(envelope.message, McpxMessage):
            return CONTINUE
        return Modify(self._change(envelope.message))


def in_place(shown: McpxMessage) -> McpxMessage:
    (shown.payload or {})["text"] = "something else"
    return shown


def deep_in_place(shown: McpxMessage) -> McpxMessage:
    (shown.payload or {})["deep"]["list"].append(2)
    return shown


def another(_shown: McpxMessage) -> McpxMessage:
    return decode_mcpx(b'{"protocol":"mcpx/v1","kind":"chat.message","payload":{"text":"x"}}')


def another_kind(shown: McpxMessage) -> McpxMessage:
    return msgspec.structs.replace(shown, kind=parse("reasoning.thought"))


@pytest.mark.requirement("proxy.websocket-frames")
async def test_a_message_from_a_websocket_is_shown_with_what_its_frame_was(tmp_path):
    notes = Notes()
    async with square(tmp_path, [notes]) as there:
        await there.people("ann")
        await there.room("ann")
        async with there.seat("ann") as ann:
            notes.seen.clear()
            told = await ann.said(chat("whole"))
            called, shown = notes.seen
            assert called.message.params["name"] == "room/say"
            assert shown.message.id == told["id"]
            for each in (called, shown):
                assert each.context.transport.metadata == WebSocketMetadata(
                    FrameType.TEXT, is_final=True, compression=False
                )


@pytest.mark.requirement("room.interceptors-never-rewrite")
@pytest.mark.parametrize("change", [in_place, deep_in_place, another, another_kind])
@both_ways
async def test_an_interceptor_that_rewrites_a_message_stops_it(tmp_path, way, change):
    async with square(tmp_path, [Rewrites(change)]) as there:
        await there.people("ann", "bob")
        await there.room("ann")
        async with there.seat("bob") as bob:
            sent = chat("as I said")
            sent["payload"]["deep"] = {"list": [1]}
            if way == "websocket":
                assert (await bob.refused(sent))["error"] == "rewrite_refused"
            else:
                answer = await there.rest("bob", "POST", "/plaza/messages", sent)
                assert answer.json()["error"]["code"] == "rewrite_refused"
            assert {one["kind"] for one in await there.history("ann")} == {"system.presence.join"}


@pytest.mark.requirement("room.interceptors-never-rewrite")
async def test_what_is_done_to_a_message_that_was_shown_changes_neither_words_nor_verdict(there):
    """Also where nobody compares it afterwards."""

    async def meddle(said: Said) -> Any:
        payload: dict[str, Any] = said.message.payload or {}
        payload["text"] = "something else"
        payload["jsonrpc"] = "2.0"
        payload.setdefault("params", {})["name"] = "harmless"
        return await said.accept()

    there.hub.rooms.pipeline = meddle
    await there.people("ann", "bob")
    await there.room("ann", capabilities=["*", "!mcp.*.tools/call:rm"])
    async with there.seat("ann") as ann, there.seat("bob") as bob:
        for by in (bob, Posting(there, "bob")):
            told = await by.said(chat("as I said"))
            assert told["payload"] == {"text": "as I said"}
            assert await ann.kind("chat.message") == told
            assert (await by.refused(call("ann", "rm")))["error"] == "capability_denied"


@both_ways
async def test_what_is_wrong_with_a_message_is_said_in_the_same_words_where_there_are_interceptors(
    tmp_path, way
):
    wrong = [
        message("chat.message"),
        message("mcp.request.tools/call", {"jsonrpc": "2.0", "id": 1, "method": "ping"}),
        call("nobody-here"),
    ]

    async def told(folder: Path, *interceptors: Notes) -> list[Message]:
        async with square(folder, interceptors) as there:
            await there.people("ann")
            await there.room("ann")
            async with there.seat("ann") as ann:
                return [await mouth(there, ann, way).refused(each) for each in wrong]

    plain = await told(tmp_path / "plain")
    assert await told(tmp_path / "shown", Notes()) == plain
