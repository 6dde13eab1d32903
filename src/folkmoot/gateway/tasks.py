"""Tasks: calls that a backend goes on with after its first answer, each known to its owner alone.

A task's id here is a `Ticket`, sealed for the account that made the call: it says which tool of
which backend runs it, what the backend calls it and when it was created. So it opens again after a
restart of the hub, and for nobody else; what does not open is unknown, whatever it is. The `Tasks`
of a process are those that it has seen: they are counted, listed and bounded.
"""

from __future__ import annotations

from collections import OrderedDict
from itertools import count
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Struct

from folkmoot.core import errors as e
from folkmoot.gateway.limits import (
    MAX_OPEN_TASKS,
    MAX_OWN_TASK_ID,
    MAX_TASK_ARGUMENTS,
    MAX_TASK_ID,
    MAX_TASK_SECONDS,
    MAX_TASKS,
    MAX_TASKS_OF_ACCOUNT,
    MAX_TASKS_PAGE,
)
from folkmoot.mcp.wire import members_of
from folkmoot.vault import SealedIds

if TYPE_CHECKING:
    from folkmoot.core.ports import Clock, Sealer

PURPOSE: Final = "task_id"
FINISHED: Final = frozenset(("completed", "failed", "cancelled"))
STATUSES: Final = FINISHED | {"working", "input_required"}
TTLS: Final = ("ttlMs", "ttl")
"""How long a task is kept, in milliseconds, as each era spells it."""


class Ticket(Struct, array_like=True, frozen=True):
    """What the id of a task says."""

    namespace: str
    tool: str
    """The canonical name."""
    own: str
    """The backend's own id of it."""
    created: str
    """When it was created, in the backend's words: another task of that id has another time."""
    stateless: bool
    """The era in which it was created."""


_json = msgspec.json.encode


class Task(Struct, eq=False, kw_only=True):
    """A task seen by this process."""

    id: str
    owner: str
    """The account whose it is."""
    ticket: Ticket
    arguments: Any = None
    """Those of its call, for rights that depend on them; None where they are not known any more."""
    told: dict[str, Any] = msgspec.field(default_factory=dict)
    """What its backend said of it last, but for results and questions."""
    place: int = 0
    """Its place in the list of its owner's tasks."""
    since: float = 0.0
    """When it was seen first, in seconds since the epoch."""
    until: float = 0.0
    """Until when it is listed, in seconds since the epoch."""
    checked: bool = False
    """Whether the backend's task of this id is known to be this one."""

    @property
    def open(self) -> bool:
        """Whether the task is unfinished, as far as known."""
        return self.told.get("status") not in FINISHED

    @property
    def call(self) -> dict[str, Any]:
        """The params of the call that made it, which say what one must be allowed to do."""
        given = {} if self.arguments is None else {"arguments": self.arguments}
        return {"name": self.ticket.tool, **given}


class Tasks:
    """Makes and opens ids, and keeps the tasks that were seen."""

    def __init__(self, sealer: Sealer, clock: Clock) -> None:
        self._ids = SealedIds(sealer, PURPOSE, Ticket, MAX_TASK_ID)
        self._clock = clock
        self._known: OrderedDict[str, Task] = OrderedDict()
        """By id, the oldest first."""
        self._by_own: dict[tuple[str, str], Task] = {}
        self._of_owner: dict[str, dict[str, Task]] = {}
        self._places = count(1)

    def __len__(self) -> int:
        return len(self._known)

    def made(
        self, owner: str, namespace: str, tool: str, arguments: Any, said: Any, *, stateless: bool
    ) -> Task:
        """Record a task that a backend just created."""
        said = members_of(said)
        own, created = said.get("taskId"), said.get("createdAt")
        if type(own) is not str or not 0 < len(own) <= MAX_OWN_TASK_ID:
            raise e.BackendFailed(f"The backend {namespace} created a task without a usable id.")
        if type(created) is not str or not has_status(said):
            raise e.BackendFailed(f"The backend {namespace} created a task without status or time.")
        ticket = Ticket(namespace, tool, own, created[:64], stateless)
        sealed = self._ids.make(owner, ticket)
        if arguments is not None and len(_json(arguments)) > MAX_TASK_ARGUMENTS:
            arguments = None
        task = Task(id=sealed, owner=owner, ticket=ticket, arguments=arguments)
        self.confirmed(task, said)
        return task

    def find(self, owner: str, task_id: str) -> Task:
        """A task of someone's; `TaskUnknown` in the same words whyever there is none.

        One that this process has not seen is not `checked`, and not kept until it is `confirmed`.
        """
        known = self._known.get(task_id)
        if known is not None and known.owner == owner:
            return known
        ticket = self._ids.open(owner, task_id) if owner else None
        if ticket is None:
            raise e.TaskUnknown
        return Task(id=task_id, owner=owner, ticket=ticket)

    def confirmed(self, task: Task, said: dict[str, Any]) -> None:
        """The backend has told of a task, so it is there; it is kept from now on."""
        task.told = {name: said[name] for name in TOLD if name in said}
        task.checked = True
        kept = MAX_TASK_SECONDS
        for name in TTLS:
            ttl = said.get(name)
            if isinstance(ttl, int | float) and type(ttl) is not bool and ttl >= 0:
                kept = min(kept, ttl / 1000)
        if not task.since:
            task.since = self._clock.now()
        task.until = task.since + kept
        if task.id in self._known:
            return
        other = self._by_own.get((task.ticket.namespace, task.ticket.own))
        if other is not None:
            # The backend has forgotten that one, or it would not use its id again.
            self.forget(other)
        self._make_room(task.owner)
        task.place = next(self._places)
        self._known[task.id] = task
        self._by_own[task.ticket.namespace, task.ticket.own] = task
        self._of_owner.setdefault(task.owner, {})[task.id] = task

    def forget(self, task: Task) -> None:
        """A task is no more, or nobody's business any more."""
        if self._known.get(task.id) is not task:
            return
        del self._known[task.id]
        del self._by_own[task.ticket.namespace, task.ticket.own]
        of_owner = self._of_owner[task.owner]
        del of_owner[task.id]
        if not of_owner:
            del self._of_owner[task.owner]

    def doubt(self, namespace: str) -> None:
        """A backend was away: its ids may belong to other tasks when it is back."""
        for task in self._known.values():
            if task.ticket.namespace == namespace:
                task.checked = False

    def of_backend(self, namespace: str, own: str) -> Task | None:
        """The task that a backend knows by an id."""
        return self._by_own.get((namespace, own))

    def open_of(self, owner: str) -> list[Task]:
        """The unfinished tasks of someone."""
        return [task for task in self._live_of(owner) if task.open]

    def has_room(self, owner: str) -> bool:
        """Whether someone may have one more unfinished task."""
        known = self._of_owner.get(owner)
        return (
            known is None
            or len(known) < MAX_OPEN_TASKS
            or len(self.open_of(owner)) < MAX_OPEN_TASKS
        )

    def page(
        self, owner: str, cursor: str | None, *, stateless: bool
    ) -> tuple[list[Task], str | None]:
        """Tasks of someone in the order they came, and the cursor of the next page."""
        after = 0
        if cursor is not None:
            if not (cursor.isascii() and cursor.isdigit() and len(cursor) < 16):
                raise e.ArgumentInvalid(
                    "cursor must be the nextCursor of an earlier answer.", field="cursor"
                )
            after = int(cursor)
        rest = [
            task
            for task in self._live_of(owner)
            if task.place > after and task.ticket.stateless is stateless
        ]
        shown = rest[:MAX_TASKS_PAGE]
        return shown, str(shown[-1].place) if len(rest) > len(shown) else None

    def _live_of(self, owner: str) -> list[Task]:
        """Someone's tasks; expired ones are removed."""
        now = self._clock.now()
        live = []
        for task in tuple(self._of_owner.get(owner, {}).values()):
            if task.until <= now:
                self.forget(task)
            else:
                live.append(task)
        return live

    def _make_room(self, owner: str) -> None:
        own = self._of_owner.get(owner, {})
        if len(own) >= MAX_TASKS_OF_ACCOUNT:
            live = self._live_of(owner)
            if len(live) >= MAX_TASKS_OF_ACCOUNT:
                self.forget(next((task for task in live if not task.open), live[0]))
        while len(self._known) >= MAX_TASKS:
            self.forget(next(iter(self._known.values())))


def has_status(said: dict[str, Any]) -> bool:
    """Whether something says how a task is."""
    status = said.get("status")
    return type(status) is str and status in STATUSES


TOLD: Final = (
    "status",
    "statusMessage",
    "createdAt",
    "lastUpdatedAt",
    "ttl",
    "ttlMs",
    "pollInterval",
    "pollIntervalMs",
)
"""What is kept of what a backend says of a task."""
