"""Opening: decrypts the mail that comes, and marks it read once the client has it."""

from __future__ import annotations

import asyncio
from typing import Any, Final

import msgspec

from folkmoot.bridge.boxes import read_payload
from folkmoot.bridge.calls import (
    CallInterceptor,
    Envelope,
    answer_in,
    payload_of,
    tool_call,
    with_payload,
)
from folkmoot.bridge.device import Device
from folkmoot.bridge.guarding import PAGES
from folkmoot.bridge.ledger import Ledger
from folkmoot.bridge.marking import Marker
from folkmoot.bridge.modes import BRIDGE
from folkmoot.bridge.peers import Peers
from folkmoot.bridge.reading import GONE, SEALED, PageReader, Read
from folkmoot.core.errors import AnswerInvalid, FolkmootError
from folkmoot.core.message import Response
from folkmoot.core.verdict import CONTINUE, Modify, Verdict
from folkmoot.operations.row import NOTICE, notice_about

MOST_ASKED: Final = 20
"""Unknown correspondents and renamed ones that are looked up for one page; the rest when it is read
again."""
MOST_LOOKED_UP: Final = 1_000
"""Correspondents who are remembered as looked up: if no key is known still, others come first."""


class Asked(msgspec.Struct, frozen=True):
    """A look at mail: whether it is to be marked read."""

    marks: bool


class Opening(CallInterceptor):
    """Has the hub leave mail unread, opens it, and says of each message what it is."""

    name = "bridge-open"

    def __init__(self, device: Device, peers: Peers, ledger: Ledger, marker: Marker) -> None:
        self._device = device
        self._peers = peers
        self._ledger = ledger
        self._marker = marker
        self._looked_up: dict[str, None] = {}

    async def judge(self, envelope: Envelope) -> Verdict:
        """What is to become of the message."""
        call, notes = tool_call(envelope), envelope.context.notes
        if call is not None and call.tool in PAGES:
            await self._device.ready()
            await self._marker.settled()
            peek = call.arguments.get("peek")
            notes[self] = Asked(marks=peek is None or peek is False)
            return Modify(call.with_arguments({**call.arguments, "peek": True}))
        response, asked = answer_in(envelope), notes.get(self)
        if response is not None and asked is not None:
            return await self._answer(response, asked, notes)
        return CONTINUE

    async def _answer(self, response: Response, asked: Asked, notes: dict[Any, Any]) -> Verdict:
        payload = payload_of(response)
        if payload is None:
            return CONTINUE
        messages, thread = payload.get("messages"), payload.get("thread")
        if not isinstance(messages, list):
            raise AnswerInvalid("The hub's answer holds no messages, so it is not shown.")
        other = thread.get("other_handle") if isinstance(thread, dict) else None
        page = await self._read(messages, other if isinstance(other, str) else None)
        payload["messages"] = page.messages
        payload.pop(BRIDGE, None)
        if page.messages:
            # The bridge's own, so that no hub can leave it out.
            payload[NOTICE] = notice_about(
                ("messages",) if thread is None else ("thread", "messages")
            )
        if said := self._said(page, asked):
            payload[BRIDGE] = said
        if asked.marks:
            self._marker.expect(notes, page.incoming)
        return Modify(with_payload(response, payload))

    async def _read(self, messages: list[Any], other: str | None) -> Read:
        unasked = await self._know(messages)
        page = await asyncio.to_thread(self._reader(other, unasked).read, messages)
        if page.renames:
            followed = [await self._follow(*it) for it in sorted(page.renames)[:MOST_ASKED]]
            if any(followed):
                page = await asyncio.to_thread(self._reader(other, unasked).read, messages)
        await asyncio.to_thread(self._remember, page)
        return page

    def _reader(self, other: str | None, unasked: frozenset[str]) -> PageReader:
        return PageReader(self._device.keys, self._device.names, self._ledger, other, unasked)

    async def _know(self, messages: list[Any]) -> frozenset[str]:
        """Learn what the page cannot be read without: who we are, and who is new to us.

        Answers who is new and was not asked about, since there were too many.
        """
        shown = [it for it in messages if isinstance(it, dict)]
        names = self._device.names
        if any(it.get("from_handle") not in names and it.get("to_handle") not in names
               for it in shown):  # fmt: skip
            await self._device.look_again()
        ourselves = self._device.names | {GONE}
        met: dict[str, str | None] = {}
        for message in reversed(shown):
            payload = read_payload(message.get(SEALED))
            if payload is None:
                continue
            for side, key in (("to_handle", None), ("from_handle", payload.sender_public_key)):
                handle = message.get(side)
                if isinstance(handle, str) and handle not in ourselves:
                    met[handle] = key or met.get(handle)
        known = await asyncio.to_thread(self._pinned, set(met))
        new = sorted(met.keys() - known, key=lambda handle: (handle in self._looked_up, handle))
        for handle in new[:MOST_ASKED]:
            self._looked_up[handle] = None
            if len(self._looked_up) > MOST_LOOKED_UP:
                del self._looked_up[next(iter(self._looked_up))]
            try:
                await self._peers.meet(handle, met[handle])
            except FolkmootError:
                # Then no key of theirs is known, which is what will be said of their messages.
                continue
        return frozenset(new[MOST_ASKED:]) - self._looked_up.keys()

    def _pinned(self, handles: set[str]) -> set[str]:
        owner = self._device.owner
        pins = {it: self._ledger.pin_of(owner, it) for it in handles}
        return {it for it, pin in pins.items() if pin is not None and pin.key}

    async def _follow(self, was: str, handle: str) -> bool:
        try:
            return await self._peers.follow(was, handle)
        except FolkmootError:
            return False

    def _remember(self, page: Read) -> None:
        owner = self._device.owner
        with self._ledger.changing():
            for handle, key in page.writers:
                self._ledger.note_letters(owner, handle, key)
            for seen in page.seen:
                if seen.outgoing and seen.digest:
                    self._ledger.note_place(owner, seen.digest, seen.message_id, seen.thread_id)
                self._ledger.note_seen(owner, seen)

    def _said(self, page: Read, asked: Asked) -> dict[str, Any]:
        said: dict[str, Any] = {}
        if self._device.problem:
            said["problem"] = self._device.problem
        if page.refused:
            again = " They count as read now; msg_thread shows them again." if asked.marks else ""
            said["not_shown"] = page.refused
            said["note"] = (
                f"{page.refused} of these messages could not be opened or verified; each says "
                f"why.{again} msg_delete_message removes one permanently."
            )
        return said
