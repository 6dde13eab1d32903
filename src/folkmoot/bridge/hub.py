"""The bridge's own calls to the hub, beside the client's conversation and never within it."""

from __future__ import annotations

import json
from types import TracebackType
from typing import Any, Final, Self

import aiohttp
import msgspec

from folkmoot import __version__
from folkmoot.core.errors import AnswerInvalid, HubUnreachable, NotSignedIn, ToolRefused
from folkmoot.mcp.wire import (
    ACCEPT_BOTH,
    CAPABILITIES_KEY,
    CLIENT_KEY,
    EVENT_STREAM,
    METHOD_HEADER,
    NAME_HEADER,
    TOOLS_CALL,
    VERSION_HEADER,
    VERSION_KEY,
)

PROTOCOL: Final = "2026-07-28"
META: Final = {
    VERSION_KEY: PROTOCOL,
    CLIENT_KEY: {"name": "folkmoot-bridge", "version": __version__},
    CAPABILITIES_KEY: {},
}
ANSWER_SECONDS: Final = 30.0
MOST_BYTES: Final = 16 * 1024 * 1024
"""A page of mail has one mebibyte of boxes; its longest single message less than half of one."""
MOST_REASON: Final = 500
UNAUTHORISED: Final = 401
NO_ACCOUNT: Final = "Authentication required."


class SideHub:
    """Calls tools of the hub as the account, one request and one answer at a time."""

    def __init__(self, url: str, token: str) -> None:
        self.url = url
        self._token = token
        self._kept: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        return self

    @property
    def _session(self) -> aiohttp.ClientSession:
        """The connections, made when the first is needed."""
        if self._kept is None:
            self._kept = aiohttp.ClientSession(
                timeout=aiohttp.ClientTimeout(total=ANSWER_SECONDS),
                cookie_jar=aiohttp.DummyCookieJar(),
                trust_env=False,
            )
        return self._kept

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._kept is not None:
            await self._kept.close()

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """The result of a tool; its refusal is raised as `ToolRefused`, in the hub's own words."""
        params = {"name": tool, "arguments": arguments, "_meta": META}
        request = {"jsonrpc": "2.0", "id": 1, "method": TOOLS_CALL, "params": params}
        headers = {
            "accept": ACCEPT_BOTH,
            "content-type": "application/json",
            VERSION_HEADER: PROTOCOL,
            METHOD_HEADER: TOOLS_CALL,
            NAME_HEADER: tool,
            "authorization": f"Bearer {self._token}",
            "user-agent": f"folkmoot/{__version__}",
        }
        status, body = await self._exchange(msgspec.json.encode(request), headers)
        return self._result(status, body)

    async def _exchange(self, body: bytes, headers: dict[str, str]) -> tuple[int, bytes]:
        try:
            async with self._session.post(
                f"{self.url}/mcp", data=body, headers=headers, allow_redirects=False
            ) as answer:
                content = bytearray()
                async for chunk in answer.content.iter_any():
                    content += chunk
                    if len(content) > MOST_BYTES:
                        raise self._not_understood()
        except TimeoutError:
            raise HubUnreachable(
                f"{self.url}: no answer within {ANSWER_SECONDS:g} seconds."
            ) from None
        except (aiohttp.ClientError, OSError):
            raise HubUnreachable(f"{self.url}: no hub answers there.") from None
        if answer.content_type == EVENT_STREAM:
            return answer.status, last_event(bytes(content))
        return answer.status, bytes(content)

    def _result(self, status: int, body: bytes) -> dict[str, Any]:
        try:
            answer = msgspec.json.decode(body)
            error = answer.get("error")
            if error is not None:
                raise refusal(str(error["message"]), unauthorised=status == UNAUTHORISED)
            result = answer["result"]
            payload = json.loads(result["content"][0]["text"])
            failed = result.get("isError", False)
        except (
            msgspec.DecodeError, TypeError, KeyError, IndexError, ValueError, AttributeError,
            RecursionError,
        ):  # fmt: skip
            raise self._not_understood() from None
        if not isinstance(payload, dict):
            raise self._not_understood()
        if failed:
            raise refusal(str(payload.get("error", "The hub refused without a reason.")))
        return payload

    def _not_understood(self) -> AnswerInvalid:
        return AnswerInvalid(f"{self.url}: the hub's answer cannot be understood.")


def last_event(stream: bytes) -> bytes:
    """The data of the last event of a stream that has ended: the answer comes last."""
    events = [
        b"\n".join(line[5:].strip() for line in event.splitlines() if line.startswith(b"data:"))
        for event in stream.replace(b"\r\n", b"\n").split(b"\n\n")
    ]
    return next((data for data in reversed(events) if data), b"")


def refusal(reason: str, *, unauthorised: bool = False) -> ToolRefused | NotSignedIn:
    """The hub's reason as an error."""
    if unauthorised or reason.startswith(NO_ACCOUNT):
        return NotSignedIn(
            f"{NO_ACCOUNT} The hub does not accept the saved token; 'folkmoot account recover "
            "HANDLE' gets a new one."
        )
    return ToolRefused(reason[:MOST_REASON])
