"""Rounds: a stateless server's wishes for input, put to a handshake client as questions.

A server that wants input answers the request with its questions and a state. Each question goes to
the client as a request of the server's; with the last answer, the request is made again.
"""

from __future__ import annotations

from typing import Any, Final

from folkmoot.core.errors import EraNotBridged
from folkmoot.core.message import ErrorObject, MessageId, Request, Response
from folkmoot.mcp.eras.steps import Ids, Step, ToClient
from folkmoot.mcp.eras.table import Refusal
from folkmoot.mcp.wire import ELICIT, NEEDED, cancellation, members_of

MOST_ROUNDS: Final = 10
"""How often a server may want input for one request, as the official clients have it."""
MOST_QUESTIONS: Final = 64
"""Questions in one wish for input."""
FIRST_PAUSE: Final = 0.05
LONGEST_PAUSE: Final = 0.25


class Call:
    """A request of the client's that the server has not answered for good."""

    def __init__(self, request: Request, server_id: MessageId) -> None:
        self.request = request
        self.server_id = server_id
        self.rounds = 0
        self.state: Any = None
        self.answers: dict[str, Any] = {}
        self.questions: dict[str, str] = {}
        """The ids of the questions that the client has, and what the server calls each."""


class Rounds:
    """The questions that clients have, and the calls they belong to."""

    def __init__(self, ids: Ids) -> None:
        self._ids = ids
        self._calls: dict[str, Call] = {}

    def ask(self, call: Call, wanted: dict[str, Any]) -> list[Step]:
        """Put a server's questions to the client; `EraNotBridged` if that cannot be done.

        No steps mean that there is nothing to ask: the request can be made again.
        """
        call.rounds += 1
        if call.rounds > MOST_ROUNDS:
            raise Refusal.ROUNDS.error(rounds=MOST_ROUNDS)
        questions = members_of(wanted.get("inputRequests"))
        if len(questions) > MOST_QUESTIONS:
            raise Refusal.ROUNDS.error(questions=MOST_QUESTIONS)
        asked = [(key, *_question(question)) for key, question in questions.items()]
        call.state = wanted.get("requestState")
        call.answers = {}
        steps: list[Step] = []
        for key, method, params in asked:
            message_id = self._ids.next()
            if method == ELICIT and params.get("mode") == "url":
                # Handshake clients want an id of it; stateless servers give none.
                params = {"elicitationId": message_id, **params}
            call.questions[message_id] = key
            self._calls[message_id] = call
            steps.append(ToClient(Request(id=message_id, method=method, params=params)))
        return steps

    def take(self, answer: Response) -> tuple[Call, EraNotBridged | None] | None:
        """The call that a client's answer belongs to, and why that failed if it did."""
        call = self._calls.pop(answer.id, None) if type(answer.id) is str else None
        if call is None or type(answer.id) is not str:
            return None
        key = call.questions.pop(answer.id)
        if isinstance(answer.error, ErrorObject):
            told = {"code": answer.error.code, "message": answer.error.message}
            return call, Refusal.INPUT_REFUSED.error(error=told)
        call.answers[key] = answer.result
        return call, None

    def withdraw(self, call: Call) -> list[Step]:
        """Take back the questions of a call that nobody waits for any more."""
        asked, call.questions = call.questions, {}
        for message_id in asked:
            del self._calls[message_id]
        return [ToClient(cancellation(asked_id, "The call is over.")) for asked_id in asked]


def pause(call: Call) -> float:
    """How long to wait before a request is made again although there was nothing to ask."""
    return 0.0 if call.answers else min(FIRST_PAUSE * 2 ** (call.rounds - 1), LONGEST_PAUSE)


def _question(question: Any) -> tuple[str, dict[str, Any]]:
    method = members_of(question).get("method")
    if type(method) is not str or method not in NEEDED:
        raise Refusal.INPUT_UNKNOWN.error()
    return method, members_of(members_of(question).get("params"))
