"""Rounds: a stateless server's wishes for input, put to a handshake client as questions.

A server that wants input answers the request with its questions and a state. Each question goes to
the client as a request of the server's, if it offers what is asked for; with the last answer, the
request is made again.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from folkmoot.core import errors as e
from folkmoot.core.entity import Entity
from folkmoot.core.message import (
    ErrorObject,
    MessageId,
    Request,
    Response,
)
from folkmoot.mcp.eras.calls import is_late, offers
from folkmoot.mcp.eras.steps import OwnIds, Step, ToClient
from folkmoot.mcp.eras.table import EraRefusal
from folkmoot.mcp.wire import ELICIT, NEEDED, REQUEST_STATE, cancellation, members_of

MOST_ROUNDS: Final = 10
"""How often a server may want input for one request, as the official clients have it."""
MOST_QUESTIONS: Final = 64
FIRST_PAUSE: Final = 0.05
LONGEST_PAUSE: Final = 0.25


class InputQuestion(NamedTuple):
    """What a server wants to know, under the key that it knows the answer by."""

    key: str
    method: str
    params: dict[str, Any]

    def request(self, message_id: str) -> Request:
        """The question as a request to a handshake client."""
        params = self.params
        if self.method == ELICIT and params.get("mode") == "url":
            # Handshake clients want an id of it; stateless servers give none.
            params = {"elicitationId": message_id, **params}
        return Request(id=message_id, method=self.method, params=params)


class PendingRequest(Entity):
    """A request of the client's that the server has not answered for good."""

    request: Request
    server_id: MessageId
    rounds: int = 0
    state: Any = None
    answers: dict[str, Any] = {}
    questions: dict[str, str] = {}
    """The ids of the questions that the client has, and what the server calls each."""
    since: float | None = None


class Rounds(Entity):
    """The questions that clients have, and the calls they belong to."""

    ids: OwnIds
    _calls: dict[str, PendingRequest] = {}

    def ask(
        self, call: PendingRequest, wanted: dict[str, Any], capabilities: dict[str, Any]
    ) -> list[Step]:
        """Put a server's questions to the client; `EraNotBridged` if that cannot be done.

        No steps mean that there is nothing to ask: the request can be made again.
        """
        call.rounds += 1
        if call.rounds > MOST_ROUNDS:
            raise EraRefusal.ROUNDS.error(rounds=MOST_ROUNDS)
        questions = read_questions(wanted, capabilities)
        call.state = wanted.get(REQUEST_STATE)
        call.answers, call.since = {}, None
        steps: list[Step] = []
        for question in questions:
            message_id = self.ids.next()
            call.questions[message_id] = question.key
            self._calls[message_id] = call
            steps.append(ToClient(question.request(message_id), about=call.request.id))
        return steps

    def take(self, answer: Response) -> tuple[PendingRequest, e.EraNotBridged | None] | None:
        """The call that a client's answer belongs to, and why that failed if it did."""
        call = self._calls.pop(answer.id, None) if type(answer.id) is str else None
        if call is None or type(answer.id) is not str:
            return None
        key = call.questions.pop(answer.id)
        if isinstance(answer.error, ErrorObject):
            return call, input_refused(answer.error)
        call.answers[key] = answer.result
        return call, None

    def withdraw(self, call: PendingRequest, reason: str = "The call is over.") -> list[Step]:
        """Take back the questions of a call that nobody waits for any more."""
        asked, call.questions = call.questions, {}
        for message_id in asked:
            del self._calls[message_id]
        return [ToClient(cancellation(each, reason), about=call.request.id) for each in asked]

    def expired(self, now: float) -> list[PendingRequest]:
        """The calls whose clients have had their questions for too long."""
        calls = dict.fromkeys(self._calls.values())
        return [call for call in calls if is_late(call, now)]


def pause(call: PendingRequest) -> float:
    """How long to wait before a request is made again although there was nothing to ask."""
    return 0.0 if call.answers else min(FIRST_PAUSE * 2 ** (call.rounds - 1), LONGEST_PAUSE)


def read_questions(wanted: dict[str, Any], capabilities: dict[str, Any]) -> list[InputQuestion]:
    """The questions in a wish for input; `EraNotBridged` if this client cannot be asked one."""
    asked = members_of(wanted.get("inputRequests"))
    if len(asked) > MOST_QUESTIONS:
        raise EraRefusal.ROUNDS.error(questions=MOST_QUESTIONS)
    questions = []
    for key, each in asked.items():
        method, params = members_of(each).get("method"), members_of(members_of(each).get("params"))
        if type(method) is not str or method not in NEEDED:
            raise EraRefusal.INPUT_UNKNOWN.error()
        if not offers(capabilities, Request(id=key, method=method, params=params)):
            raise EraRefusal.INPUT_NOT_OFFERED.error(method, needs=NEEDED[method])
        questions.append(InputQuestion(key, method, params))
    return questions


def input_refused(error: ErrorObject) -> e.EraNotBridged:
    """Why a call fails whose client answered a question with an error."""
    return EraRefusal.INPUT_REFUSED.error(error={"code": error.code, "message": error.message})
