"""The calls that backends have not answered: whose they are, and how they are ended early.

A call is known by the session it came in and by its id there, so nobody ends another's; a question
is known by an id of ours that only the session it was put to can answer.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, Self

import msgspec
from msgspec import UNSET, Struct, UnsetType

from folkmoot.core.errors import InvalidId, TokenInvalid, TooManyInFlight
from folkmoot.core.message import ErrorObject, Response

if TYPE_CHECKING:
    from folkmoot.core.errors import FolkmootError
    from folkmoot.core.message import MessageId
    from folkmoot.tools.model import Caller
    from folkmoot.transports.mcp.exchange import Exchange
    from folkmoot.transports.mcp.sessions import Session

MOST_OF_SESSION: Final = 64
MOST_OF_ACCOUNT: Final = 256
"""Calls that may be open at once, in one session and for one account."""
MOST_QUESTIONS: Final = 64
"""Questions that one session may have waiting."""
ID_BYTES: Final = 12


class Stopped(Exception):
    """A call was ended before it was answered: nobody wants the answer any more."""


class OpenCall:
    """One call, open while it is entered; `stop` ends it wherever it waits, and raises `Stopped`.

    Entered and left by the task that waits for the answer.
    """

    __slots__ = (
        "_caller",
        "_calls",
        "_cancelling",
        "_id",
        "_of_session",
        "_owner",
        "_stopped",
        "_task",
        "_why",
    )

    def __init__(
        self,
        calls: OpenCalls,
        caller: Caller,
        owner: str,
        of_session: dict[MessageId, OpenCall] | None,
        message_id: MessageId,
    ) -> None:
        self._calls = calls
        self._caller = caller
        self._owner = owner
        self._of_session = of_session
        self._id = message_id
        self._stopped = False
        self._why: FolkmootError | None = None
        self._task: asyncio.Task[Any] | None = None
        self._cancelling = 0

    def __enter__(self) -> Self:
        self._task = task = asyncio.current_task()
        if task is not None:
            self._cancelling = task.cancelling()
        self._calls.enter(self._owner, self._of_session, self._id, self)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        task, self._task = self._task, None
        self._calls.leave(self._owner, self._of_session, self._id, self)
        # As a timeout does: whoever else cancels the task still means the task.
        if (
            self._stopped
            and task is not None
            and task.uncancel() <= self._cancelling
            and kind is asyncio.CancelledError
        ):
            raise self._why or Stopped

    def stop(self, why: FolkmootError | None = None) -> None:
        """Have it end now, and be answered with why if there is anyone to hear that."""
        if self._task is not None and not self._stopped:
            self._stopped, self._why = True, why
            self._task.cancel()

    async def recheck(self) -> None:
        """End it if the token that it was made with is good no more."""
        confirm = self._caller.confirm
        if confirm is not None and not await confirm():
            self.stop(TokenInvalid())


class Reply(Struct, frozen=True):
    """A client's answer to a question."""

    class Error(Struct, frozen=True):
        """Why there is none."""

        code: int
        message: str
        data: Any = UNSET

    jsonrpc: str
    id: str
    result: dict[str, Any] | UnsetType = UNSET
    error: Error | UnsetType = UNSET


_reply: msgspec.json.Decoder[Reply] = msgspec.json.Decoder(Reply)


class OpenCalls:
    """All of them. A call costs the same however many others there are."""

    def __init__(
        self, *, of_session: int = MOST_OF_SESSION, of_account: int = MOST_OF_ACCOUNT
    ) -> None:
        self._most_of_session = of_session
        self._most_of_account = of_account
        self._of_account: dict[str, set[OpenCall]] = {}
        self._calls: dict[str, dict[MessageId, OpenCall]] = {}
        self._questions: dict[str, dict[str, asyncio.Future[Response]]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._of_account.values()))

    def open(self, exchange: Exchange, message_id: MessageId) -> OpenCall:
        """A call to be entered; raises the refusal of one too many, or of an id that is in use."""
        account = exchange.caller.account
        owner = account.id if account is not None else ""
        ours = self._check(exchange.session, owner, message_id)
        return OpenCall(self, exchange.caller, owner, ours, message_id)

    def enter(
        self,
        owner: str,
        of_session: dict[MessageId, OpenCall] | None,
        message_id: MessageId,
        call: OpenCall,
    ) -> None:
        """Count a call that was begun."""
        self._of_account.setdefault(owner, set()).add(call)
        if of_session is not None:
            of_session[message_id] = call

    def leave(
        self,
        owner: str,
        of_session: dict[MessageId, OpenCall] | None,
        message_id: MessageId,
        call: OpenCall,
    ) -> None:
        """A call has ended."""
        left = self._of_account[owner]
        left.discard(call)
        if not left:
            del self._of_account[owner]
        if of_session is not None:
            del of_session[message_id]

    def _check(
        self, session: Session | None, owner: str, message_id: MessageId
    ) -> dict[MessageId, OpenCall] | None:
        """The open calls of the session, which has room for one more under this id."""
        if len(self._of_account.get(owner, ())) >= self._most_of_account:
            raise TooManyInFlight(
                f"You have {self._most_of_account} calls to backends open at once; "
                "wait until one is answered."
            )
        if session is None:
            return None
        ours = self._calls.setdefault(session.id, {})
        if message_id in ours:
            raise InvalidId("A request with this id is already open.")
        if len(ours) >= self._most_of_session:
            raise TooManyInFlight(
                f"This session has {self._most_of_session} calls to backends open at once; "
                "wait until one is answered."
            )
        return ours

    def cancel(self, session: Session, message_id: MessageId) -> bool:
        """End a call of this session; whether it has one by this id."""
        call = self._calls.get(session.id, {}).get(message_id)
        if call is None:
            return False
        call.stop()
        return True

    async def recheck(self, account_id: str) -> None:
        """End the calls of an account whose token is good no more, or that is no more."""
        for call in tuple(self._of_account.get(account_id, ())):
            await call.recheck()

    def end(self, session: Session) -> None:
        """End every call of a session that has ended."""
        for call in tuple(self._calls.pop(session.id, {}).values()):
            call.stop()

    def give_up(self, why: FolkmootError) -> None:
        """End every call there is, and say why."""
        for call in tuple(chain.from_iterable(self._of_account.values())):
            call.stop(why)

    @asynccontextmanager
    async def question(
        self, session: Session
    ) -> AsyncIterator[tuple[str, asyncio.Future[Response]]]:
        """An id for a question to this session, and its answer once there is one."""
        ours = self._questions.setdefault(session.id, {})
        if len(ours) >= MOST_QUESTIONS:
            raise TooManyInFlight("Too many questions wait for this client's answers.")
        question_id = f"folkmoot-{secrets.token_hex(ID_BYTES)}"
        answer: asyncio.Future[Response] = asyncio.get_running_loop().create_future()
        ours[question_id] = answer
        try:
            yield question_id, answer
        finally:
            del ours[question_id]
            if not ours and self._questions.get(session.id) is ours:
                del self._questions[session.id]

    def take(self, session: Session, body: bytes) -> bool:
        """Take what a client of this session POSTed, if it answers a question of ours."""
        ours = self._questions.get(session.id)
        if not ours:
            return False
        try:
            reply = _reply.decode(body)
        except (ValueError, RecursionError):
            return False
        waiting = ours.get(reply.id)
        if waiting is None or (reply.result is UNSET) is (reply.error is UNSET):
            return False
        if not waiting.done():
            waiting.set_result(answer_of(reply))
        return True


def answer_of(reply: Reply) -> Response:
    """A client's answer as everyone else knows one."""
    if isinstance(reply.error, Reply.Error):
        error = ErrorObject(reply.error.code, reply.error.message, reply.error.data)
        return Response(id=reply.id, error=error)
    return Response(id=reply.id, result=reply.result)
