"""Fleet: the links to all servers behind the hub."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Final

from msgspec import field
from msgspec.structs import replace

from folkmoot.core import errors as e
from folkmoot.core.entity import Entity
from folkmoot.core.session import Era
from folkmoot.gateway.model import Inventory
from folkmoot.gateway.trial import TestReport
from folkmoot.mcp.client.target import UNAUTHORIZED
from folkmoot.relay.upstream.authorization import find
from folkmoot.relay.upstream.backend import LiveBackend
from folkmoot.relay.upstream.connecting import Connecting
from folkmoot.relay.upstream.consents import PersonTokens
from folkmoot.relay.upstream.conversation import BackendConversation
from folkmoot.relay.upstream.inventory import drain
from folkmoot.relay.upstream.links import wait_after
from folkmoot.relay.upstream.model import AppliedChanges, BackendView
from folkmoot.relay.upstream.requests import Late, Unanswered
from folkmoot.relay.upstream.single import HAND_OVER_SECONDS, SingleBackend
from folkmoot.taskgroups import group, uninterrupted
from folkmoot.telemetry.logs import BACKEND

if TYPE_CHECKING:
    from folkmoot.core.ports import Clock
    from folkmoot.gateway.gateway import Gateway
    from folkmoot.gateway.history import ServerHistory
    from folkmoot.relay.upstream.consents import Consents
    from folkmoot.relay.upstream.nodes import BackendNodes
    from folkmoot.settings.backends import BackendSpec

logger = logging.getLogger("folkmoot.backend")

MOST_NAMED: Final = 5

LINKING: Final = (
    "command",
    "url",
    "cwd",
    "user",
    "sandbox",
    "folders",
    "writable_folders",
    "network",
    "env",
    "headers",
    "auth",
    "trusted_issuers",
    "shared",
    "transport",
    "era",
    "connect_seconds",
    "connections",
    "per_user",
    "single",
    "enabled",
)
"""What of the settings cannot change without links being opened anew."""
MOST_HAND_OVER_SECONDS: Final = HAND_OVER_SECONDS + 5.0
"""How long a node that stops waits for its links to be given away, at most."""


class Fleet(Entity):
    """All backends, each in its own task, so that none affects another."""

    gateway: Gateway
    clock: Clock
    environ: Mapping[str, str] | None = None
    hidden: Callable[[], Iterable[str]] = tuple
    """The hub's own files, which no sandbox shows."""
    consents: Consents | None = None
    """Whose tokens go with the links of servers that want their own sign-in."""
    backends: dict[str, LiveBackend] = {}
    _tasks: asyncio.TaskGroup | None = None
    _running: dict[str, asyncio.Task[None]] = {}
    _applying: asyncio.Lock = field(default_factory=asyncio.Lock)
    _nodes: BackendNodes | None = None
    """The other nodes of the hub, if there can be any."""

    def __post_init__(self) -> None:
        self._environ = os.environ if self.environ is None else self.environ
        if self.consents is not None:
            self.consents.on_change = self._consent_changed

    def _consent_changed(self, namespace: str, owner: str, change: str) -> None:
        for backend in self.backends.values():
            if namespace in ("*", backend.spec.namespace):
                if change == "consented":
                    backend.signed_in(owner)
                elif change == "removed":
                    backend.signed_out(owner)

    def share(self, nodes: BackendNodes) -> None:
        """Have some servers linked by one node for all, as their settings say."""
        self._nodes = nodes
        nodes.serve(self._single, self.restart)

    def _single(self, namespace: str) -> SingleBackend | None:
        backend = self.backends.get(namespace)
        return backend if isinstance(backend, SingleBackend) else None

    async def hand_over(self) -> None:
        """Give the servers that this node links for all to others, from now on."""
        if self._nodes is None:
            return
        self._nodes.leaving.set()
        with suppress(TimeoutError):
            async with asyncio.timeout(MOST_HAND_OVER_SECONDS):
                for backend in tuple(self.backends.values()):
                    if isinstance(backend, SingleBackend):
                        await backend.unlinked.wait()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Fleet]:
        """Have links for as long as entered; everything has ended on leaving."""
        async with group() as tasks:
            self._tasks = tasks
            try:
                yield self
            finally:
                self._tasks = None
                for task in self._running.values():
                    task.cancel()

    async def apply(self, specs: Mapping[str, BackendSpec]) -> AppliedChanges:
        """Start, stop and start anew whatever these settings change, and nothing else."""
        # Whoever asked may leave after a server was stopped and before it is started.
        return await uninterrupted(self._apply(specs))

    async def _apply(self, specs: Mapping[str, BackendSpec]) -> AppliedChanges:
        async with self._applying:
            removed = [name for name in self.backends if name not in specs]
            added = [name for name in specs if name not in self.backends]
            changed = [
                name
                for name, backend in self.backends.items()
                if name in specs and backend.spec != specs[name]
            ]
            linking = [name for name in changed if _links_differ(self.backends[name], specs[name])]
            for name in removed:
                self.gateway.detach(name)
            await self._stop([*removed, *linking])
            for name in [*added, *linking]:
                self._start(specs[name])
            for name in changed:
                if name not in linking:
                    await self._retell(self.backends[name], specs[name])
        return AppliedChanges(added=tuple(added), removed=tuple(removed), changed=tuple(changed))

    async def restart(self, namespace: str) -> None:
        """Reach a server anew, with secrets read again."""
        single = self._single(namespace)
        if single is not None and await single.restart_there():
            return
        await uninterrupted(self._restart(namespace))

    async def _restart(self, namespace: str) -> None:
        async with self._applying:
            backend = self.backends.get(namespace)
            if backend is None:
                raise e.BackendUnknown(f"There is no backend {namespace}.")
            await self._stop([namespace])
            # What was counted of it so far stays counted.
            self._start(backend.spec).tally = backend.tally

    async def settled(self, seconds: float, namespace: str = "") -> list[str]:
        """Wait until one server, or every, was reached or could not be, for so long at most.

        Answers the namespaces of those that are still starting.
        """
        wanted = [each for name, each in self.backends.items() if namespace in ("", name)]
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                for backend in wanted:
                    await backend.first_heard.wait()
        return [each.spec.namespace for each in wanted if not each.first_heard.is_set()]

    def views(self) -> tuple[BackendView, ...]:
        """The state of each server, by namespace."""
        return tuple(self.backends[name].view() for name in sorted(self.backends))

    def histories(self) -> list[ServerHistory]:
        """What came of the calls of all of them, minute by minute, by namespace."""
        return [self.backends[name].tally.history.view(name) for name in sorted(self.backends)]

    async def test(
        self, spec: BackendSpec, progress: Callable[[str], None] = lambda _: None
    ) -> TestReport:
        """Reach a server once and take its inventory, apart from the links that are open.

        `progress` is told how far it is: `connecting`, then `reading` what it offers.
        """
        connecting = Connecting(spec, self.clock, self._environ, self.hidden)
        began = self.clock.monotonic()
        why, inventory, advice = "", None, ""
        progress("connecting")
        try:
            if spec.auth == "oauth":
                # What it offers shows once somebody has signed in.
                found, _ = await find(spec)
                inventory, advice = Inventory(), f"People sign in to it at {found.issuer}."
            else:
                async with BackendConversation.opened(
                    connecting.link, seconds=spec.connect_seconds, era=connecting.era
                ) as conversation:
                    progress("reading")
                    inventory = await drain(conversation, seconds=spec.call_seconds)
                if inventory.stateless:
                    advice = await era_advice(connecting, spec, inventory)
        except e.FolkmootError as error:
            why = error.message
            if error.data.get("status") == UNAUTHORIZED:
                why += ' If people are to sign in to it, set auth = "oauth".'
        except Unanswered as error:
            why = error.why.message
        report = TestReport(
            namespace=spec.namespace,
            ok=inventory is not None,
            transport=connecting.transport,
            target=connecting.target,
            why=connecting.told(why),
            seconds=self.clock.monotonic() - began,
            advice=advice,
        )
        return report if inventory is None else replace(report, inventory=inventory)

    def _start(self, spec: BackendSpec) -> LiveBackend:
        make: Callable[..., LiveBackend] = LiveBackend
        if spec.single and self._nodes is not None:
            make = partial(SingleBackend, nodes=self._nodes)
        if spec.auth == "oauth" and self.consents is not None:
            tokens = partial(PersonTokens, self.consents, spec.namespace)
            make = partial(make, tokens=tokens, recall=self.gateway.recall)
        backend = make(
            spec,
            self.clock,
            on_inventory=self.gateway.arrived,
            on_lost=self.gateway.lost,
            on_task=self.gateway.task_changed,
            on_state=self.gateway.state_changed,
            environ=self._environ,
            hidden=self.hidden,
        )
        self.backends[spec.namespace] = backend
        self.gateway.attach(backend)
        if self._tasks is not None:
            self._running[spec.namespace] = self._tasks.create_task(_keep(backend))
        return backend

    async def _stop(self, namespaces: Iterable[str]) -> None:
        ending = []
        for name in namespaces:
            self.backends.pop(name, None)
            task = self._running.pop(name, None)
            if task is not None:
                task.cancel()
                ending.append(task)
        if ending:
            await asyncio.wait(ending)

    async def _retell(self, backend: LiveBackend, spec: BackendSpec) -> None:
        """Take over settings that matter to whoever shows the server, and not to its links."""
        backend.spec = spec
        if backend.inventory is not None:
            await self.gateway.arrived(spec.namespace, backend.inventory)


async def _keep(backend: LiveBackend) -> None:
    """Run a server's links; whatever goes wrong in there is tried again."""
    BACKEND.set(backend.spec.namespace)
    failures = 0
    while True:
        try:
            await backend.run()
        except Exception:
            logger.exception("a backend failed")
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            # A group of tasks that fails in the very moment it is cancelled tells of the one alone.
            raise asyncio.CancelledError
        failures += 1
        await asyncio.sleep(wait_after(failures))


def _links_differ(backend: LiveBackend, spec: BackendSpec) -> bool:
    return any(getattr(backend.spec, name) != getattr(spec, name) for name in LINKING)


async def era_advice(connecting: Connecting, spec: BackendSpec, found: Inventory) -> str:
    """What another `era` would be better for, with a server that was found to be stateless."""
    try:
        async with BackendConversation.opened(
            connecting.link, seconds=spec.connect_seconds, era=Era.HANDSHAKE
        ) as conversation:
            other = await drain(conversation, seconds=spec.call_seconds)
    except (e.FolkmootError, Unanswered, Late):
        return ""
    names = {str(tool["name"]) for tool in other.tools} - {
        str(tool["name"]) for tool in found.tools
    }
    if names:
        shown = ", ".join(sorted(names)[:MOST_NAMED])
        return (
            f"It offers {len(names)} of its tools in the handshake era alone ({shown}). "
            'Set era = "handshake" to have them.'
        )
    return (
        "It speaks the handshake era too. If its tools ask questions in the middle of a call, as "
        'with ctx.elicit, set era = "handshake": clients of both eras can be asked then.'
    )
