"""Asks the proxies that the hub's own user runs on this machine, each on its operator's socket.

Nothing says where a proxy is but a socket in the user's private folder. The folder and the socket
must be this user's, and nobody else may write there; the proxy, for its part, answers its own user
alone. Each is asked for a short time, all of them at once, and nothing here blocks the loop.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import msgspec

from folkmoot.core.errors import CommandInvalid, NotFound
from folkmoot.datafolder.limits import (
    MAX_PROXIES_ASKED,
    MAX_PROXY_ANSWER,
    MAX_PROXY_ERROR,
    PROXY_SECONDS,
)
from folkmoot.datafolder.sockets import proxy_sockets, socket_address

if TYPE_CHECKING:
    from pathlib import Path


class LocalProxies:
    """The running proxies of this user, by their process ids."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder

    async def ask_all(self, target: str) -> dict[int, Any]:
        """What each of them answers to the same question; one that does not answer is left out."""
        found = await asyncio.to_thread(proxy_sockets, self._folder)
        asked = dict(list(found.items())[:MAX_PROXIES_ASKED])
        answers = await asyncio.gather(
            *(exchange(path, "GET", target) for path in asked.values()), return_exceptions=True
        )
        return {
            pid: answer
            for pid, answer in zip(asked, answers, strict=True)
            if not isinstance(answer, BaseException)
        }

    async def ask(self, pid: int, method: str, target: str, content: Any = None) -> Any:
        """What one of them answers; its refusal is raised."""
        found = await asyncio.to_thread(proxy_sockets, self._folder)
        if pid not in found:
            raise CommandInvalid(f"No proxy of the hub's user runs as process {pid}.")
        return await exchange(found[pid], method, target, content)


async def exchange(socket: Path, method: str, target: str, content: Any = None) -> Any:
    """One request on a Unix socket. Raises `CommandInvalid` where no answer can be had."""
    # It takes a while to import, which programs that ask no proxy need not wait for.
    import aiohttp

    sent = None if content is None else msgspec.json.encode(content)
    headers = {"accept": "application/json"}
    if sent is not None:
        headers["content-type"] = "application/json"
    try:
        with socket_address(socket) as address:
            async with (
                aiohttp.ClientSession(
                    connector=aiohttp.UnixConnector(address),
                    timeout=aiohttp.ClientTimeout(total=PROXY_SECONDS),
                ) as session,
                session.request(
                    method, f"http://folkmoot{target}", data=sent, headers=headers
                ) as response,
            ):
                body = await limited(response.content)
                status = response.status
    except (OSError, TimeoutError, aiohttp.ClientError):
        raise CommandInvalid("The proxy has ended, or does not answer.") from None
    return understood(status, body)


async def limited(content: Any) -> bytes:
    """A body that is not too long."""
    body = bytearray()
    async for part in content.iter_chunked(65_536):
        body += part
        if len(body) > MAX_PROXY_ANSWER:
            raise CommandInvalid(
                f"The proxy's answer is longer than {MAX_PROXY_ANSWER:,} bytes. "
                "Use 'folkmoot proxy held' on its machine."
            )
    return bytes(body)


def understood(status: int, body: bytes) -> Any:
    """The answer; a refusal is raised."""
    try:
        answer = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise CommandInvalid("The proxy's answer cannot be understood.") from None
    if status < 400:
        return answer
    told = answer.get("error") if isinstance(answer, dict) else None
    message = told.get("message") if isinstance(told, dict) else None
    if status == NotFound.http or not isinstance(message, str):
        raise CommandInvalid("The proxy is of another version. Restart it.")
    raise CommandInvalid(message[:MAX_PROXY_ERROR])
