"""Requests about tasks at `/mcp`: whose a task is, and what was needed to make it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from folkmoot.core import errors as e
from folkmoot.core.entity import Entity
from folkmoot.core.message import Request
from folkmoot.gateway.requests import CallExtras, TaskAction
from folkmoot.gateway.task_calls import DECLARED, TASK_ID, declares_tasks
from folkmoot.mcp import wire
from folkmoot.mcp.server.service import McpAnswer, method_unknown
from folkmoot.mcp.wire import TOOLS_CALL
from folkmoot.transports.limits import MAX_TASKS_WATCHED
from folkmoot.transports.mcp.admission import object_in, text_in

if TYPE_CHECKING:
    from folkmoot.core.policy import Principal
    from folkmoot.gateway.gateway import Gateway
    from folkmoot.gateway.operations import HubPolicy
    from folkmoot.gateway.task_calls import TaskCalls
    from folkmoot.gateway.tasks import Task
    from folkmoot.mcp.server.service import McpRequest
    from folkmoot.transports.mcp.arrivals import Exchange
    from folkmoot.transports.mcp.calls import RunningCalls

METHODS: Final = {
    wire.HANDSHAKE_VERSION: frozenset(
        (wire.TASKS_GET, wire.TASKS_RESULT, wire.TASKS_LIST, wire.TASKS_CANCEL)
    ),
    wire.STATELESS_VERSION: frozenset((wire.TASKS_GET, wire.TASKS_UPDATE, wire.TASKS_CANCEL)),
}
"""What each version that knows tasks can ask about them."""
TASK_METHODS: Final = frozenset[str]().union(*METHODS.values())
NOT_TOLD: Final = frozenset(("resultType", "_meta"))
"""What a result says of itself, and a notice does not."""
OFFERED: Final[dict[str, Any]] = {
    "list": {},
    "cancel": {},
    "requests": {"tools": {"call": {}}},
}
"""What the handshake era is told of tasks here."""


class TaskRequests(Entity):
    """Answers them; the rights that the call of a task needed are asked for again each time."""

    gateway: Gateway
    task_calls: TaskCalls
    policy: HubPolicy
    calls: RunningCalls

    def __post_init__(self) -> None:
        self._tasks = self.gateway.tasks
        self._audit = self.gateway.audit

    async def perform(self, asked: McpRequest) -> McpAnswer:
        method = asked.request.method
        if method not in METHODS.get(asked.version, ()):
            return method_unknown(method)
        if asked.stateless:
            check_declared(asked.capabilities)
        exchange: Exchange = asked.caller
        account = exchange.caller.account
        if account is None:
            raise e.AuthenticationRequired
        if method == wire.TASKS_LIST:
            return await self._list(asked, exchange.caller.principal)
        params = asked.params
        task = self._tasks.find(account.id, text_in(params, TASK_ID))
        if object_in(params, "inputResponses") is None and method == wire.TASKS_UPDATE:
            raise e.ParamsInvalid("inputResponses must be an object.")
        extras = CallExtras(
            capabilities=asked.capabilities,
            log_level=asked.level,
            tell=asked.tell,
            progress=asked.token is not None,
            era=asked.era,
            task=TaskAction(method, task, params),
        )
        request = Request(id=asked.request.id, method=TOOLS_CALL, params=task.call)
        response = await self.calls.ask(asked, request, extras)
        if method == wire.TASKS_RESULT:
            # It may have waited for long, and been denied meanwhile.
            self.calls.judge(request, exchange)
        return McpAnswer(response.result, response.error)

    def permitted(self, principal: Principal, task: Task) -> bool:
        """Whether someone may still do what made a task of theirs."""
        request = Request(id=0, method=TOOLS_CALL, params=task.call)
        return self.policy.permits_request(principal, request)

    def may_hear(self, principal: Principal, task_id: str) -> bool:
        """Whether someone may still be told of a task."""
        try:
            return self.permitted(principal, self._tasks.find(principal.account_id, task_id))
        except e.TaskUnknown:
            return False

    async def notice(self, account_id: str, task_id: str) -> dict[str, Any] | None:
        """What is said of a task of someone's that has changed; None if nothing can be said."""
        try:
            task = self._tasks.find(account_id, task_id)
            told = await self.task_calls.current(task)
        except e.FolkmootError:
            return None
        return {name: value for name, value in told.items() if name not in NOT_TOLD}

    @asynccontextmanager
    async def watching(
        self, principal: Principal, task_ids: list[str], changed: Callable[[str], None]
    ) -> AsyncIterator[list[str]]:
        """Have `changed` called with the id of each task that changes; those that it is called for.

        The others are unknown, not permitted any more, or their backends announce no changes.
        """
        with ExitStack() as stack:
            granted = []
            for task_id in task_ids:
                stop = await self._watch(principal, task_id, partial(changed, task_id))
                if stop is not None:
                    stack.callback(stop)
                    granted.append(task_id)
            yield granted

    async def _watch(
        self, principal: Principal, task_id: str, changed: Callable[[], None]
    ) -> Callable[[], None] | None:
        who = principal.account_id
        if not who:
            return None
        try:
            task = self._tasks.find(who, task_id)
            backend = self.gateway.backends.get(task.ticket.namespace)
            if backend is None or not task.ticket.stateless or not self.permitted(principal, task):
                return None
            return await backend.watch_task(task.ticket.own, changed, who)
        except e.FolkmootError:
            return None

    async def _list(self, asked: McpRequest, principal: Principal) -> McpAnswer:
        """The caller's own tasks of all backends, with their present state."""
        cursor = asked.params.get("cursor")
        if cursor is not None and type(cursor) is not str:
            raise e.ParamsInvalid("cursor must be a string.")
        self.policy.check_request(principal, wire.TASKS_LIST, {})
        page, following = self._tasks.page(principal.account_id, cursor, stateless=asked.stateless)
        mine = [task for task in page if self.permitted(principal, task)]
        with self.calls.opened(asked):
            there = await asyncio.gather(*map(self.task_calls.refreshed, mine))
        listed = [
            {TASK_ID: task.id, **task.told} for task, kept in zip(mine, there, strict=True) if kept
        ]
        self._audit.note(principal, f"mcp.request.{wire.TASKS_LIST}", {}, "ok", 0.0)
        return McpAnswer({"tasks": listed, **({"nextCursor": following} if following else {})})


def check_declared(capabilities: dict[str, Any]) -> None:
    """Refuse a client of the stateless era that has not declared that it knows tasks."""
    if not declares_tasks(capabilities):
        raise e.CapabilityMissing(
            f"The client has not declared the extension {wire.TASKS_EXTENSION}.",
            requiredCapabilities=DECLARED,
        )


def read_task_ids(asked: McpRequest) -> list[str]:
    """The tasks that a stream wants to hear of."""
    wanted = asked.params.get("notifications")
    task_ids = wanted.get(wire.TASK_IDS) if type(wanted) is dict else None
    if task_ids is None:
        return []
    if type(task_ids) is not list or any(type(each) is not str for each in task_ids):
        raise e.ParamsInvalid(f"{wire.TASK_IDS} must be an array of strings.")
    check_declared(asked.capabilities)
    return list(dict.fromkeys(task_ids))[:MAX_TASKS_WATCHED]


def offered(capabilities: dict[str, Any], version: str) -> dict[str, Any]:
    """What the hub is capable of, with tasks as a version knows them."""
    if version == wire.HANDSHAKE_VERSION:
        return {**capabilities, "tasks": OFFERED}
    if version != wire.STATELESS_VERSION:
        return capabilities
    extensions = {**capabilities.get("extensions", {}), wire.TASKS_EXTENSION: {}}
    return {**capabilities, "extensions": extensions}
