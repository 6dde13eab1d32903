"""Rounds: a backend's wishes for input, put to a handshake client as questions.

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

__all__ = ["QUESTION_SECONDS", "Question", "in_rounds"]

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


def read_answer(question: Question, answer: Response) -> tuple[str, Any]:
    """A client's answer under the key of its question."""
    if isinstance(answer.error, ErrorObject):
        raise input_refused(answer.error)
    return question.key, answer.result
