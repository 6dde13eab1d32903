"""Who comes into a room on a WebSocket, and what the others are told."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, Final

from folkmoot.core.closecodes import CLOSE_REASONS, CloseCode
from folkmoot.core.errors import (
    AuthenticationRequired,
    FolkmootError,
    InvitationInvalid,
    RewriteRefused,
)
from folkmoot.core.policy import NOBODY
from folkmoot.rooms.guests import GUEST_LIMIT
from folkmoot.rooms.revocation import CONNECTED
from folkmoot.transports.connections import sign_in
from folkmoot.transports.credentials import read_token
from folkmoot.transports.operations import arguments_left
from folkmoot.transports.rooms.outlet import RoomOutlet
from folkmoot.transports.rooms.wish import read_wish
from folkmoot.transports.websocket import Refusal

if TYPE_CHECKING:
    from starlette.types import Scope

    from folkmoot.core.policy import Principal
    from folkmoot.core.ports import Admitted
    from folkmoot.ratelimits import RateLimits
    from folkmoot.rooms import Rooms
    from folkmoot.transports.address import Addresses
    from folkmoot.transports.browsers import Browsers
    from folkmoot.transports.operations import Operations
    from folkmoot.transports.rooms.rates import Rate
    from folkmoot.transports.rooms.wish import Wish
    from folkmoot.transports.websocket import Link, UpgradeRequest
    from folkmoot.transports.websocket.endpoint import Entrance

logger = logging.getLogger("folkmoot.rooms")

ACCEPT_SECONDS: Final = 10.0
INVITATION: Final = "gi_"
"""How the tokens begin that a guest comes with for the first time."""
ENTER_AS_GUEST: Final = "room/enter_as_guest"

TOO_LONG = Refusal(CloseCode.INTERNAL, "The hub took too long; try again in a moment.")


class RoomDoor:
    """Lets WebSockets into rooms."""

    def __init__(
        self,
        rooms: Rooms,
        operations: Operations,
        *,
        rate: Rate | None,
        limits: RateLimits,
        addresses: Addresses,
        browsers: Browsers | None = None,
    ) -> None:
        self._rooms = rooms
        self._operations = operations
        self._rate = rate
        self._limits = limits
        self._addresses = addresses
        self._browsers = browsers

    async def accept(self, request: UpgradeRequest) -> Entrance | Refusal:
        """Let a request in, or tell it why not; an own failure is told without its particulars."""
        try:
            wish = read_wish(request.query)
            token = read_token(request.scope, request.query.get("token", ()))
            secret = ""
            if self._browsers is not None:
                secret = self._browsers.secret(request.scope, token, upgrade=True)
            async with asyncio.timeout(ACCEPT_SECONDS):
                return await self._admit(wish, token, secret, request.scope)
        except TimeoutError:
            return TOO_LONG
        except FolkmootError as error:
            if error.close != CloseCode.INTERNAL:
                return Refusal(error.close, error.message)
            logger.warning("nobody was let into a room", extra={"error": error.code})
            return Refusal(CloseCode.INTERNAL, CLOSE_REASONS[CloseCode.INTERNAL])

    async def _admit(self, wish: Wish, token: str, secret: str, scope: Scope) -> Entrance:
        if not token and not secret:
            raise AuthenticationRequired
        rooms, credential = self._rooms, None
        changes = rooms.changes
        if token.startswith(INVITATION):
            address = self._addresses.of(scope)
            await self._ask(NOBODY, ENTER_AS_GUEST, {"room": wish.room, "token": token})
            with self._limits.guessing(GUEST_LIMIT, address, InvitationInvalid):
                visitor, credential = await rooms.exchange(wish.room, token)
        elif secret:
            visitor = await rooms.authenticate_browser(secret)
        else:
            visitor = await rooms.authenticate(token)
        sign_in(scope, visitor.principal.account_id)
        for operation in CONNECTED:
            await self._ask(visitor.principal, operation, {"room": wish.room})
        room, role = await rooms.enter(visitor, wish.room)

        def enter(link: Link) -> RoomOutlet:
            # Again, since the hub may have denied it while it was held or the room was loaded.
            rooms.check_connection(visitor, wish.room)
            outlet = RoomOutlet(link, room.left, self._rate)
            outlet.listen(rooms.receiver(room, outlet, visitor))
            room.join(
                outlet,
                visitor,
                role,
                conn=wish.conn,
                after=wish.after,
                epoch=wish.epoch,
                serve=wish.serve,
                credential=credential,
            )
            rooms.confirm(visitor, changes)
            return outlet

        return enter

    async def _ask(self, principal: Principal, operation: str, arguments: dict[str, Any]) -> None:
        """Have an operation admitted that opening a WebSocket is."""

        async def perform(admitted: Admitted) -> None:
            if arguments_left(admitted, operation) != arguments:
                raise RewriteRefused(f"An interceptor tried to rewrite {operation}.")

        await self._operations.ask(principal, operation, {**arguments}, perform)
