"""Open requests: who asked whom, and so who may answer, report progress or cancel."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from folkmoot.core import errors as e
from folkmoot.core.entity import Entity
from folkmoot.core.kinds import Kind, parse
from folkmoot.core.mcpx import McpxMessage
from folkmoot.core.message import MessageId, is_message_id
from folkmoot.core.strict import same
from folkmoot.mcp.wire import CANCELLED
from folkmoot.rooms.limits import MAX_PAYLOAD_ID, RoomBounds
from folkmoot.rooms.machine.model import BACKEND, CancelBackendCall, Effect

if TYPE_CHECKING:
    from folkmoot.rooms.machine.state import Deadlines

Key: TypeAlias = tuple[str, str, type, MessageId]
Standing: TypeAlias = Literal["waiting", "running", "interrupted"]
"""Whether an open request was begun, and whether the connection that began it is gone for good."""


class OpenRequest(Struct, frozen=True):
    """A request without an answer yet. Accounts decide; names are for display."""

    id: str
    kind: str
    """The effective kind."""
    payload_id: MessageId
    requester: str
    requester_name: str
    target: str
    target_name: str
    deadline: float
    progress_token: Any = None
    proposer_name: str | None = None
    """Whose proposal it fulfils."""
    seq: int = 0
    begun_by: str | None = None
    """The id of the target's connection that began it."""
    latest: float = 0.0
    """Until when progress may keep it open."""

    @property
    def key(self) -> Key:
        """What no two open requests have in common; `1` and `"1"` are two ids."""
        return (self.requester, self.target, type(self.payload_id), self.payload_id)

    @property
    def answer_kind(self) -> Kind:
        """The effective kind of its answer."""
        return parse(f"mcp.response{self.kind.removeprefix('mcp.request')}")

    @property
    def answer_to(self) -> tuple[str, ...]:
        """Whom the answer is for: the requester, and the proposer of what is being fulfilled."""
        asked, proposed = self.requester_name, self.proposer_name
        return (asked,) if proposed is None or proposed == asked else (asked, proposed)


class Requests(Entity):
    """The open requests of a room, found by id, by who was asked and by who asked."""

    bounds: RoomBounds
    deadlines: Deadlines
    _open: dict[str, OpenRequest] = {}
    _keys: set[Key] = set()
    _asked: dict[str, dict[str, None]] = {}
    _asking: dict[str, int] = {}
    _interrupted: set[str] = set()

    def __iter__(self) -> Iterator[OpenRequest]:
        return iter(self._open.values())

    def __len__(self) -> int:
        return len(self._open)

    def get(self, id_: str) -> OpenRequest | None:
        """The open request with this id."""
        return self._open.get(id_)

    def check_new(
        self, requester: str, target: str, payload: Mapping[str, Any], id_: str | None = None
    ) -> None:
        """Refuse a request that could be taken for an open one, or that is too much to keep."""
        payload_id = payload["id"]
        if id_ in self._open:
            raise e.IdUsed("An open request of the room has this id.")
        if type(payload_id) is str and len(payload_id) > MAX_PAYLOAD_ID:
            raise e.PayloadIdInvalid(
                f'"payload.id" may have at most {MAX_PAYLOAD_ID:,} characters.'
            )
        token = progress_token(payload)
        if token is not None and (not is_message_id(token) or len(str(token)) > MAX_PAYLOAD_ID):
            raise e.PayloadInvalid(
                "A progressToken is a string that is not too long, or an integer."
            )
        if (requester, target, type(payload_id), payload_id) in self._keys:
            raise e.RequestIdOpen("You have an open request to this participant with the same id.")
        if (
            len(self._open) >= self.bounds.open_requests
            or self._asking.get(requester, 0) >= self.bounds.open_requests_each
        ):
            raise e.TooManyOpen("Too many requests are open.")

    def open(self, request: OpenRequest) -> None:
        """Wait for an answer."""
        self._open[request.id] = request
        self._keys.add(request.key)
        self._asked.setdefault(request.target, {})[request.id] = None
        self._asking[request.requester] = self._asking.get(request.requester, 0) + 1
        self.deadlines.set("request", request.id, request.deadline)

    def extend(self, id_: str, until: float) -> None:
        """Wait longer for an answer: its progress was told. There is a bound to that."""
        request = self._open.get(id_)
        if request is not None and min(until, request.latest) > request.deadline:
            extended = replace(request, deadline=min(until, request.latest))
            self._open[id_] = extended
            self.deadlines.set("request", id_, extended.deadline)

    def close(self, id_: str) -> OpenRequest | None:
        """Wait no more; the request, if it was open."""
        request = self._open.pop(id_, None)
        if request is None:
            return None
        self._keys.discard(request.key)
        _drop(self._asked, request)
        self._asking[request.requester] -= 1
        if not self._asking[request.requester]:
            del self._asking[request.requester]
        self.deadlines.drop("request", id_)
        self.deadlines.drop("begun", id_)
        self._interrupted.discard(id_)
        return request

    def standing(self, request: OpenRequest) -> Standing:
        """How far an open request has come."""
        if request.begun_by is None:
            return "waiting"
        return "interrupted" if request.id in self._interrupted else "running"

    def check_begin(self, message: McpxMessage, account: str) -> None:
        """Refuse to begin what is not this account's, or was begun and may still be running."""
        request = self._correlated(message)
        if request.target != account:
            raise e.NotAsked("Only the participant who was asked may begin.")
        if self.standing(request) == "running":
            raise e.RequestBegun("One of your connections has begun this request already.")

    def begin(self, id_: str, by: str) -> None:
        """A connection of the target's begins a request."""
        request = self._open.get(id_)
        if request is not None:
            self._open[id_] = replace(request, begun_by=by)
            self._interrupted.discard(id_)
            self.deadlines.drop("begun", id_)

    def await_return(self, target: str, at: float, by: str | None = None) -> None:
        """A connection is gone, or all are: what it had begun is interrupted at a moment."""
        for request in self.asked(target):
            if request.begun_by is not None and by in (None, request.begun_by):
                self.deadlines.set("begun", request.id, at)

    def returned(self, target: str, by: str | None) -> None:
        """A connection is back, and goes on with its open requests."""
        for request in self.asked(target):
            if by is not None and request.begun_by == by:
                self.deadlines.drop("begun", request.id)
                self._interrupted.discard(request.id)

    def interrupt(self, id_: str) -> OpenRequest | None:
        """The connection that began a request is gone for good; the request, if it is open."""
        request = self._open.get(id_)
        if request is not None:
            self._interrupted.add(id_)
        return request

    def asked(self, target: str) -> list[OpenRequest]:
        """The open requests to this account, in order."""
        return [self._open[id_] for id_ in self._asked.get(target, ())]

    def check_response(self, message: McpxMessage, account: str) -> OpenRequest:
        """The open request a response answers; whatever differs from it is refused."""
        request = self._correlated(message)
        if request.target != account:
            raise e.NotAsked("Only the participant who was asked may answer.")
        answer = request.answer_kind
        given = message.kind
        if given.base != answer.base or given.context not in (None, answer.context):
            raise e.ResponseMismatch(
                "The response has a different method or context than its request."
            )
        if not _same_id(message.payload, "id", request.payload_id):
            raise e.ResponseMismatch("The response has a different id than its request.")
        to = request.answer_to
        if message.to != to and not {request.requester_name} <= {*message.to} <= {*to}:
            raise e.RecipientInvalid("A response must be sent to the requester.", to=to)
        return request

    def check_about(self, message: McpxMessage, account: str) -> tuple[OpenRequest, str]:
        """The open request that is cancelled or progresses, and the name of the other party."""
        request = self._correlated(message)
        params = (message.payload or {}).get("params", {})
        if message.kind.method == CANCELLED:
            if request.requester != account:
                raise e.NotRequester("Only the participant who asked may cancel.")
            if "requestId" in params and not _same_id(params, "requestId", request.payload_id):
                raise e.ResponseMismatch("The cancellation has a different id than its request.")
            other = request.target_name
        else:
            if request.target != account:
                raise e.NotAsked("Only the participant who was asked may report progress.")
            token = request.progress_token
            if token is not None and not same(params.get("progressToken"), token):
                raise e.ResponseMismatch("The progress has a different token than its request.")
            other = request.requester_name
        if message.to and message.to != (other,):
            raise e.RecipientInvalid(
                "It must be sent to the other party of the request.", to=[other]
            )
        return request, other

    def _correlated(self, message: McpxMessage) -> OpenRequest:
        named = message.correlation_id
        found = [*filter(None, map(self._open.get, named if len(named) == 1 else {*named}))]
        if len(found) != 1:
            raise e.RequestNotOpen("It must correlate exactly one open request.")
        return found[0]


def ceases(request: OpenRequest) -> list[Effect]:
    """What is to be done when nobody waits for an answer any more: a backend can stop."""
    return [CancelBackendCall(request.id)] if request.target.startswith(BACKEND) else []


def progress_token(payload: Mapping[str, Any]) -> Any:
    """What a request asks its progress to be told by."""
    meta = payload.get("params", {}).get("_meta")
    return meta.get("progressToken") if type(meta) is dict else None


def _same_id(holder: dict[str, Any] | None, name: str, wanted: MessageId) -> bool:
    return holder is not None and same(holder.get(name), wanted)


def _drop(asked: dict[str, dict[str, None]], request: OpenRequest) -> None:
    waiting = asked[request.target]
    del waiting[request.id]
    if not waiting:
        del asked[request.target]
