"""Blocking work, each in its own thread, so that none waits for another."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from threading import Event, Thread
from typing import TypeAlias, TypeVar

T = TypeVar("T")

Stoppable: TypeAlias = Callable[[Event], T]
"""Work that ends early, by raising, once the event is set."""


def start(work: Callable[[], T]) -> asyncio.Future[T]:
    """Begin work in a new thread; whoever stops waiting for it leaves it behind."""
    loop = asyncio.get_running_loop()
    outcome: asyncio.Future[T] = loop.create_future()

    def settle(result: T | None, error: BaseException | None) -> None:
        if outcome.done():
            return
        if error is None:
            outcome.set_result(result)  # type: ignore[arg-type]
        else:
            outcome.set_exception(error)

    def body() -> None:
        result, error = None, None
        try:
            result = work()
        except BaseException as raised:  # noqa: BLE001 - whoever waits gets it
            error = raised
        with suppress(RuntimeError):  # The loop is gone, and with it whoever waited.
            loop.call_soon_threadsafe(settle, result, error)

    Thread(target=body, name="folkmoot-store-work", daemon=True).start()
    return outcome


class LongWork:
    """Work that may take minutes: it is stopped when its caller is cancelled, and in the end."""

    def __init__(self) -> None:
        self._running: dict[Event, asyncio.Future[object]] = {}

    async def run(self, work: Stoppable[T]) -> T:
        """Do it in a thread; if cancelled, have it stopped before the caller goes on."""
        stop = Event()
        outcome = start(partial(work, stop))
        self._running[stop] = outcome  # type: ignore[assignment]
        try:
            await asyncio.wait([outcome])
        except asyncio.CancelledError:
            stop.set()
            await asyncio.wait([outcome])
            outcome.exception()
            raise
        finally:
            del self._running[stop]
        return outcome.result()

    async def stop(self) -> None:
        """Stop everything under way and wait until it has."""
        for stop in self._running:
            stop.set()
        if self._running:
            await asyncio.wait(list(self._running.values()))
