"""Calls: what stateless clients have asked of a handshake server, and it has not answered.

What the server asks during a call are its `ParkedQuestions`. The call is answered with a wish for
input and the server's own call stays open; whoever repeats the request with the state that we gave
takes up that call again. The state cannot be guessed, because several clients may share one server.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Protocol

from folkmoot.core.entity import Entity
from folkmoot.core.message import (
    MessageId,
    Notification,
    Request,
    Response,
    replace,
    same_id,
)
from folkmoot.mcp import wire
from folkmoot.mcp.eras.steps import OwnIds, Step, ToClient, ToServer
from folkmoot.mcp.eras.table import EraRefusal
from folkmoot.mcp.wire import cancellation, members_of, meta_of, params_of, refusal


class ForwardedCall:
    """A request of a stateless client's that the server has not answered."""

    def __init__(self, request: Request) -> None:
        self.method = request.method
        self.server_id: MessageId | None = None
        """The id that the server knows it by, once it was sent, and the token of its progress."""
        self.server_token: Any = None
        self.early: Request | None = None
        """The request itself where the server got it before it was initialised."""
        self.parked: Parked | None = None
        self.take(request)

    def take(self, request: Request) -> None:
        """Make this request the one that gets the answer."""
        meta = meta_of(request)
        self.client_id = request.id
        self.client_token = meta.get("progressToken")
        self.capabilities = members_of(meta.get(wire.CAPABILITIES_KEY))
        self.level = wire.level_of(meta.get(wire.LEVEL_KEY))

    def wants(self, place: int) -> bool:
        """Whether its client wants to hear log messages of a level."""
        return self.level is not None and self.level <= place

    def send(self, server_id: MessageId) -> None:
        """Note that the request was sent to the server."""
        self.server_id = server_id
        self.server_token = self.client_token


class ForwardedCalls(Entity):
    """The open calls, by the ids that the server knows."""

    ids: OwnIds
    _calls: dict[MessageId, ForwardedCall] = {}

    @property
    def full(self) -> bool:
        """Whether no more are taken."""
        return len(self._calls) >= wire.MOST_OPEN

    def add(self, call: ForwardedCall, message_id: MessageId) -> MessageId:
        """The id to send a call under: its own, unless the server still knows that."""
        server_id = message_id if message_id not in self._calls else self.ids.next()
        self._calls[server_id] = call
        call.send(server_id)
        return server_id

    def adopt(self, request: Request) -> None:
        """Take over a request that the server got before it was initialised."""
        call = self._calls[request.id] = ForwardedCall(request)
        call.send(request.id)
        call.early = request

    def server_id(self, message_id: MessageId) -> MessageId | None:
        """The id by which the server knows the call that a client has under this one."""
        for server_id, call in self._calls.items():
            if same_id(call.client_id, message_id):
                return server_id
        return None

    def answered(self, answer: Response) -> ForwardedCall | None:
        """The call that an answer is for, which is open no more."""
        return None if answer.id is None else self._calls.pop(answer.id, None)

    def drop(self, call: ForwardedCall) -> None:
        """Wait for the answer to a call no more."""
        if call.server_id is not None and self._calls.get(call.server_id) is call:
            del self._calls[call.server_id]

    def cancel(self, notice: Notification) -> Notification | None:
        """A client's cancellation as the server understands it, if there is something to cancel."""
        cancelled = params_of(notice).get("requestId")
        for server_id, call in list(self._calls.items()):
            if same_id(call.client_id, cancelled) and call.parked is None:
                del self._calls[server_id]
                return _naming(notice, "requestId", server_id)
        return None

    def asking(self) -> list[ForwardedCall]:
        """The calls during which a server may ask something, the newest first."""
        return [call for call in reversed(self._calls.values()) if call.method in wire.ASKING]

    def progress(self, notice: Notification) -> list[Step]:
        """Progress under the token that the client waits with, if it waits."""
        token = params_of(notice).get("progressToken")
        for call in self._calls.values():
            if token is not None and same_id(call.server_token, token):
                if call.parked is not None or call.client_token is None:
                    return []
                told = _naming(notice, "progressToken", call.client_token)
                return [ToClient(told, about=call.client_id)]
        return [ToClient(notice)]

    def log(self, notice: Notification, about: MessageId | None, *, one_client: bool) -> list[Step]:
        """A log message, if it is wanted, and can be of no more than one client's calls."""
        calls = list(self._calls.values())
        if about is not None:
            calls = [call for call in calls if same_id(call.server_id, about)]
        if not one_client and len(calls) != 1:
            return []
        level = wire.level_of(params_of(notice).get("level"))
        place = len(wire.LEVELS) - 1 if level is None else level
        wanted = any(call.parked is None and call.wants(place) for call in calls)
        only = calls[0].client_id if len(calls) == 1 else None
        return [ToClient(notice, about=only)] if wanted else []


def _naming(notice: Notification, member: str, name: Any) -> Notification:
    if same_id(params_of(notice).get(member), name):
        return notice
    return replace(notice, params=params_of(notice) | {member: name})


QUESTION_SECONDS: Final = 300.0
"""How long a client may take to answer what it was asked."""
MOST_PARKED: Final = 256
"""Calls that may wait for their clients; for more, the oldest is given up."""
MOST_ASKED: Final = 16


class Expirable(Protocol):
    """Something that waits for a client."""

    since: float | None
    """A time at which it was waiting already, once one is known."""


class Parked(Entity):
    """A call whose client was asked: with what, what came since, and the state it was given."""

    call: ForwardedCall
    state: str
    asked: dict[str, Request]
    later: list[Request] = []
    answer: Response | None = None
    since: float | None = None


class Orphan(Entity):
    """A question that came outside of any call."""

    question: Request
    since: float | None = None


class ParkedQuestions(Entity):
    """The calls that wait for their clients, and the questions that wait for a call."""

    token: Callable[[], str]
    _parked: dict[str, Parked] = {}
    _orphans: list[Orphan] = []

    def keep(self, question: Request) -> list[Step]:
        """Keep a question that came outside of any call for the next one to bring the answer."""
        if len(self._orphans) >= MOST_ASKED:
            return unanswered([question], EraRefusal.NOT_ANSWERED)
        self._orphans.append(Orphan(question))
        return []

    def due(self, call: ForwardedCall) -> list[Request]:
        """The kept questions that this call is to bring the answers to."""
        if not self._orphans or call.method not in wire.ASKING:
            return []
        due = [each for each in self._orphans if offers(call.capabilities, each.question)]
        self._orphans = [each for each in self._orphans if each not in due]
        return [each.question for each in due]

    def ask(self, call: ForwardedCall, requests: list[Request]) -> tuple[Step, list[Parked]]:
        """Answer a call with questions; beside it the calls that are given up for it."""
        asked = {str(place): request for place, request in enumerate(requests, 1)}
        parked = Parked(call, self.token(), asked)
        call.parked = self._parked[parked.state] = parked
        wanted = {key: _as_input(request) for key, request in asked.items()}
        result = {
            wire.RESULT_TYPE: wire.INPUT_REQUIRED,
            "inputRequests": wanted,
            wire.REQUEST_STATE: parked.state,
        }
        spare = list(self._parked.values())[: max(0, len(self._parked) - MOST_PARKED)]
        return ToClient(Response(id=call.client_id, result=result)), spare

    def take(self, state: Any, method: str) -> Parked | None:
        """The call that a repeated request takes up again."""
        parked = self._parked.get(state) if type(state) is str else None
        return self.drop(parked) if parked is not None and parked.call.method == method else None

    def drop(self, parked: Parked) -> Parked:
        """Have a call wait no more."""
        parked.call.parked = None
        return self._parked.pop(parked.state)

    def withdraw(self, message_id: Any) -> None:
        """Take back a question that the server does not want answered any more."""
        self._orphans = [
            each for each in self._orphans if not same_id(each.question.id, message_id)
        ]
        for parked in self._parked.values():
            parked.asked = {
                key: asked
                for key, asked in parked.asked.items()
                if not same_id(asked.id, message_id)
            }
            parked.later = [asked for asked in parked.later if not same_id(asked.id, message_id)]

    def expired(self, now: float) -> tuple[list[Parked], list[Request]]:
        """The calls and the questions that have waited for too long."""
        calls = [parked for parked in self._parked.values() if is_late(parked, now)]
        late = [each for each in self._orphans if is_late(each, now)]
        self._orphans = [each for each in self._orphans if each not in late]
        return calls, [each.question for each in late]


def give_up(parked: Parked) -> list[Step]:
    """Tell the server that a call it asks something for has no client any more."""
    steps = unanswered([*parked.asked.values(), *parked.later], EraRefusal.NOT_ANSWERED)
    if parked.call.server_id is not None and parked.answer is None:
        told = cancellation(parked.call.server_id, "The client did not come back.")
        steps.append(ToServer(told))
    return steps


def unanswered(requests: list[Request], why: EraRefusal) -> list[Step]:
    """Answer questions of the server's with an error."""
    return [ToServer(refusal(request.id, why.error())) for request in requests]


def is_late(waiting: Expirable, now: float) -> bool:
    """Whether someone has waited for too long; the time counts from when this is first asked."""
    if waiting.since is None:
        waiting.since = now
    return now - waiting.since >= QUESTION_SECONDS


def offers(capabilities: dict[str, Any], question: Request) -> bool:
    """Whether a client with these capabilities may be asked this."""
    method, params = question.method, params_of(question)
    offered = capabilities.get(wire.NEEDED[method])
    if type(offered) is not dict:
        return False
    if method == wire.ELICIT:
        by_url = type(offered.get("url")) is dict
        # A client that names no mode means forms.
        return by_url if params.get("mode") == "url" else "form" in offered or not by_url
    return method != wire.SAMPLE or "tools" not in params or type(offered.get("tools")) is dict


def _as_input(request: Request) -> dict[str, Any]:
    wanted: dict[str, Any] = {"method": request.method}
    if type(request.params) is dict:
        wanted["params"] = request.params
    return wanted
