"""Connecting: how one server is reached, by its settings."""

from __future__ import annotations

import shlex
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

from folkmoot.core.errors import ServerUnreachable
from folkmoot.core.session import Era
from folkmoot.core.strict import Limits
from folkmoot.relay.upstream.childlog import ChildLog
from folkmoot.relay.upstream.isolation import isolated
from folkmoot.relay.upstream.secrets import child_environment, headers_of, hide_address
from folkmoot.settings.secretwords import masked_arguments
from folkmoot.telemetry.clean import clean

if TYPE_CHECKING:
    from folkmoot.core.ports import Clock
    from folkmoot.mcp.client.connect import Kind
    from folkmoot.mcp.client.link import Link
    from folkmoot.settings.backends import BackendSpec

LIMITS: Final = Limits(message_bytes=16 * 1024 * 1024, nesting=256, values=250_000)
"""What one message of a server's may ask of us: while we read it, everyone else waits."""
MOST_LISTENS: Final = 256
"""Streams that stay open beside the calls: changed lists, and resources that are watched."""
LONGEST_SHOWN: Final = 200
SHOWN: Final[dict[Kind, str]] = {"streamable": "http", "oldsse": "sse"}
NAMED: Final[dict[str, Kind]] = {"streamable": "streamable", "sse": "oldsse"}


class Connecting:
    """Makes links to one server; what kind of server it is needs to be found out only once."""

    def __init__(
        self,
        spec: BackendSpec,
        clock: Clock,
        environ: Mapping[str, str],
        hidden: Callable[[], Iterable[str]] = tuple,
    ) -> None:
        self._spec = spec
        self._clock = clock
        self._environ = environ
        self._hidden = hidden
        """The hub's own files, which no sandbox shows."""
        self._log = ChildLog(spec.namespace, clock.monotonic)
        hide_address(spec.url)
        self._kind: Kind | None = NAMED.get(spec.transport)
        self._found: Kind | None = None

    @property
    def era(self) -> Era | None:
        """The only era that the server is to be spoken to in; None for any."""
        return None if self._spec.era == "auto" else Era(self._spec.era)

    @property
    def transport(self) -> str:
        """`stdio`, `http` or `sse`."""
        return SHOWN[self._kind or self._found or "streamable"] if self._spec.url else "stdio"

    @property
    def target(self) -> str:
        """The server's address or command, without what may be secret in it."""
        if not self._spec.url:
            return clean(shlex.join(masked_arguments(self._spec.command)), LONGEST_SHOWN)
        from folkmoot.mcp.client.target import HttpTarget

        try:
            return clean(HttpTarget(self._spec.url).shown, LONGEST_SHOWN)
        except ServerUnreachable:
            return "an address that is no URL"

    def confirm(self) -> None:
        """The server was reached as what it was taken for."""
        self._kind = self._kind or self._found
        self._log.forget()

    def told(self, why: str) -> str:
        """Why it is not reached with what it wrote itself, which is for operators alone."""
        words = self._log.telling()
        return f"{why} It wrote: {words}" if why and words else why

    @asynccontextmanager
    async def link(self) -> AsyncIterator[Link]:
        """One link, open while entered. Nothing goes with it but what the settings name."""
        if self._spec.url:
            async with self._web_link() as link:
                yield link
            return
        from folkmoot.mcp.client.stdio import StdioLink

        spec = self._spec
        start = isolated(spec, child_environment(spec.env, self._environ), self._hidden())
        starting = StdioLink(
            start.command,
            self._clock,
            env=start.env,
            cwd=start.cwd,
            limits=LIMITS,
            stderr=self._log,
        )
        try:
            async with starting as link:
                yield link
        except ServerUnreachable as error:
            raise ServerUnreachable(starting.fate or error.message) from None

    @asynccontextmanager
    async def _web_link(self) -> AsyncIterator[Link]:
        from folkmoot.mcp.client.connect import detect
        from folkmoot.mcp.client.oldsse import OldSseLink
        from folkmoot.mcp.client.target import HttpTarget
        from folkmoot.relay.upstream.weblink import BackendLink

        spec = self._spec
        async with HttpTarget(
            spec.url,
            headers=headers_of(spec.headers, self._environ),
            connect_seconds=spec.connect_seconds,
            described=False,
        ) as target:
            kind = self._found = self._kind or await detect(target)
            making: Link
            if kind == "oldsse":
                making = OldSseLink(target, self._clock, pass_on=False, limits=LIMITS)
            else:
                most = spec.most_calls + MOST_LISTENS
                making = BackendLink(target, self._clock, most_open=most, limits=LIMITS)
            async with making as link:
                yield link
