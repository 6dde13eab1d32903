"""What nodes say to each other about a server that one of them links: calls, and answers in frames.

A call is the body of one forwarded request. Its answer is a stream of frames: a letter, the length
of what follows, and JSON.
"""

from __future__ import annotations

import struct
from collections.abc import AsyncGenerator
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import msgspec
from msgspec import Struct, field

from folkmoot.core import errors as e
from folkmoot.core.session import Era
from folkmoot.gateway.model import Inventory, UpstreamRequest
from folkmoot.mcp.client.connection import HttpAnswer, HttpFailure

_HEAD: Final = struct.Struct(">cI")
MAX_FRAME_BYTES: Final = 96 * 1024 * 1024
"""More than the largest inventory of a server."""

MESSAGE, FAILURE, STATE, INVENTORY, TASK, AGREED, CHANGED, DONE = (
    bytes((letter,)) for letter in b"mfsitacd"
)
"""A message of MCP; why there is no answer; how the server is; its lists; a task that has changed;
that changes are announced; that something has changed; that it is done."""

FORWARDED_ERRORS: Final[dict[str, type[e.GatewayError]]] = {
    error.code: error
    for error in (
        e.BackendBusy,
        e.BackendFailed,
        e.BackendTimeout,
        e.BackendUnavailable,
        e.BackendUnknown,
        e.CapabilityMissing,
        e.TaskUnsupported,
    )
}


class NodeRequest(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """An `UpstreamRequest` on its way to the node that links the server."""

    method: str
    params: dict[str, Any]
    person: str = ""
    capabilities: dict[str, Any] = field(default_factory=dict)
    log_level: str | None = None
    progress: bool = False
    repeatable: bool = False
    seconds: float | None = None
    era: Era | None = None
    tasks: bool = False
    tells: bool = False
    """Whether someone is told what the server says meanwhile."""

    @classmethod
    def of(cls, wanted: UpstreamRequest) -> NodeRequest:
        """A request, as it is sent."""
        told = {name: getattr(wanted, name) for name in cls.__struct_fields__ if name != "tells"}
        return cls(**told, tells=wanted.tell is not None)

    def wanted(self) -> UpstreamRequest:
        """The request, with nobody who is told of anything."""
        told = {name: getattr(self, name) for name in self.__struct_fields__ if name != "tells"}
        return UpstreamRequest(**told)


class NodeCall(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """What one node asks the node that links a server."""

    what: Literal["follow", "request", "watch", "restart"]
    namespace: str
    request: NodeRequest | None = None
    person: str = ""
    named: str = ""
    """What is watched: the URI of a resource, or the id of a task."""
    member: str = ""
    """Which of the two it is, as a listen names it."""


class LinkState(Struct, frozen=True):
    """How a server is at the node that links it."""

    state: str
    why: str = ""


class NodeFailure(Struct, frozen=True):
    """Why there is no answer."""

    code: str
    message: str
    data: dict[str, Any] = field(default_factory=dict)

    def raised(self) -> Exception:
        """The same error at this node."""
        if self.code == NOT_LINKED:
            return NotLinkedThere(self.message)
        error = FORWARDED_ERRORS.get(self.code, e.BackendFailed)
        return error(self.message, **self.data)


NOT_LINKED: Final = "not_linked"


class NotLinkedThere(Exception):
    """The node that was asked does not link the server any more, and has done nothing."""


class AnswerFrame(NamedTuple):
    """A part of an answer."""

    kind: bytes
    body: bytes


Frames: TypeAlias = AsyncGenerator[AnswerFrame, None]

encode_json = msgspec.json.Encoder().encode
decode_call = msgspec.json.Decoder(NodeCall).decode
decode_state = msgspec.json.Decoder(LinkState).decode
decode_inventory = msgspec.json.Decoder(Inventory).decode
decode_text = msgspec.json.Decoder(str).decode
decode_failure = msgspec.json.Decoder(NodeFailure).decode


def framed(kind: bytes, body: bytes = b"") -> bytes:
    """A frame as it is sent."""
    return _HEAD.pack(kind, len(body)) + body


async def frames_of(answer: HttpAnswer) -> Frames:
    """The frames of an answer; raises what a node says in place of one."""
    read = bytearray()
    while part := await answer.read():
        read += part
        while len(read) >= _HEAD.size:
            kind, size = _HEAD.unpack_from(read)
            if size > MAX_FRAME_BYTES:
                raise HttpFailure("its answer is too large")
            end = _HEAD.size + size
            if len(read) < end:
                break
            body = bytes(read[_HEAD.size : end])
            del read[:end]
            if kind == FAILURE:
                raise decode_failure(body).raised()
            yield AnswerFrame(kind, body)
