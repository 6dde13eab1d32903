"""Conversation: one open link to a server, with many requests of many people on it at once.

Whatever era the server speaks, it is asked as in the stateless one; an `EraBridge` says it in the
other where needed. Requests have ids of ours, so those of callers never meet.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from itertools import count
from typing import TYPE_CHECKING, Any, Final

from folkmoot.core import errors as e
from folkmoot.core.session import Era
from folkmoot.gateway.model import UpstreamRequest
from folkmoot.mcp.peer import CallState, Peer
from folkmoot.mcp.wire import DISCOVER, PING, SERVER_KEY, members_of
from folkmoot.relay.upstream import requests
from folkmoot.relay.upstream.link_reader import LinkReader
from folkmoot.relay.upstream.requests import Heard, Late, Listen, PendingCall, Unanswered
from folkmoot.taskgroups import background_tasks

if TYPE_CHECKING:
    from folkmoot.core.message import Response
    from folkmoot.mcp.client.link import ServerLink
    from folkmoot.relay.upstream.requests import Offer

SILENCE_SECONDS: Final = 5.0
"""How long a server may take to say which era it speaks; then it is offered a handshake too."""


class BackendConversation(LinkReader):
    """One link, opened by `opened`."""

    def __init__(self, link: ServerLink, *, one_client: bool) -> None:
        super().__init__(link, one_client=one_client)
        self._ids = count(1)
        """Ids that were never used on this link."""
        self.offer: Offer = requests.EVERYTHING

    @classmethod
    @asynccontextmanager
    async def opened(
        cls,
        link: Callable[[], AbstractAsyncContextManager[ServerLink]],
        *,
        seconds: float,
        one_client: bool = False,
        shake: bool = False,
        era: Era | None = None,
        offer: Offer = requests.EVERYTHING,
    ) -> AsyncIterator[BackendConversation]:
        """A conversation while entered. `shake` offers a handshake before anything else.

        `era` is the only one that will do, and `offer` what a handshake tells the server that
        callers can be asked for.

        Raises a `FolkmootError` that says why the server cannot be talked with.
        """
        limit = asyncio.timeout(seconds)
        try:
            async with limit, link() as carrier, background_tasks() as running:
                conversation = cls(carrier, one_client=one_client)
                running.run(conversation.read())
                running.run(conversation.outbox.run())
                running.run(conversation.expire())
                conversation.offer = offer
                shake = shake or era is Era.HANDSHAKE
                await conversation._open(min(seconds / 2, SILENCE_SECONDS), shake=shake)
                if era is not None and conversation.stateless is not (era is Era.STATELESS):
                    raise e.ServerAnswerInvalid(f"It does not speak the {era.value} era.")
                limit.reschedule(None)
                try:
                    yield conversation
                finally:
                    conversation.end(e.TransportClosed("The link to the server was closed."))
        except TimeoutError:
            if not limit.expired():
                raise
            raise e.BackendUnavailable(f"It did not answer within {seconds:g} seconds.") from None

    @property
    def stateless(self) -> bool:
        """Whether the server speaks the stateless era itself."""
        return self.bridge.transparent

    @property
    def usable(self) -> bool:
        """Whether something may be asked on it now."""
        return not (self.suspect or self.ended.is_set())

    @property
    def version(self) -> str:
        """The protocol version that is spoken with the server."""
        return str(self.bridge.server_version or "")

    @property
    def capabilities(self) -> dict[str, Any]:
        """The server's capabilities."""
        return members_of(self.discovered.get("capabilities"))

    @property
    def server(self) -> dict[str, Any]:
        """The server's name and version."""
        return members_of(members_of(self.discovered.get("_meta")).get(SERVER_KEY))

    @property
    def in_flight(self) -> int:
        """Requests that are not answered."""
        return len(self.waiting)

    async def request(self, wanted: UpstreamRequest, seconds: float) -> Response:
        """The server's answer. Progress extends the time, up to ten times of it.

        Raises `Unanswered` or `Late` where there is none; whoever is cancelled cancels it.
        """
        if self.over is not None:
            raise Unanswered(self.over, begun=False, gone=True)
        waiting = PendingCall(next(self._ids), wanted, seconds)
        self.waiting[waiting.id] = waiting
        try:
            await self._send(waiting)
            return await waiting.answer
        except (asyncio.CancelledError, Late) as ended:
            if isinstance(ended, Late) and self.heard_at <= waiting.began:
                self.mark_suspect()
            self.withdraw(waiting.id)
            raise
        except e.BackendBusy:
            self.unsaid(waiting)
            raise
        finally:
            self._leave(waiting)
            if self.replaced:
                self.wakeup.set()

    def _leave(self, waiting: PendingCall) -> None:
        del self.waiting[waiting.id]
        if waiting.answer.done() and not waiting.answer.cancelled():
            # They may have been told something else already.
            waiting.answer.exception()
        # The two hold each other, which would keep both for long.
        call, waiting.call = waiting.call, None
        if call is not None and call.state is CallState.OPEN:
            # It could not be sent, and may have arrived all the same.
            self._cancel(call, self._loop.time())

    async def alive(self, seconds: float) -> bool:
        """Whether the server answers anything at all, which ends the doubt."""
        method = DISCOVER if self.stateless else PING
        try:
            await self.request(UpstreamRequest(method=method, params={}), seconds)
        except (Unanswered, Late):
            return False
        except e.BackendBusy:
            # Nobody knows; whoever has to wait too long brings up the doubt again.
            pass
        self.suspect = False
        return True

    async def listen(self, notifications: dict[str, Any], heard: Heard, seconds: float) -> Listen:
        """Hear of changes from when the server has agreed to tell of them; see `agreed`.

        Raises `Unanswered` or `Late` if it does not.
        """
        if self.over is not None:
            raise Unanswered(self.over, begun=False, gone=True)
        listen = Listen(next(self._ids), heard, self._unlisten)
        self.listens[listen.id] = listen
        try:
            async with asyncio.timeout(seconds):
                messages = self.to_server(requests.listen(listen.id, notifications))
                if (call := self.peer.get(listen.id)) is not None:
                    call.slot = listen
                await self.say(messages)
                await listen.agreed
        except BaseException as error:
            listen.close()
            if isinstance(error, e.CarryError):
                raise Unanswered(error, begun=False, gone=True) from None
            if isinstance(error, TimeoutError):
                raise Late(seconds) from None
            raise
        return listen

    def _unlisten(self, listen: Listen) -> None:
        if self.listens.pop(listen.id, None) is not None:
            listen.end(Unanswered(e.TransportClosed("It ended."), begun=False, gone=False))
            self.withdraw(listen.id)

    async def _open(self, silence: float, *, shake: bool) -> None:
        """Find out what the server is."""
        waiting = PendingCall(
            next(self._ids), UpstreamRequest(method=DISCOVER, params={}), seconds=86_400
        )
        self.waiting[waiting.id] = waiting
        try:
            hello = self.to_server(requests.discover(waiting.id, self.offer), waiting)
            await self.say(self.presume_handshake() if shake else hello)
            await asyncio.wait([waiting.answer], timeout=silence)
            if not waiting.answer.done():
                await self.say(self.presume_handshake())
            answer = await waiting.answer
        except Unanswered as error:
            raise error.why from None
        finally:
            self._leave(waiting)
        self.opening = False
        # What was not answered until now was asked to find out what the server is.
        self.peer = Peer(one_owner=self._one_client)
        self.discovered = members_of(answer.result)

    async def _send(self, waiting: PendingCall) -> None:
        sender = waiting.sending = asyncio.current_task()
        try:
            asked = requests.request_of(waiting.wanted, waiting.id)
            if self.bridge.transparent:
                self._said(asked, waiting)
                await self.link.send(asked)
            else:
                await self.say(self.to_server(asked, waiting))
        except asyncio.CancelledError:
            if sender is not None and waiting.late and not sender.uncancel():
                raise Late(waiting.seconds) from None
            raise
        except e.TooManyInFlight as error:
            raise e.BackendBusy(error.message) from None
        except e.CarryError as error:
            begun = not (error.unsent or isinstance(error, e.TransportClosed))
            raise Unanswered(error, begun=begun, gone=True) from None
        finally:
            waiting.sending = None
