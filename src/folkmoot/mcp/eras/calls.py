"""Calls: what stateless clients have asked of a handshake server, and it has not answered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from folkmoot.core.message import MessageId, Notification, Request, Response, replace, same_id
from folkmoot.mcp.eras.steps import Ids, Step, ToClient
from folkmoot.mcp.wire import (
    ASKING,
    CAPABILITIES_KEY,
    LEVEL_KEY,
    LEVELS,
    MOST_OPEN,
    members_of,
    meta_of,
    params_of,
)

if TYPE_CHECKING:
    from folkmoot.mcp.eras.questions import Parked


class Call:
    """A request of a stateless client's that the server has not answered."""

    def __init__(self, request: Request) -> None:
        self.method = request.method
        self.server_id: MessageId | None = None
        """The id that the server knows it by, once it was sent, and the token of its progress."""
        self.server_token: Any = None
        self.early: Request | None = None
        """The request itself where the server got it before it was initialised."""
        self.parked: Parked | None = None
        self.take(request)

    def take(self, request: Request) -> None:
        """Have this request be the one that gets the answer."""
        meta = meta_of(request)
        self.client_id = request.id
        self.client_token = meta.get("progressToken")
        self.capabilities = members_of(meta.get(CAPABILITIES_KEY))
        self.level = _level_of(meta)

    def wants(self, place: int) -> bool:
        """Whether its client wants to hear log messages of a level."""
        return self.level is not None and self.level <= place

    def send(self, server_id: MessageId) -> None:
        """Note that the server has it now."""
        self.server_id = server_id
        self.server_token = self.client_token


class Calls:
    """The open calls, by the ids that the server knows."""

    def __init__(self, ids: Ids) -> None:
        self._ids = ids
        self._calls: dict[MessageId, Call] = {}

    @property
    def full(self) -> bool:
        """Whether no more are taken."""
        return len(self._calls) >= MOST_OPEN

    def add(self, call: Call, message_id: MessageId) -> MessageId:
        """The id to send a call under: its own, unless the server still knows that."""
        server_id = message_id if message_id not in self._calls else self._ids.next()
        self._calls[server_id] = call
        call.send(server_id)
        return server_id

    def adopt(self, request: Request) -> None:
        """Take over a request that the server got before it was initialised."""
        call = self._calls[request.id] = Call(request)
        call.send(request.id)
        call.early = request

    def server_id(self, message_id: MessageId) -> MessageId | None:
        """The id by which the server knows the call that a client has under this one."""
        for server_id, call in self._calls.items():
            if same_id(call.client_id, message_id):
                return server_id
        return None

    def answered(self, answer: Response) -> Call | None:
        """The call that an answer is for, which is open no more."""
        return None if answer.id is None else self._calls.pop(answer.id, None)

    def drop(self, call: Call) -> None:
        """Wait for the answer to a call no more."""
        if call.server_id is not None and self._calls.get(call.server_id) is call:
            del self._calls[call.server_id]

    def cancel(self, notice: Notification) -> Notification | None:
        """A client's cancellation as the server understands it, if there is something to cancel."""
        cancelled = params_of(notice).get("requestId")
        for server_id, call in list(self._calls.items()):
            if same_id(call.client_id, cancelled) and call.parked is None:
                del self._calls[server_id]
                return _naming(notice, "requestId", server_id)
        return None

    def asking(self) -> list[Call]:
        """The calls during which a server may ask something, the newest first."""
        return [call for call in reversed(self._calls.values()) if call.method in ASKING]

    def progress(self, notice: Notification) -> list[Step]:
        """Progress under the token that the client waits with, if it waits."""
        token = params_of(notice).get("progressToken")
        for call in self._calls.values():
            if token is not None and same_id(call.server_token, token):
                if call.parked is not None or call.client_token is None:
                    return []
                told = _naming(notice, "progressToken", call.client_token)
                return [ToClient(told, about=call.client_id)]
        return [ToClient(notice)]

    def log(self, notice: Notification, about: MessageId | None, *, one_client: bool) -> list[Step]:
        """A log message, if it is wanted, and can be of no more than one client's calls."""
        calls = list(self._calls.values())
        if about is not None:
            calls = [call for call in calls if same_id(call.server_id, about)]
        if not one_client and len(calls) != 1:
            return []
        level = params_of(notice).get("level")
        place = LEVELS.index(level) if level in LEVELS else len(LEVELS) - 1
        wanted = any(call.parked is None and call.wants(place) for call in calls)
        only = calls[0].client_id if len(calls) == 1 else None
        return [ToClient(notice, about=only)] if wanted else []


def _naming(notice: Notification, member: str, name: Any) -> Notification:
    if same_id(params_of(notice).get(member), name):
        return notice
    return replace(notice, params=params_of(notice) | {member: name})


def _level_of(meta: dict[str, Any]) -> int | None:
    """The place of the level of log messages that a request wants."""
    level = meta.get(LEVEL_KEY)
    return LEVELS.index(level) if level in LEVELS else None
