"""The body of a request, whole; and a request whose body was read already."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from starlette.types import Message, Receive


async def read_body(receive: Receive) -> bytes | None:
    """The whole body, or nothing if the client has left.

    How long a body may be, and how long it may take, is watched further out. It is kept as what it
    is, in however many parts it came: each of them may be a single byte.
    """
    message = await receive()
    body: bytes = message.get("body", b"")
    if message.get("more_body", False):
        gathered = bytearray(body)
        while message.get("more_body", False):
            message = await receive()
            gathered += message.get("body", b"")
        body = bytes(gathered)
    return body if message["type"] == "http.request" else None


def replaying(body: bytes, receive: Receive) -> Receive:
    """The body as if it had come at once, then what comes after it."""
    told = False

    async def replay() -> Message:
        nonlocal told
        if told:
            return await receive()
        told = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay
