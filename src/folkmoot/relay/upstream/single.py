"""A server that one node links for all: over its own link while it is linked here, else through the
node that links it.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from folkmoot.core import errors as e
from folkmoot.gateway.model import BackendState
from folkmoot.gateway.pins import offload
from folkmoot.mcp.client.connection import HttpFailure
from folkmoot.relay.upstream.backend import WAIT_SECONDS, LiveBackend
from folkmoot.relay.upstream.health import AWAY, IN_DOUBT, given_up, named
from folkmoot.relay.upstream.node_messages import (
    INVENTORY,
    STATE,
    TASK,
    AnswerFrame,
    NodeCall,
    NotLinkedThere,
    decode_inventory,
    decode_state,
    decode_text,
)
from folkmoot.relay.upstream.nodes import LOOK_SECONDS, NodeListener
from folkmoot.taskgroups import Interruptible, background_tasks, waited

if TYPE_CHECKING:
    from folkmoot.core.message import Response
    from folkmoot.core.ports import Clock, NodeHome
    from folkmoot.gateway.model import Inventory, UpstreamRequest
    from folkmoot.relay.upstream.conversation import BackendConversation
    from folkmoot.relay.upstream.model import BackendView
    from folkmoot.relay.upstream.nodes import BackendNodes
    from folkmoot.relay.upstream.watching import Announcer, BackendWatches, Reach, Spot
    from folkmoot.settings.backends import BackendSpec

logger = logging.getLogger("folkmoot.backend")

LEASE_LOOK_SECONDS: Final = 0.2
"""How often it is looked whether this node's lease holds; a lease ends half a second early."""
AGAIN_SECONDS: Final = 0.1
"""After how long a call is tried again whose server moves."""
HAND_OVER_SECONDS: Final = 5.0
"""How long calls may take to end before the link is closed and another node opens one."""
RELEASE_SECONDS: Final = 3.0
"""How long the database may take to note that this node links a server no more."""
ENTRY_BYTES: Final = 100
"""Of an inventory, as few as an entry may have."""
MOST_TASKS: Final = 1024
"""Changed tasks that another node has not been told of; the oldest are forgotten."""
MOVING: Final = "Another node is about to link it."


class HomeChanged(Exception):
    """Another node links the server than the one that did."""


class SingleBackend(LiveBackend):
    """A backend of which only one node has links; the others ask that node.

    A node takes it when no living node has it, and gives it away when it is drained or stops.
    """

    def __init__(self, spec: BackendSpec, clock: Clock, nodes: BackendNodes, **told: Any) -> None:
        super().__init__(spec, clock, **told)
        self._nodes = nodes
        self._home: NodeHome | None = None
        """The node that can be asked now."""
        self.unlinked = asyncio.Event()
        """Set while this node does not have it."""
        self.unlinked.set()
        self._held: Callable[[], bool] = lambda: False
        """Whether the lease under which this node took it holds."""
        self.delivered: Inventory | None = None
        """The lists that this node has read and shown, for the others."""
        self._followers: list[deque[str]] = []
        self._misses = 0
        """How often in a row no node was found that links it."""
        self._tasks: asyncio.TaskGroup | None = None

    @property
    def is_home(self) -> bool:
        """Whether this node has it, though it may be about to give it away."""
        return not self.unlinked.is_set()

    @property
    def is_here(self) -> bool:
        """Whether this node may ask the server itself."""
        return self._is_ours(self._home) and self._held()

    def _is_ours(self, home: NodeHome | None) -> bool:
        return home is not None and home.process == self._nodes.homes.process

    def view(self) -> BackendView:
        """How it is, and at which node it is linked."""
        return replace(super().view(), node="" if self._home is None else self._home.address)

    @contextmanager
    def followed(self) -> Iterator[deque[str]]:
        """The tasks that change while another node follows, which takes them out."""
        tasks: deque[str] = deque(maxlen=MOST_TASKS)
        self._followers.append(tasks)
        try:
            yield tasks
        finally:
            self._followers.remove(tasks)

    async def request(self, wanted: UpstreamRequest) -> Response:
        """The server's answer, wherever it is linked; see `gateway.model.Backend`."""
        until, again = self._patience(), wanted.repeatable
        while True:
            home = await self._placed(until)
            if self._is_ours(home):
                return await super().request(wanted)
            try:
                return await self._nodes.request(home, self.spec.namespace, wanted)
            except NotLinkedThere:
                pass
            except HttpFailure as error:
                if not error.unsent and not again:
                    raise self._failed(home, wanted) from None
                if not error.unsent:
                    until, again = self._patience(), False
            except e.FolkmootError as error:
                raise given_up(self.spec.namespace, error, repeatable=again) from None
            if asyncio.get_running_loop().time() >= until:
                raise self._unreachable(home)
            await self.health.changed(AGAIN_SECONDS)

    async def request_here(self, wanted: UpstreamRequest) -> Response:
        """The answer to another node's request, over the link of this one."""
        return await super().request(wanted)

    async def restart_there(self) -> bool:
        """Have the node that links it link it anew; False if that is this node, or none."""
        home = self._home
        if home is None or self._is_ours(home):
            return False
        try:
            await self._nodes.restart(home, self.spec.namespace)
        except (HttpFailure, NotLinkedThere):
            raise self._unreachable(home) from None
        return True

    async def _conversation(self, wanted: UpstreamRequest) -> BackendConversation:
        conversation = await super()._conversation(wanted)
        # Another node may ask the server from when this node's lease is over.
        if not self._held():
            raise e.BackendUnavailable(MOVING)
        return conversation

    async def _watch(
        self, spot: Spot, changed: Callable[[], None], reach: Reach
    ) -> Callable[[], None]:
        async def placed() -> Announcer:
            home = await self._placed(self._patience())
            if self._is_ours(home):
                return await reach()
            if self._tasks is None:
                raise self._unavailable()
            return NodeListener(self._nodes, home, self.spec.namespace, spot, self._tasks)

        return await super()._watch(spot, changed, placed)

    def _patience(self) -> float:
        seconds = min(self.spec.connect_seconds, WAIT_SECONDS)
        return asyncio.get_running_loop().time() + seconds

    async def _placed(self, until: float) -> NodeHome:
        """The node to ask; waits for a while where there is none."""
        loop = asyncio.get_running_loop()
        while True:
            home = self._home
            if home is not None and (not self._is_ours(home) or self._held()):
                return home
            left = until - loop.time()
            if left <= 0 or self.state is BackendState.OFF:
                raise self._unavailable()
            await self.health.changed(left)

    def _unreachable(self, home: NodeHome) -> e.BackendUnavailable:
        return e.BackendUnavailable(
            named(self.spec.namespace, f"is not available: {_unreached(home)}")
        )

    def _failed(self, home: NodeHome, wanted: UpstreamRequest) -> e.BackendFailed:
        doubt = "" if wanted.repeatable else f" {IN_DOUBT}"
        error = e.BackendFailed(
            named(self.spec.namespace, f"did not answer: {_unreached(home)}{doubt}")
        )
        self.tally.failed(error.message, error.code)
        return error

    async def _keep_linked(self, watching: BackendWatches) -> None:
        loop = asyncio.get_running_loop()
        async with asyncio.TaskGroup() as tasks:
            self._tasks = tasks
            try:
                while True:
                    began = loop.time()
                    await self._take_turn(watching)
                    if loop.time() - began < LOOK_SECONDS:
                        await asyncio.sleep(LOOK_SECONDS)
            finally:
                self._tasks = None

    async def _take_turn(self, watching: BackendWatches) -> None:
        """Link the server, or follow the node that does, for as long as that is so."""
        homes, namespace = self._nodes.homes, self.spec.namespace
        held, leaving = homes.lease(), self._nodes.leaving.is_set()
        try:
            home = await (homes.find if leaving else homes.take)(namespace)
        except e.StoreError as error:
            self._away(f"Which node links it is not known: {error.message}")
            return
        if home is None or (leaving and self._is_ours(home)):
            self._missed("No node links it at the moment.")
        elif not self._is_ours(home):
            await self._follow(home)
        elif held():
            await self._link(home, held, watching)

    def _missed(self, why: str) -> None:
        """Be away from the second time on: at first, a node may be about to link it."""
        self._misses += 1
        if self._misses > 1:
            self._away(why)

    def _away(self, why: str) -> None:
        self.first_heard.set()
        if (self.state, self.why) != (BackendState.DOWN, why):
            planned = self._nodes.leaving.is_set()
            self.health.become(BackendState.DOWN, why, planned=planned)

    async def _link(
        self, home: NodeHome, held: Callable[[], bool], watching: BackendWatches
    ) -> None:
        """Have the link here, until the lease is over or the link is to be given away."""
        for line in self.lines:
            line.failures = 0
        self.health.become(BackendState.STARTING, "It has not been reached yet.")
        self._held, self._home, self.delivered = held, home, None
        self._misses = 0
        self.unlinked.clear()
        leaving = self._nodes.leaving
        # A process of it ends with the lease also if this one is paused, and before another begins.
        self.connecting.until = lambda: self._nodes.homes.until if held() else -math.inf
        try:
            async with background_tasks() as background:
                background.run(super()._keep_linked(watching))
                background.run(self._extend(held))
                while held() and not leaving.is_set():
                    await waited(leaving, LEASE_LOOK_SECONDS)
                self._home = None
                if held():
                    await self._calls_ended(held)
        finally:
            self._home = None
            self._held = lambda: False
            await self._release()
            self.unlinked.set()
            self.health.become(BackendState.STARTING, MOVING)

    async def _extend(self, held: Callable[[], bool]) -> None:
        while held():
            self.connecting.extend()
            await asyncio.sleep(LEASE_LOOK_SECONDS)

    async def _calls_ended(self, held: Callable[[], bool]) -> None:
        """Wait until no call is open, for a while."""
        loop = asyncio.get_running_loop()
        until = loop.time() + HAND_OVER_SECONDS
        while self.in_flight and held() and loop.time() < until:
            await self.health.changed(AGAIN_SECONDS)

    async def _release(self) -> None:
        """Let another node take it, as this one has no link any more."""
        with suppress(e.FolkmootError, TimeoutError):
            async with asyncio.timeout(RELEASE_SECONDS):
                await self._nodes.homes.release(self.spec.namespace)

    async def _follow(self, home: NodeHome) -> None:
        """Know what the node that links it knows, until that is another one."""
        leaving = Interruptible()
        try:
            with leaving:
                async with background_tasks() as background:
                    background.run(self._look(home, leaving))
                    await self._mirror(home)
            self.health.become(BackendState.STARTING, MOVING)
        except HomeChanged:
            self.health.become(BackendState.STARTING, MOVING)
        except NotLinkedThere:
            self._missed(_unreached(home))
        except HttpFailure:
            self._away(_unreached(home))
        except e.FolkmootError as error:
            logger.warning(
                "another node's link could not be followed",
                extra={"backend": self.spec.namespace, "error": error.code},
            )
            self._away(error.message)
        finally:
            self._home = None

    async def _look(self, home: NodeHome, leaving: Interruptible) -> None:
        """Notice when another node links the server; one that is paused does not say so."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            with suppress(e.StoreError):
                found = await self._nodes.homes.find(self.spec.namespace)
                if found is None or found.process != home.process:
                    leaving.stop(HomeChanged())

    async def _mirror(self, home: NodeHome) -> None:
        call = NodeCall(what="follow", namespace=self.spec.namespace)
        async with self._nodes.asking(home, call) as frames:
            async for frame in frames:
                self._home, self._misses = home, 0
                await self._learn(frame)

    async def _learn(self, frame: AnswerFrame) -> None:
        if frame.kind == STATE:
            told = decode_state(frame.body)
            self.health.become(BackendState(told.state), told.why)
            if self.state in AWAY:
                self.first_heard.set()
        elif frame.kind == INVENTORY:
            lists = await offload(len(frame.body) // ENTRY_BYTES, decode_inventory, frame.body)
            self.taking.last = lists
            await self._deliver(lists)
        elif frame.kind == TASK:
            self._task_changed(decode_text(frame.body))

    async def _deliver(self, inventory: Inventory) -> None:
        await super()._deliver(inventory)
        self.delivered = inventory
        self.health.tell()

    def _task_changed(self, own: str) -> None:
        super()._task_changed(own)
        for tasks in self._followers:
            tasks.append(own)
        self.health.tell()


def _unreached(home: NodeHome) -> str:
    return f"The node that links it at {home.address} does not answer."
