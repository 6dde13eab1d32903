"""The news of a room: that something was said there, for those who follow it by events.

Chat that comes soon after the last news is published together: on a hub of many nodes each event
goes to all of them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from folkmoot.core import errors as e
from folkmoot.core.events import SAID, subject
from folkmoot.core.ports import Bus
from folkmoot.rooms.index import CLOSING, CORRELATED, FULFILLING, PROPOSED, correlated
from folkmoot.rooms.limits import NEWS_SECONDS
from folkmoot.rooms.machine import Append
from folkmoot.rooms.model import RoomId
from folkmoot.rooms.queries_messages import TALK

PRESENCE: Final = "system.presence."
RIGHTS: Final = ("capability.grant-ack", "capability.revoke")


class RoomNews:
    """What is to be published of one room."""

    def __init__(self, bus: Bus, room_id: RoomId) -> None:
        self._bus = bus
        self._subject = subject(SAID, str(room_id))
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._begin()

    def _begin(self) -> None:
        self._seq = 0
        self._presence: list[dict[str, str]] = []
        self._proposals: list[dict[str, str]] = []
        self._rights = False
        self._talk = False

    def add(self, messages: Sequence[Append]) -> None:
        """Messages became part of the room."""
        if not self._bus.has_audience(self._subject):
            return
        self._seq = messages[-1].seq
        for message in messages:
            kind = message.kind
            if kind.startswith(TALK):
                self._talk = True
            if kind.startswith(PRESENCE):
                who = correlated(message.data).payload["participant"]["id"]
                self._presence.append({"participant": who, "change": kind.removeprefix(PRESENCE)})
            elif kind.startswith(PROPOSED):
                self._proposals.append({"proposal": message.id, "change": "made"})
            elif kind.startswith(CLOSING) or (
                kind.startswith(FULFILLING) and CORRELATED in message.data
            ):
                about = correlated(message.data).about[:1]
                self._proposals += [{"proposal": one, "change": "decided"} for one in about]
            elif kind.startswith(RIGHTS):
                self._rights = True
        if self._timer is None or self._presence or self._proposals or self._rights:
            self._publish()

    def _publish(self) -> None:
        if self._timer is None:
            self._timer = self._loop.call_later(NEWS_SECONDS, self._wake)
        told = {
            "presence": self._presence,
            "proposals": self._proposals,
            "rights": self._rights,
            "talk": self._talk,
        }
        seq = self._seq
        self._begin()
        try:
            self._bus.emit(self._subject, {"seq": seq, **told})
        except e.BusError:
            # Messages are stored: whoever missed it reads the room.
            return

    def _wake(self) -> None:
        self._timer = None
        if self._seq:
            self._publish()

    def end(self) -> None:
        """Publish what is left; the room is here no more."""
        if self._seq:
            self._publish()
        if self._timer is not None:
            self._timer.cancel()
