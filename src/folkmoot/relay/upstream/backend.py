"""LiveBackend: one server behind the hub, kept reached."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from folkmoot.core import errors as e
from folkmoot.core.session import Era
from folkmoot.gateway.history import CallTally
from folkmoot.gateway.model import BackendState, UpstreamRequest
from folkmoot.gateway.results import outcome_of
from folkmoot.mcp.eras.table import EraRefusal
from folkmoot.mcp.wire import AS_TASK, TASK_IDS, TASKS_GET
from folkmoot.relay.upstream.connecting import Connecting
from folkmoot.relay.upstream.conversation import BackendConversation
from folkmoot.relay.upstream.health import (
    BackendHealth,
    conversations,
    given_up,
    named,
    retry_after,
    view_of,
)
from folkmoot.relay.upstream.links import (
    IDLE_SECONDS,
    STATE,
    Affinity,
    KeptConversation,
    Pool,
    PoolKey,
    wait_after,
)
from folkmoot.relay.upstream.requests import EVERYTHING, Late, Unanswered, offer_of
from folkmoot.relay.upstream.watching import BackendWatches, InventoryReader, Reach, Spot

if TYPE_CHECKING:
    from folkmoot.core.message import Response
    from folkmoot.core.ports import Clock
    from folkmoot.gateway.model import Inventory
    from folkmoot.mcp.client.target import TokenSource
    from folkmoot.relay.upstream.model import BackendView
    from folkmoot.relay.upstream.requests import Offer
    from folkmoot.settings.backends import BackendSpec

MOST_FAILURES: Final = 5
"""After so many failures in a row calls are refused at once, until the server is reached again."""
REFUSING: Final = frozenset({BackendState.BROKEN, BackendState.OFF})
WAIT_SECONDS: Final = 5.0
"""How long a call waits at most for a server that is not reached at the moment."""
ALIVE_SECONDS: Final = 5.0
"""How long a server may take to say that it is there, when there is a doubt."""
MOST_PERSONS: Final = 64
MOST_SIGNED_IN: Final = 512
"""Links of all persons together, where each has their own; the second where none is a process."""
MOST_OFFERS: Final = 3
"""Links beside the first, for callers whose clients offer something else than it does."""
UNUSABLE_SECONDS: Final = 30.0
LONGEST_UNUSABLE: Final = 600.0
"""How long such a link that failed is not tried again, first and at most."""
MOST_LOOKED_AT: Final = 4096
SIGN_IN: Final = "Each person signs in to it, and nobody has used it yet."
OWN_RESOURCES: Final = "Its resources are not listed: each person has their own."
ADVICE: Final = (
    "Its tools ask questions in the middle of a call, which the stateless era does not have. "
    'Set era = "handshake" to let them ask clients of both eras.'
)


class LiveBackend:
    """A `gateway.ports.Backend` over links that are opened again when they break.

    `spec` may be replaced while it runs by one that differs in nothing its links are made with.
    """

    def __init__(
        self,
        spec: BackendSpec,
        clock: Clock,
        *,
        on_inventory: Callable[[str, Inventory], Awaitable[None]],
        on_lost: Callable[[str, str], None],
        on_task: Callable[[str, str], None] = lambda _namespace, _own: None,
        on_state: Callable[[str, str], None] = lambda _namespace, _state: None,
        environ: Mapping[str, str] | None = None,
        hidden: Callable[[], Iterable[str]] = tuple,
        tokens: Callable[[str], TokenSource] | None = None,
        recall: Callable[[str], Awaitable[None]] | None = None,
    ) -> None:
        self.spec = spec
        self._on_inventory = on_inventory
        self._on_task = on_task
        environ = os.environ if environ is None else environ
        self.signs_in = spec.auth == "oauth"
        """Whether each person signs in to it, so that the hub has no links of its own."""
        self._recall = recall
        self.connecting = Connecting(spec, clock, environ, hidden, tokens)
        self.health = BackendHealth(spec.namespace, clock, on_lost, self.connecting.told, on_state)
        self.tally = CallTally(clock)
        self.in_flight = 0
        self._asking: dict[str, int] = {}
        """How much each person has asked and waits for."""
        self.first_heard = asyncio.Event()
        """Set once its lists were delivered, or it could not be reached."""
        self._apart = spec.per_user or (self.signs_in and not spec.shared)
        """Whether each person has links of their own."""
        alive = min(spec.connect_seconds, ALIVE_SECONDS)
        links = 1 if spec.per_user else 0 if self.signs_in else spec.connections
        alone = spec.single and links == 1
        self.lines = [
            KeptConversation(self._opened, self._judge, alive, alone=alone) for _ in range(links)
        ]
        self.taking = InventoryReader(self._primary, self._deliver, spec.call_seconds)
        self.pool: Pool | None = None
        """Links of persons, or for what callers can be asked."""
        self._alive_seconds = alive
        self._affinity = Affinity()
        self._turns = count()
        self._one_era = False
        """Whether the program is known to speak only the era it was found to speak."""
        self.advice = ""
        """What the operator could set to have the server work better."""
        self._watching: BackendWatches | None = None
        if not spec.enabled:
            self.health.become(BackendState.OFF, "It is switched off in the settings.")
            self.first_heard.set()

    @property
    def state(self) -> BackendState:
        """The present state of the backend."""
        return self.health.state

    @property
    def why(self) -> str:
        """Why it is not up; empty while it is."""
        return self.health.why

    @property
    def inventory(self) -> Inventory | None:
        """The lists as last read."""
        return self.taking.last

    def view(self) -> BackendView:
        """How it is, for people and for measurements."""
        return view_of(self)

    async def run(self) -> None:
        """Keep the server reached until cancelled; everything of it has ended then."""
        if not self.spec.enabled:
            await asyncio.Event().wait()
        try:
            async with asyncio.TaskGroup() as tasks:
                self._watching = BackendWatches(tasks)
                await self._keep_linked(self._watching)
        finally:
            self._watching = None
            self.health.forget()
            self.health.become(BackendState.OFF, "It was stopped.")

    async def _keep_linked(self, watching: BackendWatches) -> None:
        try:
            async with asyncio.TaskGroup() as tasks:
                self.pool = self._pool(tasks, watching)
                if self.signs_in:
                    await self._await_people()
                for line in self.lines:
                    tasks.create_task(line.run())
                tasks.create_task(self.taking.listen())
                tasks.create_task(self.taking.run())
        finally:
            self.pool = None

    async def _await_people(self) -> None:
        """List what was seen before, until someone signs in."""
        self.health.become(BackendState.SIGN_IN, SIGN_IN)
        self.health.on_lost(self.spec.namespace, SIGN_IN)
        if self._recall is not None:
            await self._recall(self.spec.namespace)
        self.first_heard.set()

    def signed_in(self, owner: str) -> None:
        """Somebody has consented: a session at the server may be bound to what they had before.

        Where nobody's link is open, the lists are read over theirs.
        """
        if self.pool is not None and self._watching is not None:
            self.pool.drop(owner, drain=True)
            if not self.pool.conversations:
                self._watching.tasks.create_task(self._reach(owner))

    async def _reach(self, owner: str) -> None:
        with suppress(e.FolkmootError):
            if self.pool is not None:
                await self.pool.of(PoolKey(owner))

    def signed_out(self, owner: str) -> None:
        """Close the links of somebody whose consent is no more, at once."""
        if self.signs_in and self.pool is not None:
            self.pool.drop(owner, drain=False)

    async def request(self, wanted: UpstreamRequest) -> Response:
        """The server's answer; see `gateway.ports.Backend`.

        What was surely not begun, and what may be done twice, is asked a second time if the link
        breaks. One that is silent for `call_seconds`, or takes ten times as long for all its
        progress, is cancelled at the server.
        """
        person, most = wanted.person, self.spec.most_calls
        # What one person asks at once leaves an eighth of it to the others.
        asking = self._asking.get(person, 0)
        if self.in_flight >= most or (person and asking >= most - most // 8):
            self.tally.failed("It already has too many open requests.", e.BackendBusy.code)
            raise e.BackendBusy(named(self.spec.namespace, "already has too many open requests."))
        self.in_flight += 1
        self._asking[person] = asking + 1
        began = self.tally.begin()
        try:
            try:
                response = await self._ask(wanted)
            except Unanswered as error:
                if not error.gone or (error.begun and not wanted.repeatable):
                    raise
                response = await self._ask(wanted)
        except (Unanswered, Late, e.FolkmootError) as error:
            refusal = given_up(self.spec.namespace, error, repeatable=wanted.repeatable)
            if isinstance(refusal, e.ConsentNeeded):
                self.tally.outcomes[refusal.code] += 1
            else:
                self.tally.failed(refusal.message, refusal.code)
            raise refusal from None
        except asyncio.CancelledError:
            self.tally.cancelled()
            raise
        finally:
            self.in_flight -= 1
            if left := self._asking.pop(person) - 1:
                self._asking[person] = left
        self.tally.answered(began, outcome_of(wanted.method, response))
        return response

    async def watch(
        self, uri: str, changed: Callable[[], None], person: str = ""
    ) -> Callable[[], None]:
        """Have `changed` called when a resource changes; see `gateway.ports.Backend`.

        Where each person has a link of their own, `person` says over whose.
        """
        owner = self.spec.owner(person)
        reach = partial(self._conversation, UpstreamRequest(method="", params={}, person=person))
        return await self._watch(Spot(owner, uri), changed, reach)

    async def watch_task(
        self, own: str, changed: Callable[[], None], person: str
    ) -> Callable[[], None]:
        """Have `changed` called when a task changes; see `gateway.ports.Backend`."""
        about = UpstreamRequest(
            method=TASKS_GET,
            params={"taskId": own},
            person=person,
            era=Era.STATELESS,
            tasks=True,
        )
        spot = Spot(self.spec.owner(person), own, TASK_IDS)
        return await self._watch(spot, changed, partial(self._for_tasks, about))

    async def _watch(
        self,
        spot: Spot,
        changed: Callable[[], None],
        reach: Reach,
    ) -> Callable[[], None]:
        if self._watching is None:
            raise self._unavailable()
        try:
            return await self._watching.watch(spot, changed, reach)
        except e.FolkmootError as error:
            raise given_up(self.spec.namespace, error, repeatable=True) from None

    async def _ask(self, wanted: UpstreamRequest) -> Response:
        reach = self._for_tasks if wanted.tasks else self._conversation
        conversation = await reach(wanted)
        seconds = self.spec.call_seconds if wanted.seconds is None else wanted.seconds
        response = await conversation.request(wanted, seconds)
        for line in self.lines:
            if line.conversation is conversation:
                line.failures = 0
        if type(response.result) is dict and (
            wanted.tasks or STATE in response.result or response.result.get("resultType") == AS_TASK
        ):
            self._affinity.note(wanted, response, conversation)
        if conversation.stateless and (conversation.refused_question or asks_in_vain(response)):
            self.advice = ADVICE
        if wanted.tasks:
            kept = asyncio.get_running_loop().time() + IDLE_SECONDS
            conversation.kept_until = max(conversation.kept_until, kept)
        return response

    async def _for_tasks(self, wanted: UpstreamRequest) -> BackendConversation:
        """The conversation to ask on about a task, which is spoken of in the era it was made in."""
        conversation = await self._conversation(wanted)
        if conversation.stateless is not (wanted.era is Era.STATELESS):
            raise e.TaskUnsupported(EraRefusal.TASKS.sentence)
        return conversation

    async def _conversation(self, wanted: UpstreamRequest) -> BackendConversation:
        """The conversation for a request: the one that knows its subject, or one for its caller."""
        known = self._affinity.of(wanted) if wanted.tasks or STATE in wanted.params else None
        if known is not None and known.over is None and (known.replaced or not known.suspect):
            return known
        pool, person = self.pool, self.spec.owner(wanted.person)
        if pool is not None and wanted.era is not None:
            first = await self._first(person)
            offer = self._offer(wanted, first)
            if offer is not None:
                number = 0 if self.spec.url or person else next(self._turns) % len(self.lines)
                try:
                    return await pool.of(PoolKey(person, offer, number))
                except e.ConsentNeeded:
                    raise
                except e.ServerAnswerInvalid:
                    # To try again would be to start a program in vain.
                    self._one_era = not self.spec.url
                except e.FolkmootError:
                    # Not as the caller's client would speak to it, and yet better than not at all.
                    pass
            elif not person or self.signs_in:
                return first
        if pool is None or not person or self.signs_in:
            return await self._first(person)
        if self.state in REFUSING:
            raise self._unavailable()
        return await pool.of(PoolKey(person))

    def _offer(self, wanted: UpstreamRequest, first: BackendConversation) -> Offer | None:
        """The capabilities to offer for such callers; None if the first conversation will do.

        On standard input and output it is another process, which knows one era from its first
        message on. One that is offered everything has to do for all callers of that era.
        """
        stateless = first.bridge.transparent
        if stateless and (wanted.era is Era.STATELESS or self.spec.era != "auto"):
            return None
        if not self.spec.url:
            once = self.spec.single or self._one_era
            return EVERYTHING if stateless and not once else None
        offer = offer_of(wanted.capabilities)
        return offer if stateless or offer != EVERYTHING else None

    async def _first(self, owner: str = "") -> BackendConversation:
        """The least busy of the conversations that are always there; its owner's if none is.

        Waits for a while where there is none, unless the server failed too often.
        """
        if self.signs_in and self.pool is not None:
            return await self.pool.of(PoolKey(owner))
        if self.health.state is BackendState.UP and len(self.lines) == 1:
            only = self.lines[0].conversation
            if only is not None and only.usable:
                return only
        loop = asyncio.get_running_loop()
        until = loop.time() + min(self.spec.connect_seconds, WAIT_SECONDS)
        while True:
            if self.state in REFUSING:
                raise self._unavailable()
            ready = [line.ready for line in self.lines]
            free = [conversation for conversation in ready if conversation is not None]
            if free:
                return min(free, key=_busy)
            left = until - loop.time()
            if left <= 0:
                raise self._unavailable()
            await self.health.changed(left)

    async def _primary(self) -> BackendConversation:
        """The hub's own conversation, once open; or somebody's, where it has none."""
        while True:
            for conversation in conversations(self, own=not self.signs_in):
                if not conversation.ended.is_set():
                    return conversation
            await self.health.changed(3600)

    @asynccontextmanager
    async def _opened(
        self, *, shake: bool = False, owner: str = ""
    ) -> AsyncIterator[BackendConversation]:
        async with BackendConversation.opened(
            partial(self.connecting.link, owner),
            seconds=self.spec.connect_seconds,
            one_client=self._apart,
            # Over HTTP a server that fails one request is there for the next.
            shake=shake and not self.spec.url,
            era=self.connecting.era,
        ) as conversation:
            self.connecting.confirm()
            conversation.task_changed = self._task_changed
            yield conversation

    @asynccontextmanager
    async def _opened_for(self, key: PoolKey) -> AsyncIterator[BackendConversation]:
        if key.offer is None:
            async with self._opened(owner=key.person) as conversation:
                if self.signs_in:
                    self.health.become(BackendState.UP)
                yield conversation
            return
        seconds = self.spec.connect_seconds
        async with BackendConversation.opened(
            partial(self.connecting.link, key.person),
            seconds=min(seconds, WAIT_SECONDS) if self.spec.url else seconds,
            one_client=self._apart,
            era=Era.HANDSHAKE,
            offer=key.offer,
        ) as conversation:
            conversation.task_changed = self._task_changed
            yield conversation

    def _pool(self, tasks: asyncio.TaskGroup, watching: BackendWatches) -> Pool:
        most = MOST_SIGNED_IN if self.signs_in else MOST_PERSONS
        return Pool(
            tasks,
            self._opened_for,
            most=most if self._apart else max(MOST_OFFERS, len(self.lines)),
            alive_seconds=self._alive_seconds,
            retry_after=retry_after_failures,
            needed=lambda key: key.offer is None and watching.watched_by(key.person),
        )

    def _judge(self) -> None:
        """See from the lines how it is with the server."""
        if any(line.ready for line in self.lines):
            self.health.become(BackendState.UP)
            return
        if any(line.conversation is not None for line in self.lines):
            # In doubt: whoever has something to ask waits until that is settled.
            self.health.tell()
            return
        tried = [line for line in self.lines if line.failures]
        if len(tried) < len(self.lines):
            self.health.tell()
            return
        self.first_heard.set()
        broken = all(line.failures >= MOST_FAILURES for line in tried)
        state = BackendState.BROKEN if broken else BackendState.DOWN
        self.health.become(state, tried[0].why)

    async def _deliver(self, inventory: Inventory) -> None:
        if self.signs_in and self._apart and inventory.resources:
            # What one person has there is nothing for the lists of others.
            faults = (*inventory.faults, OWN_RESOURCES)
            inventory = replace(inventory, resources=(), faults=faults)
        try:
            await self._on_inventory(self.spec.namespace, inventory)
        finally:
            if not self.first_heard.is_set():
                self.first_heard.set()
                # It was up before its lists were read, which need not differ from those before.
                self.health.announce()

    def _task_changed(self, own: str) -> None:
        self._on_task(self.spec.namespace, own)

    def _unavailable(self) -> e.GatewayError:
        wait = retry_after(self)
        data = {} if wait is None else {"retry_after": wait}
        why = self.why or "It does not answer at the moment."
        return e.BackendUnavailable(named(self.spec.namespace, f"is not available: {why}"), **data)


def asks_in_vain(response: Response) -> bool:
    """Whether a tool failed since nobody can be asked in the middle of a stateless call.

    Official servers do not even try, and say so in these words.
    """
    result = response.result
    if type(result) is not dict or result.get("isError") is not True:
        return False
    return "server-initiated request" in str(result.get("content"))[:MOST_LOOKED_AT]


def retry_after_failures(key: PoolKey, failures: int) -> float:
    """How long a link of the pool that failed so often is not tried again."""
    if key.offer is None:
        return wait_after(failures)
    # Others do without it meanwhile, so that there is no hurry.
    return min(LONGEST_UNUSABLE, UNUSABLE_SECONDS * 2.0 ** min(failures - 1, 8))


def _busy(conversation: BackendConversation) -> int:
    return conversation.in_flight
