"""A live room: the machine with its journal, its connections and its clock.

The machine says what is to be done, the journal when it may be, and here it is done: messages go to
everyone who is attached, refusals to their sender, and whoever resumes first gets what was missed.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, TypeAlias

from msgspec import Struct

from folkmoot.audit import BLOCKED, record_refusal
from folkmoot.core import errors as e
from folkmoot.core.closecodes import CloseCode
from folkmoot.core.kindcheck import check
from folkmoot.core.mcpx import McpxMessage
from folkmoot.core.policy import Principal
from folkmoot.core.ports import Bus, Clock, Unit
from folkmoot.rooms.backends import RoomBackendCalls, Speak
from folkmoot.rooms.budget import RoomBudget
from folkmoot.rooms.fence import taken_over
from folkmoot.rooms.history import History
from folkmoot.rooms.intake import LookUp, Lookups
from folkmoot.rooms.journal import Barrier, Item, Journal, Rewrite, Spawn
from folkmoot.rooms.limits import CLOCK_SECONDS, MAX_LISTINGS
from folkmoot.rooms.machine import (
    AccountStanding,
    Append,
    AskBackend,
    Attach,
    Audit,
    CancelBackendCall,
    Close,
    Effect,
    Expel,
    Facts,
    Invite,
    LookupNeeded,
    Role,
    Room,
    RoomSettings,
    Tell,
)
from folkmoot.rooms.machine.model import NO_FACTS
from folkmoot.rooms.model import Guest, RoomId, Visitor
from folkmoot.rooms.news import RoomNews
from folkmoot.rooms.ports import Backends, Crowd, Outlet, Policy
from folkmoot.rooms.stream import RoomStream
from folkmoot.rooms.visits import Visits, VisitTable

logger = logging.getLogger("folkmoot.rooms")
audit_logger = logging.getLogger("folkmoot.audit")

Answer: TypeAlias = "Callable[[LiveRoom, Invite], Awaitable[dict[str, Any]]]"
"""Makes an invitation, and answers what the inviter is told."""


class RoomServices(Struct, frozen=True):
    """What all live rooms of a hub have in common."""

    clock: Clock
    bus: Bus
    spawn: Spawn
    answer_invite: Answer
    dropped: Callable[[LiveRoom], None]
    """Told of a room that cannot go on."""
    speak: Speak
    """Shows what a backend says to the interceptors, before the room has it."""
    backends: Backends | None = None
    policy: Policy | None = None
    visits: VisitTable | None = None
    """Where visits are stored for the next owners of rooms."""


def log(room: str, action: str, by: str, account: str | None, about: str, detail: Any) -> None:
    """Write to the audit log what was done in a room."""
    told = {"room": room, "by": by, "account": account, "about": about, "detail": detail}
    audit_logger.info(action, extra=told)


def audit_blocked(room: str, by: Principal, message: McpxMessage, error: e.FolkmootError) -> None:
    """Write to the audit log that a rule stopped a message to a room."""
    kind = message.kind
    with suppress(e.KindError):
        kind = check(kind, message.payload, message.to, message.correlation_id)
    log(room, BLOCKED, by.name, by.account_id, kind.text, {"error": error.code})


class LiveRoom(RoomStream):
    """One room in use, in the process that owns it; a `RoomPort`."""

    def __init__(
        self,
        room_id: RoomId,
        machine: Room,
        crowd: Crowd,
        history: History,
        services: RoomServices,
        *,
        durable: bool,
        keep_messages: int,
        look_up: LookUp,
        budget: RoomBudget | None = None,
    ) -> None:
        super().__init__(machine, history, crowd, services.spawn)
        self.room_id = room_id
        self.durable = durable
        self.keep_messages = keep_messages
        """How many messages are kept; a few more may be until the oldest go."""
        self.used_at = services.clock.monotonic()
        self.journal: Journal
        self._around = services
        # Bound once, since every message passes them.
        self._now = services.clock.now
        self._receive = machine.receive
        self._news = RoomNews(services.bus, room_id)
        self._loop = asyncio.get_running_loop()
        self._outlets: dict[Outlet, Visitor] = {}
        self._expelled: set[str] = set()
        self._held: set[Outlet] = set()
        self._budget = budget
        self._look_up = look_up
        self._lookups = Lookups(self, look_up, services.spawn)
        self._listings: dict[Outlet, dict[str, asyncio.Future[dict[str, Any]]]] = {}
        """Requests for tools that the room does not see, by the connection that was asked."""
        self.serving = RoomBackendCalls(self, services.backends, services.spawn, services.speak)
        self.visits = Visits(self, services.clock.monotonic, services.visits)
        self._stopping = False
        self.changing = asyncio.Lock()
        """Held by whoever changes the room's record."""
        self._timer: asyncio.TimerHandle | None = None
        self._alarm = math.inf
        self._set_timer()

    @property
    def outlets(self) -> Mapping[Outlet, Visitor]:
        """The connections and their visitors."""
        return self._outlets

    @property
    def is_idle(self) -> bool:
        """Whether nobody is connected, waits, or has said something that is not stored.

        Backends that are here do not keep a room, save while they are answering.
        """
        return not (self._outlets or self._waiters or self.is_busy or self.serving.under_way)

    @property
    def is_busy(self) -> bool:
        """Whether something that was said is not carried out yet."""
        return bool(self.journal.waiting or self._lookups)

    @property
    def owner_epoch(self) -> int:
        """The number of the take-over since which the room is here; 0 where none can be."""
        return 0 if self.journal.fence is None else self.journal.fence.epoch

    @property
    def is_ended(self) -> bool:
        """Whether nobody can use this room any more."""
        return self._ended is not None

    @property
    def is_ours(self) -> bool:
        """Whether the room is surely this process's, for what no fence guards."""
        fence = self.journal.fence
        return self._ended is None and (fence is None or fence.is_sure)

    async def make_sure(self) -> bool:
        """Whether the room is this process's, after a look into the store if need be.

        One that is not ends here: whoever has it next tells that it is not known what was done.
        """
        try:
            while self._ended is None and not self.is_ours:
                await self.journal.check()
        except e.FolkmootError as error:
            self.fail(error)
        return self._ended is None

    @property
    def is_taken_over(self) -> bool:
        """Whether another node has the room now."""
        return isinstance(self._ended, e.RoomTakenOver)

    @property
    def has_lookups(self) -> bool:
        """Whether messages wait until something is looked up."""
        return bool(self._lookups)

    @property
    def crowd(self) -> Crowd:
        """Those who hear the room."""
        return self._crowd

    def knows(self, account: str) -> bool:
        """Whether a message of someone's can be judged without a look into the store."""
        return self._budget is None or self._budget.knows(account, self.machine.settings.owner)

    async def prepare(self, account: str) -> None:
        """Read what must be known of someone before they come in or say something."""
        if self._budget is not None and not self.knows(account):
            await self._budget.read(account, self.machine.settings.owner)

    def join(
        self,
        outlet: Outlet,
        visitor: Visitor,
        role: Role,
        *,
        conn: str | None = None,
        after: int | None = None,
        epoch: str | None = None,
        serve: bool = False,
        linger: bool = False,
        credential: str | None = None,
    ) -> None:
        """Let someone in on a connection, which may offer tools; an error says why not."""
        self._require(visitor.principal)
        more = {} if credential is None else {"credential": credential}
        if self._budget is not None:
            account, owner = visitor.principal.account_id, self.machine.settings.owner
            near = self._budget.warning(account, owner)
            if near is not None:
                more["quota_warning"] = near
        effects = self.machine.join(
            outlet,
            visitor.principal,
            role,
            self._now(),
            conn=conn,
            after=after,
            epoch=epoch,
            serve=serve,
            linger=linger,
            more=more,
        )
        self._outlets[outlet] = visitor
        self.perform(effects)

    def receive(self, outlet: Outlet, *messages: bytes | McpxMessage) -> None:
        """Messages came on a connection."""
        if outlet in self._listings:
            messages = tuple(one for one in messages if not self._is_listed(outlet, one))
        if outlet in self._lookups:
            self._lookups.put(outlet, messages)
            return
        taken = self.accept(outlet, messages)
        if taken < len(messages):
            self._lookups.put(outlet, messages[taken:])

    def accept(
        self,
        outlet: Outlet,
        messages: Sequence[bytes | McpxMessage],
        facts: Facts = NO_FACTS,
    ) -> int:
        """Pass messages to the machine, up to one that needs a look into the store; how many."""
        visitor = self._outlets.get(outlet)
        if visitor is None:
            return len(messages)
        if not self.knows(visitor.principal.account_id):
            return 0
        effects, taken = self._receive(outlet, messages, self._now(), facts)
        self.perform(effects)
        if self.journal.is_full and outlet not in self._held:
            self._held.add(outlet)
            outlet.hold()
        return taken

    def refuse(self, outlet: Outlet, message: bytes | McpxMessage, error: e.FolkmootError) -> None:
        """Something before the room refused a message."""
        if isinstance(error, e.StoreError):
            # Its own sentence may name files and servers, which are not the room's to know.
            logger.warning("a room could not read", extra={"room": self.name, "error": error.code})
            error = e.RoomUnavailable("The hub could not look at the message. Say it again.")
        self.perform(self.machine.refuse(outlet, message, error, self._now()))

    def _audit_refused(
        self, by: Principal, message: bytes | McpxMessage, error: e.PolicyError
    ) -> None:
        about = error.data.get("attempted_kind")
        if about is None and isinstance(message, McpxMessage):
            about = message.kind.text
        record_refusal(by, str(about or ""), error, self.name)

    def left(self, outlet: Outlet) -> None:
        """A connection ended; what it said before still counts."""
        self._crowd.remove(outlet)
        if outlet in self._lookups:
            self._lookups.leave(outlet)
            return
        self._outlets.pop(outlet, None)
        self._held.discard(outlet)
        # It may be about to come back, and the room is kept until that is known.
        self.used_at = self._around.clock.monotonic()
        if not self._stopping and self._ended is None:
            self.perform(self.machine.disconnect(outlet, self._now()))

    async def post(
        self, principal: Principal, role: Role, message: bytes | McpxMessage
    ) -> list[Effect]:
        """A message from someone who need not be connected; a refusal is raised.

        Answers, once it is stored and delivered, what came of it: the message first.
        """
        facts, effects = NO_FACTS, None
        while effects is None:
            await self.prepare(principal.account_id)
            self._require(principal)
            try:
                effects = self.machine.post(principal, role, message, self._now(), facts)
            except LookupNeeded:
                if not isinstance(message, McpxMessage):
                    message = self.machine.decode(message)
                facts = await self._look_up(self.machine.lookup((message,)))
            except e.FolkmootError as error:
                if isinstance(error, e.PolicyError):
                    self._audit_refused(principal, message, error)
                # The reason may be a message that is not stored yet, and never will be.
                await self._carried_out(())
                raise
        await self._carried_out(effects)
        if any(type(one) in {Expel, Invite} for one in effects):
            # An invitation that is stored before the kick would be undone by it.
            await self.journal.expulsions()
        return effects

    async def list_tools(
        self, principal: Principal, role: Role, to: str, cursor: str | None, seconds: float
    ) -> dict[str, Any] | None:
        """The answer of a participant that is asked for its tools; None where none came.

        Nobody else sees it, and nothing of it is stored.
        """
        self._require(principal)
        params = {} if cursor is None else {"cursor": cursor}
        asked = self.machine.list_tools(principal, role, to, params, self._now())
        outlet: Any = asked.connection
        pending = self._listings.get(outlet, {})
        if asked.ask is None and (outlet is None or len(pending) >= MAX_LISTINGS):
            return None
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                if asked.ask is not None:
                    return await self.serving.list_tools(asked.ask)
                answer: asyncio.Future[dict[str, Any]] = self._loop.create_future()
                self._listings.setdefault(outlet, pending)[asked.id] = answer
                try:
                    outlet.tell(asked.data)
                    return await answer
                finally:
                    del pending[asked.id]
                    if not pending:
                        self._listings.pop(outlet, None)
        return None

    def _is_listed(self, outlet: Outlet, message: bytes | McpxMessage) -> bool:
        """Whether a message is about a request for tools that the room does not see."""
        try:
            if not isinstance(message, McpxMessage):
                message = self.machine.decode(message)
        except e.FolkmootError:
            return False
        answers = [self._listings[outlet].get(id_) for id_ in message.correlation_id]
        if message.kind.operation == "response":
            for one in filter(None, answers):
                if not one.done():
                    one.set_result(message.payload or {})
        return any(answers)

    async def flushed(self, effects: Sequence[Effect] = ()) -> None:
        """Wait until these effects, and all before them, are carried out.

        Without any, also what still waits for something to be looked up.
        """
        if not effects and self._lookups:
            await self._lookups.drained()
        await self._carried_out(effects)

    async def _carried_out(self, effects: Sequence[Effect]) -> None:
        done: asyncio.Future[None] = self._loop.create_future()
        self.perform([*effects, Barrier.of(done)])
        await done

    async def configure(
        self,
        settings: RoomSettings,
        keep_messages: int,
        backends: Collection[str],
        also: Unit[None],
    ) -> None:
        """Set the room anew, together with its record."""
        self._require(None)
        self.machine.check_settings(settings)
        self.keep_messages = keep_messages
        self.history.keep(keep_messages)

        def change() -> Sequence[Item]:
            now = self._now()
            self.serving.namespaces = frozenset(backends)
            told = self.machine.configure(settings, now)
            return [*told, *self.machine.set_backends(self.serving.present(), now)]

        await self.journal.alter(change, also)

    def set_backends(self, *, anew: bool = False) -> None:
        """Let those backends of the room be here that the hub has; `anew` when it was loaded."""
        if self._ended is None and not self._stopping:
            present = self.serving.present()
            self.perform(self.machine.set_backends(present, self._now(), anew=anew))

    async def trim(
        self, first_seq: int, oldest_seq: int | None = None, removed: Collection[int] = ()
    ) -> None:
        """Let the history begin later, but for some messages from `oldest_seq` on.

        `removed` are those between the two that are not kept.
        """
        self._require(None)

        def change() -> Sequence[Item]:
            ids = [one.id for one in self.machine.proposals() if one.seq in removed]
            self.machine.trim(first_seq, oldest_seq, ids)
            self.history.drop_before(first_seq)
            return ()

        await self.journal.alter(change)

    async def save(self) -> None:
        """Store a snapshot, so that the room is quickly loaded again."""
        self._require(None)
        await self.journal.alter(tuple)

    async def apply_guest_grants(self, principal: Principal, guest: Guest) -> None:
        """A guest comes for the first time: let it hold what its inviter promised."""
        self._require(principal)
        by, promised = guest.invited_by, guest.capabilities
        now = self._now()
        await self.flushed(
            self.machine.apply_guest_grants(principal, by, promised, guest.invite_id, now)
        )

    def audit(self, by: Principal, action: str, about: str, **detail: Any) -> None:
        """Write to the audit log what was done to the room from outside."""
        self._log(Audit(self._now(), action, by.name, by.account_id, about, detail))

    def unban(self, account: str) -> None:
        """Someone who was put out has been invited again."""
        self._expelled.discard(account)

    def rename(self, principal: Principal) -> None:
        """Someone's name changed."""
        self.perform(self.machine.rename(principal, self._now()))

    def remove(self, account: str, code: CloseCode) -> None:
        """Put someone out."""
        self.perform(self.machine.remove(account, code, self._now()))

    def stand(self, account: str, standing: AccountStanding) -> None:
        """An account was suspended, restored or deleted: what it proposed and granted follows."""
        if self._ended is not None or self._stopping:
            return
        effects, changed = self.machine.stand(account, standing, self._now())
        self.perform(effects)
        if changed:
            # No message tells of it.
            self._around.spawn(self.save())

    @property
    def is_stopping(self) -> bool:
        """Whether nothing more is taken."""
        return self._stopping

    def stop(self) -> None:
        """The hub stops: nothing more is taken, and whoever is disconnected now has not left."""
        self._stopping = True
        for outlet in self._outlets:
            outlet.hold()

    def end(self, error: e.FolkmootError) -> None:
        """Let nobody use this room any more; everyone is told by the error's close code."""
        if self._ended is not None:
            return
        self._ended = error
        if self._timer is not None:
            self._timer.cancel()
        self._wake()
        self._news.end()
        self.serving.end()
        self.history.close()
        for outlet in list(self._outlets):
            outlet.close(error.close)
        self._outlets.clear()

    def fail(self, error: e.FolkmootError) -> e.FolkmootError:
        """A commit failed: what is stored and what the machine thinks may differ now.

        Answers what those are told who wait for it.
        """
        if self._ended is not None:
            # It was removed while this was on its way to the disk.
            return self._ended
        told: e.FolkmootError = error
        about = {"room": self.name, "error": error.code}
        if not isinstance(error, e.RoomTakenOver) and not self.is_ours:
            # The lease is over, so another node can have it: connections there stay.
            told = taken_over()
        if isinstance(told, e.RoomTakenOver):
            logger.warning("a room goes on at another node", extra=about)
        else:
            logger.error("a room could not store a message; it is restarted", extra=about)
            told = e.RoomUnavailable("The message could not be stored. Reconnect and resume.")
        self.end(told)
        self._around.dropped(self)
        return told

    def _require(self, principal: Principal | None) -> None:
        if self._ended is not None:
            raise self._ended
        if self._stopping:
            raise e.HubStopping("The hub is stopping; try again in a moment.")
        if principal is not None and principal.account_id in self._expelled:
            raise e.RoomForbidden("You were removed from this room.")

    def perform(self, effects: Sequence[Effect | Barrier]) -> None:
        """Pass effects of the machine to the journal, which stores and then carries them out."""
        if self._ended is not None:
            _release_barriers(effects, self._ended)
            return
        if len(effects) > 1 and Expel in map(type, effects):
            self._expelled.update(one.account for one in effects if type(one) is Expel)
        self.journal.perform(effects)
        if self.machine.due < self._alarm:
            self._set_timer()

    def carry_out(self, items: Sequence[Item]) -> None:
        """Carry out effects in order, once the journal has stored those that must be."""
        if self._ended is not None:
            _release_barriers(items, self._ended)
            return
        said = [item for item in items if type(item) is Append]
        if said and len(said) == len(items):
            self._deliver(said)
        else:
            self._carry_out_each(items)
        if said:
            self._news.add(said)
        if self._waiters:
            self._wake()
        if self._held and not self.journal.is_full:
            self._release()

    def _carry_out_each(self, items: Sequence[Item]) -> None:
        """Carry out effects of many kinds; messages without others between them go together."""
        run: list[Append] = []
        barriers: list[Barrier] = []

        def deliver() -> None:
            if run:
                self._deliver([*run])
                run.clear()
            for barrier in barriers:
                barrier.call(None)
            barriers.clear()

        for item in items:
            if type(item) is Append:
                run.append(item)
            elif type(item) is Barrier:
                # All before it is carried out also after what follows.
                barriers.append(item)
            else:
                deliver()
                CARRY_OUT[type(item)](self, item)
        deliver()

    def _release(self) -> None:
        held, self._held = self._held, set()
        for outlet in held:
            outlet.release()

    def _tell(self, item: Tell) -> None:
        outlet: Any = item.connection
        outlet.tell(item.data)

    def _close(self, item: Close) -> None:
        outlet: Any = item.connection
        outlet.close(item.code)

    def _log(self, item: Audit) -> None:
        log(self.name, item.action, item.by, item.account, item.about, item.detail)

    def _rewrite(self, item: Rewrite) -> None:
        self.history.rewrite(item.messages)

    def _invite(self, item: Invite) -> None:
        if item.connection is not None:
            self._around.spawn(self._answer(item))

    async def _answer(self, item: Invite) -> None:
        payload = await self._around.answer_invite(self, item)
        self.perform(self.machine.answer_invite(item.connection, item.id, payload, self._now()))

    def _expel(self, item: Expel) -> None:
        self.journal.expelled(item.account)

    def _ask(self, item: AskBackend) -> None:
        self.serving.ask(item)

    def _cancel_backend_call(self, item: CancelBackendCall) -> None:
        self.serving.cease(item.id)

    def _set_timer(self) -> None:
        """Set the timer for when the machine has something due."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._alarm = due = self.machine.due
        if due < math.inf:
            delay = min(max(due - self._now(), 0.0), CLOCK_SECONDS)
            self._timer = self._loop.call_later(delay, self._tick)

    def _tick(self) -> None:
        self._timer = None
        if self._ended is None and not self._stopping:
            self.perform(self.machine.tick(self._now()))
            self._set_timer()


CARRY_OUT: Final[dict[type, Callable[[LiveRoom, Any], None]]] = {
    Tell: LiveRoom._tell,
    Attach: LiveRoom._attach,
    Close: LiveRoom._close,
    Audit: LiveRoom._log,
    Invite: LiveRoom._invite,
    Expel: LiveRoom._expel,
    AskBackend: LiveRoom._ask,
    CancelBackendCall: LiveRoom._cancel_backend_call,
    Rewrite: LiveRoom._rewrite,
}
"""What is done with each effect, but for the messages themselves and what waits for them."""


def _release_barriers(items: Sequence[Item], error: e.FolkmootError) -> None:
    for item in items:
        if type(item) is Barrier:
            item.call(error)
