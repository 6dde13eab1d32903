"""Requests this program made, each until its answer comes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeAlias

import msgspec
from msgspec import Struct

from folkmoot.client.model import Message, Progress, failed
from folkmoot.core.errors import AnswerLost, FolkmootError

OnProgress: TypeAlias = Callable[[Progress], None]


class Question(Struct):
    """One request, by the id of its message."""

    answer: asyncio.Future[Any]
    on_progress: OnProgress | None = None
    private: bool = False
    """Whether the answer comes on this connection alone, and goes with it."""


class Questions:
    """The requests that wait for an answer."""

    def __init__(self) -> None:
        self._open: dict[str, Question] = {}

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
        """An answer came, perhaps to one of these."""
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
        if isinstance(answer, FolkmootError):
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
        lost = AnswerLost("The connection was lost before the hub's answer came.")
        for id_ in [id_ for id_, question in self._open.items() if question.private]:
            _raise(self._open.pop(id_).answer, lost)

    def fail(self, error: FolkmootError, *, but: frozenset[str] = frozenset()) -> None:
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
