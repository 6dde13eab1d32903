"""Reads a page of mail: decrypts and verifies each message, and marks it read once delivered."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Final, TypeAlias

import msgspec
from msgspec import field

from folkmoot.bridge.calls import Envelope, SideHub
from folkmoot.bridge.crypto import (
    Letter,
    LetterUnreadable,
    Payload,
    digest,
    fingerprint,
    read_letter,
    read_payload,
    unseal,
)
from folkmoot.bridge.identity import (
    BRIDGE,
    E2E,
    NOT_VERIFIED,
    PINNED,
    SERVER_ASSISTED,
    VERIFIED,
    Warn,
    mark,
)
from folkmoot.bridge.keys import Keys
from folkmoot.bridge.ledger import Ledger, PinnedKey, SeenLetter
from folkmoot.bridge.limits import MARK_SECONDS, MAX_CLOCK_SKEW, MAX_NAME, MAX_PAGES_TO_MARK
from folkmoot.core import errors as e
from folkmoot.core.entity import Entity
from folkmoot.core.message import Response

GONE: Final = "[deleted]"
"""What stands for someone who deleted their account."""
SEALED: Final = "encrypted_payload"


class Refused(Exception):
    """A message is not what it is said to be; the words say why."""


class ReadPage(msgspec.Struct):
    """A page of opened messages, with the marks and receipts that follow from it."""

    messages: list[dict[str, Any]]
    seen: list[SeenLetter]
    incoming: dict[str, list[str]]
    """By thread, the messages to the reader that were shown, also those that do not open."""
    refused: int = 0
    renames: set[tuple[str, str]] = msgspec.field(default_factory=set)
    """Handles that writers used, and the ones the hub shows in their place."""
    writers: set[tuple[str, str]] = msgspec.field(default_factory=set)
    """Who wrote letters, by handle and key, and so reads them too."""


class PageMessage(msgspec.Struct, frozen=True):
    """One message of a page, if it can be decoded."""

    id: str
    thread_id: str
    peer: str
    outgoing: bool
    payload: Payload | None


class OpenedBox(msgspec.Struct, frozen=True):
    """The content of a valid box, and the notes about it."""

    body: str
    digest: str
    pin: PinnedKey
    bound: bool
    known: bool
    """Whether it is certain which of the two wrote it."""
    notes: tuple[str, ...]


class PageReader(Entity):
    keys: Keys
    names: frozenset[str]
    ledger: Ledger
    other: str | None = None
    """With whom the whole page is said to be, where it is one thread."""
    unasked: frozenset[str] = frozenset()
    """Correspondents whose key was not asked for yet: what does not open may open later."""
    _boxes: dict[str, str] = {}
    _threads: dict[str, str] = {}
    _renames: set[tuple[str, str]] = set()

    def __post_init__(self) -> None:
        self._owner = self.keys.current.public

    def read(self, messages: Sequence[Any]) -> ReadPage:
        """Open a page; each message gets the bridge's note."""
        page = ReadPage([], [], {}, renames=self._renames)
        # The oldest first, so that of two that are one it is the earlier that counts.
        for message in reversed(messages):
            page.messages.append(self._shown(message, page))
        page.messages.reverse()
        return page

    def _shown(self, message: Any, page: ReadPage) -> dict[str, Any]:
        given = message if isinstance(message, dict) else {}
        shown = {name: it for name, it in given.items() if name not in (BRIDGE, SEALED)}
        try:
            found = self._found(given)
        except Refused as refused:
            page.refused += 1
            note_incoming(page, given.get("thread_id"), given.get("id"))
            return refusal(shown, str(refused))
        box: str | None = None
        peer_key = ""
        if given.get(SEALED) is None and isinstance(given.get("body"), str):
            shown["encryption_mode"] = SERVER_ASSISTED
            shown[BRIDGE] = mark(SERVER_ASSISTED, note=self._readable_to_hub(given, found))
        elif given.get(SEALED) is None:
            page.refused += 1
            said = given.get("error")
            shown = refusal(shown, said if isinstance(said, str) else "The hub gave no text.")
        else:
            try:
                opened = self._open(found, given)
            except Refused as refused:
                page.refused += 1
                shown = refusal(shown, str(refused))
            else:
                box, peer_key = opened.digest, opened.pin.key
                shown = revealed(shown, opened)
                if opened.bound and not found.outgoing:
                    page.writers.add((found.peer, peer_key))
        page.seen.append(
            SeenLetter(box, found.id, found.thread_id, found.peer, found.outgoing, peer_key)
        )
        later = shown["body"] is None and found.peer in self.unasked
        if not found.outgoing and not later:
            note_incoming(page, found.thread_id, found.id)
        return shown

    def _found(self, given: dict[str, Any]) -> PageMessage:
        names = ("id", "thread_id", "from_handle", "to_handle")
        texts = [given.get(name) for name in names]
        if not all(map(is_name, texts)):
            raise Refused("The hub's account of this message cannot be understood.")
        message_id, thread_id, sender, recipient = map(str, texts)
        mine = (sender in self.names, recipient in self.names)
        if mine[0] is mine[1]:
            raise Refused("The hub shows a message that is neither to you nor from you.")
        outgoing = mine[0]
        payload = read_payload(given.get(SEALED))
        peer = recipient if outgoing else sender
        return PageMessage(message_id, thread_id, peer, outgoing, payload)

    def _readable_to_hub(self, given: dict[str, Any], found: PageMessage) -> str:
        notes = ["The hub could read this message."]
        if given.get("encryption_mode") == E2E:
            notes.append("It says that it could not, and handed over the text.")
        pin = self.ledger.pin_of(self._owner, found.peer)
        if pin is not None and pin.key and not found.outgoing:
            notes.append(f"@{found.peer} has a key, and this was not sealed with it.")
        return " ".join(notes)

    def _open(self, found: PageMessage, given: dict[str, Any]) -> OpenedBox:
        if found.payload is None:
            raise Refused("What the hub calls sealed is not a box.")
        box = digest(found.payload)
        self._check_place(found, box)
        opened = self._open_own if found.outgoing else self._open_theirs
        content, pin, notes = opened(found, found.payload, box)
        known = found.outgoing and self.ledger.was_sent(self._owner, box)
        try:
            letter = read_letter(content)
        except LetterUnreadable as why:
            raise Refused(f"It opens, but {why}.") from None
        if bound := isinstance(letter, Letter):
            notes += self._check_letter(letter, found, given)
        elif not known:
            notes.append(
                f"You or @{found.peer} sealed this. Which of you, when and as an answer to what, "
                "the box does not say: that is the hub's word."
            )
        self._boxes[box] = found.id
        self._threads[found.thread_id] = found.peer
        return OpenedBox(
            letter.body if isinstance(letter, Letter) else letter,
            box,
            pin,
            bound=bound,
            known=bound or known,
            notes=tuple(notes),
        )

    def _check_place(self, found: PageMessage, box: str) -> None:
        """Refuse a box that was seen as another message, or a message that was another box."""
        first = self.ledger.by_digest(self._owner, box)
        if first is not None and first.outgoing and not found.outgoing:
            raise Refused(f"These are your own words, handed back as if from @{found.peer}.")
        if first is not None and found.outgoing and not first.outgoing:
            raise Refused(f"These are the words of @{first.peer}, shown as if they were yours.")
        known = (first.message_id if first else None) or self._boxes.get(box, found.id)
        if known != found.id:
            raise Refused(f"This is message {known} again, shown as a new one.")
        before = self.ledger.by_id(self._owner, found.id)
        if before is not None and before.digest not in (None, box):
            raise Refused("This message is not the one that was shown under its id before.")
        others = self.ledger.peers_in(self._owner, found.thread_id)
        others |= {self._threads[found.thread_id]} if found.thread_id in self._threads else set()
        if self.other is not None:
            others |= {self.other}
        wrong = sorted(it for it in others - {found.peer, GONE} if not self._one(it, found.peer))
        if wrong and found.peer != GONE:
            raise Refused(f"The hub shows it in the conversation with @{wrong[0]}.")

    def _open_theirs(
        self, found: PageMessage, payload: Payload, _: str
    ) -> tuple[bytes, PinnedKey, list[str]]:
        key = payload.sender_public_key
        if self.keys.own(key) is not None:
            raise Refused(
                f"It was sealed with your own key, and is shown as if from @{found.peer}."
            )
        pins = self.ledger.pins_of(self._owner, found.peer)
        pin = next((pin for pin in pins if pin.key == key), None)
        if pin is None:
            raise Refused(mismatch(found.peer, pins, key))
        for own in self.keys.all:
            if (content := unseal(own, key, payload)) is not None:
                past = f"It was sealed with a key that @{found.peer} had before."
                return content, pin, [] if pin.until is None else [past]
        raise Refused(
            "It does not open with this device's key: it was sealed for another, or changed."
        )

    def _open_own(
        self, found: PageMessage, payload: Payload, box: str
    ) -> tuple[bytes, PinnedKey, list[str]]:
        own = self.keys.own(payload.sender_public_key)
        if own is None:
            raise Refused("It is shown as yours, and was not sealed with a key of yours.")
        first = self.ledger.by_digest(self._owner, box)
        pins = {pin.key: pin for pin in self.ledger.pins_of(self._owner, found.peer) if pin.key}
        if first is not None and first.peer_key:
            pins.setdefault(first.peer_key, PinnedKey(found.peer, first.peer_key, 0))
        for key, pin in pins.items():
            if (content := unseal(own, key, payload)) is not None:
                return content, pin, []
        raise Refused(f"It does not open with any key that @{found.peer} had.")

    def _check_letter(self, letter: Letter, found: PageMessage, given: dict[str, Any]) -> list[str]:
        """Refuse a letter written for another message; returns the notes on one that fits."""
        notes: list[str] = []
        mine, theirs = (letter.from_, letter.to) if found.outgoing else (letter.to, letter.from_)
        if mine not in self.names:
            raise Refused(f"It was written {'by' if found.outgoing else 'to'} @{mine}, not you.")
        if theirs != found.peer and not (found.outgoing and found.peer == GONE):
            if not self._same(theirs, found.peer):
                self._renames.add((theirs, found.peer))
                way = "to" if found.outgoing else "by"
                raise Refused(f"It was written {way} @{theirs}; the hub shows @{found.peer}.")
            notes.append(f"It names @{theirs}, who is @{found.peer} now.")
        if letter.re != given.get("reply_to"):
            raise Refused("The hub shows it as an answer to another message than it is.")
        at = given.get("created_at")
        if not isinstance(at, int) or abs(at - letter.ts) > MAX_CLOCK_SKEW:
            notes.append(
                f"Its writer dated it {letter.ts}, seconds since 1970, not as the hub does."
            )
        return notes

    def _one(self, handle: str, other: str) -> bool:
        """Whether two handles shared a key, and so belong to one correspondent."""
        keys = [{pin.key for pin in self.ledger.pins_of(self._owner, it)} for it in (handle, other)]
        return bool((keys[0] & keys[1]) - {""})

    def _same(self, was: str, handle: str) -> bool:
        return was == handle or self.ledger.renamed(self._owner, was, handle)


def note_incoming(page: ReadPage, thread_id: Any, message_id: Any) -> None:
    """Mark a message as read once it is handed over, so that it is delivered once."""
    if is_name(thread_id) and is_name(message_id):
        page.incoming.setdefault(thread_id, []).append(message_id)


def is_name(text: Any) -> bool:
    """Whether a value can be an id or a handle."""
    return isinstance(text, str) and 0 < len(text) <= MAX_NAME


def mismatch(peer: str, pins: list[PinnedKey], key: str) -> str:
    """Why a message with this key is not from @peer, as far as this device knows."""
    known = next((pin.key for pin in pins if pin.until is None and pin.key), None)
    if known is None:
        return f"No key of @{peer} is trusted here, and it was sealed with {fingerprint(key)}."
    return (
        f"It was sealed with {fingerprint(key)}, and the key of @{peer} is {fingerprint(known)}: "
        f"@{peer} has another key now, or did not write it. 'folkmoot bridge peers accept @{peer}' "
        "trusts the key that the hub names now."
    )


def refusal(shown: dict[str, Any], reason: str) -> dict[str, Any]:
    """A message that is not shown, and why."""
    return {**shown, "body": None, "error": reason, BRIDGE: mark(NOT_VERIFIED, note=reason)}


def revealed(shown: dict[str, Any], opened: OpenedBox) -> dict[str, Any]:
    """A message with the content of its box."""
    key = VERIFIED if opened.pin.verified else PINNED
    said = mark(E2E, key=key, note=" ".join(opened.notes), bound=opened.bound)
    said["verified"] = opened.pin.verified and opened.known
    cleaned = {name: it for name, it in shown.items() if name != "error"}
    return {**cleaned, "body": opened.body, "encryption_mode": E2E, BRIDGE: said}


ByThread: TypeAlias = dict[str, list[str]]


class Marker(Entity):
    """Marks what was handed over, one page after the other; `run` does the work."""

    hub: SideHub
    warn: Warn
    _handed: asyncio.Queue[ByThread] = field(
        default_factory=lambda: asyncio.Queue(MAX_PAGES_TO_MARK)
    )

    def expect(self, notes: dict[Any, Any], incoming: ByThread) -> None:
        """Mark these once the answer to the request with these notes has been handed over."""
        if incoming:
            notes[self] = incoming

    def handed(self, envelope: Envelope) -> None:
        """A message has been handed to the client."""
        if not isinstance(envelope.message, Response):
            return
        incoming = envelope.context.notes.pop(self, None)
        if incoming is None:
            return
        try:
            self._handed.put_nowait(incoming)
        except asyncio.QueueFull:
            self.warn("too much is to be marked as read at once; some mail stays unread.")

    async def wait_marked(self) -> None:
        """Wait until everything handed over is marked, for a while."""
        try:
            async with asyncio.timeout(MARK_SECONDS):
                await self._handed.join()
        except TimeoutError:
            self.warn("the hub is slow to mark mail as read.")

    async def run(self) -> None:
        """Send read marks until stopped."""
        while True:
            incoming = await self._handed.get()
            try:
                for thread_id, message_ids in incoming.items():
                    await self._mark(thread_id, message_ids)
            finally:
                self._handed.task_done()

    async def _mark(self, thread_id: str, message_ids: list[str]) -> None:
        try:
            await self.hub.call("msg/mark_read", thread_id=thread_id, message_ids=message_ids)
        except e.FolkmootError as error:
            self.warn(f"mail that was read stays unread: {error.message}")
