"""A server's answer on its way to the client: one message, a stream of them, or neither."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from folkmoot.core.errors import ServerAnswerInvalid
from folkmoot.core.message import encode_message
from folkmoot.mcp.client.headers import ANSWER_HEADERS, allowed
from folkmoot.mcp.framing import encode_event
from folkmoot.mcp.server.responses import say
from folkmoot.mcp.wire import EVENT_STREAM

if TYPE_CHECKING:
    import aiohttp
    from starlette.types import Send

    from folkmoot.core.message import Response
    from folkmoot.core.transport import Headers
    from folkmoot.relay.replies import Replies
    from folkmoot.relay.steps import Envelope

JSON: Final = "application/json"
ACCEPTED: Final = 202


class Answering:
    """The answer to one request of a client's."""

    def __init__(self, replies: Replies, most: int, send: Send) -> None:
        self._replies = replies
        self._most = most
        self._send = send
        self._begun = False
        self._kept: bytes | None = None

    async def kept(self, answer: aiohttp.ClientResponse) -> bytes:
        """The whole answer, to be looked at before it is passed on; nothing of a stream."""
        if answer.content_type == EVENT_STREAM:
            return b""
        self._kept = await self._whole(answer)
        return self._kept

    async def relay(self, answer: aiohttp.ClientResponse) -> None:
        """Pass the server's answer on, each message in it through the steps."""
        headers = allowed(answer.headers.items(), ANSWER_HEADERS)
        if answer.content_type == JSON or self._kept is not None:
            body = await self._whole(answer) if self._kept is None else self._kept
            body = await self._replies.message(body, answer.status, headers)
            await self._head(answer.status, headers, len(body))
            await self._part(body, more=False)
            return
        await self._head(answer.status, headers)
        streaming = answer.content_type == EVENT_STREAM
        async for chunk in answer.content.iter_any():
            # What holds no message is passed on as it is.
            await self._part(await self._replies.events(chunk) if streaming else chunk)
        await self._part(b"", more=False)

    async def fail(self, told: Response, status: int) -> None:
        """Tell the client that there is no answer: by an answer of ours, if none has begun."""
        if not self._begun:
            await say_json(self._send, told, status)
            return
        if told.id is not None:
            await self._part(encode_event(encode_message(told), event_type="message"))
        await self._part(b"", more=False)

    async def _whole(self, answer: aiohttp.ClientResponse) -> bytes:
        body = bytearray()
        async for chunk in answer.content.iter_any():
            body += chunk
            if len(body) > self._most:
                raise ServerAnswerInvalid(
                    f"The server's answer has more than {self._most:,} bytes."
                )
        return bytes(body)

    async def _head(self, status: int, headers: Headers, length: int | None = None) -> None:
        told = [(n.encode("latin-1"), v.encode()) for n, v in headers]
        if length is not None:
            told.append((b"content-length", b"%d" % length))
        self._begun = True
        await self._send({"type": "http.response.start", "status": status, "headers": told})

    async def _part(self, body: bytes, *, more: bool = True) -> None:
        await self._send({"type": "http.response.body", "body": body, "more_body": more})


async def settle(send: Send, answer: Envelope | None) -> None:
    """End an exchange that nothing of goes to the server."""
    if answer is None:
        await say(send, ACCEPTED)
    else:
        await say_json(send, answer.message)


async def say_json(send: Send, answer: Response, status: int = 200) -> None:
    """Answer with a message of our own."""
    await say(send, status, encode_message(answer))
