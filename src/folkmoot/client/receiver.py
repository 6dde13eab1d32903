"""Passes each received message to the parts of the client that it concerns."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Final, TypeAlias

import msgspec
from msgspec import field

from folkmoot.client.http import refusal
from folkmoot.client.limits import MAX_PARTICIPANTS
from folkmoot.client.model import (
    Gap,
    Me,
    Message,
    Participant,
    Received,
    ServingNotice,
    Waiting,
    Welcome,
)
from folkmoot.client.pending import MadeProposals, Questions
from folkmoot.client.queues import Outbox
from folkmoot.client.service import ToolServer
from folkmoot.core import errors as e
from folkmoot.core.entity import Entity
from folkmoot.core.message import JSONRPC
from folkmoot.mcp.wire import CANCELLED, PROGRESS, TOOLS_LIST

RESUMED: Final = "system.participant.resumed"
LIST_KIND: Final = f"mcp.request.{TOOLS_LIST}"


class MessageReceiver(Entity):
    """Routes each message to its readers, and keeps the state of the room."""

    outbox: Outbox
    questions: Questions
    proposals: MadeProposals
    service: ToolServer
    me: Me = field(default_factory=lambda: Me(""))
    participants: dict[str, Participant] = {}
    credential: str | None = None
    waiting: Waiting = field(default_factory=Waiting)

    @property
    def offers_tools(self) -> bool:
        """Whether this program offers tools."""
        return bool(self.service.tools)

    @property
    def is_needed(self) -> bool:
        """Whether something waits to be heard, so that reading cannot stop."""
        waits = self.outbox or self.questions or self.proposals
        return bool(waits or self.service.tools)

    def welcome(self, welcome: Welcome, *, first: bool) -> None:
        """Who we are, what we may do and who is here: said first, and when rights change."""
        self.me = welcome.you
        listed = {who.id: who for who in welcome.participants}
        is_cut = len(listed) < welcome.participants_total
        self.participants = self.participants | listed if is_cut and not first else listed
        self.outbox.sender = welcome.you.id
        self.proposals.quorum = welcome.quorum
        self.waiting = welcome.waiting
        if first:
            self.service.told_serving(welcome.serving, welcome.waiting)
        if welcome.credential is not None:
            self.credential = welcome.credential

    def receive(self, message: Message) -> None:
        """A message of the history, for the first time and in its order."""
        self.outbox.acknowledge(message)
        handler = HANDLERS.get(".".join(message.base.split(".", 2)[:2]))
        if handler is not None:
            handler(self, message)

    def receive_private(self, heard: Received) -> None:
        """A message for this connection alone."""
        payload = heard.payload or {}
        if heard.kind == "system.serving":
            with suppress(msgspec.ValidationError):
                notice = msgspec.convert(payload, ServingNotice)
                self.service.told_serving(notice, notice)
            return
        if heard.kind == LIST_KIND:
            # The hub asks for someone who lists the tools of all.
            answer = {"jsonrpc": JSONRPC, "id": payload.get("id"), **self.service.listing()}
            kind = f"mcp.response.{TOOLS_LIST}"
            about = {"to": [heard.sender], "correlation_id": [heard.id]}
            self.outbox.whisper({"kind": kind, **about, "payload": answer})
            return
        refused = "error" in payload
        if heard.kind != "room.invite-ack" and not refused:
            return
        for id_ in heard.correlation_id:
            if not refused:
                self.questions.hear_private(id_, payload)
            elif self.outbox.refuse(id_, error := refusal(payload)):
                if error.code == "id_used":
                    self._lose_answer(id_)
            else:
                self.questions.hear_private(id_, error)

    def _lose_answer(self, id_: str) -> None:
        """A message was stored and its echo was missed, so what came of it may be missed too."""
        lost = e.AnswerLost("The answer may be among the messages that were missed.")
        self.questions.hear_private(id_, lost)
        self.proposals.lose(id_, lost)

    def refuse_largest(self) -> None:
        """The hub ended the connection because a message was larger than it reads."""
        self.outbox.refuse_largest()

    def missed(self, gap: Gap, first_seq: int) -> None:
        """Messages are gone for good, and with them perhaps what someone waits for."""
        if gap.reason != "epoch_changed":
            self.outbox.missed(first_seq)
        lost = e.AnswerLost("The answer may be among the messages that were missed.")
        unsent = frozenset(self.outbox)
        self.questions.fail(lost, but=unsent)
        self.proposals.fail(lost, but=unsent)
        self.service.missed()

    def hold(self) -> None:
        """The connection is away; answers for us alone went with it."""
        self.outbox.hold()
        self.questions.hold()
        self.service.hold()

    def flow(self, write: Callable[[bytes], None]) -> None:
        """All that was missed is known: go on."""
        self.outbox.flow(write)
        self.service.flow()

    def fail(self, error: e.FolkmootError) -> None:
        """Nothing more comes."""
        self.outbox.fail(error)
        self.questions.fail(error)
        self.proposals.fail(error)
        self.service.end()

    def _request(self, message: Message) -> None:
        self.proposals.hear_request(message)
        self.service.hear_request(message, self.me.id)

    def _begun(self, message: Message) -> None:
        self.service.hear_begun(message, self.me.id)

    def _answer(self, message: Message) -> None:
        self.questions.hear_answer(message)
        self.proposals.hear_answer(message)
        self.service.hear_ended(message)

    def _notice(self, message: Message) -> None:
        method = message.payload.get("method")
        if method == PROGRESS:
            self.questions.hear_progress(message)
        elif method == CANCELLED:
            self.proposals.hear_cancelled(message)
            self.service.hear_ended(message)

    def _rejected(self, message: Message) -> None:
        self.proposals.hear_rejected(message)

    def _withdrawn(self, message: Message) -> None:
        self.proposals.hear_withdrawn(message)

    def _ended(self, message: Message) -> None:
        if message.kind == "system.proposal.withdrawn":
            self.proposals.hear_withdrawn(message)
        else:
            self.proposals.hear_expired(message)

    def _held(self, message: Message) -> None:
        if message.kind == RESUMED and message.payload.get("participant") == self.me.id:
            self.service.hear_resumed()

    def _presence(self, message: Message) -> None:
        with suppress(msgspec.ValidationError):
            who = msgspec.convert(message.payload.get("participant"), Participant)
            if message.payload.get("event") == "leave":
                self.participants.pop(who.id, None)
            elif len(self.participants) < MAX_PARTICIPANTS:
                self.participants[who.id] = who


Handler: TypeAlias = Callable[[MessageReceiver, Message], None]

HANDLERS: Final[dict[str, Handler]] = {
    "mcp.request": MessageReceiver._request,
    "mcp.response": MessageReceiver._answer,
    "mcp.notification": MessageReceiver._notice,
    "mcpx.begin": MessageReceiver._begun,
    "mcpx.reject": MessageReceiver._rejected,
    "mcpx.withdraw": MessageReceiver._withdrawn,
    "system.proposal": MessageReceiver._ended,
    "system.participant": MessageReceiver._held,
    "system.presence": MessageReceiver._presence,
}
"""The kinds the client itself listens for; of every other one only the author hears."""
