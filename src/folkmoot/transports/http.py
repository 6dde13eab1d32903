"""The HTTP application: routes, and the steps every request passes before it reaches one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware

from folkmoot.core.errors import FolkmootError
from folkmoot.transports.guard import BodyLimit, HostGuard, Hosts
from folkmoot.transports.observe import Observe, Templates

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.routing import BaseRoute

    from folkmoot.core.ports import Clock
    from folkmoot.telemetry.metrics import Metrics
    from folkmoot.telemetry.traces import Traces
    from folkmoot.transports.answers import Answers


def build(
    routes: Sequence[BaseRoute],
    *,
    answers: Answers,
    hosts: Hosts,
    max_body_bytes: int,
    metrics: Metrics,
    traces: Traces | None,
    clock: Clock,
) -> Starlette:
    """The application: everything is observed, then guarded, then routed."""
    app = Starlette(
        routes=routes,
        middleware=[
            Middleware(
                Observe,
                templates=Templates(routes),
                metrics=metrics,
                traces=traces,
                clock=clock,
                answers=answers,
            ),
            Middleware(HostGuard, hosts=hosts, answers=answers),
            Middleware(BodyLimit, limit=max_body_bytes, answers=answers),
        ],
        exception_handlers={
            HTTPException: answers.on_http_exception,
            FolkmootError: answers.on_error,
        },
    )
    # A redirect would have to guess the scheme and host that clients see.
    app.router.redirect_slashes = False
    return app
