"""Room: one room of one hub, for as long as a program is in it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from ssl import SSLContext, TLSVersion, create_default_context
from types import MappingProxyType, TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast, overload
from urllib.parse import urlsplit

import msgspec

from folkmoot.client.http import rooms_url
from folkmoot.client.hub import Hub
from folkmoot.client.limits import CALLS_AT_ONCE, LIST_SECONDS, MAX_LIST_SECONDS
from folkmoot.client.link import Backoff
from folkmoot.client.model import (
    HistoryPage,
    Me,
    Message,
    OfferedTool,
    OpenProposal,
    OpenRequest,
    Participant,
    ParticipantPage,
    ToolPage,
    Waiting,
    WaitingList,
    read,
    stored,
)
from folkmoot.client.pending import Outcome
from folkmoot.client.receiver import MessageReceiver
from folkmoot.client.service import Decide, ToolServer
from folkmoot.client.session import Position, RoomPlace, Session, token_of
from folkmoot.client.tools import Function, Tool, make_tool
from folkmoot.client.verbs import Verbs
from folkmoot.core import errors as e

if TYPE_CHECKING:
    from folkmoot.client.asking import Method

F = TypeVar("F", bound=Function)


class Room(Verbs):
    """A room of a hub, entered with `async with`.

    `url` is the hub's address. `token` is an account's token, or a guest's invitation or
    credential, or a function that gives the token of the moment and can block; it is sent in a
    header, and shown nowhere. A lost connection comes back by itself, for ever or for `patience`
    seconds. `calls_at_once` bounds how many tool calls run together.
    With `after`, iteration begins after the message with this `seq`, such as `last_seq` of an
    earlier run, and 0 for the whole history; give its `epoch` too, to hear of it if the room began
    anew since.
    """

    def __init__(
        self,
        url: str,
        *,
        room: str,
        token: str | Callable[[], str],
        ssl: SSLContext | None = None,
        backoff: Backoff | None = None,
        patience: float | None = None,
        calls_at_once: int = CALLS_AT_ONCE,
        after: int | None = None,
        epoch: str | None = None,
    ) -> None:
        super().__init__()
        address = rooms_url(url)
        if ssl is None and address.startswith("wss:"):
            ssl = create_default_context()
            ssl.minimum_version = TLSVersion.TLSv1_2
        self.name = room
        self._place = RoomPlace(address, room, ssl, backoff or Backoff(), patience)
        self._token = token
        self._start = Position(after, None if after is None else epoch)
        self._service = ToolServer(
            self._respond,
            self._post_response,
            self._tell_progress,
            self._begin,
            self._owed,
            at_once=calls_at_once,
        )
        self._receiver = MessageReceiver(
            self._outbox, self._questions, self._proposals, self._service
        )
        self._rest = Rest(address, room, ssl, lambda: self._receiver.credential or self._token)
        self._tasks: asyncio.TaskGroup | None = None
        self._session: Session | None = None
        self._staying: asyncio.Task[None] | None = None

    def __repr__(self) -> str:
        return f"Room({self._place.url!r}, room={self.name!r})"

    @property
    def me(self) -> Me:
        """Who this program is here, and what it may do; kept up to date."""
        return self._receiver.me

    @property
    def participants(self) -> Mapping[str, Participant]:
        """Who is here, by id; kept up to date. Of a large room the hub lists the first 256."""
        return MappingProxyType(self._receiver.participants)

    @property
    def epoch(self) -> str | None:
        """Which life of the room this is; numbers of one epoch mean nothing in another."""
        return self._session.position.epoch if self._session else None

    @property
    def last_seq(self) -> int:
        """The last message this program knows of."""
        return self._session.position.heard if self._session else 0

    @property
    def is_connected(self) -> bool:
        """Whether the hub hears us now; a connection that is lost comes back by itself."""
        return self._session is not None and self._session.is_connected

    @property
    def credential(self) -> str | None:
        """What a guest got for the invitation, which is used up: keep it to come again."""
        return self._receiver.credential

    @property
    def tools(self) -> Mapping[str, Tool]:
        """What this program offers to the room, by name."""
        return MappingProxyType(self._service.tools)

    @overload
    def tool(self, function: F, /) -> F: ...
    @overload
    def tool(
        self,
        /,
        *,
        name: str | None = None,
        description: str | None = None,
        idempotent: bool = False,
        title: str | None = None,
        read_only: bool | None = None,
        destructive: bool | None = None,
        open_world: bool | None = None,
    ) -> Callable[[F], F]: ...

    def tool(
        self,
        function: Function | None = None,
        /,
        *,
        name: str | None = None,
        description: str | None = None,
        idempotent: bool = False,
        title: str | None = None,
        read_only: bool | None = None,
        destructive: bool | None = None,
        open_world: bool | None = None,
    ) -> Any:
        """Offer a function to the room, before or after entering it.

        Its parameters become the input schema, its docstring the description. A parameter of the
        type `Context` tells of the caller, and takes no part in the schema. A call of one that is
        `idempotent` is run again where it was interrupted. What it says of itself is listed as the
        annotations of MCP: `title`, whether it is `read_only` or `destructive`, and whether it
        reaches an `open_world` beyond the agent.
        """

        def offer(offered: F) -> F:
            tool = make_tool(
                offered,
                name,
                description,
                idempotent=idempotent,
                title=title,
                readOnlyHint=read_only,
                destructiveHint=destructive,
                openWorldHint=open_world,
            )
            self._service.tools[tool.name] = tool
            if self._session is not None:
                self._session.offer()
            return offered

        return offer if function is None else offer(function)

    def on_interrupted(self, decide: Decide) -> Decide:
        """Have a function, async or not, decide about calls that were interrupted.

        Such a call was begun by a connection that did not come back, so nobody knows how far it
        came. The function gets the request. True runs it again, False answers it with an error, and
        None leaves it to the function to answer. Without one, it is answered with an error.
        """
        self._service.on_interrupted = decide
        return decide

    @property
    def waiting(self) -> Waiting:
        """What waited for this program when the hub last said so."""
        return self._receiver.waiting

    async def list_waiting(self) -> list[OpenRequest | OpenProposal]:
        """What waits for this program now, in its order: open requests, and open proposals."""
        found: list[OpenRequest | OpenProposal] = []
        while True:
            page = await self._rest.waiting(found[-1].seq if found else 0)
            found += sorted((*page.requests, *page.proposals), key=lambda one: one.seq)
            if not page.more:
                return found

    async def list_participants(self) -> list[Participant]:
        """Who is here now, by name, each with whether it offers tools."""
        page = await self._rest.participants()
        found = page.participants
        while page.next_cursor is not None:
            page = await self._rest.participants(page.next_cursor)
            found += page.participants
        return found

    async def list_away(self) -> list[Participant]:
        """The members and guests of the room who are not here now, by name."""
        return (await self._rest.participants()).away

    async def mark_read(self, seq: int | None = None) -> None:
        """Mark the room as read, up to a message or all of it; it never moves back."""
        await self._rest.mark_read(seq)

    async def history(
        self, *, after: int | None = None, before: int | None = None, limit: int = 100
    ) -> list[Message]:
        """A page of the history, in order: the first messages after a `seq`, or else the last.

        It has 500 messages at most, and ends early when they are large.
        """
        page = await self._rest.messages(after=after, before=before, limit=limit)
        return [as_message(members) for members in page.messages]

    async def list_tools(
        self,
        to: str | None = None,
        *,
        timeout: float = LIST_SECONDS,  # noqa: ASYNC109 - as in `request`
    ) -> list[OfferedTool]:
        """The tools of a participant, or of everyone else who serves some.

        The hub asks for them, so the room's history has nothing of it. Of all, those that do not
        answer in time, or that you cannot ask, are left out.
        """
        page = await self._rest.tools(to, max(1, min(int(timeout), MAX_LIST_SECONDS)))
        if to is not None and to in page.unanswered:
            raise e.RequestFailed(f"{to} did not list its tools in time.", error={})
        return [
            OfferedTool(name, it)
            for it in page.tools
            if isinstance(name := it.pop("to", None), str) and isinstance(it.get("name"), str)
        ]

    async def approve(
        self,
        proposal: Message | str,
        *,
        to: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - as in `request`
    ) -> Outcome:
        """Fulfil a proposal, which may be named by its id, and answer what came of it."""
        found = await self._rest.proposal(proposal) if isinstance(proposal, str) else proposal
        try:
            result = await self.fulfil(found, to=to, timeout=timeout)
        except e.RequestFailed as error:
            return Outcome("fulfilled", self.me.id, error=error)
        return Outcome("fulfilled", self.me.id, result=result)

    async def _owed(self) -> list[tuple[OpenRequest, Message]]:
        return [
            (one, as_message(one.message))
            for one in await self.list_waiting()
            if isinstance(one, OpenRequest) and one.message is not None
        ]

    async def __aenter__(self) -> Self:
        """Come in; whatever keeps us out is raised."""
        if self._session is not None:
            raise RuntimeError("A Room can be entered only once; create another one.")
        self._session = session = Session(self._place, self._token, self._receiver, self._start)
        self._outbox.on_send = session.regulate
        self._tasks = tasks = asyncio.TaskGroup()
        await tasks.__aenter__()
        self._service.spawn = tasks.create_task
        self._staying = tasks.create_task(session.run())
        try:
            await asyncio.shield(session.entered)
        except BaseException:
            await self._leave()
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Leave: tools that are running are cancelled, and the hub answers for them."""
        await self._leave()

    async def _leave(self) -> None:
        session, tasks, staying = self._session, self._tasks, self._staying
        if session is None or tasks is None or staying is None:
            return
        session.leave(e.RoomLeft("The room was left."))
        staying.cancel()
        # Given no error, the group raises none but its tasks' own: the author's stays as it is.
        await tasks.__aexit__(None, None, None)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Message:
        """The next message, one's own included; a `Gap` where some are gone for good."""
        message = await self._entered().inbox.get()
        if message is None:
            raise StopAsyncIteration
        return message

    async def run(self) -> None:
        """Serve the tools until cancelled; nothing is kept for iteration from here on."""
        session = self._entered()
        session.inbox.discard()
        await session.inbox.get()

    def _entered(self) -> Session:
        if self._session is None:
            raise e.RoomLeft("The room was not entered yet.")
        return self._session


T = TypeVar("T")


class Rest:
    """One room of a hub, asked over HTTP with the same token."""

    def __init__(
        self,
        url: str,
        room: str,
        ssl: SSLContext | None,
        token: Callable[[], str | Callable[[], str]],
    ) -> None:
        place = urlsplit(url)
        scheme = "https" if place.scheme == "wss" else "http"
        self._hub = Hub(f"{scheme}://{place.netloc}{place.path.removesuffix('/ws')}", ssl=ssl)
        self._room = room
        self._token = token

    async def waiting(self, after: int = 0) -> WaitingList:
        """A page of what waits for this program."""
        return await self._ask(Hub.list_waiting, WaitingList, after=after)

    async def participants(self, cursor: str | None = None) -> ParticipantPage:
        """A page of those who are in the room."""
        return await self._ask(Hub.list_participants, ParticipantPage, cursor=cursor)

    async def tools(self, to: str | None, wait: int) -> ToolPage:
        return await self._ask(Hub.list_room_tools, ToolPage, to=to, wait=wait)

    async def messages(self, **query: Any) -> HistoryPage:
        return await self._ask(Hub.read_messages, HistoryPage, **query)

    async def mark_read(self, seq: int | None) -> None:
        await self._ask(Hub.mark_room_read, dict[str, Any], seq=seq)

    async def proposal(self, id_: str) -> Message:
        told = await self._ask(Hub.get_proposal, dict[str, Any], proposal=id_)
        message = told.get("message")
        if message is None:
            raise e.AnswerInvalid("The room no longer keeps what was proposed.")
        return as_message(message)

    async def _ask(self, method: Method[..., Any], answer: type[T], **given: Any) -> T:
        self._hub.token = await token_of(self._token())
        asked = (method.find(), (self._room,), given, answer)
        return cast("T", await asyncio.to_thread(self._hub.perform, *asked))


def as_message(members: dict[str, Any]) -> Message:
    """A stored message from an answer."""
    data = msgspec.json.encode(members)
    return stored(read(data), data)
