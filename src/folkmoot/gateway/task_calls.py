"""What is asked of backends about tasks, and what they answer, under the ids that owners know.

The two eras have different tasks. In the handshake era a call wishes for one with `task`, and its
result is fetched with `tasks/result`; in the stateless era a server makes one where it likes, if
the client has declared the extension, and `tasks/get` tells the result. Neither is turned into the
other: a task is spoken of as in the era it was made in.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from folkmoot.core import errors as e
from folkmoot.core.message import ErrorObject, MessageId, Response
from folkmoot.core.session import Era
from folkmoot.gateway.limits import (
    MAX_OPEN_TASKS,
    MIN_TASK_ID,
    TASK_RESULT_SECONDS,
    TASK_STATUS_EVERY_SECONDS,
    TASK_STATUS_SECONDS,
)
from folkmoot.gateway.model import UpstreamRequest
from folkmoot.gateway.requests import CallExtras, TaskAction
from folkmoot.gateway.results import check_questions, fault_of, is_task, map_result
from folkmoot.gateway.tasks import has_status
from folkmoot.mcp import wire
from folkmoot.mcp.eras.shapes import without_tasks
from folkmoot.mcp.wire import members_of

if TYPE_CHECKING:
    from folkmoot.gateway.gateway import Gateway
    from folkmoot.gateway.model import ToolEntry
    from folkmoot.gateway.requests import Inputs
    from folkmoot.gateway.tasks import Task

DECLARED: Final[Mapping[str, Any]] = {"extensions": {wire.TASKS_EXTENSION: {}}}
"""What a client declares that can be answered with a task."""
TASK_ID: Final = "taskId"
ROUND: Final = ("inputResponses", wire.REQUEST_STATE)
OTHER_ERA: Final = "This task was created in the {} era and can only be used there."


class TaskPlan(Struct, frozen=True):
    """What a call may become."""

    wished: bool = False
    """Whether it is to be a task, as the handshake era says."""
    params: Mapping[str, Any] = {}
    """How that is said."""
    possible: bool = False
    """Whether the backend may make it a task, as the stateless era says."""
    limited: bool = False
    """Whether it would be possible if its caller had fewer tasks."""

    def offered(self, capabilities: dict[str, Any]) -> dict[str, Any]:
        """The client's capabilities as the backend sees them."""
        if self.possible or not declares_tasks(capabilities):
            return capabilities
        return without_tasks(capabilities)

    def check(self, error: ErrorObject) -> None:
        """Tell a caller who has too many tasks why there is not one more."""
        if self.limited and error.code == wire.CAPABILITY_MISSING:
            raise too_many()


NO_TASK: Final = TaskPlan()


class TaskCalls:
    """Has requests about tasks answered."""

    def __init__(self, gateway: Gateway, inputs: Inputs) -> None:
        self._gateway = gateway
        self._tasks = gateway.tasks
        self._inputs = inputs
        self._looked: dict[str, float] = {}
        """When the tasks of those who have too many were looked at last."""

    async def plan(
        self,
        tool: ToolEntry,
        params: dict[str, Any],
        person: str,
        extras: CallExtras,
    ) -> TaskPlan:
        """What a call of a tool may become; raises where it cannot be what it must be."""
        era = extras.era
        if era is Era.HANDSHAKE and wire.AS_TASK in params:
            wish = params[wire.AS_TASK]
            check_wish(wish)
            if not tool.task_support:
                raise e.TaskUnsupported(f"{tool.canonical} cannot be run as a task.")
            if not await self._has_room(person):
                raise too_many()
            return TaskPlan(wished=True, params={wire.AS_TASK: wish})
        if tool.task_support == "required":
            self._check_required(tool, era)
        if era is not Era.STATELESS or not declares_tasks(extras.capabilities):
            return NO_TASK
        room = await self._has_room(person)
        return TaskPlan(possible=room, limited=not room)

    def made(
        self,
        tool: ToolEntry,
        plan: TaskPlan,
        params: dict[str, Any],
        person: str,
        result: dict[str, Any],
    ) -> dict[str, Any] | None:
        """The answer to a call that goes on as a task, under the id that its caller gets.

        None for one that wants input first, or is none and was to be none.
        """
        going_on = is_task(result)
        if result.get(wire.RESULT_TYPE) == wire.INPUT_REQUIRED or not (going_on or plan.wished):
            return None
        wrapped = wire.AS_TASK in result
        if not going_on or wrapped is not plan.wished or not (plan.wished or plan.possible):
            raise e.BackendFailed(
                f"The backend {tool.namespace} answered {tool.canonical} in a form that was not "
                "asked for. It may have done what was asked."
            )
        task = self._tasks.made(
            person,
            tool.namespace,
            tool.canonical,
            params.get("arguments"),
            result[wire.AS_TASK] if wrapped else result,
            stateless=not wrapped,
        )
        shown = renamed(result, task.ticket.own, task.id)
        return (
            {**shown, wire.AS_TASK: {**shown[wire.AS_TASK], TASK_ID: task.id}} if wrapped else shown
        )

    async def perform(
        self, message_id: MessageId, action: TaskAction, extras: CallExtras
    ) -> Response:
        """The answer to a request about a task, for its owner."""
        task, method = action.task, action.method
        if task.ticket.stateless is not (extras.era is Era.STATELESS):
            made_in = Era.STATELESS if task.ticket.stateless else Era.HANDSHAKE
            raise e.TaskUnsupported(OTHER_ERA.format(made_in.value))
        if not task.checked and method != wire.TASKS_GET:
            await self._look(task)
        asks: dict[str, Any] = {
            name: action.params[name] for name in ROUND if name in action.params
        }
        if "inputResponses" in asks:
            asks["inputResponses"] = each_renamed(asks["inputResponses"], task.id, task.ticket.own)
        response = await self._ask(
            task,
            method,
            self._inputs.taken(asks, task.owner, task.id),
            extras,
            seconds=TASK_RESULT_SECONDS if method == wire.TASKS_RESULT else None,
        )
        if isinstance(response.error, ErrorObject):
            error = self._refused(task, method, response.error)
            return Response(id=message_id, error=error)
        told = self._told(task, method, response.result)
        check_questions(told.get("inputRequests"), task.ticket.namespace)
        return Response(id=message_id, result=told)

    async def refreshed(self, task: Task) -> bool:
        """Whether a task is still there, once its backend has told how it is.

        One whose backend cannot say so now is what it was.
        """
        try:
            await self._look(task)
        except e.TaskUnknown:
            return False
        except e.FolkmootError:
            return True
        return True

    async def current(self, task: Task) -> dict[str, Any]:
        """What `tasks/get` tells of a task now."""
        extras = CallExtras(era=Era.STATELESS if task.ticket.stateless else Era.HANDSHAKE)
        response = await self.perform(0, TaskAction(wire.TASKS_GET, task, {}), extras)
        if isinstance(response.error, ErrorObject):
            raise e.TaskUnknown
        told: dict[str, Any] = response.result
        return told

    async def _look(self, task: Task) -> None:
        """Have a backend say how a task is; `TaskUnknown` if it is no more, or another's."""
        response = await self._ask(
            task, wire.TASKS_GET, {}, CallExtras(), seconds=TASK_STATUS_SECONDS
        )
        if isinstance(response.error, ErrorObject):
            error = self._refused(task, wire.TASKS_GET, response.error)
            raise e.BackendFailed(
                f"The backend {task.ticket.namespace} does not tell of the task: {error.message}"
            )
        self._told(task, wire.TASKS_GET, response.result)

    async def _ask(
        self,
        task: Task,
        method: str,
        params: dict[str, Any],
        extras: CallExtras,
        seconds: float | None,
    ) -> Response:
        namespace, stateless = task.ticket.namespace, task.ticket.stateless
        backend = self._gateway.backends.get(namespace)
        if backend is None:
            raise e.BackendUnavailable(f"The backend {namespace} was removed.")
        capabilities = extras.capabilities
        if stateless and not declares_tasks(capabilities):
            capabilities = {**capabilities, **DECLARED}
        return await backend.request(
            UpstreamRequest(
                method=method,
                params={TASK_ID: task.ticket.own, **params},
                person=task.owner,
                capabilities=capabilities,
                log_level=extras.log_level,
                tell=extras.tell,
                progress=extras.progress,
                repeatable=True,
                seconds=seconds,
                era=Era.STATELESS if stateless else Era.HANDSHAKE,
                tasks=True,
            )
        )

    def _refused(self, task: Task, method: str, error: ErrorObject) -> ErrorObject:
        """An error of a backend's about a task, without the id that only it knows."""
        if method == wire.TASKS_GET and error.code == wire.INVALID_PARAMS:
            self._tasks.forget(task)
            raise e.TaskUnknown
        own = task.ticket.own
        said = error.message if len(own) < MIN_TASK_ID else error.message.replace(own, task.id)
        return ErrorObject(error.code, said, error.data)

    def _told(self, task: Task, method: str, result: Any) -> dict[str, Any]:
        """A backend's message about a task, as its owner gets it."""
        namespace, own = task.ticket.namespace, task.ticket.own
        fault = task_fault(method, result, own, stateless=task.ticket.stateless)
        if fault:
            raise e.BackendFailed(f"The backend {namespace} gave no valid answer: {fault}.")
        if "createdAt" in result and TASK_ID in result:
            if str(result["createdAt"])[:64] != task.ticket.created:
                # Since then the backend has given the id to another task.
                self._tasks.forget(task)
                raise e.TaskUnknown
            self._tasks.confirmed(task, result)
        shown = renamed(result, own, task.id)
        if "inputRequests" in shown:
            asked = {wire.RESULT_TYPE: wire.INPUT_REQUIRED, "inputRequests": shown["inputRequests"]}
            asked = map_result(wire.TOOLS_CALL, asked, namespace)["inputRequests"]
            shown = {**shown, "inputRequests": each_renamed(asked, own, task.id)}
        if method == wire.TASKS_RESULT:
            shown = self._inputs.mark(shown, task.owner, task.id)
            return map_result(wire.TOOLS_CALL, shown, namespace)
        if isinstance(shown.get("result"), dict):
            ended = renamed(shown["result"], own, task.id)
            shown = {**shown, "result": map_result(wire.TOOLS_CALL, ended, namespace)}
        return shown

    def _check_required(self, tool: ToolEntry, era: Era | None) -> None:
        """Refuse a plain call of a tool that knows no such call, where nobody else would."""
        if era is Era.STATELESS and self._gateway.is_stateless(tool.namespace):
            return
        needs = "which needs a client of the handshake era (MCP 2025-11-25)"
        if era is None:
            needs = "which is not possible in a room"
        elif era is Era.HANDSHAKE:
            needs = "so the call must have `task` (MCP 2025-11-25)"
        raise e.TaskUnsupported(f"{tool.canonical} can only be run as a task, {needs}.")

    async def _has_room(self, person: str) -> bool:
        """Whether someone may have one more task; what has ended unseen is not counted."""
        tasks, now = self._tasks, asyncio.get_running_loop().time()
        if tasks.has_room(person):
            self._looked.pop(person, None)
            return True
        if now - self._looked.get(person, -TASK_STATUS_EVERY_SECONDS) < TASK_STATUS_EVERY_SECONDS:
            return False
        self._looked[person] = now
        await asyncio.gather(*map(self.refreshed, tasks.open_of(person)))
        return tasks.has_room(person)


def too_many() -> e.TooManyTasks:
    """The refusal of one task too many."""
    return e.TooManyTasks(
        f"You have {MAX_OPEN_TASKS} unfinished tasks; wait until one has ended, or cancel one.",
        limit=MAX_OPEN_TASKS,
    )


def declares_tasks(capabilities: dict[str, Any]) -> bool:
    """Whether a client of the stateless era can be answered with a task."""
    return wire.TASKS_EXTENSION in members_of(capabilities.get("extensions"))


def check_wish(wish: Any) -> None:
    """Refuse a wish for a task that is none."""
    ttl = wish.get("ttl", 0) if type(wish) is dict else None
    if not isinstance(ttl, int | float) or type(ttl) is bool or ttl < 0:
        raise e.ParamsInvalid("task must be an object, and its ttl a number of milliseconds.")


def task_fault(method: str, result: Any, own: str, *, stateless: bool) -> str:
    """Why something is no answer to a request about a task; empty for one that is."""
    if type(result) is not dict:
        return "it must be an object"
    if method == wire.TASKS_RESULT:
        return fault_of(wire.TOOLS_CALL, result) or ""
    if method == wire.TASKS_UPDATE or (method == wire.TASKS_CANCEL and stateless):
        return ""
    if result.get(TASK_ID) != own or not has_status(result) or "createdAt" not in result:
        return "`taskId`, `status` and `createdAt` must be those of the task"
    if result["status"] == "completed" and stateless:
        return fault_of(wire.TOOLS_CALL, result.get("result")) or ""
    return ""


def renamed(value: dict[str, Any], old: str, new: str) -> dict[str, Any]:
    """A result, or the params of a question, with another id of the task it speaks of."""
    if value.get(TASK_ID) == old:
        value = {**value, TASK_ID: new}
    meta = members_of(value.get("_meta"))
    related = members_of(meta.get(wire.RELATED_TASK_KEY))
    if related.get(TASK_ID) == old:
        value = {**value, "_meta": {**meta, wire.RELATED_TASK_KEY: {**related, TASK_ID: new}}}
    return value


def each_renamed(values: Any, old: str, new: str) -> Any:
    """The questions, or their answers, with renamed keys."""
    if type(values) is not dict:
        return values
    return {key: _question_renamed(each, old, new) for key, each in values.items()}


def _question_renamed(value: Any, old: str, new: str) -> Any:
    if type(value) is not dict:
        return value
    params = value.get("params")
    if type(params) is dict and (changed := renamed(params, old, new)) is not params:
        return {**value, "params": changed}
    return renamed(value, old, new)
