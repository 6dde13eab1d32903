"""HandshakeClient: between a client of the handshake era and a server of the stateless one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from folkmoot.core import errors as e
from folkmoot.core.message import (
    MessageId,
    Notification,
    ProtocolMessage,
    Request,
    Response,
    replace,
    same_id,
)
from folkmoot.mcp import wire
from folkmoot.mcp.eras.rounds import PendingRequest, Rounds, pause
from folkmoot.mcp.eras.shapes import (
    UNKNOWN_PEER,
    for_handshake,
    initialize_result,
    without_tasks,
)
from folkmoot.mcp.eras.steps import OwnIds, Step, ToClient, ToServer
from folkmoot.mcp.eras.subscriptions import HandshakeSubscription
from folkmoot.mcp.eras.table import UNBRIDGED, EraRefusal
from folkmoot.mcp.wire import (
    error_answer,
    members_of,
    meta_of,
    params_of,
    refusal,
    request_meta,
    speaks_stateless,
)

DEFAULT_LEVEL: Final = "info"
"""What a client hears that never set a level: handshake servers tell something then, too."""
UNTOLD: Final = frozenset((wire.PROGRESS, wire.ROOTS_CHANGED))
"""What a stateless server is not told."""


class HandshakeClient:
    """Says in the stateless era what a handshake client says, and the other way round.

    A client that is not `listening` yet is told of no changes until it is, or subscribes.
    """

    def __init__(self, ids: OwnIds, discovered: dict[str, Any], *, listening: bool = True) -> None:
        self._ids = ids
        self._discovered = discovered
        capabilities = members_of(discovered.get("capabilities"))
        self._level = DEFAULT_LEVEL if "logging" in capabilities else None
        self._client: Any = UNKNOWN_PEER
        self._offered: dict[str, Any] = {}
        self._calls: dict[MessageId, PendingRequest] = {}
        """The open calls, by the id that the server knows."""
        self._rounds = Rounds(ids)
        self._listening = HandshakeSubscription(ids, capabilities, self._meta, open_now=listening)
        self._requests: Mapping[str, Callable[[Request], list[Step]]] = {
            wire.INITIALIZE: self.initialize,
            wire.PING: lambda request: [ToClient(Response(id=request.id, result={}))],
            wire.SET_LEVEL: self._set_level,
            wire.SUBSCRIBE: self._listening.subscribe,
            wire.UNSUBSCRIBE: self._listening.unsubscribe,
        }

    def initialize(self, request: Request) -> list[Step]:
        """Shake hands with the client."""
        params = params_of(request)
        self._client = params.get("clientInfo", UNKNOWN_PEER)
        self._offered = without_tasks(params.get("capabilities"))
        wanted = params.get("protocolVersion")
        known = isinstance(wanted, str) and wanted in wire.HANDSHAKE_VERSIONS
        version: Any = wanted if known else wire.HANDSHAKE_VERSION
        result = initialize_result(self._discovered, version)
        return [ToClient(Response(id=request.id, result=result))]

    def from_client(self, message: ProtocolMessage) -> list[Step]:
        """The steps that follow a message of the client."""
        if isinstance(message, Response):
            return self._input(message)
        if isinstance(message, Notification):
            return self._notice(message)
        if speaks_stateless(message):
            return [ToServer(message)]
        as_task = message.method == wire.TOOLS_CALL and wire.AS_TASK in params_of(message)
        if as_task or message.method in UNBRIDGED:
            return [ToClient(refusal(message.id, EraRefusal.TASKS.error()))]
        handle = self._requests.get(message.method)
        return handle(message) if handle is not None else self._call(message)

    def from_server(self, message: ProtocolMessage, about: MessageId | None = None) -> list[Step]:
        """The steps that follow a message of the server; `about` is its request."""
        if isinstance(message, Response):
            return self._answer(message)
        if isinstance(message, Notification):
            heard = self._listening.hear(message)
            if heard is not None:
                return heard
        call = None if about is None else self._calls.get(about)
        return [ToClient(message, about=None if call is None else call.request.id)]

    def listen(self) -> list[Step]:
        """The client listens now for what it did not ask for."""
        return self._listening.open()

    def renew(self) -> list[Step]:
        """Listen again, since another may be told what the client is told now."""
        return self._listening.renew()

    def expire(self, now: float) -> list[Step]:
        """Give up the calls whose clients have not answered what they were asked."""
        steps: list[Step] = []
        for call in self._rounds.expired(now):
            steps += self._rounds.withdraw(call, "It took too long.")
            steps += self._fail(call, EraRefusal.INPUT_LATE.error())
        return steps

    def _meta(self) -> dict[str, Any]:
        return request_meta(self._client, self._offered, self._level)

    def _call(self, request: Request) -> list[Step]:
        if len(self._calls) >= wire.MOST_OPEN:
            return [ToClient(refusal(request.id, e.TooManyInFlight("Too many requests are open.")))]
        server_id = request.id if request.id not in self._calls else self._ids.next()
        call = self._calls[server_id] = PendingRequest(request, server_id)
        return [ToServer(self._as_stateless(call))]

    def _as_stateless(self, call: PendingRequest, **more: Any) -> Request:
        request = call.request
        if type(request.params) is list:
            return replace(request, id=call.server_id)
        params = params_of(request) | more | {"_meta": meta_of(request) | self._meta()}
        return replace(request, id=call.server_id, params=params)

    def _set_level(self, request: Request) -> list[Step]:
        level = params_of(request).get("level")
        if level not in wire.LEVELS:
            told = f'"level" must be one of {", ".join(wire.LEVELS)}.'
            return [ToClient(error_answer(request.id, wire.INVALID_PARAMS, told))]
        self._level = level
        return [ToClient(Response(id=request.id, result={}))]

    def _notice(self, notice: Notification) -> list[Step]:
        if notice.method == wire.INITIALIZED:
            return self._listening.start()
        if notice.method == wire.CANCELLED:
            return self._cancel(notice)
        return [] if notice.method in UNTOLD else [ToServer(notice)]

    def _cancel(self, notice: Notification) -> list[Step]:
        cancelled = params_of(notice).get("requestId")
        for call in self._calls.values():
            if same_id(call.request.id, cancelled):
                break
        else:
            return [ToServer(notice)]
        del self._calls[call.server_id]
        if call.questions:
            # The server has answered already, with its questions.
            return self._rounds.withdraw(call)
        if same_id(call.server_id, cancelled):
            return [ToServer(notice)]
        params = params_of(notice) | {"requestId": call.server_id}
        return [ToServer(replace(notice, params=params))]

    def _answer(self, answer: Response) -> list[Step]:
        call = self._calls.get(answer.id) if answer.id is not None else None
        if call is None:
            ours = self._ids.made(answer.id)
            return self._listening.answered(answer) if ours else [ToClient(answer)]
        if call.questions:
            # A second answer, which nobody asked for.
            return []
        kind = members_of(answer.result).get(wire.RESULT_TYPE, wire.COMPLETE)
        if kind == wire.INPUT_REQUIRED:
            return self._ask(call, answer.result)
        del self._calls[call.server_id]
        if kind != wire.COMPLETE:
            return [ToClient(refusal(call.request.id, EraRefusal.RESULT_TYPE.error()))]
        result = for_handshake(call.request.method, answer.result)
        if result is answer.result and same_id(call.request.id, answer.id):
            return [ToClient(answer)]
        return [ToClient(replace(answer, id=call.request.id, result=result))]

    def _ask(self, call: PendingRequest, wanted: dict[str, Any]) -> list[Step]:
        try:
            steps = self._rounds.ask(call, wanted, self._offered)
        except e.EraNotBridged as error:
            return self._fail(call, error)
        return steps or self._again(call)

    def _input(self, answer: Response) -> list[Step]:
        taken = self._rounds.take(answer)
        if taken is None:
            return [] if self._ids.made(answer.id) else [ToServer(answer)]
        call, failed = taken
        if failed is not None:
            return self._rounds.withdraw(call) + self._fail(call, failed)
        return [] if call.questions else self._again(call)

    def _again(self, call: PendingRequest) -> list[Step]:
        """Make a request again, with the answers that the server wanted."""
        del self._calls[call.server_id]
        call.server_id = self._ids.next()
        self._calls[call.server_id] = call
        more = {"inputResponses": call.answers} if call.answers else {}
        if call.state is not None:
            more[wire.REQUEST_STATE] = call.state
        return [ToServer(self._as_stateless(call, **more), after=pause(call))]

    def _fail(self, call: PendingRequest, error: e.EraNotBridged) -> list[Step]:
        del self._calls[call.server_id]
        return [ToClient(refusal(call.request.id, error))]
