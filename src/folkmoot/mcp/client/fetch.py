"""Fetches a small document from an address that a stranger chose, and sends what a sign-in asks.

The hub can reach what a stranger cannot: its own machine, its network, the cloud's services. So
only addresses of the public internet are connected to, judged after the name was resolved and by
the very address that is then used; nothing is followed, and an answer has little room and time.
"""

from __future__ import annotations

import asyncio
import ipaddress
from typing import TYPE_CHECKING, Final, TypeVar

from folkmoot.core import errors as e
from folkmoot.core.limits import MAX_UPSTREAM_ANSWER_BYTES
from folkmoot.core.oauth.discovery import Answer, Request, Steps
from folkmoot.core.transport import Headers
from folkmoot.mcp.client.connection import read_whole
from folkmoot.mcp.client.target import HttpTarget

if TYPE_CHECKING:
    import ssl
    from collections.abc import Awaitable, Callable

T = TypeVar("T")

FETCH_SECONDS: Final = 5.0
ANSWER_SECONDS: Final = 15.0
# Python 3.11 calls some of these global: addresses that stand for IPv4 ones, and tunnels.
UNICAST: Final = ipaddress.IPv6Network("2000::/3")
TUNNELS: Final = tuple(map(ipaddress.IPv6Network, ("2002::/16", "2001::/32")))
SPECIAL: Final = ipaddress.IPv4Network("192.0.0.0/24")


def is_public(address: str) -> bool:
    """Whether an address is one of the public internet, and of one machine."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        # A scope, such as `fe80::1%eth0`, is of this network.
        return False
    if not found.is_global or found.is_multicast:
        return False
    if isinstance(found, ipaddress.IPv4Address):
        return found not in SPECIAL
    return found in UNICAST and not any(found in each for each in TUNNELS)


async def fetch(
    url: str,
    most: int,
    *,
    admits: Callable[[str], bool] = is_public,
    tls: ssl.SSLContext | None = None,
) -> tuple[str, bytes]:
    """The media type and body of the document at an https address, or a `CarryError` why none."""
    if not url.startswith("https://"):
        raise e.ServerUnreachable("Only https addresses are fetched.")
    asked = Request(url, headers=(("accept", "application/json"),))
    found = await send(asked, admits=admits, tls=tls, most=most, seconds=FETCH_SECONDS)
    if found.status != 200:
        raise e.ServerAnswerInvalid("The server has no such document.")
    return found.type, found.body


async def send(
    request: Request,
    *,
    admits: Callable[[str], bool] | None = None,
    tls: ssl.SSLContext | None = None,
    most: int = MAX_UPSTREAM_ANSWER_BYTES,
    seconds: float = ANSWER_SECONDS,
    head_only: bool = False,
) -> Answer:
    """Send one request of a sign-in, which can hold a secret: it follows no redirect.

    It goes to any address unless `admits` says otherwise. Where the body could be a stream without
    end, it is `head_only`.
    """
    target = HttpTarget(
        request.url, tls=tls, connect_seconds=seconds, described=False, admits=admits
    )
    asked = target.ask(request.method, Headers(request.headers), request.body or None, follow=False)
    try:
        async with asyncio.timeout(seconds), target, asked as answer:
            body = b"" if head_only else await read_whole(answer, most)
    except TimeoutError:
        raise e.ServerTimeout(f"The server at {target.shown} did not answer in time.") from None
    headers = answer.headers
    return Answer(
        answer.status,
        body,
        tuple(headers.get_all("www-authenticate")),
        (headers.get("content-type") or "").partition(";")[0].strip().lower(),
        headers.get("location") or "",
    )


async def run(steps: Steps[T], send: Callable[[Request], Awaitable[Answer]] = send) -> T:
    """Send what the steps of a sign-in ask for, until they come to their end."""
    try:
        request = next(steps)
        while True:
            request = steps.send(await send(request))
    except StopIteration as stop:
        found: T = stop.value
        return found
