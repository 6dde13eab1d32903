"""Who comes into a room on a WebSocket: what the URL of `/ws` asks for, and who is let in."""

from __future__ import annotations

import asyncio
import logging
import re
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from folkmoot.core import errors as e
from folkmoot.core.closecodes import CLOSE_REASONS, CloseCode
from folkmoot.core.entity import Entity
from folkmoot.core.policy import NOBODY
from folkmoot.rooms.connections import CONNECTED
from folkmoot.rooms.invitations import GUEST_LIMIT
from folkmoot.rooms.limits import ENTER_SECONDS
from folkmoot.transports.connections import sign_in
from folkmoot.transports.credentials import read_token
from folkmoot.transports.operations import arguments_left
from folkmoot.transports.rooms.outlet import RoomOutlet
from folkmoot.transports.websocket import Refusal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.types import Scope

    from folkmoot.core.policy import Principal
    from folkmoot.core.ports import Admitted
    from folkmoot.ratelimits import RateLimits
    from folkmoot.rooms import Rooms
    from folkmoot.transports.address import Addresses
    from folkmoot.transports.browsers import BrowserCookies
    from folkmoot.transports.operations import Operations
    from folkmoot.transports.websocket import UpgradeRequest, WebSocketConnection
    from folkmoot.transports.websocket.endpoint import Entrance


ROOM: Final = ("room", "topic")
"""The parameter that names the room, and the older word for it."""

_LABEL: Final = (re.compile(r"[ -~]{1,64}"), "1 to 64 printable ASCII characters")
FORMS: Final[dict[str, tuple[re.Pattern[str], str]]] = {
    "after": (re.compile(r"[0-9]{1,18}"), "a whole number from 0 on"),
    "epoch": _LABEL,
    "conn": _LABEL,
    "serve": (re.compile(r"[01]"), "0 or 1"),
    "linger": (re.compile(r"[01]"), "0 or 1"),
}
"""The other parameters, and what each must be."""


class JoinQuery(Struct, frozen=True):
    """Which room is wanted, and how much of it was seen before."""

    room: str
    after: int | None = None
    """The `seq` of the last message that was seen."""
    epoch: str | None = None
    """The epoch in which it was seen."""
    conn: str | None = None
    """The client's own id of the connection, under which it may come back."""
    serve: bool = False
    linger: bool = False
    """Whether whoever comes back soon has never left, as when a page is reloaded."""


def read_join_query(query: Mapping[str, list[str]]) -> JoinQuery:
    """What a query asks for; parameters that nobody knows are not ours to judge."""
    rooms = {name for parameter in ROOM for name in query.get(parameter, ())}
    if len(rooms) > 1:
        raise e.QueryInvalid("room and topic name different rooms; name one.")
    if not any(rooms):
        raise e.QueryInvalid("Name the room, as in /ws?room=NAME.")
    given = {name: _value(name, query[name]) for name in FORMS if name in query}
    after = given.get("after")
    return JoinQuery(
        room=rooms.pop(),
        after=None if after is None else int(after),
        epoch=given.get("epoch"),
        conn=given.get("conn"),
        serve=given.get("serve") == "1",
        linger=given.get("linger") == "1",
    )


def _value(name: str, values: list[str]) -> str:
    form, words = FORMS[name]
    if len(values) > 1:
        raise e.QueryInvalid(f"The query parameter {name} occurs twice.")
    if form.fullmatch(values[0]) is None:
        raise e.QueryInvalid(f"The query parameter {name} must be {words}.")
    return values[0]


logger = logging.getLogger("folkmoot.rooms")

INVITATION: Final = "gi_"
"""How the tokens begin that a guest comes with for the first time."""
ENTER_AS_GUEST: Final = "room/enter_as_guest"

TOO_LONG = Refusal(CloseCode.INTERNAL, "The hub took too long; try again in a moment.")


class RoomDoor(Entity):
    """Lets WebSockets into rooms."""

    rooms: Rooms
    operations: Operations
    limits: RateLimits
    addresses: Addresses
    browsers: BrowserCookies | None = None

    async def accept(self, request: UpgradeRequest) -> Entrance | Refusal:
        """Let a request in, or tell it why not; an own failure is told without its particulars."""
        try:
            query = read_join_query(request.query)
            token = read_token(request.scope, request.query.get("token", ()))
            secret = ""
            if self.browsers is not None:
                secret = self.browsers.secret(request.scope, token, upgrade=True)
            async with asyncio.timeout(ENTER_SECONDS):
                return await self._admit(query, token, secret, request.scope)
        except TimeoutError:
            return TOO_LONG
        except e.FolkmootError as error:
            if error.close != CloseCode.INTERNAL:
                return Refusal(error.close, error.message)
            logger.warning("nobody was let into a room", extra={"error": error.code})
            return Refusal(CloseCode.INTERNAL, CLOSE_REASONS[CloseCode.INTERNAL])

    async def _admit(self, query: JoinQuery, token: str, secret: str, scope: Scope) -> Entrance:
        if not token and not secret:
            raise e.AuthenticationRequired
        rooms, credential = self.rooms, None
        changes = rooms.changes
        if token.startswith(INVITATION):
            address = self.addresses.of(scope)
            await self._ask(NOBODY, ENTER_AS_GUEST, {"room": query.room, "token": token})
            async with self.limits.guessing(GUEST_LIMIT, address, e.InvitationInvalid):
                visitor, credential = await rooms.exchange(query.room, token)
        elif secret:
            visitor = await rooms.authenticate_browser(secret)
        else:
            visitor = await rooms.authenticate(token)
        sign_in(scope, visitor.principal.account_id)
        for operation in CONNECTED:
            await self._ask(visitor.principal, operation, {"room": query.room})
        room, role = await rooms.enter(visitor, query.room)

        def enter(link: WebSocketConnection) -> RoomOutlet:
            # Again, since the hub may have denied it while it was held or the room was loaded.
            rooms.check_connection(visitor, query.room)
            outlet = RoomOutlet(link, room.left)
            outlet.listen(rooms.receiver(room, outlet, visitor))
            room.join(
                outlet,
                visitor,
                role,
                conn=query.conn,
                after=query.after,
                epoch=query.epoch,
                serve=query.serve,
                linger=query.linger,
                credential=credential,
            )
            rooms.confirm(visitor, changes)
            return outlet

        return enter

    async def _ask(self, principal: Principal, operation: str, arguments: dict[str, Any]) -> None:
        """Have an operation admitted that opening a WebSocket is."""

        async def perform(admitted: Admitted) -> None:
            if arguments_left(admitted, operation) != arguments:
                raise e.RewriteRefused(f"An interceptor tried to rewrite {operation}.")

        await self.operations.ask(principal, operation, {**arguments}, perform)
