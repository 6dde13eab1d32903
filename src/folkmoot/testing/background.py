"""A loop in a thread of its own: what a test reaches by HTTP lives there while the test runs."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager
from typing import Final, Generic, TypeVar

T = TypeVar("T")

STOP_SECONDS: Final = 10.0


class Background(Generic[T]):
    """Holds one context open in a thread, from when it is made until `stop`."""

    def __init__(self, enter: Callable[[], AbstractAsyncContextManager[T]]) -> None:
        self._entered: Future[T] = Future()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._asked: asyncio.Event | None = None
        self._thread = threading.Thread(
            target=self._run, args=(enter,), name="folkmoot-tape", daemon=True
        )
        self._thread.start()
        self.value = self._entered.result()
        """What the context gave."""

    def stop(self) -> None:
        """Leave the context; what goes wrong there is nobody's concern any more."""
        if self._loop is not None and self._asked is not None and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._asked.set)
        self._thread.join(STOP_SECONDS)

    def _run(self, enter: Callable[[], AbstractAsyncContextManager[T]]) -> None:
        try:
            asyncio.run(self._hold(enter))
        except BaseException as error:  # noqa: BLE001 - told to the thread that waits for it
            if not self._entered.done():
                self._entered.set_exception(error)

    async def _hold(self, enter: Callable[[], AbstractAsyncContextManager[T]]) -> None:
        self._loop, self._asked = asyncio.get_running_loop(), asyncio.Event()
        async with enter() as value:
            self._entered.set_result(value)
            await self._asked.wait()
