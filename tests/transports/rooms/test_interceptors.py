"""Interceptors may stop a room's message, never change it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from folkmoot.app import Hub
from folkmoot.core import errors as e
from folkmoot.core.envelope import MessageEnvelope
from folkmoot.core.mcpx import McpxMessage
from folkmoot.core.verdict import CONTINUE, Verdict
from folkmoot.transports.operations import VISITOR
from tests.transports.rooms.support import Town, settings


class Censor:
    """Stops what is rude, and tries to make the rest polite."""

    name = "censor"
    guards = False

    def __init__(self) -> None:
        self.speakers: list[str] = []

    async def intercept(self, envelope: MessageEnvelope[Any]) -> Verdict:
        message = envelope.message
        if isinstance(message, McpxMessage) and message.payload is not None:
            self.speakers.append(envelope.context.extensions[VISITOR].principal.name)
            if message.payload["text"] == "rude":
                raise e.BlockedByInterceptor("Mind your words.")
            if message.payload["text"] == "blunt":
                message.payload["text"] = "polite"
        return CONTINUE


async def test_an_interceptor_stops_a_message_and_cannot_rewrite_one(tmp_path: Path) -> None:
    censor = Censor()
    async with Hub(settings(tmp_path), interceptors=[censor]).running() as hub:
        town = Town(hub)
        ann = await town.person("ann")
        await town.room(ann)
        async with town.joined(ann.token) as seat:
            for text in ("rude", "blunt", "fine"):
                await seat.say(text)
            told = [await seat.hear() for _ in range(4)]
            kinds = [each["kind"] for each in told]
            assert kinds[0] == "system.presence.join"
            assert kinds[1:] == ["system.error", "system.error", "chat.message"]
            assert [each["payload"].get("error") for each in told[1:3]] == [
                "blocked",
                "rewrite_refused",
            ]
            assert told[3]["payload"] == {"text": "fine"}
            assert censor.speakers == ["ann"] * 3
