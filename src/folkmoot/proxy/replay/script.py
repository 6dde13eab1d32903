"""Script: a tape seen from its client, made to be given again.

Which entries of a tape each side took part in comes first: what an interceptor stopped or answered
never reached the other. Whatever the server said belongs to something the client said before: an
answer and its progress to their request, anything else to the newest request that was open then,
and if none was, to what the client said last.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import UNSET

from folkmoot.core.envelope import MessageDirection
from folkmoot.core.message import (
    MessageId,
    Notification,
    Request,
    Response,
)
from folkmoot.core.session import Era, ProtocolVersion
from folkmoot.core.strict import same
from folkmoot.core.transport import UNKNOWN
from folkmoot.mcp.wire import (
    CANCELLED,
    DISCOVER,
    INITIALIZE,
    LISTEN,
    PROGRESS,
    SUBSCRIPTION_KEY,
    VERSION_KEY,
    meta_of,
)

if TYPE_CHECKING:
    from folkmoot.proxy.tape import TapeEntry

STOPPED: Final = frozenset(("block", "mock"))
"""Verdicts after which a message did not reach the other side."""
SIDES: Final = (MessageDirection.CLIENT_TO_SERVER, MessageDirection.SERVER_TO_CLIENT)


def passed_client(entry: TapeEntry) -> bool:
    """Whether the client sent or got a message."""
    return _passed(entry, sends=MessageDirection.CLIENT_TO_SERVER)


def passed_server(entry: TapeEntry) -> bool:
    """Whether the server sent or got a message."""
    return _passed(entry, sends=MessageDirection.SERVER_TO_CLIENT)


def at_server(entry: TapeEntry) -> Any:
    """A message as the server sent or got it."""
    return entry.envelope.message if entry.at_server is None else entry.at_server


def _passed(entry: TapeEntry, *, sends: MessageDirection) -> bool:
    context = entry.envelope.context
    if context.direction not in SIDES:
        return False
    if entry.verdict not in STOPPED:
        return True
    made_on_the_way = context.transport == UNKNOWN
    return (context.direction is sends) is not made_on_the_way


class Beat(msgspec.Struct, frozen=True):
    """One thing the server said, and how long after whatever came before it."""

    message: Any
    pause: float
    answered: bool = False
    """Whether it is a request, and the client answered it."""


class RecordedCall(msgspec.Struct, frozen=True):
    """One message of the client, and the server's messages in answer."""

    seq: int
    message: Any
    beats: tuple[Beat, ...] = ()
    cancelled: bool = False

    @property
    def answered(self) -> bool:
        """Whether the answer is on the tape."""
        return any(isinstance(beat.message, Response) for beat in self.beats)


class Script(msgspec.Struct, frozen=True):
    """Everything a recorded server does."""

    calls: tuple[RecordedCall, ...]
    cues: tuple[RecordedCall, ...]
    opening: tuple[Beat, ...]
    """What the server said before it heard anything."""
    versions: dict[Era, str]
    """A version of each era in which the server gave an answer."""
    conversations: int
    asked_discovery: bool = False
    """Whether a client asked `server/discover`, whatever came of it."""

    @property
    def discoverable(self) -> bool:
        """Whether clients of the stateless era need `server/discover` answered in its place.

        Where one was asked and went on with a handshake, so is everyone who asks again.
        """
        return not self.asked_discovery and Era.STATELESS not in self.versions

    @classmethod
    def of(cls, entries: Iterable[TapeEntry]) -> Script:
        """The script of a tape's entries."""
        scribe = _Scribe()
        for entry in entries:
            if passed_client(entry):
                scribe.hear(entry)
        return scribe.script()


class _Scene:
    """A call while its beats are gathered."""

    def __init__(self, seq: int, message: Any, session: str | None, at: float) -> None:
        self.seq, self.message, self.session = seq, message, session
        self.last = at
        self.beats: list[Beat] = []
        self.open = isinstance(message, Request)
        self.cancelled = False
        self.given_up = False
        """Whether its client went on in the other era without waiting for the answer."""

    def add(self, message: Any, at: float) -> None:
        self.beats.append(Beat(message, max(0.0, at - self.last)))
        self.last = at
        if isinstance(message, Response):
            self.open = False

    def answered(self, request: Request, at: float) -> None:
        for number, beat in enumerate(self.beats):
            if beat.message is request:
                self.beats[number] = Beat(request, beat.pause, answered=True)
        self.last = at

    def call(self) -> RecordedCall:
        return RecordedCall(self.seq, self.message, tuple(self.beats), self.cancelled)


class _Scribe:
    """Reads a tape from its beginning."""

    def __init__(self) -> None:
        self._opening = _Scene(0, None, None, 0.0)
        self._scenes: list[_Scene] = []
        self._open: dict[tuple[type, MessageId], list[_Scene]] = {}
        self._open_scenes: dict[int, _Scene] = {}
        self._asked: dict[tuple[type, MessageId], list[tuple[_Scene, Request]]] = {}
        self._versions: dict[Era, str] = {}
        self._greetings = 0
        self._discoveries: list[_Scene] = []
        self._asked_discovery = False

    def hear(self, entry: TapeEntry) -> None:
        context = entry.envelope.context
        found = context.session.session_id
        session = None if found is None else found.value
        at = context.timing.created_at
        if context.direction is MessageDirection.CLIENT_TO_SERVER:
            self._from_client(entry, session, at)
        else:
            self._from_server(entry.envelope.message, session, at)

    def script(self) -> Script:
        calls = [scene.call() for scene in self._scenes if not self._misleads(scene)]
        return Script(
            calls=tuple(call for call in calls if isinstance(call.message, Request)),
            cues=tuple(call for call in calls if not isinstance(call.message, Request)),
            opening=tuple(self._opening.beats),
            versions=self._versions,
            conversations=self._greetings,
            asked_discovery=self._asked_discovery,
        )

    def _misleads(self, scene: _Scene) -> bool:
        """Whether the answer would lead a client into an era in which nothing was recorded."""
        return scene.given_up and (scene.open or Era.STATELESS not in self._versions)

    def _from_client(self, entry: TapeEntry, session: str | None, at: float) -> None:
        message = entry.envelope.message
        if isinstance(message, Response):
            self._client_answered(message, session, at)
            return
        if message.method == CANCELLED:
            scene = self._asking(_cancelled_id(message), session)
            if scene is not None:
                scene.cancelled = True
                self._open_scenes.pop(scene.seq, None)
            return
        scene = _Scene(entry.seq, message, session, at)
        self._scenes.append(scene)
        if isinstance(message, Request):
            if message.method == INITIALIZE:
                self._greetings += 1
                self._give_up_discovery(session)
            elif message.method == DISCOVER:
                self._asked_discovery = True
                self._discoveries.append(scene)
            self._open.setdefault(_key(message.id), []).append(scene)
            self._open_scenes[entry.seq] = scene

    def _give_up_discovery(self, session: str | None) -> None:
        """A client of both eras shakes hands: it waits for no answer in the other one any more."""
        for scene in self._discoveries:
            scene.given_up = scene.open and _together(scene.session, session)
        self._discoveries = [each for each in self._discoveries if each.open and not each.given_up]

    def _client_answered(self, response: Response, session: str | None, at: float) -> None:
        asked = [] if response.id is None else self._asked.get(_key(response.id), [])
        for number, (scene, request) in enumerate(asked):
            if _together(scene.session, session):
                scene.answered(request, at)
                del asked[number]
                return

    def _from_server(self, message: Any, session: str | None, at: float) -> None:
        if isinstance(message, Response):
            scene = self._asking(message.id, session)
            if scene is None:
                return
            self._close(scene, message, session)
        else:
            scene = self._owner(message, session)
            if isinstance(message, Request):
                self._asked.setdefault(_key(message.id), []).append((scene, message))
        if scene is self._opening and not scene.beats:
            scene.last = at
        scene.add(message, at)

    def _close(self, scene: _Scene, answer: Response, session: str | None) -> None:
        self._open[_key(scene.message.id)].remove(scene)
        self._open_scenes.pop(scene.seq, None)
        scene.session = scene.session or session
        result = answer.result
        if result is UNSET or scene.given_up:
            return
        if scene.message.method == INITIALIZE:
            version = result.get("protocolVersion") if isinstance(result, dict) else None
        else:
            version = meta_of(scene.message).get(VERSION_KEY)
        if isinstance(version, str):
            self._versions[ProtocolVersion(version).era] = version

    def _asking(self, identity: Any, session: str | None) -> _Scene | None:
        """The open request with an id."""
        if type(identity) not in (str, int):
            return None
        found = self._open.get(_key(identity), [])
        return next((scene for scene in found if _together(scene.session, session)), None)

    def _owner(self, message: Request | Notification, session: str | None) -> _Scene:
        params = message.params if isinstance(message.params, dict) else {}
        if (stream := meta_of(message).get(SUBSCRIPTION_KEY)) is not None:
            scene = self._asking(stream, session)
            if scene is not None:
                return scene
        newest = list(reversed(self._open_scenes.values()))
        if message.method == PROGRESS:
            token = params.get("progressToken")
            for scene in newest:
                if token is not None and same(meta_of(scene.message).get("progressToken"), token):
                    return scene
        for scene in newest:
            if scene.message.method != LISTEN and _together(scene.session, session):
                return scene
        for scene in reversed(self._scenes):
            if _together(scene.session, session):
                return scene
        return self._opening


def _cancelled_id(message: Request | Notification) -> Any:
    return message.params.get("requestId") if isinstance(message.params, dict) else None


def _together(one: str | None, other: str | None) -> bool:
    """Whether two messages may be of one session; before it has an id, nobody knows."""
    return one is None or other is None or one == other


def _key(identity: MessageId) -> tuple[type, MessageId]:
    return type(identity), identity
