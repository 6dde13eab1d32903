"""Calls of the hub's tools: those of the client as they pass, and the bridge's own beside them."""

from __future__ import annotations

import asyncio
import json
from abc import ABC, abstractmethod
from typing import Any, Final, Self, TypeAlias

import msgspec

from folkmoot.bridge.limits import HUB_ANSWER_SECONDS, MAX_ANSWER_BYTES, MAX_REASON
from folkmoot.client.http import tool_request, tool_result
from folkmoot.core import errors as e
from folkmoot.core import strict
from folkmoot.core.envelope import MessageDirection, MessageEnvelope
from folkmoot.core.message import Request, Response, replace
from folkmoot.core.strict import Limits
from folkmoot.core.verdict import Block, Mock, Modify, Verdict
from folkmoot.mcp.client.target import HttpTarget, TokenSource
from folkmoot.mcp.wire import COMPLETE, EVENT_STREAM, RESULT_TYPE, TOOLS_CALL

TEXT_LIMITS: Final = Limits(message_bytes=64 * 1024 * 1024, nesting=64)

Envelope: TypeAlias = MessageEnvelope[Any]

MAIL: Final = "msg"


class ToolCall(msgspec.Struct, frozen=True):
    """A `tools/call` on its way to the hub; `tool` is the canonical name."""

    request: Request
    params: dict[str, Any]
    tool: str
    arguments: dict[str, Any]

    def with_arguments(self, arguments: dict[str, Any]) -> Request:
        """The same call with other arguments; everything else stays."""
        return replace(self.request, params={**self.params, "arguments": arguments})


def tool_call(envelope: Envelope) -> ToolCall | None:
    """The call of a tool that a message is, if it goes to the hub and is one."""
    message = envelope.message
    if (
        envelope.context.direction is not MessageDirection.CLIENT_TO_SERVER
        or not isinstance(message, Request)
        or message.method != TOOLS_CALL
        or not isinstance(message.params, dict)
    ):
        return None
    params = message.params
    name, arguments = params.get("name"), params.get("arguments")
    if not isinstance(name, str):
        return None
    given = arguments if isinstance(arguments, dict) else {}
    return ToolCall(message, params, canonical(name), given)


def is_call(envelope: Envelope) -> bool:
    """Whether a message asks the hub for a tool, in whatever way."""
    going = envelope.context.direction is MessageDirection.CLIENT_TO_SERVER
    return going and getattr(envelope.message, "method", None) == TOOLS_CALL


def canonical(name: str) -> str:
    """The canonical name of one of the hub's own tools, from either spelling."""
    for namespace in (MAIL, "folkmoot"):
        if name.startswith(f"{namespace}_"):
            return f"{namespace}/{name[len(namespace) + 1 :]}"
    return name


def answer_in(envelope: Envelope) -> Response | None:
    """The answer that a message is, if it comes from the hub and is one."""
    message = envelope.message
    coming = envelope.context.direction is MessageDirection.SERVER_TO_CLIENT
    return message if coming and isinstance(message, Response) else None


class CallInterceptor(ABC):
    """An interceptor of tool calls: what it refuses is a result of the tool, in MMP's shape."""

    name: str
    guards = False

    async def intercept(self, envelope: Envelope) -> Verdict:
        """What is to become of the message."""
        try:
            verdict = await self.judge(envelope)
        except e.FolkmootError as error:
            if (response := answer_in(envelope)) is not None:
                return Modify(with_error(response, error))
            verdict = Block(error)
        if isinstance(verdict, Block) and tool_call(envelope) is not None:
            return Mock(error_result(verdict.error))
        return verdict

    @abstractmethod
    async def judge(self, envelope: Envelope) -> Verdict:
        """The same; an error that is raised refuses a call, or takes the place of its answer."""


def payload_of(response: Response) -> dict[str, Any] | None:
    """The one JSON object in a tool's result; None when the call failed.

    Raises `AnswerInvalid` for anything else: what the bridge cannot read it cannot vouch for.
    """
    if response.result is msgspec.UNSET:
        return None
    result = response.result
    try:
        if result.get("isError"):
            return None
        [block] = result["content"]
        payload = strict.decode_object(block["text"].encode(), TEXT_LIMITS)
    except (
        AttributeError, KeyError, TypeError, ValueError, e.MessageError,
    ):  # fmt: skip
        raise e.AnswerInvalid(
            "The hub's answer cannot be understood, so it is not shown."
        ) from None
    return payload


def with_payload(response: Response, payload: dict[str, Any]) -> Response:
    """The answer with another object in it, and nothing beside it that says something else."""
    kept = {name: it for name, it in response.result.items() if name != "structuredContent"}
    text = json.dumps(payload, ensure_ascii=False, separators=(",", ":"))
    return replace(response, result={**kept, "content": [{"type": "text", "text": text}]})


def with_error(response: Response, error: e.FolkmootError) -> Response:
    """The answer to a call with an error in its place, of the type that its era names."""
    named = isinstance(response.result, dict) and RESULT_TYPE in response.result
    kind = {RESULT_TYPE: COMPLETE} if named else {}
    return replace(response, result={**kind, **error_result(error)}, error=msgspec.UNSET)


def error_result(error: e.FolkmootError) -> dict[str, Any]:
    """A result that is an error; those of the bridge's own have a code and more, for programs."""
    payload: dict[str, Any] = {"error": error.message}
    if isinstance(error, e.BridgeError):
        payload |= {"code": error.code, **error.data}
    text = json.dumps(payload, ensure_ascii=False, separators=(",", ":"))
    return {"content": [{"type": "text", "text": text}], "isError": True}


UNAUTHORISED: Final = 401
NO_ACCOUNT: Final = "Authentication required."


class SideHub:
    """Calls tools of the hub as the account, one request and one answer at a time."""

    def __init__(self, url: str, token: str, tokens: TokenSource | None = None) -> None:
        self.url = url
        self._token = token
        self._target = HttpTarget(f"{url}/mcp", described=False, tokens=tokens)

    async def __aenter__(self) -> Self:
        await self._target.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._target.__aexit__()

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """The result of a tool; its refusal is raised as `ToolRefused`, in the hub's own words."""
        body, headers = tool_request("folkmoot-bridge", tool, arguments, self._token)
        status, content = await self._exchange(body, headers)
        try:
            payload, reason = tool_result(msgspec.json.decode(content))
        except (ValueError, RecursionError):
            raise e.AnswerInvalid(f"{self.url}: the hub's answer cannot be understood.") from None
        if reason is not None:
            raise refusal(reason, unauthorised=status == UNAUTHORISED)
        return payload

    async def _exchange(self, body: bytes, headers: dict[str, str]) -> tuple[int, bytes]:
        try:
            async with (
                asyncio.timeout(HUB_ANSWER_SECONDS),
                self._target.ask("POST", headers, body) as answer,
            ):
                content = bytearray()
                async for chunk in answer.chunks():
                    content += chunk
                    if len(content) > MAX_ANSWER_BYTES:
                        raise e.AnswerInvalid(f"{self.url}: the hub's answer is too long.")
        except TimeoutError:
            raise e.HubUnreachable(
                f"{self.url}: no answer within {HUB_ANSWER_SECONDS:g} seconds."
            ) from None
        except e.ServerAnswerInvalid:
            raise e.AnswerInvalid(f"{self.url}: the hub's answer cannot be understood.") from None
        except e.CarryError:
            raise e.HubUnreachable(f"{self.url}: no hub answers there.") from None
        if answer.content_type == EVENT_STREAM:
            return answer.status, last_event(bytes(content))
        return answer.status, bytes(content)


def last_event(stream: bytes) -> bytes:
    """The data of the last event of a stream that has ended: the answer comes last."""
    events = [
        b"\n".join(line[5:].strip() for line in event.splitlines() if line.startswith(b"data:"))
        for event in stream.replace(b"\r\n", b"\n").split(b"\n\n")
    ]
    return next((data for data in reversed(events) if data), b"")


def refusal(reason: str, *, unauthorised: bool = False) -> e.ToolRefused | e.NotSignedIn:
    """The hub's reason as an error."""
    if unauthorised or reason.startswith(NO_ACCOUNT):
        return e.NotSignedIn(
            f"{NO_ACCOUNT} The hub does not accept the saved token; 'folkmoot account recover "
            "HANDLE' gets a new one."
        )
    return e.ToolRefused(reason[:MAX_REASON])
