"""Opening: the first words of a conversation, until it shows which era each side speaks.

Both openings pass on what the client says as it is, so that a server of the same era hears nothing
but its client. Only where the answer shows another era, or nothing, do we ask ourselves. What an
answer tells about the era of its server is `Evidence`.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any, TypeAlias

from folkmoot.core import errors as e
from folkmoot.core.message import (
    ErrorObject,
    MessageId,
    Notification,
    ProtocolMessage,
    Request,
    Response,
    same_id,
)
from folkmoot.mcp import wire
from folkmoot.mcp.eras.handshake_client import HandshakeClient
from folkmoot.mcp.eras.shapes import UNKNOWN_PEER, initialize_request, without_tasks
from folkmoot.mcp.eras.stateless_client import StatelessClient
from folkmoot.mcp.eras.steps import OwnIds, Step, ToClient, ToServer
from folkmoot.mcp.eras.table import EraRefusal
from folkmoot.mcp.wire import (
    error_answer,
    is_stateless,
    members_of,
    meta_of,
    params_of,
    refusal,
    request_meta,
    strings_of,
)

STATELESS_CODES = frozenset((wire.HEADER_MISMATCH, wire.CAPABILITY_MISSING))
"""Errors that only a server of the stateless era knows."""


class Evidence(Enum):
    """What is known of a server."""

    HANDSHAKE = "handshake"
    STATELESS = "stateless"
    NONE = "none"


def answer_to_initialize(answer: Response) -> Evidence:
    """A result shows the handshake era, and so does a server that names versions of it."""
    if not isinstance(answer.error, ErrorObject):
        return Evidence.HANDSHAKE
    named = supported_versions(answer.error)
    return Evidence.HANDSHAKE if wire.HANDSHAKE_VERSIONS.intersection(named) else Evidence.NONE


def answer_to_discover(answer: Response) -> Evidence:
    """The era shown by an answer to `server/discover`: stateless, unless it is no such answer."""
    if isinstance(answer.error, ErrorObject):
        shown = _shown_by(answer.error)
        return Evidence.HANDSHAKE if shown is Evidence.NONE else shown
    versions = strings_of(members_of(answer.result).get("supportedVersions"))
    return Evidence.STATELESS if any(map(is_stateless, versions)) else Evidence.HANDSHAKE


def answer_to_stateless(answer: Response) -> Evidence:
    """A result says its type in the stateless era; without it, a lenient server gave it.

    Most errors show nothing: a server that was not initialised says the same as one that does not
    know the method or does not like the params.
    """
    if isinstance(answer.error, ErrorObject):
        return _shown_by(answer.error)
    typed = wire.RESULT_TYPE in members_of(answer.result)
    return Evidence.STATELESS if typed else Evidence.HANDSHAKE


def supported_versions(error: ErrorObject) -> list[str]:
    """The versions a server names in its refusal of one."""
    if error.code != wire.VERSION_UNSUPPORTED:
        return []
    return strings_of(members_of(error.data).get("supported"))


def _shown_by(error: ErrorObject) -> Evidence:
    if error.code in STATELESS_CODES:
        return Evidence.STATELESS
    if error.code != wire.VERSION_UNSUPPORTED:
        return Evidence.NONE
    named = supported_versions(error)
    return Evidence.STATELESS if any(map(is_stateless, named)) else Evidence.HANDSHAKE


class NothingToBridge(Enum):
    """How an opening may end without two eras to bridge."""

    SAME = "same"
    """Both speak one era."""
    OPEN = "open"
    """Nothing is known yet: the next message opens anew."""


Outcome: TypeAlias = NothingToBridge | HandshakeClient | StatelessClient


class _Opening:
    """The base of both openings: an outcome, and the client's messages before it."""

    def __init__(self, ids: OwnIds) -> None:
        self._ids = ids
        self.outcome: Outcome | None = None
        self.held: list[ProtocolMessage] = []
        self.server_version: str | None = None

    def _hold(self, message: ProtocolMessage) -> list[Step]:
        if len(self.held) < wire.MOST_OPEN:
            self.held.append(message)
            return []
        if isinstance(message, Request):
            return [ToClient(refusal(message.id, e.TooManyInFlight("Too many requests are open.")))]
        return []

    def _discover(self, client: Any, capabilities: Any) -> Request:
        meta = request_meta(client, capabilities)
        return Request(id=self._ids.next(), method=wire.DISCOVER, params={"_meta": meta})


class HandshakeOpening(_Opening):
    """A client has sent `initialize`."""

    def __init__(self, ids: OwnIds, request: Request, *, listening: bool) -> None:
        super().__init__(ids)
        self._request = request
        self.listening = listening
        """Whether the client listens for what it did not ask for."""
        self._probing: tuple[MessageId, Response] | None = None
        """The id of our own question, and the answer that led to it."""

    def start(self) -> list[Step]:
        """Pass the client's first words on."""
        return [ToServer(self._request)]

    def from_client(self, message: ProtocolMessage) -> list[Step]:
        """Have the client wait, which shook no hands yet; its answers pass."""
        return [ToServer(message)] if isinstance(message, Response) else self._hold(message)

    def from_server(self, message: ProtocolMessage) -> list[Step]:
        """Look for the answer."""
        if not isinstance(message, Response):
            return [ToClient(message)]
        if self._probing is None and same_id(message.id, self._request.id):
            return self._answered(message)
        if self._probing is not None and same_id(message.id, self._probing[0]):
            return self._probed(message, self._probing[1])
        return [] if self._ids.made(message.id) else [ToClient(message)]

    def _answered(self, answer: Response) -> list[Step]:
        if answer_to_initialize(answer) is Evidence.HANDSHAKE:
            if type(answer.result) is dict:
                self.server_version = answer.result.get("protocolVersion")
            self.outcome = NothingToBridge.SAME
            return [ToClient(answer)]
        params = params_of(self._request)
        client = params.get("clientInfo", UNKNOWN_PEER)
        probe = self._discover(client, without_tasks(params.get("capabilities")))
        self._probing = (probe.id, answer)
        return [ToServer(probe)]

    def _probed(self, answer: Response, refused: Response) -> list[Step]:
        if answer_to_discover(answer) is not Evidence.STATELESS:
            self.outcome = NothingToBridge.OPEN
            return [ToClient(refused)]
        found = answer.result if type(answer.result) is dict else {}
        if wire.STATELESS_VERSION not in strings_of(found.get("supportedVersions")):
            self.outcome = NothingToBridge.OPEN
            return [ToClient(refusal(self._request.id, EraRefusal.VERSIONS.error()))]
        self.server_version = wire.STATELESS_VERSION
        self.outcome = machine = HandshakeClient(self._ids, found, listening=self.listening)
        return machine.initialize(self._request)


class StatelessOpening(_Opening):
    """A client has sent a request of the stateless era. Others may follow it at once."""

    def __init__(
        self,
        ids: OwnIds,
        request: Request,
        token: Callable[[], str],
        *,
        one_client: bool,
        discoverable: bool,
        native_tasks: bool = False,
    ) -> None:
        super().__init__(ids)
        self._meta = meta_of(request)
        self._first = request
        self._token = token
        self._one_client = one_client
        self._discoverable = discoverable
        self._native_tasks = native_tasks
        self._asked: dict[MessageId, Request] = {}
        self._kept: list[tuple[Request, Response]] = []
        """What was answered with what may only mean that the server knows no such era."""
        self._probe: MessageId | None = None
        self._handshake: MessageId | None = None

    def start(self) -> list[Step]:
        """Pass the client's first words on."""
        return self.from_client(self._first)

    def from_client(self, message: ProtocolMessage) -> list[Step]:
        """Pass on what a stateless server could answer, and remember it."""
        if isinstance(message, Request) and message.method == wire.INITIALIZE:
            # A client of both eras that has waited long enough for an answer in this one.
            self.held.insert(0, message)
            self.outcome = NothingToBridge.OPEN
            return self._tell_kept()
        if isinstance(message, Notification) and message.method == wire.CANCELLED:
            self._forget(params_of(message).get("requestId"))
        if self._handshake is not None or len(self._asked) >= wire.MOST_OPEN:
            return self._hold(message)
        if isinstance(message, Request):
            self._asked[message.id] = message
        return [ToServer(message)]

    def from_server(self, message: ProtocolMessage) -> list[Step]:
        """Look for the answers."""
        if isinstance(message, Request) and message.method == wire.PING:
            return [ToServer(Response(id=message.id, result={}))]
        if not isinstance(message, Response) or message.id is None:
            return [ToClient(message)]
        if self._probe is not None and same_id(message.id, self._probe):
            self._probe = None
            return self._judge(answer_to_discover(message))
        if self._handshake is not None and same_id(message.id, self._handshake):
            return self._shaken(message)
        request = self._asked.pop(message.id, None)
        if request is not None:
            return self._answered(request, message)
        return [] if self._late(message) else [ToClient(message)]

    def presume_handshake(self) -> list[Step]:
        """Shake hands with a server that may never have heard of what it was asked."""
        asked, self._asked = self._asked, {}
        for request in asked.values():
            unheard = error_answer(request.id, wire.METHOD_NOT_FOUND, "The server does not answer.")
            self._kept.append((request, unheard))
        return self._judge(Evidence.HANDSHAKE)

    def _late(self, answer: Response) -> bool:
        """Keep an answer to a request taken for unanswered; whether there was such a request."""
        for place, (request, _) in enumerate(self._kept):
            if same_id(request.id, answer.id):
                self._kept[place] = (request, answer)
                return True
        return False

    def _answered(self, request: Request, answer: Response) -> list[Step]:
        evidence = (answer_to_discover if request.method == wire.DISCOVER else answer_to_stateless)(
            answer
        )
        self._kept.append((request, answer))
        if self._only_looks(request) and evidence is Evidence.HANDSHAKE:
            # A client of both eras looks for the one that the server speaks, and goes on in it.
            self.outcome = NothingToBridge.OPEN
            return self._tell_kept()
        return self._judge(evidence)

    def _only_looks(self, request: Request) -> bool:
        """Whether all a client has said is `server/discover`, and the server is to answer it."""
        alone = request is self._first and not self._asked and not self.held
        return not self._discoverable and request.method == wire.DISCOVER and alone

    def _judge(self, evidence: Evidence) -> list[Step]:
        if self._handshake is not None or self._probe is not None:
            # What is asked decides: nobody else could take the answer to it.
            return []
        if evidence is Evidence.STATELESS:
            return self._same()
        if evidence is Evidence.HANDSHAKE:
            request = initialize_request(self._ids.next(), self._meta)
            self._handshake = request.id
            return [ToServer(request)]
        probe = self._discover(
            self._meta.get(wire.CLIENT_KEY) or UNKNOWN_PEER,
            self._meta.get(wire.CAPABILITIES_KEY, {}),
        )
        self._probe = probe.id
        return [ToServer(probe)]

    def _same(self) -> list[Step]:
        self.outcome = NothingToBridge.SAME
        self.server_version = self._meta.get(wire.VERSION_KEY)
        return self._tell_kept()

    def _tell_kept(self) -> list[Step]:
        kept, self._kept = self._kept, []
        return [ToClient(answer) for _, answer in kept]

    def _shaken(self, answer: Response) -> list[Step]:
        if type(answer.result) is not dict:
            if self._answers_anyway(answer):
                return self._same()
            self.outcome = NothingToBridge.OPEN
            return self._tell_kept()
        self.server_version = answer.result.get("protocolVersion")
        offered = members_of(self._meta.get(wire.CAPABILITIES_KEY))
        self.outcome = machine = StatelessClient(
            self._ids,
            answer.result,
            offered,
            self._token,
            one_client=self._one_client,
            discoverable=self._discoverable or self._one_client,
            native_tasks=self._native_tasks,
        )
        steps: list[Step] = [ToServer(Notification(method=wire.INITIALIZED))]
        for request in self._asked.values():
            machine.adopt(request)
        for request, kept in self._kept:
            machine.adopt(request)
            steps += machine.from_server(kept)
        return steps

    def _answers_anyway(self, refused: Response) -> bool:
        """Whether a server that wants no handshake answers without one."""
        if answer_to_discover(refused) is Evidence.STATELESS:
            return True
        return any(not isinstance(kept.error, ErrorObject) for _, kept in self._kept)

    def _forget(self, message_id: Any) -> None:
        self._kept = [kept for kept in self._kept if not same_id(kept[0].id, message_id)]
