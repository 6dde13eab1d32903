"""The gateway itself: who is behind the hub, what they offer now, and who is told of changes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from folkmoot.core import errors as e
from folkmoot.core.events import BACKENDS, PINS, SERVERS, TASKS, about, subject
from folkmoot.gateway.catalogue import LISTS, Catalogue
from folkmoot.gateway.limits import MAX_LIST_PAGE, PINS_RETRY_SECONDS
from folkmoot.gateway.listing import HubDefinitions, Listings
from folkmoot.gateway.model import BackendState, Inventory
from folkmoot.gateway.part import make_part
from folkmoot.gateway.requests import Checks
from folkmoot.gateway.search import Search, own_tool

if TYPE_CHECKING:
    from folkmoot.audit import Operator
    from folkmoot.core.ports import Event
    from folkmoot.gateway.audit import CallAudit
    from folkmoot.gateway.model import Backend, What
    from folkmoot.gateway.part import BackendOffer
    from folkmoot.gateway.pins import Pins
    from folkmoot.gateway.queries import Changed
    from folkmoot.gateway.tasks import Tasks
    from folkmoot.settings.backends import BackendSpec
    from folkmoot.settings.sections import NewTools

logger = logging.getLogger("folkmoot.gateway")

NOT_YET: Final = "It has not been reached yet."
OFF: Final = "It is switched off."
UNPINNED: Final[frozenset[What]] = frozenset(("resources", "templates", "prompts"))
"""Lists that are not known before a backend is reached."""


class Gateway:
    """Keeps the catalogue as the backends come, change and go.

    The catalogue is one object after another: whoever works with one is not disturbed.
    """

    def __init__(
        self,
        pins: Pins,
        audit: CallAudit,
        tasks: Tasks,
        *,
        own: Mapping[What, HubDefinitions] | None = None,
        server_info: dict[str, Any] | None = None,
        page_size: int = MAX_LIST_PAGE,
        new_tools: NewTools = "hold",
    ) -> None:
        own = own or {}
        tools = own["tools"]("canonical", True) if "tools" in own else []  # noqa: FBT003
        self._own_names = tuple(tool["title"] for tool in tools)
        self.pins = pins
        self.audit = audit
        self.tasks = tasks
        self.new_tools = new_tools
        """What is done with tools that a server adds; it may change."""
        self.backends: dict[str, Backend] = {}
        """By namespace."""
        self.catalogue = Catalogue(own=self._own_names)
        self.listings = Listings(own, server_info=server_info or {}, page_size=page_size)
        self.search = Search(own_tool(tool) for tool in tools)
        self.checks = Checks()
        self._inventories: dict[str, Inventory] = {}
        self._parts: dict[str, BackendOffer] = {}
        self._absent: dict[str, str] = {}
        self._bus = pins.bus
        self._judge_again: set[str] = set()
        """Backends of which another hub has accepted tools."""
        self._repinned = asyncio.Event()
        self._bus.listen(PINS, self._pins_changed)
        self._arriving: dict[str, asyncio.Lock] = {}

    def task_changed(self, namespace: str, own: str) -> None:
        """Publish that a backend's task changed; unknown tasks are ignored."""
        task = self.tasks.of_backend(namespace, own)
        if task is not None:
            told = {"id": task.id, "stateless": task.ticket.stateless}
            self._bus.emit(subject(TASKS, task.owner), told)

    def state_changed(self, namespace: str, state: str) -> None:
        """Publish that a backend is in another state."""
        with suppress(e.BusClosed):
            self._bus.emit(subject(SERVERS, namespace), {"state": state})

    def attach(self, backend: Backend) -> None:
        """Have a backend that is yet to be reached; one of the same namespace gives way."""
        namespace = backend.spec.namespace
        self.backends[namespace] = backend
        self._absent[namespace] = OFF if backend.state is BackendState.OFF else NOT_YET
        self._renew(namespace)

    def detach(self, namespace: str) -> None:
        """A backend is no more; what is pinned of it stays, in case it comes back."""
        for table in (self.backends, self._absent, self._inventories, self._parts, self._arriving):
            table.pop(namespace, None)
        self._renew(namespace)

    async def arrived(self, namespace: str, inventory: Inventory) -> None:
        """A backend was reached, or what it lists has changed."""
        # In the order they came, though making a part may wait for the store.
        async with self._arriving.setdefault(namespace, asyncio.Lock()):
            backend = self.backends.get(namespace)
            if backend is None:
                return
            part = await make_part(
                namespace,
                inventory,
                self.pins,
                patterns=backend.spec.tools,
                trusted=backend.spec.trusted,
                hold_new=self._holds_new(backend.spec),
            )
            if self.backends.get(namespace) is not backend:
                return
            self._report(namespace, part)
            self.tasks.doubt(namespace)
            self._inventories[namespace] = inventory
            self._parts[namespace] = part
            self._absent.pop(namespace, None)
            self._renew(namespace)

    async def recall(self, namespace: str) -> None:
        """List what is pinned of a backend that nobody has reached yet."""
        tools, instructions = await self.pins.accepted(namespace)
        if tools and namespace in self._absent:
            known = Inventory(tools=tools, instructions=instructions, partial=UNPINNED)
            await self.arrived(namespace, known)

    def lost(self, namespace: str, why: str) -> None:
        """A backend is away; what it offers is left out of the lists until it is back."""
        if namespace in self.backends and self._absent.get(namespace) != why:
            self._absent[namespace] = why
            self.tasks.doubt(namespace)
            self._renew(namespace)

    def is_stateless(self, namespace: str) -> bool:
        """Whether the hub itself speaks the stateless era with a backend."""
        inventory = self._inventories.get(namespace)
        return inventory is not None and inventory.stateless

    async def accept(
        self,
        namespace: str,
        name: str | None = None,
        *,
        changed_hash: str | None = None,
        by: Operator | None = None,
    ) -> list[str]:
        """Accept changed tools as they are now; returns their canonical names."""
        if namespace not in self.backends:
            raise e.BackendUnknown(f"There is no backend {namespace}.")
        accepted = await self.pins.accept(namespace, name, changed_hash=changed_hash, by=by)
        inventory = self._inventories.get(namespace)
        if accepted and inventory is not None and namespace not in self._absent:
            await self.arrived(namespace, inventory)
        return accepted

    async def waiting(self) -> list[Changed]:
        """The tools of backends there are that changed or are new, and wait to be accepted."""
        changed = await self.pins.changed()
        return [one for one in changed if one.namespace in self.backends]

    async def follow_pins(self) -> None:
        """Judge a backend again whenever another hub on the same store accepted tools of it."""
        while True:
            await self._repinned.wait()
            self._repinned.clear()
            while self._judge_again:
                namespace = self._judge_again.pop()
                try:
                    await self._follow(namespace)
                except e.StoreError:
                    # What another hub accepted still holds once the database is back.
                    self._judge_again.add(namespace)
                    await asyncio.sleep(PINS_RETRY_SECONDS)

    def _pins_changed(self, event: Event) -> None:
        if self.pins.accepted_elsewhere(event):
            self._judge_again.add(about(event))
            self._repinned.set()

    async def _follow(self, namespace: str) -> None:
        inventory = self._inventories.get(namespace)
        if inventory is not None and namespace not in self._absent:
            try:
                await self.arrived(namespace, inventory)
            except e.FolkmootError as error:
                logger.warning(
                    "pins were not followed", extra={"backend": namespace, "error": error.code}
                )
                if isinstance(error, e.StoreError):
                    raise

    def _holds_new(self, spec: BackendSpec) -> bool:
        """Whether tools that a backend adds wait to be accepted."""
        wanted = self.new_tools if spec.new_tools == "default" else spec.new_tools
        return wanted == "hold"

    def _report(self, namespace: str, part: BackendOffer) -> None:
        before = self._parts.get(namespace)
        if part.faults and (before is None or before.faults != part.faults):
            logger.warning(
                "some of what a backend offers cannot be shown",
                extra={"backend": namespace, "faults": list(part.faults[:10])},
            )

    def _renew(self, namespace: str) -> None:
        before = self.catalogue
        self.catalogue = Catalogue(self._parts, self._absent, self._own_names)
        self.listings.renew(self.catalogue)
        self.search.renew(self.catalogue)
        changed = [
            what for what in LISTS if not _same(before.rows(what), self.catalogue.rows(what))
        ]
        if changed:
            with suppress(e.BusClosed):
                self._bus.emit(subject(BACKENDS, namespace), {"lists": changed})


def _same(before: tuple[Any, ...], after: tuple[Any, ...]) -> bool:
    """Whether two lists show the same."""
    return len(before) == len(after) and all(
        a.key == b.key and (a.entry is b.entry or a.entry.definition == b.entry.definition)
        for a, b in zip(before, after, strict=True)
    )
