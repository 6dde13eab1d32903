"""StatelessClient: between clients of the stateless era and a server of the handshake one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from folkmoot.core import errors as e
from folkmoot.core.entity import Entity
from folkmoot.core.message import (
    ErrorObject,
    MessageId,
    Notification,
    ProtocolMessage,
    Request,
    Response,
    replace,
    same_id,
)
from folkmoot.mcp import wire
from folkmoot.mcp.eras.calls import (
    MOST_ASKED,
    ForwardedCall,
    ForwardedCalls,
    Parked,
    ParkedQuestions,
    give_up,
    offers,
    unanswered,
)
from folkmoot.mcp.eras.shapes import (
    UNKNOWN_PEER,
    as_handshake,
    discover_result,
    for_stateless,
)
from folkmoot.mcp.eras.steps import OwnIds, Step, ToClient, ToServer
from folkmoot.mcp.eras.subscriptions import StatelessSubscriptions
from folkmoot.mcp.eras.table import UNBRIDGED, EraRefusal
from folkmoot.mcp.wire import error_answer, members_of, meta_of, params_of, refusal

UNDISCOVERED: Final = "The server speaks the handshake era: begin with initialize."


class StatelessClient(Entity):
    """Says in the handshake era what stateless clients say, and the other way round.

    Unless there is `one_client`, a question or a log message is passed on only where the call it
    belongs to is known, or there is a single one: what one client's server says must not reach
    another. `server/discover` is answered in the server's place where the server is `discoverable`.
    With `native_tasks`, clients speak of tasks as the server does, and all of that passes.
    """

    ids: OwnIds
    initialized: dict[str, Any]
    offered: dict[str, Any]
    """The capabilities that the handshake was made with."""
    token: Callable[[], str]
    one_client: bool
    discoverable: bool = True
    native_tasks: bool = False

    def __post_init__(self) -> None:
        self._refused = frozenset() if self.native_tasks else UNBRIDGED
        self._discovered = discover_result(self.initialized, tasks=self.native_tasks)
        self._server = self.initialized.get("serverInfo", UNKNOWN_PEER)
        capabilities = members_of(self.initialized.get("capabilities"))
        self._logs = "logging" in capabilities
        self._level = len(wire.LEVELS)
        self._calls = ForwardedCalls(self.ids)
        self._questions = ParkedQuestions(self.token)
        self._listens = StatelessSubscriptions(self.ids, capabilities)
        self._requests: Mapping[str, Callable[[Request], list[Step]]] = {
            wire.INITIALIZE: _refuse_handshake,
            wire.DISCOVER: self._discover,
            wire.LISTEN: self._listens.open,
        }
        self._notices: Mapping[str, Callable[[Notification], list[Step]]] = {
            wire.PROGRESS: self._calls.progress,
            wire.CANCELLED: self._withdraw,
            wire.UPDATED: self._listens.tell,
            **dict.fromkeys(wire.CHANGES, self._listens.tell),
            wire.ELICITED: _drop,
            **({} if self.native_tasks else {wire.TASK_STATUS: _drop}),
        }

    def server_id(self, message_id: MessageId) -> MessageId | None:
        """The id by which the server knows a client's request, if it has it."""
        return self._calls.server_id(message_id)

    def adopt(self, request: Request) -> None:
        """Take over a request that the server got before it was initialised."""
        self._calls.adopt(request)

    def from_client(self, message: ProtocolMessage) -> list[Step]:
        """The steps that follow a message of the client."""
        if isinstance(message, Response):
            return []
        if isinstance(message, Notification):
            return (
                self._cancel(message) if message.method == wire.CANCELLED else [ToServer(message)]
            )
        version = meta_of(message).get(wire.VERSION_KEY, wire.STATELESS_VERSION)
        if version != wire.STATELESS_VERSION:
            return [ToClient(_unsupported(message, version))]
        if message.method in self._refused:
            return [ToClient(refusal(message.id, EraRefusal.TASKS.error()))]
        handle = self._requests.get(message.method)
        return handle(message) if handle is not None else self._call(message)

    def from_server(self, message: ProtocolMessage, about: MessageId | None = None) -> list[Step]:
        """The steps that follow a message of the server; `about` is its request."""
        if isinstance(message, Response):
            return self._answer(message)
        if isinstance(message, Request):
            return self._asked(message, about)
        if message.method == wire.LOGGED:
            return self._calls.log(message, about, one_client=self.one_client)
        handle = self._notices.get(message.method)
        return handle(message) if handle is not None else [ToClient(message)]

    def expire(self, now: float) -> list[Step]:
        """Give up the calls whose clients have not come back in time."""
        steps: list[Step] = []
        calls, questions = self._questions.expired(now)
        for parked in calls:
            steps += self._give_up(parked)
        return steps + unanswered(questions, EraRefusal.NOT_ANSWERED)

    def _discover(self, request: Request) -> list[Step]:
        if not self.discoverable:
            # One client of both eras is to find what the others found, whoever came before it.
            return [ToClient(error_answer(request.id, wire.METHOD_NOT_FOUND, UNDISCOVERED))]
        return [ToClient(Response(id=request.id, result=self._discovered))]

    def _call(self, request: Request) -> list[Step]:
        if request.method in wire.ASKING and wire.REQUEST_STATE in params_of(request):
            return self._resume(request)
        if self._calls.full:
            return [ToClient(refusal(request.id, e.TooManyInFlight("Too many requests are open.")))]
        call = ForwardedCall(request)
        due = self._questions.due(call)
        return self._ask(call, due) if due else self._send(call, request)

    def _send(self, call: ForwardedCall, request: Request) -> list[Step]:
        server_id = self._calls.add(call, request.id)
        return [*self._set_level(call.level), ToServer(as_handshake(request, server_id))]

    def _set_level(self, level: int | None) -> list[Step]:
        """Have the server tell what the request that wants most to hear wants to hear."""
        if level is None or not self._logs or level >= self._level:
            return []
        self._level = level
        params = {"level": wire.LEVELS[level]}
        return [ToServer(Request(id=self.ids.next(), method=wire.SET_LEVEL, params=params))]

    def _resume(self, request: Request) -> list[Step]:
        """Take up a call again whose client was asked something."""
        params = params_of(request)
        parked = self._questions.take(params.get(wire.REQUEST_STATE), request.method)
        if parked is None:
            told = "This requestState names no call that waits for input."
            return [ToClient(error_answer(request.id, wire.INVALID_PARAMS, told))]
        call, given = parked.call, members_of(params.get("inputResponses"))
        call.take(request)
        steps: list[Step] = []
        left: list[Request] = []
        for key, asked in parked.asked.items():
            if type(given.get(key)) is dict:
                steps.append(ToServer(Response(id=asked.id, result=given[key])))
            else:
                left.append(asked)
        left += parked.later
        if parked.answer is not None:
            # The server did not wait for what it asked.
            steps += unanswered(left, EraRefusal.NOT_ANSWERED)
            return [*steps, ToClient(self._upgraded(call.method, parked.answer, request.id))]
        if left:
            return steps + self._ask(call, left)
        if call.server_id is None:
            return steps + self._send(call, request)
        return steps + self._set_level(call.level)

    def _ask(self, call: ForwardedCall, questions: list[Request]) -> list[Step]:
        step, spare = self._questions.ask(call, questions)
        steps = [step]
        for parked in spare:
            steps += self._give_up(parked)
        return steps

    def _give_up(self, parked: Parked) -> list[Step]:
        self._questions.drop(parked)
        self._calls.drop(parked.call)
        return give_up(parked)

    def _cancel(self, notice: Notification) -> list[Step]:
        closed = self._listens.close(params_of(notice).get("requestId"))
        if closed is not None:
            return closed
        told = self._calls.cancel(notice)
        return [] if told is None else [ToServer(told)]

    def _answer(self, answer: Response) -> list[Step]:
        call = self._calls.answered(answer)
        if call is None:
            return self._listens.answered(answer) if self.ids.made(answer.id) else []
        if call.parked is not None:
            call.parked.answer = answer
            return []
        if call.early is not None and _to_repeat(call, answer):
            return self.from_client(call.early)
        return [ToClient(self._upgraded(call.method, answer, call.client_id))]

    def _upgraded(self, method: str, answer: Response, message_id: MessageId) -> Response:
        """An answer of the server's as the client wants it, itself where nothing changes."""
        if isinstance(answer.error, ErrorObject):
            same = same_id(answer.id, message_id)
            return answer if same else replace(answer, id=message_id)
        result = for_stateless(method, answer.result, self._server)
        return replace(answer, id=message_id, result=result)

    def _asked(self, question: Request, about: MessageId | None) -> list[Step]:
        """A question of the server's, put to the client whose call it belongs to."""
        if question.method == wire.PING:
            return [ToServer(Response(id=question.id, result={}))]
        if question.method not in wire.NEEDED:
            return unanswered([question], EraRefusal.NOT_ASKED)
        calls = self._calls.asking()
        named = [call for call in calls if about is not None and same_id(call.server_id, about)]
        if not named and not self.one_client and (about is not None or len(calls) != 1):
            return unanswered([question], EraRefusal.NOT_TIED)
        if not calls:
            return self._asked_early(question)
        call = max(named or calls, key=lambda c: (offers(c.capabilities, question), not c.parked))
        if not offers(call.capabilities, question):
            return unanswered([question], EraRefusal.NOT_OFFERED)
        if call.parked is None:
            return self._ask(call, [question])
        if len(call.parked.later) >= MOST_ASKED:
            return unanswered([question], EraRefusal.NOT_ANSWERED)
        call.parked.later.append(question)
        return []

    def _asked_early(self, question: Request) -> list[Step]:
        if offers(self.offered, question):
            return self._questions.keep(question)
        return unanswered([question], EraRefusal.NOT_OFFERED)

    def _withdraw(self, notice: Notification) -> list[Step]:
        self._questions.withdraw(params_of(notice).get("requestId"))
        return []


def _to_repeat(call: ForwardedCall, answer: Response) -> bool:
    """Whether to ask again what a server answered before it was initialised.

    Lenient servers answer then, but tell only what they offer to clients they know nothing of.
    """
    return isinstance(answer.error, ErrorObject) or call.method in wire.CACHEABLE | {wire.DISCOVER}


def _unsupported(request: Request, version: Any) -> Response:
    data = {"supported": [wire.STATELESS_VERSION], "requested": version}
    return error_answer(request.id, wire.VERSION_UNSUPPORTED, "Unsupported protocol version", data)


def _refuse_handshake(request: Request) -> list[Step]:
    return [ToClient(_unsupported(request, params_of(request).get("protocolVersion")))]


def _drop(_: Notification) -> list[Step]:
    return []
