"""The hub as an MCP server: a row for each method.

What follows an answer is done once it has arrived, in tasks that outlive the request.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from msgspec import Raw, to_builtins
from msgspec.structs import replace

from folkmoot.core import errors as e
from folkmoot.core.entity import Entity
from folkmoot.gateway.definitions import joined
from folkmoot.gateway.service import tool_error
from folkmoot.mcp import wire
from folkmoot.mcp.eras.shapes import for_stateless
from folkmoot.mcp.server.service import McpAnswer, error_of, method_unknown
from folkmoot.mcp.wire import (
    COMPLETION,
    ELICIT,
    INPUT_REQUIRED,
    PROMPTS_GET,
    RESOURCES_READ,
    TOOLS_CALL,
    members_of,
)
from folkmoot.operations.arguments import truncated
from folkmoot.operations.call import encode_payload
from folkmoot.operations.dispatch import failure
from folkmoot.operations.finder import CALL_TOOL, FIND_TOOL, inner_call
from folkmoot.operations.inbox_app import APP_TYPES
from folkmoot.taskgroups import group
from folkmoot.transports.limits import DELIVERY_SECONDS
from folkmoot.transports.mcp.admission import check_completion, object_in, text_in, texts_in
from folkmoot.transports.mcp.lists import INSTRUCTIONS, OF_BACKENDS, WHAT, app_type
from folkmoot.transports.mcp.tasks import TASK_METHODS, offered

if TYPE_CHECKING:
    from folkmoot.gateway.operations import HubPolicy
    from folkmoot.mcp.server.service import McpRequest
    from folkmoot.operations import Operation, ToolCatalogue
    from folkmoot.operations.call import Bind, Delivered
    from folkmoot.transports.mcp.arrivals import Exchange
    from folkmoot.transports.mcp.calls import BackendCalls, RunningCalls
    from folkmoot.transports.mcp.listening import SubscriptionListener
    from folkmoot.transports.mcp.lists import Lists
    from folkmoot.transports.mcp.resources import Resources
    from folkmoot.transports.mcp.sessions import McpSession
    from folkmoot.transports.mcp.tasks import TaskRequests


logger = logging.getLogger("folkmoot.mcp")


class Deliveries(Entity):
    """Runs what follows a delivery; the user's next request waits for it, and so sees its effect.

    A client may close its connection with the answer in hand, which cancels the request: what
    follows must not be cancelled with it.
    """

    _tasks: asyncio.TaskGroup | None = None
    under_way: dict[str, set[asyncio.Task[None]]] = {}
    """What follows answers, by user."""

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Own the tasks; on leaving, let them end."""
        async with group() as tasks:
            self._tasks = tasks
            try:
                yield
            finally:
                while left := tuple(chain.from_iterable(self.under_way.values())):
                    await asyncio.wait(left)

    def start(self, user_id: str, delivered: Delivered) -> None:
        """Start what follows a delivery to this user."""
        if self._tasks is None:
            raise RuntimeError("deliveries are not running")
        task = self._tasks.create_task(self._follow(delivered))
        ours = self.under_way.setdefault(user_id, set())
        ours.add(task)

        def done(ended: asyncio.Task[None]) -> None:
            ours.discard(ended)
            if not ours and self.under_way.get(user_id) is ours:
                del self.under_way[user_id]

        task.add_done_callback(done)

    async def settled(self, user_id: str) -> None:
        """Wait until what followed this user's earlier answers is done."""
        if ours := self.under_way.get(user_id):
            await asyncio.wait(tuple(ours), timeout=DELIVERY_SECONDS)

    @staticmethod
    async def _follow(delivered: Delivered) -> None:
        try:
            await delivered()
        except Exception:
            logger.exception("what was delivered could not be marked as read")


ACTIONS: Final = frozenset({"accept", "decline", "cancel"})


def answered(
    asked: McpRequest, tool: Operation, arguments: dict[str, Any] | None
) -> dict[str, Any]:
    """The arguments of a call, with what the user was asked for and gave."""
    given = dict(arguments or {})
    response = response_of(asked, tool)
    if response is not None:
        # Whoever declines or says nothing is told by the tool that the argument is missing.
        nothing = "" if asked_for(tool)["type"] == "string" else False
        content = members_of(response.get("content")) if response["action"] == "accept" else {}
        given[tool.asks] = content.get(tool.asks, nothing)
    return given


def question(
    asked: McpRequest, tool: Operation, arguments: dict[str, Any] | None
) -> dict[str, Any] | None:
    """The question to ask first, unless it was answered or the client cannot ask it."""
    if response_of(asked, tool) is not None or not can_ask(asked):
        return None
    argument = asked_for(tool)
    about = [
        f"{name}: {value}"
        for name, value in (arguments or {}).items()
        if name != tool.asks and name in tool.schema["properties"] and isinstance(value, str)
    ]
    form = {
        "mode": "form",
        "message": "\n".join([f"{tool.description} {argument['description']}:", *about]),
        "requestedSchema": {
            "type": "object",
            "properties": {tool.asks: {"type": argument["type"], "title": argument["description"]}},
            "required": [tool.asks],
        },
    }
    wanted = {tool.asks: {"method": ELICIT, "params": form}}
    return {wire.RESULT_TYPE: INPUT_REQUIRED, "inputRequests": wanted}


def response_of(asked: McpRequest, tool: Operation) -> dict[str, Any] | None:
    """What the user said to the question, if it was put."""
    response = members_of(asked.params.get("inputResponses")).get(tool.asks)
    return response if members_of(response).get("action") in ACTIONS else None


def can_ask(asked: McpRequest) -> bool:
    """Whether the client can put a form to its user when it is told to."""
    elicitation = asked.capabilities.get("elicitation")
    if type(elicitation) is not dict:
        return False
    # One that names no mode means forms.
    return "form" in elicitation or "url" not in elicitation


def asked_for(tool: Operation) -> dict[str, Any]:
    """The schema of the argument that is for a person to give."""
    argument: dict[str, Any] = tool.schema["properties"][tool.asks]
    return argument


Handler: TypeAlias = "Callable[[McpRequest], Awaitable[McpAnswer]]"
SignIn: TypeAlias = "Callable[[McpSession, Bind], Awaitable[bool]]"
"""Lets a session become an account's; whether it did."""

CAPABILITIES: Final[dict[str, Any]] = {
    "logging": {},
    "prompts": {"listChanged": True},
    "resources": {"subscribe": True, "listChanged": True},
    "tools": {"listChanged": True},
    "completions": {},
    "extensions": {wire.APPS_EXTENSION: {"mimeTypes": [*APP_TYPES]}},
}
OF_THE_PROTOCOL: Final = (
    e.UnknownTool,
    e.MessageError,
    e.InputStateInvalid,
    e.ParamsInvalid,
    e.HeaderMismatch,
    e.TaskUnsupported,
)
"""What is no tool's fault: it is told as an error of the request, and not as a tool's result."""
AS_POLICY_SAYS: Final = (e.CapabilityDenied, e.AuthenticationRequired, e.TokenRefused)
"""What is refused in the same words, whoever's tool it is."""


class HubService(Entity, kw_only=True):
    """Answers requests to `/mcp`."""

    server_info: dict[str, Any]
    catalogue: ToolCatalogue
    calls: RunningCalls
    deliveries: Deliveries
    policy: HubPolicy
    lists: Lists
    resources: Resources
    listener: SubscriptionListener
    backends: BackendCalls
    tasks: TaskRequests
    sign_in: SignIn

    def __post_init__(self) -> None:
        self._meta = {wire.SERVER_KEY: self.server_info}
        """Of every result of our own."""
        self._methods: dict[str, Handler] = {
            **dict.fromkeys(WHAT, self._list),
            TOOLS_CALL: self._call_tool,
            PROMPTS_GET: self._get_prompt,
            COMPLETION: self._complete,
            RESOURCES_READ: self._read,
            wire.SUBSCRIBE: self.resources.subscribe,
            wire.UNSUBSCRIBE: self.resources.unsubscribe,
            wire.DISCOVER: self._discover,
            wire.LISTEN: self.listener.listen,
            **dict.fromkeys(TASK_METHODS, self.tasks.perform),
        }

    async def perform(self, asked: McpRequest) -> McpAnswer:
        """Answer one request, or raise why that cannot be done."""
        method = asked.request.method
        handler = self._methods.get(method)
        if handler is None:
            return method_unknown(method)
        answer = await handler(asked)
        if type(answer.result) is dict and answer.result.get("_meta") is not self._meta:
            answer.result = for_stateless(method, answer.result, self.server_info)
        return answer

    def refusal(self, asked: McpRequest, error: e.FolkmootError) -> McpAnswer:
        """An error of ours as the answer to a request; a model reads those of its tools."""
        if asked.request.method != TOOLS_CALL or isinstance(error, OF_THE_PROTOCOL):
            return error_of(error)
        if isinstance(error, AS_POLICY_SAYS):
            told = failure(error).text()
            result: dict[str, Any] = {"content": [{"type": "text", "text": told}], "isError": True}
        else:
            result = tool_error({**error.data, "error": error.message, "code": error.code})
        return McpAnswer(for_stateless(TOOLS_CALL, result, self.server_info))

    async def _list(self, asked: McpRequest) -> McpAnswer:
        """A page of a list."""
        cursor = asked.params.get("cursor")
        if cursor is not None and type(cursor) is not str:
            raise e.ParamsInvalid("cursor must be a string.")
        page: Raw = self.lists.result(
            asked.request.method,
            asked.caller,
            app=app_type(asked.capabilities),
            cursor=cursor,
        )
        return McpAnswer(page)

    def _call_tool(self, asked: McpRequest) -> Awaitable[McpAnswer]:
        """Call a tool; its failure is a result, as the specification says."""
        params = asked.params
        name, arguments = params.get("name"), params.get("arguments")
        if type(name) is not str or not (arguments is None or type(arguments) is dict):
            raise e.ParamsInvalid("name must be a string, and arguments an object.")
        tool = self.catalogue.find(name)
        if tool is not None and tool.name == CALL_TOOL:
            inner = inner_call(arguments)
            if inner is not None and self.catalogue.find(inner[0]) is not tool:
                name, arguments = inner
                params = {**params, "name": name, "arguments": arguments or {}}
                tool = self.catalogue.find(name)
        if tool is not None:
            if wire.AS_TASK in params and asked.version == wire.HANDSHAKE_VERSION:
                raise e.TaskUnsupported(f"{tool.name} cannot be run as a task.")
            return self._call_own(asked, tool, arguments)
        if "inputResponses" in params:
            object_in(params, "inputResponses")
        if arguments is None:
            params.pop("arguments", None)
        return self.backends.call(asked, params)

    async def _call_own(self, asked: McpRequest, tool: Operation, arguments: Any) -> McpAnswer:
        exchange: Exchange = asked.caller
        account = exchange.caller.account
        if account is not None:
            if account.id in self.deliveries.under_way:
                await self.deliveries.settled(account.id)
            if tool.asks:
                wish = question(asked, tool, arguments)
                if wish is not None:
                    return McpAnswer(wish)
                arguments = answered(asked, tool, arguments)
        if tool.name == FIND_TOOL:
            exchange.caller.find = partial(self.lists.find, exchange)
        result = await self.calls.call(asked, tool, arguments)
        bind, session = result.bind, exchange.session
        if bind is not None and (session is None or not await self.sign_in(session, bind)):
            if bind.otherwise is None:
                raise e.TokenInvalid
            result = replace(result, payload=bind.otherwise)
        content = [{"type": "text", "text": encode_payload(result.payload).decode()}]
        told: dict[str, Any] = {
            wire.RESULT_TYPE: wire.COMPLETE,
            "content": content,
            "isError": result.is_error,
        }
        if tool.app and not result.is_error:
            told["structuredContent"] = to_builtins(result.payload)
        told["_meta"] = self._meta
        return McpAnswer(told, after=result.delivered)

    async def _get_prompt(self, asked: McpRequest) -> McpAnswer:
        """A prompt of a backend's; the hub has none of its own."""
        name = text_in(asked.params, "name")
        texts_in(asked.params, "arguments")
        self._check(asked)
        answer = await self.backends.carry(asked, asked.params)
        if answer is not None:
            return answer
        raise e.PromptUnknown(f"Unknown prompt: {truncated(name)}.")

    async def _complete(self, asked: McpRequest) -> McpAnswer:
        """Completions of an argument, as far as a backend knows any."""
        check_completion(asked.params)
        self._check(asked)
        answer = await self.backends.carry(asked, asked.params)
        return answer or McpAnswer({"completion": {"values": []}})

    async def _read(self, asked: McpRequest) -> McpAnswer:
        """A resource of the hub's own, or of a backend's."""
        uri = text_in(asked.params, "uri")
        answer = await self.resources.read(asked, uri)
        if answer is None:
            answer = await self.backends.carry(asked, asked.params)
        return answer or self.resources.unknown(uri)

    async def _discover(self, asked: McpRequest) -> McpAnswer:
        """What the hub is and has, and how it is used."""
        exchange: Exchange = asked.caller
        said, capabilities = INSTRUCTIONS, CAPABILITIES
        capabilities = offered(capabilities, asked.version)
        gateway = self.backends.gateway
        rights = self.backends.rights_of(exchange)
        of_others = joined(gateway.catalogue, rights)
        said += OF_BACKENDS if gateway.backends else ""
        said += f"\n\n{of_others}" if of_others else ""
        if exchange.token_invalid:
            said = f"{exchange.refusal.message} {said}"
        return McpAnswer(
            {
                "supportedVersions": [wire.STATELESS_VERSION],
                "capabilities": capabilities,
                "instructions": said,
                "ttlMs": 0,
                "cacheScope": "private",
            }
        )

    def _check(self, asked: McpRequest) -> None:
        """Refuse a request that is denied, also where nothing has what it names."""
        principal = asked.caller.caller.principal
        self.policy.check_request(principal, asked.request.method, asked.params)
