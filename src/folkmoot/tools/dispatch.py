"""One call from its name to its answer, whichever way it came in."""

from __future__ import annotations

import logging
import secrets
from asyncio import sleep
from collections import Counter
from typing import TYPE_CHECKING, Any

from folkmoot.core.errors import (
    AuthenticationRequired,
    CapabilityError,
    FolkmootError,
    InternalError,
    KindError,
    MessageError,
    PolicyError,
    QuotaExceeded,
    RateLimited,
    RoomDoorError,
    RoomError,
    ToolError,
    UnknownTool,
)
from folkmoot.tools.catalogue import CATALOGUE
from folkmoot.tools.decode import decode, shown
from folkmoot.tools.model import Call, Tool, ToolResult, with_notice

if TYPE_CHECKING:
    from folkmoot.accounts import Account
    from folkmoot.tools.catalogue import Catalogue
    from folkmoot.tools.model import Arguments, Caller, Payload, Rate, Services

__all__ = ["Dispatcher", "UnknownTool"]

logger = logging.getLogger("folkmoot.tools")

OF_ROOMS = (RoomDoorError, RoomError, PolicyError, KindError, CapabilityError, MessageError)
"""What a room refuses is for the caller to read too, with a code and what a program may want."""

NOBODY: Any = None
"""In place of the account of a tool that works without one."""


class Dispatcher:
    """Calls tools: authentication, then arguments, then limits, then the handler."""

    def __init__(self, services: Services, catalogue: Catalogue = CATALOGUE) -> None:
        self.catalogue = catalogue
        self._services = services
        self.calls: Counter[tuple[str, str]] = Counter()
        """How many calls each tool has answered, by its name and whether that was an error."""

    async def call(self, name: str, arguments: Any, caller: Caller) -> ToolResult:
        """The answer of one call; only a name that is nobody's is raised, as `UnknownTool`."""
        tool = self.catalogue.find(name)
        if tool is None:
            raise UnknownTool(f"Unknown tool: {shown(name)}.")
        try:
            result = await self._perform(tool, arguments, caller)
        except (ToolError, *OF_ROOMS) as error:
            result = failure(error)
        except FolkmootError as error:
            # Its own sentence may name files; what its kind means is enough for a stranger.
            logger.warning("a tool failed", extra={"tool": tool.name, "error": error.message})
            result = failure(InternalError((type(error).__doc__ or "").strip()))
        except Exception:
            mark = secrets.token_hex(8)
            logger.exception("a tool failed", extra={"tool": tool.name, "id": mark})
            sentence = f"The hub failed to answer. Its log has the details under the id {mark}."
            result = failure(InternalError(sentence))
        self.calls[tool.name, "error" if result.is_error else "ok"] += 1
        if logger.isEnabledFor(logging.DEBUG):
            logger.debug("tool called", extra={"tool": tool.name, "is_error": result.is_error})
        return result

    async def _perform(self, tool: Tool, arguments: Any, caller: Caller) -> ToolResult:
        account: Account = caller.account or NOBODY
        if not tool.public and caller.account is None:
            raise AuthenticationRequired
        call: Call[Any] = Call(
            services=self._services,
            caller=caller,
            account=account,
            arguments=decode(tool, arguments),
        )
        payload = await self._within_limits(tool, call)
        return ToolResult(payload=with_notice(tool, payload), delivered=call.delivered)

    async def _within_limits(self, tool: Tool, call: Call[Arguments]) -> Payload:
        if not tool.rates:
            return await tool.handler(call)
        limits = self._services.limits
        keys = [
            (rate, key)
            for rate in tool.rates
            if (key := rate.key(call.caller, call.arguments)) is not None
        ]
        # Counted before, so that calls at the same moment cannot all pass below the limit.
        delay = 0.0
        for place, (rate, key) in enumerate(keys):
            try:
                delay += limits.take(rate.limit, key)
            except RateLimited:
                for earlier, its_key in keys[:place]:
                    limits.give_back(earlier.limit, its_key)
                raise
        if delay:
            await sleep(delay)
        try:
            payload = await tool.handler(call)
        except FolkmootError as error:
            self._give_back(keys, error)
            raise
        self._give_back(keys, None)
        return payload

    def _give_back(self, keys: list[tuple[Rate, str]], outcome: FolkmootError | None) -> None:
        """Take back what turned out not to count."""
        for rate, key in keys:
            if not rate.counts(outcome):
                self._services.limits.give_back(rate.limit, key)


def failure(error: FolkmootError) -> ToolResult:
    """An error in the shape of the specification; a limit also says when, for programs."""
    payload: dict[str, Any] = {"error": error.message}
    if isinstance(error, (*OF_ROOMS, QuotaExceeded)):
        payload |= {"code": error.code, **error.data}
    if isinstance(error, RateLimited):
        payload["retry_after"] = error.data["retry_after"]
    return ToolResult(payload=payload, is_error=True)
