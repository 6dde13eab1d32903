"""Open requests and proposals of this program, each until its answer or outcome."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import Struct

from folkmoot.client.model import Message, Progress, failed
from folkmoot.core import errors as e
from folkmoot.core.entity import Entity

OnProgress: TypeAlias = Callable[[Progress], None]


class Question(Struct):
    """One open request, by the id of its message."""

    answer: asyncio.Future[Any]
    on_progress: OnProgress | None = None
    private: bool = False
    """Whether the answer comes on this connection alone, and goes with it."""


class Questions(Entity):
    """The requests that wait for an answer."""

    _open: dict[str, Question] = {}

    def __len__(self) -> int:
        return len(self._open)

    def open(
        self, id_: str, on_progress: OnProgress | None = None, *, private: bool = False
    ) -> asyncio.Future[Any]:
        """Wait for the answer to a request that is about to be sent."""
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._open[id_] = Question(answer, on_progress, private)
        return answer

    def close(self, id_: str) -> None:
        """Wait no more."""
        question = self._open.pop(id_, None)
        if question is not None:
            question.answer.cancel()

    def hear_answer(self, message: Message) -> None:
        """Complete the request that a message answers, if it is one of ours."""
        for id_ in message.correlation_id:
            question = self._open.pop(id_, None)
            if question is None:
                continue
            if "error" in message.payload:
                _raise(question.answer, failed(message.payload["error"]))
            else:
                _answer(question.answer, message.payload.get("result"))

    def hear_private(self, id_: str, answer: Any) -> None:
        """The hub answered this program alone: with a value, or with an error."""
        question = self._open.pop(id_, None)
        if question is None:
            return
        if isinstance(answer, e.FolkmootError):
            _raise(question.answer, answer)
        else:
            _answer(question.answer, answer)

    def hear_progress(self, message: Message) -> None:
        """A request came further."""
        for id_ in message.correlation_id:
            question = self._open.get(id_)
            if question is None or question.on_progress is None:
                continue
            try:
                told = msgspec.convert(message.payload.get("params"), Progress)
            except msgspec.ValidationError:
                continue
            try:
                question.on_progress(told)
            except Exception as error:  # noqa: BLE001 - raised where the request is awaited
                _raise(question.answer, error)

    def hold(self) -> None:
        """The connection is gone, and with it the answers that are told to it alone."""
        lost = e.AnswerLost("The connection was lost before the hub's answer came.")
        for id_ in [id_ for id_, question in self._open.items() if question.private]:
            _raise(self._open.pop(id_).answer, lost)

    def fail(self, error: e.FolkmootError, *, but: frozenset[str] = frozenset()) -> None:
        """No answer comes any more, save to those that were not yet sent."""
        for id_ in [id_ for id_ in self._open if id_ not in but]:
            _raise(self._open.pop(id_).answer, error)


def _raise(answer: asyncio.Future[Any], error: Exception) -> None:
    """Fail a request; whoever made it may have given up in the same moment, and that is fine."""
    if not answer.done():
        answer.set_exception(error)
        answer.exception()


def _answer(answer: asyncio.Future[Any], value: Any) -> None:
    if not answer.done():
        answer.set_result(value)


State: TypeAlias = Literal["fulfilled", "rejected", "withdrawn", "expired"]

CANCELLED = (
    "The request was cancelled by the participant who approved the proposal, "
    "before it was answered."
)


class Outcome(Struct, frozen=True):
    """What came of a proposal."""

    state: State
    by: str
    """Who fulfilled, rejected or withdrew it; the gateway where it expired."""
    result: Any = None
    """What the fulfilment was answered with."""
    error: e.RequestFailed | None = None
    """Why the fulfilment failed, if it did."""
    reason: str | None = None
    """Why it was rejected."""

    @property
    def is_done(self) -> bool:
        """Whether it was fulfilled, and without an error."""
        return self.state == "fulfilled" and self.error is None


class Proposal(Entity):
    """A proposal this program made."""

    message: Message
    ended: asyncio.Future[Outcome]

    @property
    def id(self) -> str:
        """What fulfilments, rejections and withdrawals name."""
        return self.message.id

    async def outcome(self) -> Outcome:
        """Wait for the outcome; an ended session is raised."""
        return await asyncio.shield(self.ended)

    def __repr__(self) -> str:
        return f"Proposal({self.id!r}, {self.message.kind})"


class _Open(Struct):
    ended: asyncio.Future[Outcome]
    rejections: int = 0
    fulfilled_by: str | None = None


class MadeProposals(Entity):
    """The proposals of which nothing has come yet."""

    _open: dict[str, _Open] = {}
    _fulfilments: dict[str, str] = {}
    """The request that fulfils a proposal, and which."""
    quorum: int = 1

    def __len__(self) -> int:
        return len(self._open)

    def open(self, id_: str) -> asyncio.Future[Outcome]:
        """Watch a proposal that is about to be sent."""
        ended: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self._open[id_] = _Open(ended)
        return ended

    def close(self, id_: str) -> None:
        """Stop watching a proposal that was refused."""
        self._open.pop(id_, None)

    def hear_request(self, message: Message) -> None:
        """A request may fulfil a proposal."""
        for id_ in message.correlation_id:
            if id_ in self._open:
                self._open[id_].fulfilled_by = message.sender
                self._fulfilments[message.id] = id_

    def hear_answer(self, message: Message) -> None:
        """An answer may be the one to a fulfilment."""
        for request in message.correlation_id:
            proposal = self._fulfilments.pop(request, None)
            if proposal is None:
                continue
            error = message.payload.get("error")
            if error is None:
                self._end(proposal, "fulfilled", result=message.payload.get("result"))
            else:
                self._end(proposal, "fulfilled", error=failed(error))

    def hear_cancelled(self, message: Message) -> None:
        """A cancelled request may be a fulfilment; it gets no answer then."""
        for request in message.correlation_id:
            proposal = self._fulfilments.pop(request, None)
            if proposal is not None:
                self._end(proposal, "fulfilled", error=failed({"message": CANCELLED}))

    def hear_rejected(self, message: Message) -> None:
        """Someone said no; with a quorum, several must."""
        for id_ in message.correlation_id:
            proposal = self._open.get(id_)
            if proposal is None:
                continue
            proposal.rejections += 1
            if proposal.rejections >= self.quorum:
                self._end(id_, "rejected", message.sender, reason=message.payload.get("reason"))

    def hear_withdrawn(self, message: Message) -> None:
        """A proposal was taken back."""
        for id_ in message.correlation_id:
            self._end(id_, "withdrawn", message.sender)

    def hear_expired(self, message: Message) -> None:
        """The time of a proposal was over."""
        for id_ in message.correlation_id:
            self._end(id_, "expired", message.sender)

    def fail(self, error: e.FolkmootError, *, but: frozenset[str] = frozenset()) -> None:
        """Nothing is heard of them any more, save of those that were not yet sent."""
        for id_ in [id_ for id_ in self._open if id_ not in but]:
            self.lose(id_, error)
        self._fulfilments.clear()

    def lose(self, id_: str, error: e.FolkmootError) -> None:
        """Nothing is heard of one of them any more."""
        proposal = self._open.pop(id_, None)
        if proposal is not None and not proposal.ended.done():
            proposal.ended.set_exception(error)
            # Nobody need ever ask.
            proposal.ended.exception()

    def _end(self, id_: str, state: State, by: str = "", **more: Any) -> None:
        proposal = self._open.pop(id_, None)
        if proposal is not None and not proposal.ended.done():
            proposal.ended.set_result(Outcome(state, by or proposal.fulfilled_by or "", **more))
