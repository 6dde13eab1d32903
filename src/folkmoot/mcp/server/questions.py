"""Questions to a client: what a service wants to know before it answers a request.

A client of the handshake era is asked in the stream of its request, and the request is made again
with its answers, in as many rounds as the service wants.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from folkmoot.core import errors as e
from folkmoot.core.message import ErrorObject, Response, members
from folkmoot.mcp import wire
from folkmoot.mcp.eras.calls import QUESTION_SECONDS
from folkmoot.mcp.eras.rounds import (
    FIRST_PAUSE,
    LONGEST_PAUSE,
    MOST_ROUNDS,
    InputQuestion,
    input_refused,
    read_questions,
)
from folkmoot.mcp.eras.table import EraRefusal
from folkmoot.mcp.server.service import McpAnswer, McpRequest, written
from folkmoot.mcp.server.streams import Weight
from folkmoot.mcp.wire import cancellation

if TYPE_CHECKING:
    from collections.abc import Iterator

    from folkmoot.mcp.server.direct import ServedRequest
    from folkmoot.mcp.server.sessions import HandshakeSession

MOST_QUESTIONS: Final = 64
"""Questions that one session may have waiting."""
ID_BYTES: Final = 12

Perform: TypeAlias = "Callable[[McpRequest], Awaitable[McpAnswer]]"


async def in_rounds(session: HandshakeSession, asked: McpRequest, perform: Perform) -> McpAnswer:
    """The answer to a request once its client has said all that the service wants to know."""
    params = asked.params
    for turn in range(MOST_ROUNDS + 1):
        answer = await perform(asked)
        wish = answer.result
        kind = wish.get(wire.RESULT_TYPE, wire.COMPLETE) if type(wish) is dict else wire.COMPLETE
        if kind == wire.COMPLETE:
            return answer
        if kind != wire.INPUT_REQUIRED:
            raise EraRefusal.RESULT_TYPE.error()
        if turn == MOST_ROUNDS:
            break
        questions = read_questions(wish, asked.capabilities)
        if not questions:
            await asyncio.sleep(min(FIRST_PAUSE * 2**turn, LONGEST_PAUSE))
        answers = await put_questions(session, asked, questions) if questions else []
        asked.params = {**params, "inputResponses": dict(map(read_answer, questions, answers))}
        if wire.REQUEST_STATE in wish:
            asked.params[wire.REQUEST_STATE] = wish[wire.REQUEST_STATE]
    raise EraRefusal.ROUNDS.error(rounds=MOST_ROUNDS)


def read_answer(question: InputQuestion, answer: Response) -> tuple[str, Any]:
    """A client's answer under the key of its question."""
    if isinstance(answer.error, ErrorObject):
        raise input_refused(answer.error)
    return question.key, answer.result


async def put_questions(
    session: HandshakeSession, asked: McpRequest, questions: Sequence[InputQuestion]
) -> list[Response]:
    """Put questions to the client of a session, in the stream of the request they are for.

    The answers are in the same order.
    """
    visit: ServedRequest = asked.caller
    reply = asked.reply
    with ExitStack() as stack:
        waiting: dict[str, asyncio.Future[Response]] = {}
        for question in questions:
            question_id, answer = stack.enter_context(asking(session))
            waiting[question_id] = answer
            reply.say(members(question.request(question_id)), Weight.QUESTION)
        leaving = asyncio.ensure_future(visit.leaving.wait())
        answering = asyncio.ensure_future(all_of(waiting.values()))
        try:
            await asyncio.wait(
                (leaving, answering),
                timeout=QUESTION_SECONDS,
                return_when=asyncio.FIRST_COMPLETED,
            )
            if answering.done():
                return answering.result()
            if leaving.done():
                raise visit.ending or e.HubStopping("The hub is stopping.")
            for question_id, answer in waiting.items():
                if not answer.done():
                    notice = cancellation(question_id, "It took too long.")
                    reply.say(written(notice), Weight.QUESTION)
            raise e.EraNotBridged("The client did not answer what it was asked.")
        finally:
            leaving.cancel()
            answering.cancel()


@contextmanager
def asking(session: HandshakeSession) -> Iterator[tuple[str, asyncio.Future[Response]]]:
    """An id for a question to a session, and its answer once there is one."""
    if len(session.questions) >= MOST_QUESTIONS:
        raise e.TooManyInFlight("Too many questions wait for this client's answers.")
    question_id = f"folkmoot-{secrets.token_hex(ID_BYTES)}"
    answer: asyncio.Future[Response] = asyncio.get_running_loop().create_future()
    session.questions[question_id] = answer
    try:
        yield question_id, answer
    finally:
        del session.questions[question_id]


async def all_of(waiting: Iterable[Awaitable[Response]]) -> list[Response]:
    """Every answer, in order; the first error is enough."""
    answers: list[Response] = []
    for each in waiting:
        answer = await each
        answers.append(answer)
        if isinstance(answer.error, ErrorObject):
            break
    return answers
