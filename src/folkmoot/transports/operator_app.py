"""An application of operators' operations alone: for a proxy, and where no hub runs."""

from __future__ import annotations

import asyncio
import logging
import secrets
from typing import TYPE_CHECKING

from starlette.routing import Router

from folkmoot.core.errors import HubStopping, InternalError, NotFound
from folkmoot.operations.dispatch import Dispatcher
from folkmoot.operations.operator import OPERATOR
from folkmoot.operations.routes import endpoints
from folkmoot.transports.answers import refused
from folkmoot.transports.event_streams import STOPPING
from folkmoot.transports.routes import operator_routes

if TYPE_CHECKING:
    from collections.abc import Iterable

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from folkmoot.operations import Operation, Services

logger = logging.getLogger("folkmoot.operator")


def operator_app(services: Services, rows: Iterable[Operation] = OPERATOR) -> ASGIApp:
    """The operations whose services there are; all requests must be the operator's."""
    served = tuple(endpoints(row for row in rows if services.has(row)))
    routes = operator_routes(served, Dispatcher(services))
    return Outermost(Router(routes, redirect_slashes=False, default=not_found))


async def not_found(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer a request that no route takes."""
    error = NotFound("There is nothing at this address.")
    await refused(error)(scope, receive, send)


class Outermost:
    """Answers what fails unforeseen, and what a stop cuts short; in a hub, `Observe` does."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        begun = False

        async def answer(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            await self._app(scope, receive, answer)
        except asyncio.CancelledError:
            # Only a stopping server cancels a request, and nobody waits for the task but it.
            if not begun:
                await refused(HubStopping(STOPPING))(scope, receive, answer)
        except Exception:
            mark = secrets.token_hex(8)
            logger.exception("request failed", extra={"id": mark})
            if not begun:
                sentence = "The hub failed to answer. Its log has the details under this id."
                await refused(InternalError(sentence, id=mark), whole=True)(scope, receive, answer)
