"""The session: keeps a room connected, and resumes after a lost connection without gaps.

Two positions in the room's history are kept. The client itself reads every message as it comes, or
answers would wait behind a program that is busy. The program may be slower: when its inbox is full
it falls *behind*, and what did not fit is fetched again from the history once it is wanted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from enum import Enum
from ssl import SSLContext
from typing import Any, Final
from uuid import uuid4

from msgspec import Struct, field

from folkmoot.client.http import joining
from folkmoot.client.limits import WELCOME_SECONDS
from folkmoot.client.link import Backoff, Closed, Link, connect
from folkmoot.client.model import (
    Gap,
    HistoryBounds,
    Received,
    Welcome,
    make_gap,
    read,
    read_welcome,
    stored,
)
from folkmoot.client.queues import Inbox
from folkmoot.client.receiver import MessageReceiver
from folkmoot.core import errors as e
from folkmoot.core.closecodes import CLOSE_REASONS, CloseCode
from folkmoot.core.entity import Entity

FINAL: Final[dict[int, Callable[[str], e.FolkmootError]]] = {
    CloseCode.REPLACED: e.Replaced,
    CloseCode.BAD_REQUEST: e.QueryInvalid,
    CloseCode.NOT_AUTHENTICATED: e.AuthenticationRequired,
    CloseCode.NOT_ALLOWED: e.RoomForbidden,
    CloseCode.NO_SUCH_ROOM: e.RoomNotFound,
}
"""Ends after which coming back would change nothing, and what each is raised as."""


class RoomPlace(Struct, frozen=True):
    """Which room of which hub, and how to get there."""

    url: str
    room: str
    ssl: SSLContext | None
    backoff: Backoff
    patience: float | None


class ReconnectReason(Enum):
    """Why a connection is given up for another without having been lost."""

    CATCH_UP = "the author has read everything that fitted, and wants what did not"
    NEARER = "the history begins later than where we were: go on from there"
    OFFER = "the first tool was offered, which the hub is told when a connection begins"


async def token_of(given: str | Callable[[], str]) -> str:
    """The token of the moment."""
    return given if isinstance(given, str) else await asyncio.to_thread(given)


class Session(Entity):
    """The connection of the moment, the way to the next one, and where in the room we are."""

    place: RoomPlace
    token: str | Callable[[], str]
    receiver: MessageReceiver
    position: Position
    _conn: str = field(default_factory=lambda: uuid4().hex)
    _link: Link | None = None
    _after: int | None = None
    _welcomed: bool = False
    _offered: bool = False
    _again: asyncio.Future[ReconnectReason] | None = None
    _wanted: asyncio.Future[None] | None = None
    entered: asyncio.Future[None] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )
    """Done with the first welcome, or with what kept us out."""

    def __post_init__(self) -> None:
        self.inbox = Inbox(self.regulate)

    @property
    def is_connected(self) -> bool:
        """Whether a connection stands and has been welcomed."""
        return self._link is not None and self._welcomed

    async def run(self) -> None:
        """Stay in the room until cancelled, or until there is no way back."""
        try:
            await self._stay()
        except e.FolkmootError as error:
            self.end(error)
        finally:
            if self._link is not None:
                await self._link.close()

    def end(self, error: e.FolkmootError) -> None:
        """Be in the room no more; whoever waits for something of it is told why."""
        if not self.entered.done():
            self.entered.set_exception(error)
        self.receiver.fail(error)
        self.inbox.end(error)

    def leave(self, error: e.FolkmootError) -> None:
        """Be in the room no more by our own will: iteration ends without an error."""
        self.receiver.fail(error)
        self.inbox.end()
        if not self.entered.done():
            self.entered.cancel()

    async def _stay(self) -> None:
        clock = asyncio.get_running_loop().time
        attempt, lost_at = 0, clock()
        while True:
            began = clock()
            problem = e.HubUnreachable("The hub closes every connection at once.")
            try:
                ended = await self._connection()
            except e.HubUnreachable as error:
                problem = error
            else:
                if isinstance(ended, ReconnectReason):
                    continue
                self._judge(ended)
            if self._welcomed:
                lost_at = clock()
                attempt = 0 if lost_at - began >= self.place.backoff.steady else attempt
            elif not self.entered.done() or self._is_too_long(clock() - lost_at):
                raise problem
            await asyncio.sleep(self.place.backoff.delay(attempt))
            attempt += 1
            await self._worth_it()

    def _is_too_long(self, seconds: float) -> bool:
        patience = self.place.patience
        return patience is not None and seconds > patience

    async def _connection(self) -> Closed | ReconnectReason:
        """Run one connection from its opening to its end."""
        before, self._link = self._link, None
        self._again = asyncio.get_running_loop().create_future()
        self._welcomed = False
        self._after = self.position.resume_after(hungry=self.inbox.is_hungry)
        self._offered = self.receiver.offers_tools
        place = self.place
        url = joining(
            place.url,
            room=place.room,
            conn=self._conn,
            after=self._after,
            epoch=self.position.epoch,
            serve=self._offered,
        )
        token = await token_of(self.receiver.credential or self.token)
        try:
            self._link = link = await connect(url, token, place.ssl, self._on_text)
            # The welcome may have come together with the handshake.
            if self._welcomed and not self._again.done():
                self._flow_when_live()
            return await self._listen(link, self._again)
        finally:
            # It was kept until here so that nobody saw us leave.
            if before is not None:
                before.drop()

    async def _listen(
        self, link: Link, again: asyncio.Future[ReconnectReason]
    ) -> Closed | ReconnectReason:
        ends: set[asyncio.Future[Any]] = {link.closed, again}
        try:
            done, _ = await asyncio.wait(
                ends, timeout=WELCOME_SECONDS, return_when=asyncio.FIRST_COMPLETED
            )
            if not done and self._welcomed:
                await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self.receiver.hold()
            link.mute()
        if link.closed.done():
            self._link = None
            return link.closed.result()
        if again.done():
            return again.result()
        self._link = None
        link.drop()
        return Closed(reason="The hub sent no welcome.")

    def _judge(self, ended: Closed) -> None:
        """Raise the end of a connection after which there is no other."""
        if ended.failure is not None:
            raise ended.failure
        final = FINAL.get(ended.code)
        if final is not None:
            raise final(ended.reason or CLOSE_REASONS[CloseCode(ended.code)])
        if ended.code == CloseCode.TOO_BIG:
            self.receiver.refuse_largest()

    async def _worth_it(self) -> None:
        """Wait while nothing more could be kept, and nothing is awaited."""
        while self.inbox.is_full and not self.receiver.is_needed:
            self._wanted = asyncio.get_running_loop().create_future()
            await self._wanted

    def regulate(self) -> None:
        """Read or pause reading, by the room left in the inbox."""
        full = self.inbox.is_full and not self.receiver.is_needed
        if not full and self._wanted is not None and not self._wanted.done():
            self._wanted.set_result(None)
        if self._link is None or not self._welcomed:
            return
        if full:
            self._link.pause()
            return
        self._link.resume()
        if self.position.behind and self.inbox.is_hungry:
            self._begin_again(ReconnectReason.CATCH_UP)

    def offer(self) -> None:
        """Tell the hub that there are tools, if the connection of the moment did not."""
        if not self._offered and self._welcomed and self._link is not None:
            self._begin_again(ReconnectReason.OFFER)

    def _begin_again(self, why: ReconnectReason) -> None:
        if self._again is not None and not self._again.done():
            self._again.set_result(why)
            self.receiver.hold()

    def _on_text(self, data: bytes) -> None:
        if self._again is None or self._again.done():
            return
        heard = read(data)
        if heard.seq is not None:
            self._on_stored(heard, heard.seq, data)
        elif heard.kind != "system.welcome":
            self.receiver.receive_private(heard)
        elif self._welcomed:
            self.receiver.welcome(read_welcome(heard), first=False)
        else:
            self._on_welcome(read_welcome(heard))

    def _on_welcome(self, welcome: Welcome) -> None:
        self._welcomed = True
        self.receiver.welcome(welcome, first=True)
        before = self.position.heard
        beginning = self.position.begin(welcome, self._after)
        gap = beginning.gap
        if gap is not None:
            self.inbox.note(gap)
            if gap.reason != "history_gone" or gap.seq > before:
                self.receiver.missed(gap, welcome.history.first_seq)
        if not self.entered.done():
            self.entered.set_result(None)
        if beginning.again:
            self._begin_again(ReconnectReason.NEARER)
        else:
            self._flow_when_live()

    def _on_stored(self, heard: Received, seq: int, data: bytes) -> None:
        position = self.position
        if not self._welcomed:
            raise e.AnswerInvalid("The hub's first message was not a welcome.")
        if position.is_known(seq):
            return
        was_live = position.is_live
        self._note_skipped(seq)
        message = stored(heard, data)
        if position.advance(seq):
            self.receiver.receive(message)
        if not position.behind:
            position.keep(seq, fits=self.inbox.offer(message))
        if not was_live:
            self._flow_when_live()
        if self.inbox.is_full:
            self.regulate()

    def _note_skipped(self, seq: int) -> None:
        before, behind = self.position.heard, self.position.behind
        gap = self.position.skipped(seq)
        if gap is None:
            return
        if not behind:
            self.inbox.note(gap)
        if gap.seq > before:
            self.receiver.missed(gap, 0)

    def _flow_when_live(self) -> None:
        if self.position.is_live and self._link is not None:
            self.receiver.flow(self._link.send)
            if self.receiver.offers_tools:
                self.offer()


class Beginning(Struct, frozen=True):
    """How a connection begins: perhaps with a gap, and perhaps better begun again behind it."""

    gap: Gap | None = None
    again: bool = False


class Position:
    """Numbers only; nothing is read or written here."""

    def __init__(self, after: int | None = None, epoch: str | None = None) -> None:
        self.epoch = epoch
        self._start = after
        self.heard = after or 0
        self.kept = self.heard
        """The last message that went to the author's buffer; less than `heard` when behind."""
        self.behind = False
        self._at = 0
        self._through = 0

    @property
    def is_live(self) -> bool:
        """Whether this connection has replayed all that was missed."""
        return self._at >= self._through

    def resume_after(self, *, hungry: bool) -> int | None:
        """Where the next connection is to go on; None for one that begins with what is new."""
        if self.epoch is None:
            return self._start
        return self.kept if hungry or not self.behind else self.heard

    def begin(self, welcome: Welcome, after: int | None) -> Beginning:
        """Take the welcome of a connection that was to go on after a message."""
        history, resume = welcome.history, welcome.resume
        self._through = history.last_seq
        if after is None or resume is None or resume.complete:
            self.epoch = welcome.epoch
            if after is None:
                self.heard = self.kept = self._at = history.last_seq
                return Beginning()
            self._at = after
            self.behind = self.behind and after > self.kept
            return Beginning()
        return self._lost(welcome.epoch, history, after, resume.reason or "seq_unknown")

    def _lost(self, epoch: str, history: HistoryBounds, after: int, reason: str) -> Beginning:
        """What is between where we were and where the history begins, or now, is gone."""
        self.epoch = epoch
        last = history.last_seq
        again = (
            reason == "history_gone" and history.enabled and after < history.first_seq - 1 <= last
        )
        if again:
            last = history.first_seq - 1
        gap = make_gap(self.kept, last, reason)
        # The old numbers mean nothing in a new epoch.
        self.heard = max(self.heard, last) if reason == "history_gone" else last
        self.kept = self._at = last
        self.behind = self.kept < self.heard
        return Beginning(gap, again)

    def skipped(self, seq: int) -> Gap | None:
        """The gap in front of a message that does not follow the one before."""
        if seq <= self._at + 1:
            return None
        gap = make_gap(self._at, seq - 1, "skipped")
        self.heard = max(self.heard, seq - 1)
        if not self.behind:
            self.kept = seq - 1
        self._at = seq - 1
        return gap

    def is_known(self, seq: int) -> bool:
        """Whether this connection brought a message before."""
        return seq <= self._at

    def advance(self, seq: int) -> bool:
        """Take the next message; whether the client hears it for the first time."""
        self._at = seq
        if seq <= self.heard:
            return False
        self.heard = seq
        return True

    def keep(self, seq: int, *, fits: bool) -> None:
        """A message went to the author's buffer, or did not fit in."""
        if fits:
            self.kept = seq
        else:
            self.behind = True
