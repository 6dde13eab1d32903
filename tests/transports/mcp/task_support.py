"""A backend in this process whose tools can be run as tasks, in the words of either era."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

from folkmoot.core.message import ErrorObject, Response
from folkmoot.gateway.model import Inventory, UpstreamRequest
from tests.mcp_harness import Meeting, Person
from tests.transports.mcp.gateway_support import (
    PLAIN_TOOL,
    Demo,
    Wire,
    form,
    session_stream,
    text,
    wired,
    wish,
)

EXTENSION = "io.modelcontextprotocol/tasks"
RELATED = "io.modelcontextprotocol/related-task"
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
DECLARING = {CAPABILITIES: {"extensions": {EXTENSION: {}}, "elicitation": {}}}
OFFERED: dict[str, dict[str, Any]] = {
    "handshake": {"tasks": {"requests": {"tools": {"call": {}}}}},
    "stateless": {"extensions": {EXTENSION: {}}},
}
FORM = form("Sure?")


class Jobs(Demo):
    """Its tools `may` and `must` be run as tasks; how each task is says `tasks`, by its own id."""

    def __init__(self, era: str, namespace: str = "demo", first: int = 1) -> None:
        super().__init__(namespace)
        self.era = era
        self.tasks: dict[str, dict[str, Any]] = {}
        self.next = first
        self.ttl: int | None = 60_000
        self.time = "2026-11-16T06:00:00Z"
        self.asks_first = False
        self.question: dict[str, Any] = FORM
        self.before_result: Callable[[], Awaitable[None]] | None = None

    def inventory(self, **more: Any) -> Inventory:
        supports = {"may": "optional", "must": "required"}
        listed = [
            {"name": name, **PLAIN_TOOL, "execution": {"taskSupport": support}}
            for name, support in supports.items()
        ]
        tools = ({"name": "echo", **PLAIN_TOOL}, *listed)
        stateless = self.era == "stateless"
        return Inventory(tools=tools, capabilities=OFFERED[self.era], stateless=stateless)

    async def request(self, wanted: UpstreamRequest) -> Response:
        self.asked.append(wanted)
        if wanted.method == "tasks/result" and self.before_result is not None:
            await self.before_result()
        if wanted.method != "tools/call":
            return self._about(wanted)
        if self.asks_first and "inputResponses" not in wanted.params:
            return Response(id="theirs", result=wish(q=FORM))
        declared = EXTENSION in (wanted.capabilities.get("extensions") or {})
        if "task" not in wanted.params and not declared:
            return Response(id="theirs", result=text("done at once"))
        task_id, self.next = str(self.next), self.next + 1
        self.tasks[task_id] = {"status": "working"}
        told = self.told(task_id)
        result = {"task": told} if "task" in wanted.params else {**told, "resultType": "task"}
        return Response(id="theirs", result=result)

    def told(self, task_id: str) -> dict[str, Any]:
        suffix = "Ms" if self.era == "stateless" else ""
        times = {"createdAt": self.time, "lastUpdatedAt": self.time}
        status = self.tasks[task_id]["status"]
        return {"taskId": task_id, "status": status, **times, f"ttl{suffix}": self.ttl}

    def end(self, task_id: str = "1", said: str = "done") -> None:
        self.tasks[task_id] = {"status": "completed", "result": text(said)}

    def _about(self, wanted: UpstreamRequest) -> Response:
        task_id, method = wanted.params["taskId"], wanted.method
        task = self.tasks.get(task_id)
        if task is None:
            error = ErrorObject(-32602, f"There is no task {task_id}")
            return Response(id="theirs", error=error)
        if method == "tasks/result":
            given = wanted.params.get("inputResponses")
            related = {"_meta": {RELATED: {"taskId": task_id}}}
            if task["status"] == "input_required" and not given:
                asked = {**FORM, "params": {**FORM["params"], **related}}
                return Response(id="theirs", result=wish(sure=asked))
            result = task.get("result") or text(str((given or {}).get("sure")))
            return Response(id="theirs", result={**result, **related})
        if method == "tasks/cancel":
            task["status"] = "cancelled"
            told = {} if self.era == "stateless" else self.told(task_id)
            return Response(id="theirs", result=told)
        if method == "tasks/update":
            self.end(task_id, str(wanted.params["inputResponses"]))
            return Response(id="theirs", result={})
        detailed = {**self.told(task_id)}
        if self.era == "stateless":
            detailed |= {name: task[name] for name in ("result", "error") if name in task}
            if task["status"] == "input_required":
                detailed["inputRequests"] = {"sure": self.question}
        return Response(id="theirs", result=detailed)


class Tasker:
    """Someone who makes tasks and asks about them."""

    def __init__(self, wire: Wire) -> None:
        self.wire = wire
        self.stateless = not wire.session

    async def ask(self, method: str, **params: Any) -> Any:
        """The answer to a request; its client has declared that it knows tasks."""
        return await self.wire.ask(method, params, meta=DECLARING if self.stateless else None)

    async def make(self, tool: str = "demo_may", ttl: int = 1000, **arguments: Any) -> str:
        """The id of a new task."""
        wish = {} if self.stateless else {"task": {"ttl": ttl}}
        answer = await self.ask("tools/call", name=tool, arguments=arguments, **wish)
        result = answer["result"]
        if self.stateless:
            assert result["resultType"] == "task"
        task: dict[str, Any] = result if self.stateless else result["task"]
        return str(task["taskId"])

    async def error(self, method: str, **params: Any) -> tuple[int, str]:
        """The error that a request is answered with."""
        answer = await self.ask(method, **params)
        return answer["error"]["code"], answer["error"]["message"]

    async def status(self, task_id: str) -> Any:
        answer = await self.ask("tasks/get", taskId=task_id)
        assert answer["result"]["taskId"] == task_id
        return answer["result"]["status"]


async def tasker(there: Meeting, person: Person | str, era: str = "") -> Tasker:
    """Someone who speaks plain HTTP, and can be asked."""
    return Tasker(await wired(there, person, era, {"elicitation": {}}))


def listening(someone: Tasker) -> AbstractAsyncContextManager[AsyncIterator[Any]]:
    """The stream of a session."""
    return session_stream(someone.wire)
