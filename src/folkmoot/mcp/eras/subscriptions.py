"""Changes of lists and resources, from either era to the other.

`HandshakeSubscription` is the one `subscriptions/listen` behind all that a handshake client wants
to hear of. A listen cannot be changed. So a new one is opened, and the old one ends when the new
one is acknowledged: nothing is missed between them, and of two that tell the same only one is
heard. `StatelessSubscriptions` are those of stateless clients, told by the notifications of a
handshake server.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from msgspec import UNSET

from folkmoot.core import errors as e
from folkmoot.core.entity import Entity
from folkmoot.core.message import (
    ErrorObject,
    MessageId,
    Notification,
    Request,
    Response,
    members,
    replace,
)
from folkmoot.mcp import wire
from folkmoot.mcp.eras.shapes import without_key
from folkmoot.mcp.eras.steps import OwnIds, Step, ToClient, ToServer
from folkmoot.mcp.eras.table import EraRefusal
from folkmoot.mcp.wire import (
    cancellation,
    covers,
    error_answer,
    members_of,
    meta_of,
    params_of,
    refusal,
    strings_of,
)

MOST_URIS: Final = 1024
"""Resources one client may be subscribed to."""
MOST_REOPENED: Final = 8
"""How often in a row a listen that ends without having told anything is opened again."""
FIRST_PAUSE: Final = 0.5
LONGEST_PAUSE: Final = 30.0


class HandshakeSubscription(Entity):
    """Keeps one listen open, and says which notices of it are for the client."""

    ids: OwnIds
    capabilities: dict[str, Any]
    meta: Callable[[], dict[str, Any]]
    open_now: bool = True
    _started: bool = False
    _uris: dict[str, None] = {}
    _heard: str | None = None
    """The id of the listen that was acknowledged."""
    _asked: str | None = None
    """The id of the one that was not yet, and below what it asks for."""
    _asked_for: dict[str, Any] = {}
    _changed: bool = False
    _waiting: list[tuple[Request, str]] = []
    _ended: int = 0

    def __post_init__(self) -> None:
        self._lists = {
            wanted: True
            for capability, wanted in wire.CHANGES.values()
            if members_of(self.capabilities.get(capability)).get("listChanged") is True
        }

    def start(self) -> list[Step]:
        """The client is ready; what the server tells of its own accord may be wanted already."""
        self._started = True
        return self.open() if self.open_now else []

    def open(self) -> list[Step]:
        """Have a listen for what the server tells of its own accord, once the client is ready."""
        self.open_now = True
        if not self._started or not self._lists or self._heard or self._asked:
            return []
        self._ended = 0
        return self._renew()

    def renew(self) -> list[Step]:
        """Have another listen in the place of the one there is."""
        return self._renew() if self._heard or self._asked else []

    def subscribe(self, request: Request) -> list[Step]:
        """Listen for a resource too; the request is answered once the server agreed."""
        uri = params_of(request).get("uri")
        if type(uri) is not str:
            return [
                ToClient(error_answer(request.id, wire.INVALID_PARAMS, '"uri" must be a string.'))
            ]
        if len(self._uris) >= MOST_URIS or len(self._waiting) >= MOST_URIS:
            return [ToClient(refusal(request.id, e.TooManyInFlight("Too many subscriptions.")))]
        self._uris[uri] = None
        self._waiting.append((request, uri))
        self._ended = 0
        return self._renew()

    def unsubscribe(self, request: Request) -> list[Step]:
        """Listen for a resource no more."""
        uri = params_of(request).get("uri")
        done: list[Step] = [ToClient(Response(id=request.id, result={}))]
        if type(uri) is not str or uri not in self._uris:
            return done
        del self._uris[uri]
        return [*done, *self._renew()]

    def hear(self, notice: Notification) -> list[Step] | None:
        """What to do with a notice, or None if it belongs to no listen of ours."""
        if notice.method == wire.CANCELLED:
            ended = params_of(notice).get("requestId")
            return self._closed(ended) if self.ids.made(ended) else None
        stream = meta_of(notice).get(wire.SUBSCRIPTION_KEY)
        if not self.ids.made(stream):
            return None
        if notice.method == wire.ACKNOWLEDGED:
            return self._agreed(notice) if stream == self._asked else []
        if stream != self._heard:
            return []
        self._ended = 0
        return (
            [ToClient(without_key(notice, wire.SUBSCRIPTION_KEY))] if self._wanted(notice) else []
        )

    def answered(self, answer: Response) -> list[Step]:
        """A listen came to its end, or was refused."""
        if isinstance(answer.error, ErrorObject) and answer.error.code == wire.METHOD_NOT_FOUND:
            self._ended = MOST_REOPENED
        return self._closed(answer.id)

    def _filter(self) -> dict[str, Any]:
        return self._lists | ({wire.URIS: list(self._uris)} if self._uris else {})

    def _wanted(self, notice: Notification) -> bool:
        """Whether the client still wants it: a listen goes on until the next one is there."""
        if notice.method != wire.UPDATED:
            return True
        uri = params_of(notice).get("uri")
        return type(uri) is str and any(covers(named, uri) for named in self._uris)

    def _renew(self) -> list[Step]:
        """Have a listen for what is wanted now, as soon as none is being opened."""
        if self._asked is not None:
            self._changed = True
            return []
        wanted = self._filter()
        if not wanted:
            return self._stop_hearing()
        self._asked, self._asked_for = self.ids.next(), wanted
        params = {"notifications": wanted, "_meta": self.meta()}
        request = Request(id=self._asked, method=wire.LISTEN, params=params)
        return [ToServer(request, after=_pause(self._ended))]

    def _stop_hearing(self) -> list[Step]:
        ended, self._heard = self._heard, None
        if ended is None:
            return []
        return [ToServer(cancellation(ended, "The subscription has ended."))]

    def _agreed(self, acknowledged: Notification) -> list[Step]:
        steps = self._stop_hearing()
        self._heard, self._asked = self._asked, None
        agreed = strings_of(members_of(params_of(acknowledged).get("notifications")).get(wire.URIS))
        steps += self._tell(set(agreed), members_of(meta_of(acknowledged).get(wire.REFUSED_KEY)))
        return steps + self._go_on()

    def _closed(self, stream: Any) -> list[Step]:
        if stream == self._heard:
            self._heard = None
        elif stream != self._asked:
            return []
        steps: list[Step] = []
        if stream == self._asked:
            self._asked = None
            steps = self._tell(set(), {})
        if self._heard is None and self._asked is None and self._filter():
            self._ended += 1
            if self._ended <= MOST_REOPENED:
                self._changed = False
                return steps + self._renew()
        return steps + self._go_on()

    def _go_on(self) -> list[Step]:
        if not self._changed:
            return []
        self._changed = False
        return self._renew()

    def _tell(self, agreed: set[str], reasons: dict[str, Any]) -> list[Step]:
        """Answer the subscriptions that the listen was asked for, each refusal with its reason."""
        asked = set(self._asked_for.get(wire.URIS, ()))
        steps: list[Step] = []
        still: list[tuple[Request, str]] = []
        refused: set[str] = set()
        for request, uri in self._waiting:
            if uri in self._uris and uri not in asked:
                still.append((request, uri))
            elif uri in agreed or uri not in self._uris:
                steps.append(ToClient(Response(id=request.id, result={})))
            else:
                refused.add(uri)
                steps.append(ToClient(_refused(request, reasons.get(uri))))
        self._waiting = still
        self._uris = {uri: None for uri in self._uris if uri not in refused}
        return steps


def _refused(request: Request, reason: Any) -> Response:
    code, message = members_of(reason).get("code"), members_of(reason).get("message")
    if type(code) is not int or type(message) is not str:
        return refusal(request.id, EraRefusal.UNHEARD.error())
    return error_answer(request.id, code, message, reason.get("data", UNSET))


def _pause(ended: int) -> float:
    return min(FIRST_PAUSE * 2 ** (ended - 1), LONGEST_PAUSE) if ended else 0.0


MOST_LISTENS: Final = 256


class _Listen:
    """One open listen: its subscriptions, and those the server has not confirmed yet."""

    def __init__(self, lists: list[str], uris: list[str]) -> None:
        self.lists = lists
        self.uris = dict.fromkeys(uris)
        self.waiting = set(uris)
        self.refused: dict[str, Any] = {}
        """What the server does not announce, and the errors by which it said so."""
        self.acknowledged = False

    def wants(self, notice: Notification) -> bool:
        if not self.acknowledged:
            return False
        if notice.method != wire.UPDATED:
            return wire.CHANGES[notice.method][1] in self.lists
        uri = params_of(notice).get("uri")
        return type(uri) is str and any(covers(named, uri) for named in self.uris)


class _Topic(Entity):
    """A resource, the listens that name it, and whether the server agreed to tell of it."""

    listens: set[MessageId] = set()
    agreed: bool = False


class StatelessSubscriptions:
    """Subscribes at the server to what the listens name, and gives each its notifications."""

    def __init__(self, ids: OwnIds, capabilities: dict[str, Any]) -> None:
        self._ids = ids
        self._offered = [
            wanted
            for capability, wanted in wire.CHANGES.values()
            if members_of(capabilities.get(capability)).get("listChanged") is True
        ]
        self._subscribes = members_of(capabilities.get("resources")).get("subscribe") is True
        self._listens: dict[MessageId, _Listen] = {}
        self._topics: dict[str, _Topic] = {}
        self._asked: dict[str, str] = {}
        """The ids of our subscriptions that the server has not answered, and their resources."""

    def open(self, request: Request) -> list[Step]:
        """Open a listen, acknowledged once the server has confirmed all of it."""
        wanted = params_of(request).get("notifications")
        if type(wanted) is not dict:
            told = '"notifications" must be an object.'
            return [ToClient(error_answer(request.id, wire.INVALID_PARAMS, told))]
        uris = list(dict.fromkeys(strings_of(wanted.get(wire.URIS)))) if self._subscribes else []
        new = [uri for uri in uris if uri not in self._topics]
        if (
            request.id in self._listens
            or len(self._listens) >= MOST_LISTENS
            or len(self._topics) + len(new) > MOST_URIS
        ):
            return [ToClient(refusal(request.id, e.TooManyInFlight("Too many subscriptions.")))]
        lists = [name for name in self._offered if wanted.get(name) is True]
        listen = self._listens[request.id] = _Listen(lists, uris)
        listen.waiting = {u for u in uris if u in new or not self._topics[u].agreed}
        for uri in uris:
            self._topics.setdefault(uri, _Topic()).listens.add(request.id)
        steps = [self._ask(uri) for uri in new]
        return steps + self._acknowledge(request.id, listen)

    def close(self, listen_id: Any) -> list[Step] | None:
        """End a listen that its client wants no more; None if it is none."""
        known = type(listen_id) in (str, int) and listen_id in self._listens
        if not known:
            return None
        steps: list[Step] = []
        for uri in self._listens.pop(listen_id).uris:
            steps += self._leave(uri, listen_id)
        return steps

    def answered(self, answer: Response) -> list[Step]:
        """The server agreed to a subscription, or refused it."""
        uri = self._asked.pop(answer.id, None) if type(answer.id) is str else None
        topic = self._topics.get(uri) if uri is not None else None
        if uri is None or topic is None:
            return []
        agreed = isinstance(answer.result, dict)
        topic.agreed = agreed
        steps: list[Step] = []
        for listen_id in list(topic.listens):
            listen = self._listens[listen_id]
            listen.waiting.discard(uri)
            if not agreed:
                del listen.uris[uri]
                if isinstance(answer.error, ErrorObject):
                    listen.refused[uri] = members(answer)["error"]
            steps += self._acknowledge(listen_id, listen)
        if not agreed:
            del self._topics[uri]
        return steps

    def tell(self, notice: Notification) -> list[Step]:
        """Pass a notification of the server to each listen that wants it."""
        return [
            ToClient(replace(notice, params=_stamped(notice, listen_id)))
            for listen_id, listen in self._listens.items()
            if listen.wants(notice)
        ]

    def _ask(self, uri: str) -> Step:
        message_id = self._ids.next()
        self._asked[message_id] = uri
        return ToServer(Request(id=message_id, method=wire.SUBSCRIBE, params={"uri": uri}))

    def _leave(self, uri: str, listen_id: MessageId) -> list[Step]:
        topic = self._topics[uri]
        topic.listens.discard(listen_id)
        if topic.listens:
            return []
        del self._topics[uri]
        self._asked = {asked: of for asked, of in self._asked.items() if of != uri}
        request = Request(id=self._ids.next(), method=wire.UNSUBSCRIBE, params={"uri": uri})
        return [ToServer(request)]

    def _acknowledge(self, listen_id: MessageId, listen: _Listen) -> list[Step]:
        if listen.waiting or listen.acknowledged:
            return []
        listen.acknowledged = True
        agreed: dict[str, Any] = dict.fromkeys(listen.lists, True)
        if listen.uris:
            agreed[wire.URIS] = list(listen.uris)
        meta: dict[str, Any] = {wire.SUBSCRIPTION_KEY: listen_id}
        if listen.refused:
            meta[wire.REFUSED_KEY] = listen.refused
        params = {"notifications": agreed, "_meta": meta}
        return [ToClient(Notification(method=wire.ACKNOWLEDGED, params=params))]


def _stamped(notice: Notification, listen_id: MessageId) -> dict[str, Any]:
    return params_of(notice) | {"_meta": meta_of(notice) | {wire.SUBSCRIPTION_KEY: listen_id}}
