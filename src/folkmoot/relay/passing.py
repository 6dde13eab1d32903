"""What a hub does with messages as they pass: it records them, and shows them to interceptors."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from folkmoot.core.strict import Limits
from folkmoot.operations.concealment import ConcealingRecorder, conceal
from folkmoot.operations.finder import taken_out
from folkmoot.proxy.chain import Chain
from folkmoot.proxy.held import HeldMessages
from folkmoot.proxy.plugins import load_plugins
from folkmoot.proxy.rules import Rules
from folkmoot.proxy.sessions import SessionLimits, SessionManager
from folkmoot.proxy.tape import Side
from folkmoot.relay.conversation import Talks
from folkmoot.relay.recording import Recording
from folkmoot.relay.steps import Steps
from folkmoot.relay.tap import Tap
from folkmoot.taskgroups import aside

if TYPE_CHECKING:
    from folkmoot.core.ports import Bus, Clock, Interceptor
    from folkmoot.proxy.interceptors.base import Groups
    from folkmoot.settings import Settings

NESTING = 256


class Passing:
    """The recorder and the interceptors of one hub, as its settings have them."""

    def __init__(
        self,
        settings: Settings,
        clock: Clock,
        bus: Bus,
        interceptors: Sequence[Interceptor] = (),
    ) -> None:
        self._settings = settings
        self._given = interceptors
        self._clock = clock
        self._rules: Rules | None = None
        self.held = HeldMessages(clock, bus)
        self.interceptors = Chain()
        """Empty until they are loaded."""
        self._canonical: Callable[[str], str] = str
        self.tap: Tap | None = None
        """What everything said at `/mcp` passes, if there is anything to do."""

    def load(self, canonical: Callable[[str], str], groups: Groups) -> None:
        """Read the rules and load the plugins.

        `canonical` is the one name of a tool, and `groups` has the groups that someone is in.
        """
        self._canonical = canonical
        chosen = self._settings.interceptors
        found: list[Interceptor] = []
        if chosen.rules:
            path = Path(chosen.rules).expanduser()
            self._rules = Rules.load(path, clock=self._clock, canonical=canonical, groups=groups)
            found += self._rules.interceptors
        found += load_plugins(chosen.plugins)
        found += self._given
        self.interceptors = Chain(found, self.held, conceal)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Record, and follow the file of rules, while entered."""
        async with AsyncExitStack() as stack:
            beside = await stack.enter_async_context(aside())
            if self._rules is not None:
                beside.run(self._rules.watch())
            recording = self._recording()
            recorder = None
            if recording.wanted:
                recorder = recording.begin(self._clock, Side("http"), Side("hub"))
                stack.callback(recorder.close)
            if recorder is not None or self.interceptors.interceptors:
                sessions = SessionManager(self._clock, self._session_limits())
                beside.run(sessions.run())
                kept = None if recorder is None else ConcealingRecorder(recorder)
                steps = Steps(self.interceptors, kept, self._clock)
                talks = Talks(sessions, self._clock)
                limits = Limits(self._settings.http.max_body_bytes, NESTING)
                meant = partial(taken_out, canonical=self._canonical)
                self.tap = Tap(steps, talks, limits, meant)
            yield

    def _recording(self) -> Recording:
        chosen = self._settings.record
        return Recording(
            folder=Path(chosen.folder).expanduser() if chosen.folder else None,
            best_effort=chosen.best_effort,
            compress=chosen.compress or None,
            paths=chosen.redact,
            tape_bytes=chosen.tape_bytes,
        )

    def _session_limits(self) -> SessionLimits:
        chosen: Any = self._settings.mcp
        return SessionLimits(
            idle_seconds=chosen.session_idle_seconds,
            absolute_seconds=float("inf"),
            most=chosen.max_sessions,
        )
