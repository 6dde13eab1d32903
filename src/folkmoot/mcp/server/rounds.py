"""Rounds: a service's wishes for input, put to a client of the handshake era as questions.

Clients of the stateless era get such a wish as it is, and come back. For the others we ask, and
make the request again with what they said.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from folkmoot.core.message import ErrorObject, Response
from folkmoot.mcp.eras.questions import QUESTION_SECONDS
from folkmoot.mcp.eras.rounds import (
    FIRST_PAUSE,
    LONGEST_PAUSE,
    MOST_ROUNDS,
    Question,
    input_refused,
    read_questions,
)
from folkmoot.mcp.eras.table import Refusal
from folkmoot.mcp.wire import COMPLETE, INPUT_REQUIRED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from folkmoot.mcp.server.service import Answer, Asked

__all__ = ["QUESTION_SECONDS", "Question", "in_rounds"]

Perform: TypeAlias = "Callable[[Asked], Awaitable[Answer]]"
"""Makes the request."""
Put: TypeAlias = "Callable[[Sequence[Question]], Awaitable[list[Response]]]"
"""Puts questions to the client; the answers are in the same order."""


async def in_rounds(asked: Asked, perform: Perform, put: Put) -> Answer:
    """The answer to a request once its client has said all that the service wants to know."""
    params = asked.params
    for turn in range(MOST_ROUNDS + 1):
        answer = await perform(asked)
        wish = answer.result
        kind = wish.get("resultType", COMPLETE) if type(wish) is dict else COMPLETE
        if kind == COMPLETE:
            return answer
        if kind != INPUT_REQUIRED:
            raise Refusal.RESULT_TYPE.error()
        if turn == MOST_ROUNDS:
            break
        questions = read_questions(wish, asked.capabilities)
        if not questions:
            await asyncio.sleep(min(FIRST_PAUSE * 2**turn, LONGEST_PAUSE))
        answers = await put(questions) if questions else []
        asked.params = {**params, "inputResponses": dict(map(read_answer, questions, answers))}
        if "requestState" in wish:
            asked.params["requestState"] = wish["requestState"]
    raise Refusal.ROUNDS.error(rounds=MOST_ROUNDS)


def read_answer(question: Question, answer: Response) -> tuple[str, Any]:
    """A client's answer under the key of its question."""
    if isinstance(answer.error, ErrorObject):
        raise input_refused(answer.error)
    return question.key, answer.result
