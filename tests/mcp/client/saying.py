"""What tests of links share: messages to send, and small servers to send them to."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from folkmoot.clock import SystemClock
from folkmoot.core import strict
from folkmoot.core.message import (
    ErrorObject,
    Notification,
    ProtocolMessage,
    Request,
    Response,
    decode_message,
)
from folkmoot.mcp.carrier import PROXY_LIMITS, Carrier
from folkmoot.mcp.client.http import HttpLink, HttpTarget

CLOCK = SystemClock()


@asynccontextmanager
async def linked(
    url: str, kind: Any = HttpLink, *, target: Any = None, **options: Any
) -> AsyncIterator[Any]:
    """A link to a server over HTTP; `target` are the options of its address."""
    async with HttpTarget(url, **target or {}) as there, kind(there, CLOCK, **options) as link:
        yield link


def request(method: str, id_: int | str = 1, **params: Any) -> Request:
    """A request as it comes from a client: with its bytes."""
    message = said({"jsonrpc": "2.0", "id": id_, "method": method, "params": params})
    assert isinstance(message, Request)
    return message


def notice(method: str, **params: Any) -> Notification:
    message = said({"jsonrpc": "2.0", "method": method, "params": params})
    assert isinstance(message, Notification)
    return message


def said(value: dict[str, Any]) -> ProtocolMessage:
    return decode_message(strict.encode(value), PROXY_LIMITS)


def failure(message: ProtocolMessage) -> tuple[Any, str, dict[str, Any]]:
    """The id, the sentence and the data of an error."""
    assert isinstance(message.error, ErrorObject), message.result
    return message.id, message.error.message, message.error.data


def python(code: str) -> list[str]:
    """A command that starts quickly."""
    return [sys.executable, "-I", "-S", "-c", code]


async def at_rest(count: Callable[[], int]) -> int:
    """What is counted, once it does not grow any more; if it only pauses, it is less."""
    before, now = -1, count()
    while before != now:
        await asyncio.sleep(0.1)
        before, now = now, count()
    return now


async def ask(link: Carrier, message: ProtocolMessage) -> Response:
    """Send a request; the answer, which is what comes next."""
    await link.send(message)
    return await answer(link)


async def answer(link: Carrier) -> Response:
    found = await link.receive()
    assert isinstance(found, Response)
    return found


async def refusal(link: Carrier, message: ProtocolMessage) -> tuple[Any, str, dict[str, Any]]:
    """Send a request that fails: the id, the sentence and the data of its error."""
    return failure(await ask(link, message))


def open_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def is_running(process: int | None) -> bool:
    """Whether a process still does something; one that nobody has buried does not."""
    try:
        status = Path(f"/proc/{process}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return status.rpartition(")")[2].split()[0] not in "ZX"
