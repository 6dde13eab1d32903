"""The HTTP application: routes, and the steps every request passes before it reaches one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware.exceptions import ExceptionMiddleware

from folkmoot.core.errors import FolkmootError
from folkmoot.transports.bodies import BodyBounds, BodyLimit, Identify, Locate, nobody, nowhere
from folkmoot.transports.guard import HostGuard, Hosts
from folkmoot.transports.observe import Observe, RequestLines, Templates

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from starlette.routing import BaseRoute
    from starlette.types import ASGIApp

    from folkmoot.core.ports import Clock
    from folkmoot.telemetry.metrics import Metrics
    from folkmoot.telemetry.traces import Traces
    from folkmoot.transports.answers import Answers


def build(
    routes: Sequence[BaseRoute],
    *,
    endpoints: Mapping[str, ASGIApp] | None = None,
    answers: Answers,
    hosts: Hosts,
    bodies: BodyBounds,
    identify: Identify = nobody,
    locate: Locate = nowhere,
    metrics: Metrics,
    traces: Traces | None,
    clock: Clock,
    lines: RequestLines = "all",
) -> ASGIApp:
    """The application: everything is observed, then guarded, then routed.

    `endpoints` are reached by their path alone, before any route is looked at.
    """
    app = Routes(
        routes=routes,
        exception_handlers={
            HTTPException: answers.on_http_exception,
            FolkmootError: answers.on_error,
        },
    )
    # A redirect would have to guess the scheme and host that clients see.
    app.router.redirect_slashes = False
    straight = endpoints or {}
    limited = BodyLimit(
        app,
        endpoints=straight,
        bounds=bodies,
        answers=answers,
        identify=identify,
        locate=locate,
        metrics=metrics,
    )
    return Observe(
        HostGuard(limited, hosts=hosts, answers=answers),
        templates=Templates(routes, straight),
        metrics=metrics,
        traces=traces,
        clock=clock,
        answers=answers,
        lines=lines,
    )


class Routes(Starlette):
    """Routes alone: what Starlette would do about unexpected errors `Observe` does."""

    def build_middleware_stack(self) -> ASGIApp:
        """Only what makes answers of errors."""
        return ExceptionMiddleware(self.router, handlers=self.exception_handlers)
