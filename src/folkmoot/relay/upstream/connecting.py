"""Connecting: reaching one server by its settings, and the log of its stderr."""

from __future__ import annotations

import logging
import re
import shlex
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from itertools import groupby
from typing import TYPE_CHECKING, Final

from folkmoot.cluster.lease import boot_time
from folkmoot.core import errors as e
from folkmoot.core.entity import Entity
from folkmoot.core.session import Era
from folkmoot.core.strict import Limits
from folkmoot.relay.upstream.isolation import isolated
from folkmoot.relay.upstream.secrets import child_environment, headers_of, hide_address
from folkmoot.settings.fields import masked_arguments
from folkmoot.telemetry.logs import BACKEND
from folkmoot.telemetry.redaction import clean

if TYPE_CHECKING:
    from folkmoot.core.ports import Clock
    from folkmoot.mcp.client.connect import Kind
    from folkmoot.mcp.client.link import ServerLink
    from folkmoot.mcp.client.stdio import StdioLink
    from folkmoot.mcp.client.target import TokenSource
    from folkmoot.settings.backends import BackendSpec

LIMITS: Final = Limits(message_bytes=16 * 1024 * 1024, nesting=256, values=250_000)
"""What one message of a server's may ask of us: while we read it, everyone else waits."""
MOST_LISTENS: Final = 256
"""Streams that stay open beside the calls: changed lists, and resources that are watched."""
LONGEST_SHOWN: Final = 200


class Connecting(Entity):
    """Makes links to one server; what kind of server it is needs to be found out only once."""

    spec: BackendSpec
    clock: Clock
    environ: Mapping[str, str]
    hidden: Callable[[], Iterable[str]] = tuple
    """The hub's own files, which no sandbox shows."""
    tokens: Callable[[str], TokenSource] | None = None
    """Whose tokens go with the requests of a link, by its owner; None where none are shown."""
    _found: Kind | None = None
    until: Callable[[], float] | None = None
    """Until when a process of it may run at the moment, by `boot_time`; None for ever."""
    _guarded: set[StdioLink] = set()

    def __post_init__(self) -> None:
        self._log = ChildLog(self.spec.namespace, self.clock.monotonic)
        hide_address(self.spec.url)
        self._kind: Kind | None = None if self.spec.transport == "auto" else self.spec.transport

    @property
    def era(self) -> Era | None:
        """The only era that the server is to be spoken to in; None for any."""
        return None if self.spec.era == "auto" else Era(self.spec.era)

    @property
    def transport(self) -> str:
        """`stdio`, `http` or `sse`."""
        return (self._kind or self._found or "http") if self.spec.url else "stdio"

    @property
    def target(self) -> str:
        """The server's address or command, without what may be secret in it."""
        if not self.spec.url:
            return clean(shlex.join(masked_arguments(self.spec.command)), LONGEST_SHOWN)
        from folkmoot.mcp.client.target import HttpTarget

        try:
            return clean(HttpTarget(self.spec.url).shown, LONGEST_SHOWN)
        except e.ServerUnreachable:
            return "an address that is no URL"

    def confirm(self) -> None:
        """Remember that the server has the assumed era and transport."""
        self._kind = self._kind or self._found
        self._log.forget()

    def told(self, why: str) -> str:
        """Why it is not reached with what it wrote itself, which is for operators alone."""
        words = self._log.telling()
        return f"{why} It wrote: {words}" if why and words else why

    @asynccontextmanager
    async def link(self, owner: str = "") -> AsyncIterator[ServerLink]:
        """One link, open while entered.

        Nothing goes with it but what the settings name, and the token of its owner.
        """
        BACKEND.set(self.spec.namespace)
        if self.spec.url:
            async with self._web_link(owner) as link:
                yield link
            return
        from folkmoot.mcp.client.stdio import StdioLink

        spec = self.spec
        until = None if self.until is None else self.until()
        if until is not None and until <= boot_time():
            raise e.ServerUnreachable("It is not to be started here any more.")
        start = isolated(spec, child_environment(spec.env, self.environ), self.hidden())
        starting = StdioLink(
            start.command,
            self.clock,
            env=start.env,
            cwd=start.cwd,
            limits=LIMITS,
            stderr=self._log,
            until=until,
        )
        self._guarded.add(starting)
        try:
            async with starting as link:
                yield link
        except e.ServerUnreachable as error:
            raise e.ServerUnreachable(starting.fate or error.message) from None
        finally:
            self._guarded.discard(starting)

    def extend(self) -> None:
        """Let the processes of it run for as long as they may now."""
        if self.until is not None:
            for link in self._guarded:
                link.extend(self.until())

    @asynccontextmanager
    async def _web_link(self, owner: str) -> AsyncIterator[ServerLink]:
        from folkmoot.mcp.client.connect import detect
        from folkmoot.mcp.client.http import BackendLink
        from folkmoot.mcp.client.oldsse import OldSseLink
        from folkmoot.mcp.client.target import HttpTarget

        spec = self.spec
        async with HttpTarget(
            spec.url,
            headers=headers_of(spec.headers, self.environ),
            connect_seconds=spec.connect_seconds,
            described=False,
            tokens=None if self.tokens is None else self.tokens(owner),
        ) as target:
            kind = self._found = self._kind or await detect(target)
            making: ServerLink
            if kind == "sse":
                making = OldSseLink(target, self.clock, pass_on=False, limits=LIMITS)
            else:
                most = spec.most_calls + MOST_LISTENS
                making = BackendLink(target, self.clock, most_open=most, limits=LIMITS)
            async with making as link:
                yield link


logger = logging.getLogger("folkmoot.backend")

LINES_AT_ONCE: Final = 100.0
LINES_A_SECOND: Final = 20.0
"""More lines than these are counted and left out: a log must not be flooded by one server."""
LONGEST_LINE: Final = 2048

REMEMBERED: Final = 40
"""The last lines that are looked through for why a server ended."""
MOST_TOLD: Final = 2
LONGEST_TOLD: Final = 200

_BESIDE: Final = re.compile(
    r"\s{4}|\s*(?:File \"|[\W_]*$)|Node\.js v|npm (?:notice|warn)|.*complete log|"
    r"The above exception|During handling of the above"
)
"""Frames, code, marks below code, and what programs say after what matters."""
_TELLING: Final = (
    re.compile(r"\b\w*(?:error|exception)\b|\bERR!|\bfatal\b|\bpanic", re.IGNORECASE),
    re.compile(
        r"\b(?:cannot|could not|unable|no such|not found|no \w+ found|denied|refused|required|"
        r"requires|needs|unsupported|missing|invalid|failed)\b",
        re.IGNORECASE,
    ),
    re.compile(""),
)
"""What a line has in it that tells why, the most telling first."""


class ChildLog:
    """Takes the lines of one server's log."""

    def __init__(self, namespace: str, monotonic: Callable[[], float]) -> None:
        self._namespace = namespace
        self._monotonic = monotonic
        self._room = LINES_AT_ONCE
        self._since = monotonic()
        self._left_out = 0
        self._last: deque[str] = deque(maxlen=REMEMBERED)

    def __call__(self, line: bytes) -> None:
        text = line[:LONGEST_LINE].decode("utf-8", "replace").rstrip()
        if not text:
            return
        self._last.append(text)
        if not self._may():
            return
        extra: dict[str, object] = {"backend": self._namespace}
        if self._left_out:
            extra["left_out"], self._left_out = self._left_out, 0
        logger.info("%s", text, extra=extra)

    def forget(self) -> None:
        """The server is there: what it wrote before is of no more use."""
        self._last.clear()

    def telling(self) -> str:
        """The lines that say best why the server ended; empty if it wrote nothing."""
        for pattern in _TELLING:

            def tells(line: str, pattern: re.Pattern[str] = pattern) -> bool:
                return not _BESIDE.match(line) and pattern.search(line) is not None

            blocks = [list(block) for told, block in groupby(self._last, tells) if told]
            if blocks:
                # The last that went wrong, from its beginning: programs often go on to give advice.
                # A server that was started again wrote the same again.
                told = [*dict.fromkeys(line.strip() for line in blocks[-1])]
                told = told[:MOST_TOLD] if pattern.pattern else told[-1:]
                return " ".join(clean(line, LONGEST_TOLD) for line in told)
        return ""

    def _may(self) -> bool:
        now = self._monotonic()
        self._room = min(LINES_AT_ONCE, self._room + (now - self._since) * LINES_A_SECOND)
        self._since = now
        if self._room < 1.0:
            self._left_out += 1
            return False
        self._room -= 1.0
        return True
