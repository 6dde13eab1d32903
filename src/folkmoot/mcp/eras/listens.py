"""Listens: the `subscriptions/listen` of stateless clients, kept open before a handshake server."""

from __future__ import annotations

from typing import Any, Final

from folkmoot.core.errors import TooManyInFlight
from folkmoot.core.message import (
    ErrorObject,
    MessageId,
    Notification,
    Request,
    Response,
    members,
    replace,
)
from folkmoot.mcp.eras.detection import strings
from folkmoot.mcp.eras.steps import Ids, Step, ToClient, ToServer
from folkmoot.mcp.wire import (
    ACKNOWLEDGED,
    CHANGES,
    INVALID_PARAMS,
    REFUSED_KEY,
    SUBSCRIBE,
    SUBSCRIPTION_KEY,
    UNSUBSCRIBE,
    UPDATED,
    URIS,
    covers,
    error_answer,
    members_of,
    meta_of,
    params_of,
    refusal,
)

MOST_LISTENS: Final = 256
MOST_URIS: Final = 1024
"""Resources that all listens together may name."""


class _Listen:
    """One open listen: what it wants to hear, and what of that the server has not agreed to yet."""

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
        if notice.method != UPDATED:
            return CHANGES[notice.method][1] in self.lists
        uri = params_of(notice).get("uri")
        return type(uri) is str and any(covers(named, uri) for named in self.uris)


class _Topic:
    """A resource, the listens that name it, and whether the server agreed to tell of it."""

    def __init__(self) -> None:
        self.listens: set[MessageId] = set()
        self.agreed = False


class Listens:
    """Subscribes with the server to what listens name, and gives each what it wants."""

    def __init__(self, ids: Ids, capabilities: dict[str, Any]) -> None:
        self._ids = ids
        self._offered = [
            wanted
            for capability, wanted in CHANGES.values()
            if members_of(capabilities.get(capability)).get("listChanged") is True
        ]
        self._subscribes = members_of(capabilities.get("resources")).get("subscribe") is True
        self._listens: dict[MessageId, _Listen] = {}
        self._topics: dict[str, _Topic] = {}
        self._asked: dict[str, str] = {}
        """The ids of our subscriptions that the server has not answered, and their resources."""

    def open(self, request: Request) -> list[Step]:
        """Open a listen, and acknowledge it as soon as the server agreed to all of it."""
        wanted = params_of(request).get("notifications")
        if type(wanted) is not dict:
            told = '"notifications" must be an object.'
            return [ToClient(error_answer(request.id, INVALID_PARAMS, told))]
        uris = list(dict.fromkeys(strings(wanted.get(URIS)))) if self._subscribes else []
        new = [uri for uri in uris if uri not in self._topics]
        if (
            request.id in self._listens
            or len(self._listens) >= MOST_LISTENS
            or len(self._topics) + len(new) > MOST_URIS
        ):
            return [ToClient(refusal(request.id, TooManyInFlight("Too many subscriptions.")))]
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
        """A notice of the server's, for each listen that wants it."""
        return [
            ToClient(replace(notice, params=_stamped(notice, listen_id)))
            for listen_id, listen in self._listens.items()
            if listen.wants(notice)
        ]

    def _ask(self, uri: str) -> Step:
        message_id = self._ids.next()
        self._asked[message_id] = uri
        return ToServer(Request(id=message_id, method=SUBSCRIBE, params={"uri": uri}))

    def _leave(self, uri: str, listen_id: MessageId) -> list[Step]:
        topic = self._topics[uri]
        topic.listens.discard(listen_id)
        if topic.listens:
            return []
        del self._topics[uri]
        self._asked = {asked: of for asked, of in self._asked.items() if of != uri}
        request = Request(id=self._ids.next(), method=UNSUBSCRIBE, params={"uri": uri})
        return [ToServer(request)]

    def _acknowledge(self, listen_id: MessageId, listen: _Listen) -> list[Step]:
        if listen.waiting or listen.acknowledged:
            return []
        listen.acknowledged = True
        agreed: dict[str, Any] = dict.fromkeys(listen.lists, True)
        if listen.uris:
            agreed[URIS] = list(listen.uris)
        meta: dict[str, Any] = {SUBSCRIPTION_KEY: listen_id}
        if listen.refused:
            meta[REFUSED_KEY] = listen.refused
        params = {"notifications": agreed, "_meta": meta}
        return [ToClient(Notification(method=ACKNOWLEDGED, params=params))]


def _stamped(notice: Notification, listen_id: MessageId) -> dict[str, Any]:
    return params_of(notice) | {"_meta": meta_of(notice) | {SUBSCRIPTION_KEY: listen_id}}
