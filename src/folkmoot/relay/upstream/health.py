"""Health: how it is with a server, since when, and who waits for it to change."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from folkmoot.gateway.ports import BackendState
from folkmoot.relay.upstream.sentences import for_callers

if TYPE_CHECKING:
    from folkmoot.core.ports import Clock

logger = logging.getLogger("folkmoot.backend")

FAILED_SECONDS: Final = 1.0
GRACE_SECONDS: Final = 5.0
"""A server that is reached again at once was never away, as far as its lists tell: it has the first
of these where an attempt to reach it failed meanwhile, else the second, as long as calls wait.
"""
AWAY: Final = frozenset({BackendState.DOWN, BackendState.BROKEN})


class Health:
    """The state of one server. `on_lost` is told once for every time that it stays away.

    `told` adds to the reasons what is for the log alone.
    """

    def __init__(
        self,
        namespace: str,
        clock: Clock,
        on_lost: Callable[[str, str], None],
        told: Callable[[str], str] = str,
    ) -> None:
        self.state = BackendState.STARTING
        self.why = "It has not been reached yet."
        self.since = clock.now()
        self._namespace = namespace
        self._clock = clock
        self._on_lost = on_lost
        self._told = told
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._left_at: float | None = None
        self._away = False
        self._news = asyncio.Event()

    def become(self, state: BackendState, why: str = "") -> None:
        """Be in a state from now on."""
        before = self.state
        if (before, self.why) != (state, why):
            level = logging.WARNING if state in AWAY else logging.INFO
            told = self._told(why) if state in AWAY else why
            extra = {"backend": self._namespace, "state": state.value}
            logger.log(level, "a backend changed", extra=extra | ({"why": told} if told else {}))
        self.why = why
        if state is not before:
            self.state, self.since = state, self._clock.now()
        if state in AWAY:
            self._went(at_once=before is BackendState.STARTING)
        else:
            self.forget()
        self.tell()

    def tell(self) -> None:
        """Wake whoever waits for a change."""
        self._news.set()
        self._news = asyncio.Event()

    async def changed(self, seconds: float) -> None:
        """Wait until something has changed, for so long at most."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._news.wait()

    def forget(self) -> None:
        """Tell of no loss any more."""
        self._away = False
        self._left_at = None
        self._cancel()

    def _cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _went(self, *, at_once: bool) -> None:
        if at_once:
            self._lost()
        elif not self._away:
            patience = GRACE_SECONDS if self._left_at is None else FAILED_SECONDS
            self._left_at = self._left_at or self._loop.time()
            self._cancel()
            self._timer = self._loop.call_at(self._left_at + patience, self._lost)

    def _lost(self) -> None:
        self._timer = None
        if self._away:
            return
        self._away = True
        try:
            self._on_lost(self._namespace, for_callers(self.why))
        except Exception:
            logger.exception("the loss of a backend could not be announced")
