"""An account for whoever fills in the form of an invite: made as `msg/register` makes it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, TypeAlias

import msgspec

from folkmoot.core.errors import FolkmootError
from folkmoot.core.message import Request
from folkmoot.core.ports import Clock
from folkmoot.gateway.rights import HubRights
from folkmoot.operations.call import Caller, ToolResult
from folkmoot.operations.dispatch import CALLER, METHOD, failure
from folkmoot.pipeline import Pipeline, enveloped
from folkmoot.web.invites import Joined

if TYPE_CHECKING:
    from starlette.requests import Request as HttpRequest
    from starlette.types import Scope

    from folkmoot.operations.call import Bind

Locate: TypeAlias = Callable[["Scope"], str]
"""Where a request came from, as a key to count by."""

TOO_OFTEN = 429
NOT_DONE = 400


class Browsers(Protocol):
    """Signs browsers in."""

    def comes_from_here(self, scope: Scope) -> bool:
        """Whether a form was sent by a page of the hub, in a browser that takes its cookie."""

    async def sign_in(self, scope: Scope, bind: Bind, caller: Caller) -> dict[str, str]:
        """The header that signs a browser in; empty where that cannot be."""


class Joining:
    """Takes a form the one way through, so that policy, limits and interceptors hold for it too."""

    def __init__(
        self,
        pipeline: Pipeline,
        rights: HubRights,
        clock: Clock,
        locate: Locate,
        browsers: Browsers,
    ) -> None:
        self._pipeline = pipeline
        self._rights = rights
        self._clock = clock
        self._locate = locate
        self._browsers = browsers

    async def __call__(self, request: HttpRequest, base: str, handle: str, code: str) -> Joined:
        """Register with an invite, for someone who has no account yet, and sign them in."""
        arguments = {"handle": handle, "invite_code": code}
        message = Request(
            id=1, method=METHOD, params={"name": "msg/register", "arguments": arguments}
        )
        caller = Caller(
            address=self._locate(request.scope),
            base_url=base,
            binds=self._browsers.comes_from_here(request.scope),
        )
        principal, rights = self._rights.of(None)
        envelope = enveloped(self._clock, message, principal, extensions={CALLER: caller})
        try:
            result = await self._pipeline.run(envelope, principal, rights)
        except FolkmootError as error:
            return joined(failure(error))
        cookie: dict[str, str] = {}
        if result.bind is not None:
            cookie = await self._browsers.sign_in(request.scope, result.bind, caller)
        return joined(result, cookie)


def joined(result: ToolResult, cookie: dict[str, str] | None = None) -> Joined:
    """What the page says of a registration."""
    told = msgspec.to_builtins(result.payload)
    if result.is_error:
        status = TOO_OFTEN if "retry_after" in told else NOT_DONE
        return Joined(error=told["error"], status=status)
    secrets = told["token"], told["recovery_code"]
    return Joined(told["handle"], *secrets, cookie=cookie or {})
