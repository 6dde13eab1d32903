"""Rounds: a backend's wishes for input, put to a handshake client as questions.

Clients of the stateless era get such a wish as it is, and come back. For the others we ask, and
make the request again with what they said.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from folkmoot.core.errors import EraNotBridged
from folkmoot.core.message import ErrorObject, Request, Response
from folkmoot.mcp.eras.questions import offers
from folkmoot.mcp.eras.rounds import FIRST_PAUSE, LONGEST_PAUSE, MOST_QUESTIONS, MOST_ROUNDS
from folkmoot.mcp.eras.table import Refusal
from folkmoot.mcp.wire import COMPLETE, INPUT_REQUIRED, NEEDED, members_of

if TYPE_CHECKING:
    from collections.abc import Sequence

QUESTION_SECONDS: Final = 300.0
"""How long a client may think about what it was asked."""


class Question(NamedTuple):
    """What a backend wants to know, under the key that it knows the answer by."""

    key: str
    method: str
    params: dict[str, Any]


Ask: TypeAlias = Callable[[dict[str, Any]], Awaitable[Response]]
"""Makes the request, with these params."""
Put: TypeAlias = "Callable[[Sequence[Question]], Awaitable[list[Response]]]"
"""Puts questions to the client; the answers are in the same order."""


async def in_rounds(
    params: dict[str, Any], ask: Ask, put: Put, capabilities: dict[str, Any]
) -> Response:
    """The answer to a request once its client has said all that the backend wants to know."""
    given = params
    for turn in range(MOST_ROUNDS + 1):
        response = await ask(given)
        wish = response.result
        kind = wish.get("resultType", COMPLETE) if type(wish) is dict else COMPLETE
        if kind == COMPLETE:
            return response
        if kind != INPUT_REQUIRED:
            raise Refusal.RESULT_TYPE.error()
        if turn == MOST_ROUNDS:
            break
        questions = read_questions(wish, capabilities)
        if not questions:
            await asyncio.sleep(min(FIRST_PAUSE * 2**turn, LONGEST_PAUSE))
        answers = await put(questions) if questions else []
        given = {**params, "inputResponses": dict(map(read_answer, questions, answers))}
        if "requestState" in wish:
            given["requestState"] = wish["requestState"]
    raise Refusal.ROUNDS.error(rounds=MOST_ROUNDS)


def read_questions(wish: dict[str, Any], capabilities: dict[str, Any]) -> list[Question]:
    """The questions of a wish; `EraNotBridged` if this client cannot be asked one of them."""
    wanted = members_of(wish.get("inputRequests"))
    if len(wanted) > MOST_QUESTIONS:
        raise Refusal.ROUNDS.error(questions=MOST_QUESTIONS)
    questions = []
    for key, each in wanted.items():
        method, params = members_of(each).get("method"), members_of(members_of(each).get("params"))
        if type(method) is not str or method not in NEEDED:
            raise Refusal.INPUT_UNKNOWN.error()
        if not offers(capabilities, Request(id=key, method=method, params=params)):
            raise EraNotBridged(
                f"It needs {method} from the client, which this client does not support.",
                needs=NEEDED[method],
            )
        questions.append(Question(key, method, params))
    return questions


def read_answer(question: Question, answer: Response) -> tuple[str, Any]:
    """A client's answer under the key of its question."""
    if isinstance(answer.error, ErrorObject):
        told = {"code": answer.error.code, "message": answer.error.message}
        raise Refusal.INPUT_REFUSED.error(answer=told)
    return question.key, answer.result
