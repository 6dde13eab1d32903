"""Where handshake sessions are, on many nodes: at one of them, which others forward requests to."""

from __future__ import annotations

import logging
from collections import OrderedDict
from typing import TYPE_CHECKING

from msgspec import field

from folkmoot.core import errors as e
from folkmoot.core.entity import Entity
from folkmoot.core.events import SESSIONS, about
from folkmoot.transports.limits import KNOWN_HOME_SECONDS, MAX_KNOWN_HOMES
from folkmoot.transports.mcp.session_ids import full_hash
from folkmoot.transports.mcp.sessions import SESSION_ENDED

if TYPE_CHECKING:
    from collections.abc import Callable

    from folkmoot.core.ports import Bus, Clock, Event, NodeHome, SessionHomes
    from folkmoot.transports.mcp.sessions import McpSession

logger = logging.getLogger("folkmoot.mcp")


class SessionElsewhere(Exception):
    """A session is at another node, which is to be asked."""

    def __init__(self, session_id: str, home: NodeHome) -> None:
        super().__init__("The session is at another node.")
        self.session_id = session_id
        self.home = home


class Homes(Entity):
    """Finds the node of a session, and takes sessions over whose node is gone.

    What was found is remembered for a while: a node that no longer has a session says so, but one
    that died does not.
    """

    shared: SessionHomes
    bus: Bus
    clock: Clock
    on_lose: Callable[[McpSession], None]
    on_leave: Callable[[McpSession], None]
    is_stopping: bool = False
    """Whether the hub stops; a session that goes elsewhere leaves its running calls here."""
    _known: OrderedDict[str, tuple[NodeHome, float]] = field(default_factory=OrderedDict)
    """Where sessions are, and when that was found out."""
    _here: dict[str, McpSession] = {}
    """The sessions of this node, by the hash of their ids."""

    def __post_init__(self) -> None:
        self.bus.listen(SESSIONS, self._moved)

    @property
    def process(self) -> bytes:
        """What sealed ids call this node."""
        return bytes.fromhex(self.shared.process)

    def opened(self, session: McpSession) -> None:
        self._known.pop(session.id, None)
        self._here[full_hash(session.id)] = session

    def ended(self, session: McpSession) -> None:
        self._here.pop(full_hash(session.id), None)

    async def leave(self, session: McpSession) -> None:
        """A session that was taken over has ended here, and will not be adopted as what it was."""
        try:
            await self.shared.leave(full_hash(session.id))
        except e.StoreError as error:
            logger.warning("a session's node was not removed", extra={"error": error.code})

    def check_known(self, session_id: str) -> None:
        """Raise where a session is, if that was found out before."""
        home, found_at = self._known.get(session_id, (None, 0.0))
        if home is not None:
            if self.clock.monotonic() - found_at > KNOWN_HOME_SECONDS:
                del self._known[session_id]
                return
            self._known.move_to_end(session_id)
            raise SessionElsewhere(session_id, home)

    async def check(self, session_id: str, opened_by: bytes, gone: str) -> None:
        """Raise where a session is, unless its node is gone, or thought to be.

        One that was opened here, or taken over, and is not here any more has ended.
        """
        found = await self.shared.find(full_hash(session_id), opened_by.hex())
        if found is not None and found.process != gone:
            if found.process == self.shared.process or not found.address:
                raise e.SessionNotFound(SESSION_ENDED)
            self._known[session_id] = found, self.clock.monotonic()
            if len(self._known) > MAX_KNOWN_HOMES:
                self._known.popitem(last=False)
            raise SessionElsewhere(session_id, found)
        if opened_by == self.process:
            raise e.SessionNotFound(SESSION_ENDED)

    async def take(self, session_id: str, opened_by: bytes, gone: str) -> None:
        """Have a session here from now on; raises where it is if another node was faster."""
        if not await self.shared.take(full_hash(session_id), opened_by.hex(), gone):
            await self.check(session_id, opened_by, "")
            raise e.SessionNotFound(SESSION_ENDED)

    def forget(self, session_id: str) -> None:
        """A session is no longer where it was found."""
        self._known.pop(session_id, None)

    def _moved(self, event: Event) -> None:
        """Another node has taken a session over, or closed it for good."""
        if event.data["process"] != self.shared.process:
            session = self._here.pop(about(event), None)
            if session is not None and self.is_stopping and event.data["process"]:
                self.on_leave(session)
            elif session is not None:
                self.on_lose(session)
