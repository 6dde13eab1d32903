"""What tools were when they were first seen: one that has changed since, or is new, is held back
until an operator accepts it.
"""

from __future__ import annotations

import asyncio
import json
import logging
import secrets
from collections.abc import Callable, Iterable
from typing import Final, ParamSpec, TypeVar

from folkmoot.audit import Line, Operator, by_operator, record
from folkmoot.core.events import PINS, about, subject
from folkmoot.core.ports import Bus, Clock, Event, Store, Tx
from folkmoot.gateway import queries
from folkmoot.gateway.limits import MAX_ENTRIES_IN_LOOP, MAX_TOOLS_LOGGED
from folkmoot.gateway.model import Definition
from folkmoot.gateway.pin_comparison import (
    INSTRUCTIONS,
    Judged,
    Judging,
    Pin,
    PinDiff,
    difference,
    is_prompt,
    pinned_name,
)
from folkmoot.gateway.queries import Changed, Definite
from folkmoot.taskgroups import uninterrupted

P = ParamSpec("P")
T = TypeVar("T")


async def offload(size: int, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Do some work on so many entries; on many, in a thread."""
    if size <= MAX_ENTRIES_IN_LOOP:
        return work(*args, **kwargs)
    return await asyncio.to_thread(work, *args, **kwargs)


logger = logging.getLogger("folkmoot.gateway")

ACCEPT: Final = "backend.accept"
"""The action of an operator who accepts what a tool has become."""


class PinnedMeanwhile(Exception):
    """A pin is not what it was when tools were held against it."""


class Pins:
    """The pins of all backends: hashes are kept at hand, definitions in the store.

    Hashes that were changed, here or by another hub on the same store, are read again.
    """

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._pins: dict[str, dict[str, Pin]] = {}
        self._current: set[str] = set()
        """Backends whose pins nobody has changed since they were read, as far as is known."""
        self._changes = 0
        """How often pins were changed, or may have been."""
        self._id = secrets.token_hex(8)
        self._lock = asyncio.Lock()
        store.bus.listen(PINS, self._changed_somewhere)
        store.bus.listen_doubt(self._doubt)

    @property
    def bus(self) -> Bus:
        """Where changes are published."""
        return self._store.bus

    async def load(self) -> None:
        """Read the pins."""
        changes = self._changes
        rows = await self._store.read(queries.hashes, long=True)
        self._pins = {}
        for row in rows:
            self._pins.setdefault(row[0], {})[row[1]] = Pin(*row[2:])
        if changes == self._changes:
            self._current.update(self._pins)

    def accepted_elsewhere(self, event: Event) -> bool:
        """Whether an event tells that another hub has accepted tools, or forgotten pins.

        What another hub has only noted of its own link changes no verdict here.
        """
        return bool(event.data["accepted"] and event.data["by"] != self._id)

    def _changed_somewhere(self, event: Event) -> None:
        self._changes += 1
        self._current.discard(about(event))

    def _doubt(self) -> None:
        self._changes += 1
        self._current.clear()

    def _publish(self, tx: Tx, namespace: str, *, accepted: bool) -> None:
        tx.publish(subject(PINS, namespace), {"by": self._id, "accepted": accepted})

    async def _held(self, namespace: str) -> dict[str, Pin]:
        """The stored pins of one backend."""
        while namespace not in self._current:
            # Added first: what changes while they are read is not in them.
            self._current.add(namespace)
            try:
                rows = await self._store.read(lambda tx: queries.hashes(tx, namespace), long=True)
            except BaseException:
                self._current.discard(namespace)
                raise
            self._pins[namespace] = {row[1]: Pin(*row[2:]) for row in rows}
        return self._pins.get(namespace, {})

    async def judge(
        self,
        namespace: str,
        tools: Iterable[Definition],
        *,
        trusted: bool = False,
        hold_new: bool = True,
        whole: bool = True,
    ) -> dict[str, Judged]:
        """Hold what a backend lists now against its pins, by its own names.

        The first inventory of a backend is pinned, once it is `whole`. What changed later is noted,
        and for a trusted backend pinned at once; so is what is new, with `hold_new`. A tool that is
        not listed any more stays pinned, so that it cannot come back as another, by any name that
        is the same here.
        """
        async with self._lock:
            listed = tuple(tools)
            while True:
                held = await self._held(namespace)
                judging = await offload(
                    len(listed),
                    Judging,
                    namespace,
                    held,
                    listed,
                    trusted=trusted,
                    hold_new=hold_new,
                    whole=whole,
                )
                # Judged once more where another hub has changed a pin meanwhile.
                if not judging.writes or await self._write(namespace, judging, held):
                    break
            noted = await self._pinned(namespace) if judging.changed else {}
            return {
                name: Judged(
                    verdict,
                    noted.get(judging.pinned_as[name]) if verdict == "changed" else None,
                )
                for name, verdict in judging.verdicts.items()
            }

    async def _write(self, namespace: str, found: Judging, held: dict[str, Pin]) -> bool:
        """Store what was found, unless a pin is not what it was judged by any more."""
        now = int(self._clock.now())
        new = [each for each in found.pin if each.name not in held]
        again = [(each, held[each.name].hash) for each in found.pin if each.name in held]
        noted = [(each, held[each.name].hash) for each in found.note]
        back = [(name, held[name].hash) for name in found.back]

        async def unit(tx: Tx) -> None:
            done = await queries.pin(tx, namespace, new, now)
            done += await queries.pin_again(tx, namespace, again, now)
            done += await queries.hold(tx, namespace, found.hold, now)
            done += await queries.store_changes(tx, namespace, noted, now)
            done += await queries.forget_changes(tx, namespace, back)
            if done != len(found.pin) + len(found.hold) + len(noted) + len(back):
                raise PinnedMeanwhile
            self._publish(tx, namespace, accepted=False)

        try:
            await uninterrupted(self._store.write(unit))
        except PinnedMeanwhile:
            self._current.discard(namespace)
            return False
        _warn("tools have changed and are held back: %s", namespace, found.note)
        _warn("tools are new and are held back: %s", namespace, found.hold)
        if found.repinned:
            logger.info("a trusted backend changed tools: %s, %d", namespace, found.repinned)
        return True

    async def accepted(self, namespace: str) -> tuple[tuple[Definition, ...], str]:
        """The tools of a backend as they were accepted last, and its instructions."""
        rows = await self._store.read(lambda tx: queries.accepted(tx, namespace), long=True)
        found = [json.loads(row) for row in rows]
        named = {each["name"]: each for each in found if not is_prompt(each["name"])}
        instructions = named.pop(INSTRUCTIONS, {}).get("description", "")
        return tuple(named.values()), instructions

    async def _pinned(self, namespace: str) -> dict[str, Definition]:
        found = await self.changed(namespace)
        return await asyncio.to_thread(
            lambda: {each.name: json.loads(each.definition) for each in found}
        )

    async def changed(self, namespace: str = "") -> list[Changed]:
        """The pins whose tools have changed or are new, of one backend or of all."""

        async def query(tx: Tx) -> list[Changed]:
            return await queries.changed(tx, namespace)

        return await self._store.read(query)

    async def diff(self, namespace: str | None = None) -> list[PinDiff]:
        """What has changed or is new and waits to be accepted, of one backend or of all."""
        found = await self.changed(namespace or "")
        return await asyncio.to_thread(lambda: [difference(each) for each in found])

    async def accept(
        self,
        namespace: str,
        name: str | None = None,
        *,
        changed_hash: str | None = None,
        by: Operator | None = None,
    ) -> list[str]:
        """Pin what one tool, or every tool of a backend, has become; their canonical names.

        A tool is named as the backend does, or by its canonical name. With the hash of a change,
        only that change is accepted and not one that came since. `by` is an operator with an
        account.
        """
        accepted: list[Definite] = []
        lines: list[Line] = []
        async with self._lock:
            wanted = [
                Definite(own, pin.changed_hash, "")
                for own, pin in (await self._held(namespace)).items()
                if pin.changed_hash is not None
                and changed_hash in (None, pin.changed_hash)
                and name in (None, own, pinned_name(namespace, own))
            ]
            now = int(self._clock.now())

            async def unit(tx: Tx) -> list[Definite]:
                self._publish(tx, namespace, accepted=True)
                done = [
                    each
                    for each in wanted
                    if await queries.accept(tx, namespace, each.name, each.hash, now)
                ]
                lines[:] = [
                    by_operator(ACCEPT, by, pinned_name(namespace, each.name), detail=each.hash)
                    for each in done
                ]
                await record(tx, lines, self._clock.now())
                return done

            if wanted:
                accepted = await uninterrupted(self._store.write(unit))
        for line in lines:
            line.log()
        return sorted(pinned_name(namespace, each.name) for each in accepted)

    async def forget(self, namespace: str) -> int:
        """Remove a backend's pins, so that its tools are first seen once more; how many."""

        async def unit(tx: Tx) -> int:
            self._publish(tx, namespace, accepted=True)
            return await queries.forget(tx, namespace)

        async with self._lock:
            return await uninterrupted(self._store.write(unit))


def _warn(words: str, namespace: str, tools: list[Definite]) -> None:
    """Name tools in one line of the log, however many there are."""
    if tools:
        names = [pinned_name(namespace, each.name) for each in tools[:MAX_TOOLS_LOGGED]]
        more = len(tools) - len(names)
        logger.warning(words, ", ".join(names) + (f" and {more:,} more" if more else ""))
