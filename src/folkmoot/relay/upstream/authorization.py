"""Asking authorization servers: sends the requests of `core.oauth.discovery`, which has the steps.

No request follows a redirect. Addresses that a server names, and not the operator, must be on the
public internet.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

import msgspec

from folkmoot.core.oauth import discovery
from folkmoot.core.oauth.discovery import Answer, Request
from folkmoot.core.oauth.redirects import LOOPBACK
from folkmoot.mcp.client import fetch
from folkmoot.mcp.client.url import HttpUrl
from folkmoot.mcp.wire import ACCEPT_BOTH, JSON

if TYPE_CHECKING:
    from folkmoot.core.oauth.discovery import AuthorizationServer, Challenge, Steps
    from folkmoot.settings.backends import BackendSpec

T = TypeVar("T")

LOCAL: Final = {host.strip("[]") for host in LOOPBACK}
PROBE: Final = Request(
    "",
    "POST",
    (("accept", ACCEPT_BOTH), ("content-type", JSON)),
    b'{"jsonrpc":"2.0","id":1,"method":"ping"}',
)
"""What a server is asked without a token, for its challenge."""


async def find(spec: BackendSpec) -> tuple[AuthorizationServer, Challenge]:
    """Where people sign in to a server, and what it said to somebody without a token."""
    probe = await send(spec, msgspec.structs.replace(PROBE, url=spec.url))
    challenge = discovery.read_challenge(probe.challenges)
    steps = discovery.discover(spec.url, challenge, spec.trusted_issuers)
    return await run(spec, steps), challenge


async def run(spec: BackendSpec, steps: Steps[T]) -> T:
    """Send what the steps ask for, until they come to their end."""
    return await fetch.run(steps, partial(send, spec))


async def send(spec: BackendSpec, request: Request) -> Answer:
    """The answer to one request, which goes where it can go; the server's own can be a stream."""
    admits = None if _is_own(spec, request.url) else fetch.is_public
    return await fetch.send(request, admits=admits, head_only=request.url == spec.url)


def _is_own(spec: BackendSpec, url: str) -> bool:
    """Whether an address is the operator's choice, which can be of any network."""
    there, own = HttpUrl.parse(url), HttpUrl.parse(spec.url)
    chosen = {own.origin, *(HttpUrl.parse(each).origin for each in spec.trusted_issuers)}
    is_local = {there.scheme, own.scheme} == {"http"} and {there.host, own.host} <= LOCAL
    return there.origin in chosen or is_local
