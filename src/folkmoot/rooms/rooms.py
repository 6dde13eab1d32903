"""Rooms for transports and tools: entering, listing, posting and reading."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any, Final

import msgspec

from folkmoot.accounts import Accounts
from folkmoot.audit import record_refusal
from folkmoot.core import errors as e
from folkmoot.core.capability import Source
from folkmoot.core.closecodes import CloseCode
from folkmoot.core.kindcheck import check
from folkmoot.core.mcpx import McpxMessage, decode_mcpx
from folkmoot.core.ports import Clock, NodeBus, RoomOwners, Store, Tx
from folkmoot.core.strict import Limits
from folkmoot.mcp.wire import TOOLS_LIST
from folkmoot.quotas import Quotas
from folkmoot.rooms import queries_members, queries_visits
from folkmoot.rooms.access import (
    STRANGERS_COME_IN,
    role_in,
)
from folkmoot.rooms.budget import MemoryBudget
from folkmoot.rooms.connections import Revocation
from folkmoot.rooms.entrance import RoomEntrance
from folkmoot.rooms.folding import named
from folkmoot.rooms.intake import Intake
from folkmoot.rooms.invitations import Inviter
from folkmoot.rooms.limits import MAX_READ, MAX_WAIT_SECONDS, STOP_SECONDS
from folkmoot.rooms.live import LiveRoom, RoomServices, audit_blocked
from folkmoot.rooms.loading import LiveRooms
from folkmoot.rooms.machine import Append, Invite, Role
from folkmoot.rooms.machine.requests import OpenRequest
from folkmoot.rooms.model import (
    Invitation,
    MessagePage,
    OpenInvitation,
    RoomId,
    RoomView,
    Visitor,
)
from folkmoot.rooms.nodes import RoomNodes
from folkmoot.rooms.options import RoomOptions
from folkmoot.rooms.ports import Backends, Crowd, Enter, Outlet, Policy, RoomPort, Said
from folkmoot.rooms.proposals import ProposalFinder, names_of
from folkmoot.rooms.upkeep import Upkeep
from folkmoot.rooms.visits import VisitTable
from folkmoot.taskgroups import group

logger = logging.getLogger("folkmoot.rooms")

LIST_KIND: Final = f"mcp.request.{TOOLS_LIST}"


class Rooms(RoomEntrance):
    """All rooms of a hub. A `visitor` is whoever asks."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        accounts: Accounts,
        *,
        epoch: str,
        crowd: Callable[[], Crowd],
        options: RoomOptions | None = None,
        pipeline: Enter | None = None,
        backends: Backends | None = None,
        policy: Policy | None = None,
        quotas: Quotas | None = None,
        owners: RoomOwners | None = None,
        node_bus: NodeBus | None = None,
    ) -> None:
        options = options or RoomOptions()
        quotas = quotas or Quotas()
        nodes, visits = None, None
        if node_bus is not None and owners is not None:
            visits = VisitTable(store, clock, options.tool_presence_seconds)
        services = RoomServices(
            clock,
            store.bus,
            self._spawn,
            self._answer_invite,
            self._dropped,
            self._speak,
            backends,
            policy,
            visits,
        )
        self._policy = policy
        if node_bus is not None and owners is not None:
            nodes = RoomNodes(node_bus, owners, store, options, crowd, epoch, self._spawn)
        live = LiveRooms(store, options, services, crowd, epoch, quotas, owners, nodes)
        if nodes is not None:
            nodes.live, nodes.change = live, self.change
        self._nodes = nodes
        super().__init__(store, clock, accounts, options, live, epoch, backends, quotas)
        self.pipeline = pipeline
        """Takes messages past interceptors; None where there are none, and it would do nothing."""
        self._tasks: asyncio.TaskGroup | None = None
        self._running: set[asyncio.Task[None]] = set()
        self.asks = ProposalFinder(store, clock, live, policy)
        """What waits in rooms for those who may decide."""
        self._inviter = Inviter(store, clock, accounts, quotas)
        self._upkeep = Upkeep(store, clock, options, live, owners)
        self._revocation = Revocation(store.bus, accounts, live, policy, self._id)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Rooms can be used meanwhile; on leaving, all that was said is stored."""
        async with group() as tasks:
            self._tasks = tasks
            self._spawn(self._upkeep.run())
            if self._nodes is not None:
                self._spawn(self._nodes.watch())
            try:
                yield
            finally:
                self.stop()
                await self._leave()
                self._tasks = None
                for task in (*self._running, *self._changes):
                    task.cancel()

    async def _leave(self) -> None:
        """Store what was said and give the rooms to others, as far as it is done in time."""
        try:
            async with asyncio.timeout(STOP_SECONDS):
                await self._upkeep.finish()
                if self._nodes is not None:
                    await self._nodes.hand_over()
        except TimeoutError:
            logger.warning("rooms were not handed over in time")
        await self._live.release_all()

    def stop(self) -> None:
        """From now on whoever is disconnected has not left: the hub is about to stop."""
        self._live.stop()

    async def drain(self) -> None:
        """Give all rooms to other nodes; from now on none is used here."""
        if self._nodes is not None:
            await self._nodes.drain()
            await self._live.release_all()

    @property
    def is_alone(self) -> bool:
        """Whether other nodes reach the bus, and this one does not."""
        return self._nodes is not None and self._nodes.is_alone

    @property
    def live_rooms(self) -> int:
        """How many rooms are in use."""
        return len(self._live)

    async def present(self, room_ids: Sequence[RoomId]) -> dict[RoomId, int]:
        """How many participants are in each of these rooms that is in use, at whatever node."""
        found = await self._live.statuses(room_ids)
        return {room_id: status.participants for room_id, status in found.items()}

    @property
    def memory(self) -> MemoryBudget:
        """What the rooms that are in memory alone take."""
        return self._live.memory

    def _spawn(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[None] | None:
        if self._tasks is None:
            work.close()
            return None
        task = self._tasks.create_task(_guarded(work))
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        # What was cancelled before it began is not left behind unawaited.
        task.add_done_callback(lambda _: work.close())
        return task

    async def _speak(
        self, raw: bytes, visitor: Visitor, post: Callable[[], Awaitable[None]]
    ) -> None:
        """Have what a backend says posted, if the interceptors let it through."""
        if self.pipeline is None:
            await post()
        else:
            await self.pipeline(Said(self._decode(raw), visitor, post))

    def _dropped(self, live: LiveRoom) -> None:
        self._live.dropped(live)

    def show_to(self, pipeline: Enter) -> None:
        """Have messages shown to interceptors from now on; whoever is connected comes again."""
        self.pipeline = pipeline
        for room in self._live.in_use():
            for outlet in list(room.outlets):
                outlet.close(CloseCode.RESTARTING)

    def receiver(self, room: RoomPort, outlet: Outlet, visitor: Visitor) -> Callable[..., None]:
        """What is to be called with the messages of a connection."""
        if self.pipeline is None:
            return partial(room.receive, outlet)
        blocked = partial(audit_blocked, room.name, visitor.principal)
        return Intake(room, outlet, visitor, self.pipeline, self._spawn, blocked).put

    async def messages(
        self,
        visitor: Visitor,
        name: str,
        *,
        after: int | None = None,
        before: int | None = None,
        limit: int = 50,
        wait: float = 0.0,
        fold: bool = False,
    ) -> MessagePage:
        """What was said: the first messages after a `seq`, or the last ones before one.

        With `wait`, the answer comes when there is something after it, or when the time is over.
        With `fold`, presence and protocol are counted and not among the messages.
        """
        if not 1 <= limit <= MAX_READ:
            raise e.ArgumentInvalid(f"limit must be from 1 to {MAX_READ}.", field="limit")
        if not 0 <= wait <= MAX_WAIT_SECONDS:
            raise e.ArgumentInvalid(
                f"wait must be from 0 to {MAX_WAIT_SECONDS:g} seconds.", field="wait"
            )
        record, _ = await self.find_in(visitor, name)
        room = await self._live.open(record)
        room.visits.touch(visitor.principal.account_id)
        if wait and before is None:
            after = (await room.refresh()).last_seq if after is None else after
            await room.wait(after, wait)
            # Put out, or gone with the room, while waiting.
            await self.find_in(visitor, name)
        page = await room.read(after, before, limit, fold=fold)
        return await named(page, self._names)

    async def _names(self, accounts: Iterable[str]) -> dict[str, str]:
        return await self._store.read(lambda tx: names_of(tx, accounts))

    async def post(
        self, visitor: Visitor, name: str, raw: bytes, *, admitted: bool = True
    ) -> bytes:
        """Say something without being connected; the message as it is stored.

        Most callers had the operation `admitted` that it is part of.
        """
        # The values of a request's body were counted as it came.
        limits = msgspec.structs.replace(self.options.limits, values=0)
        message = self._decode(raw, limits)
        if (message.kind.protocol, message.kind.operation) == ("room", "invite"):
            raise e.PayloadInvalid(
                "The answer to an invitation is for the inviter alone: invite with "
                "POST /v1/rooms/NAME/invites, room/invite, or on a WebSocket."
            )
        effects = await self._post(visitor, name, message, admitted=admitted)
        return next(one.data for one in effects if type(one) is Append)

    async def list_tools(
        self, visitor: Visitor, name: str, to: str, cursor: str | None, seconds: float
    ) -> dict[str, Any] | None:
        """The answer of a participant that is asked for its tools, which the others do not see."""
        room, role = await self.enter(visitor, name)
        room.visits.touch(visitor.principal.account_id)
        try:
            return await room.list_tools(visitor.principal, role, to, cursor, seconds)
        except e.PolicyError as error:
            record_refusal(visitor.principal, LIST_KIND, error, name)
            raise

    async def _post(
        self, visitor: Visitor, name: str, message: McpxMessage, *, admitted: bool = True
    ) -> list[Any]:
        if self.pipeline is None:
            return await self._accept(visitor, name, message)
        accept = partial(self._accept_shown, visitor, name, message, self.changes)
        blocked = partial(audit_blocked, name, visitor.principal, message)
        operation_in = "" if admitted else name
        said = Said(message, visitor, accept, blocked, operation_in=operation_in)
        effects: list[Any] = await self.pipeline(said)
        return effects

    async def _accept_shown(
        self, visitor: Visitor, name: str, message: McpxMessage, changes: int
    ) -> list[Any]:
        if self.changes != changes:
            await self.check_still(visitor)
        # As it came: whatever was done to the message that was shown does not count.
        return await self._accept(visitor, name, self._decode(message.raw))

    async def _accept(self, visitor: Visitor, name: str, message: McpxMessage) -> list[Any]:
        if self._policy is not None:
            # Before anyone comes in: what is denied leaves no trace. What is wrong with the message
            # itself is told by the room, once it is known to be there.
            with suppress(e.KindError):
                kind = check(message.kind, message.payload, message.to, message.correlation_id)
                try:
                    self._policy.check_message(visitor.principal, name, kind, message)
                except e.PolicyError as error:
                    record_refusal(visitor.principal, kind.text, error, name)
                    raise
        room, role = await self.enter(visitor, name)
        room.visits.touch(visitor.principal.account_id)
        return await room.post(visitor.principal, role, message)

    def _decode(self, raw: bytes, limits: Limits | None = None) -> McpxMessage:
        options = self.options
        old = options.accept_old_spellings
        return decode_mcpx(raw, limits or options.limits, accept_old_spellings=old)

    async def open_request(self, visitor: Visitor, name: str, id_: str) -> OpenRequest | None:
        """The request of a room that waits for its answer and has this id."""
        record, _ = await self.find_in(visitor, name)
        return await (await self._live.open(record)).request(id_)

    async def invite(
        self,
        visitor: Visitor,
        name: str,
        *,
        handle: str | None = None,
        guest: str | None = None,
        capabilities: Sequence[Source] = (),
    ) -> Invitation:
        """Ask someone in: an account by its handle, or a guest, who gets a token.

        A guest may hold some capabilities from the start; the inviter must hold them.
        """
        record, _ = await self.find_in(visitor, name)
        await self._inviter.check(record.id, visitor.principal.account_id, handle, guest)
        payload: dict[str, Any] = {"handle": handle} if guest is None else {"guest": guest}
        if capabilities:
            payload["capabilities"] = list(capabilities)
        kind = {"protocol": "mcpx/v1", "kind": "room.invite", "payload": payload}
        effects = await self._post(visitor, name, self._decode(msgspec.json.encode(kind)))
        asked = next(one for one in effects if type(one) is Invite)
        return await self._make_invitation(name, asked)

    async def open_invitations(self, visitor: Visitor, name: str) -> list[OpenInvitation]:
        """Whom a room waits for: all of them for owners, else the guests one invited."""
        record, role = await self.find_in(visitor, name)
        return await self._inviter.open(record.id, inviter(visitor, role))

    async def withdraw_invitation(self, visitor: Visitor, name: str, invited: str) -> None:
        """Take an invitation back: any as an owner, else that of a guest one invited."""
        record, role = await self.find_in(visitor, name)
        await self._inviter.withdraw(record.id, invited, inviter(visitor, role))

    async def _make_invitation(self, name: str, asked: Invite) -> Invitation:
        invited = await self._inviter.invite(name, asked)
        if invited.account is not None:
            room = await self._live.reach(invited.room_id)
            if room is not None:
                room.unban(invited.account)
        return invited.invitation

    async def _answer_invite(self, live: LiveRoom, asked: Invite) -> dict[str, Any]:
        try:
            await live.journal.expulsions()
            invitation = await self._make_invitation(live.name, asked)
        except e.FolkmootError as error:
            return {"status": "refused", "error": error.code, "message": error.message}
        told: dict[str, Any] = msgspec.to_builtins(invitation)
        return {"status": "invited", **told}

    async def visit(self, visitor: Visitor, name: str) -> RoomView:
        """Be in a room without a connection, until one leaves or does nothing for long."""
        record, membership = await self.find(visitor, name)
        role = role_in(record, membership, visitor)
        await self.remember(record, membership, visitor)
        room = await self._live.open(record)
        await room.visits.begin(visitor, role)
        return await self.shown(visitor, record, role)

    async def depart(self, visitor: Visitor, name: str) -> None:
        """End a visit, and be a member no more; an owner stays one.

        Who could not come in again does not stay on another connection either.
        """
        record, membership = await self.find(visitor, name)
        account = visitor.principal.account_id
        leaves = membership is not None and membership.role is not Role.OWNER

        async def unit(tx: Tx) -> None:
            if leaves:
                await queries_members.leave(tx, record.id, account)
            if self._nodes is not None:
                await queries_visits.remove(tx, record.id, account)

        if leaves or self._nodes is not None:
            # First: who leaves need not wait for the node that has the room.
            await self._store.write(unit)
        room = await self._end_visit(record.id, account)
        if room is not None and leaves and not STRANGERS_COME_IN[record.access]:
            room.remove(account, CloseCode.NOT_ALLOWED)

    async def _end_visit(self, room_id: RoomId, account: str) -> RoomPort | None:
        """Have the owner of a room let someone be gone, or the next one if the room changes hands.

        Whoever takes the room later finds no visit.
        """
        room = None
        for _ in range(2):
            room = await self._live.reach(room_id)
            if room is None:
                return None
            with suppress(e.FolkmootError):
                await room.visits.end(account)
                break
        return room

    @property
    def changes(self) -> int:
        """How often an account changed, or a credential ended, since the hub began."""
        return self._revocation.changes

    def confirm(self, visitor: Visitor, changes: int) -> None:
        """Check someone who entered with a token that may have been revoked meanwhile.

        `changes` is how many changes of accounts there had been when the token was shown: a later
        one may have been theirs, before they were here.
        """
        if self.changes != changes and visitor.account is not None:
            self._spawn(self._revocation.recheck(visitor.principal.account_id))


def inviter(visitor: Visitor, role: Role) -> str | None:
    """Whose invitations someone manages: their own, or as an owner everyone's."""
    return None if role is Role.OWNER else visitor.principal.account_id


async def _guarded(work: Coroutine[Any, Any, Any]) -> None:
    """Run background work, logging its failure."""
    try:
        await work
    except e.FolkmootError as error:
        logger.warning("work of a room failed", extra={"error": error.code})
    except Exception:
        logger.exception("work of a room failed")
