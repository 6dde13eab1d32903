"""The HTTP application: routes, and the steps every request passes before it reaches one.

Around every request are its id, its log line, its metrics, its span, and the last safety net.
"""

from __future__ import annotations

import asyncio
import logging
from os import urandom
from typing import TYPE_CHECKING, Literal, TypeAlias

from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.middleware.exceptions import ExceptionMiddleware
from starlette.requests import ClientDisconnect
from starlette.routing import BaseRoute, Mount, Route

from folkmoot.core import errors as e
from folkmoot.core.entity import Entity
from folkmoot.telemetry.logs import REQUEST, RequestInfo
from folkmoot.transports.bodies import BodyBounds, BodyLimit, Identify, Locate, nobody, nowhere
from folkmoot.transports.guard import HostGuard, Hosts
from folkmoot.transports.limits import MAX_LOGGED_PATH
from folkmoot.transports.protocol import HEAD, HeadLines

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from starlette.routing import BaseRoute
    from starlette.types import ASGIApp, Receive, Scope, Send

    from folkmoot.core.ports import Clock
    from folkmoot.telemetry.metrics import Metrics
    from folkmoot.telemetry.traces import RequestSpan, Traces
    from folkmoot.transports.answers import Answers
    from folkmoot.transports.protocol import JoinedWrites


access = logging.getLogger("folkmoot.http")

GONE = 499
"""Logged and counted when the client left before it was answered."""

RequestLines: TypeAlias = Literal["all", "failed", "none"]
LOGGED_FROM: dict[RequestLines, int] = {"all": 0, "failed": 400, "none": 1000}
"""From which status on a request has its line in the log."""


ID_BYTES, MANY_IDS = 8, 256
PRECAUTIONS = HeadLines(
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"cross-origin-opener-policy", b"same-origin"),
    # Pages of allowed origins ask by CORS, which this does not concern.
    (b"cross-origin-resource-policy", b"same-origin"),
    (
        b"permissions-policy",
        b"camera=(), display-capture=(), geolocation=(), microphone=(), usb=()",
    ),
)
"""What every answer tells browsers, unless it says something else itself."""


def shortened(path: str) -> str:
    """A path as it is logged: to look for secrets in a very long one takes long."""
    return path if len(path) <= MAX_LOGGED_PATH else path[:MAX_LOGGED_PATH] + "…"


def request_ids() -> Iterator[str]:
    """Ids of requests. The random bytes of many are read at once: a read costs more than an id."""
    while True:
        yield from urandom(ID_BYTES * MANY_IDS).hex("-", ID_BYTES).split("-")


def failure(request_id: str) -> e.InternalError:
    """What is told of an error that is the hub's own."""
    return e.InternalError(
        "The hub failed to answer. Its log has the details under this id.", id=request_id
    )


class Templates:
    """Finds the template of the route that took a request: what is counted instead of its path."""

    def __init__(self, routes: Sequence[BaseRoute], endpoints: Collection[str] = ()) -> None:
        self.endpoints = frozenset(endpoints)
        """The paths that are templates themselves."""
        self._routes: dict[object, list[Route | Mount]] = {}
        for route in routes:
            if isinstance(route, Route):
                self._routes.setdefault(route.endpoint, []).append(route)
            elif isinstance(route, Mount):
                self._routes.setdefault(route.app, []).append(route)

    def of(self, scope: Scope) -> str | None:
        """The template of a path that is no endpoint; None when no route took the request."""
        found = self._routes.get(scope.get("endpoint"), [])
        if len(found) > 1:
            found = [route for route in found if route.path_regex.match(scope["path"])]
        return found[0].path if found else None


class Observe(Entity):
    """Sees every request first and its answer last."""

    app: ASGIApp
    templates: Templates
    metrics: Metrics
    traces: Traces | None
    clock: Clock
    answers: Answers
    lines: RequestLines = "all"

    def __post_init__(self) -> None:
        self._logged_from = LOGGED_FROM[self.lines]
        self._ids = request_ids()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Give the request an id, let it be answered, and tell how that went."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started = self.clock.monotonic()
        request_id = next(self._ids)
        REQUEST.set(RequestInfo(request_id))
        head: JoinedWrites = scope[HEAD]
        head.lines, head.last = PRECAUTIONS, b"x-request-id: %b\r\n" % request_id.encode()
        method: str = scope["method"]
        span = None if self.traces is None else span_of(self.traces, scope, method)
        self.metrics.in_flight += 1
        try:
            if span is None:
                await self.app(scope, receive, send)
            else:
                with span.current():
                    await self.app(scope, receive, send)
        except ClientDisconnect:
            pass
        except asyncio.CancelledError:
            # Only a stopping server cancels a request, and nobody waits for the task but it.
            if not head.status:
                error = e.HubStopping("The hub is stopping; try again in a moment.")
                await self.answers.error(scope, error)(scope, receive, send)
        except Exception as error:  # noqa: BLE001 - told to the client, and what is not ours logged
            refused = isinstance(error, e.FolkmootError) and not head.status
            if not refused:
                access.exception("request failed", extra={"id": request_id})
            if not head.status:
                answer = self.answers.error(
                    scope, error if isinstance(error, e.FolkmootError) else failure(request_id)
                )
                await answer(scope, receive, send)
        finally:
            self.metrics.in_flight -= 1
            status = head.status or GONE
            path, templates = scope["path"], self.templates
            route = path if path in templates.endpoints else templates.of(scope)
            seconds = self.clock.monotonic() - started
            self.metrics.request_done(method, route, status, seconds)
            if span:
                span.end(method, route, status)
            if status >= self._logged_from:
                access.info(
                    "request",
                    extra={
                        "method": method,
                        "path": shortened(path),
                        "status": status,
                        "ms": round(seconds * 1000, 2),
                        "id": request_id,
                    },
                )


def span_of(traces: Traces, scope: Scope, method: str) -> RequestSpan:
    """The span of a request, in the trace that its headers name."""
    headers = Headers(scope=scope)
    return traces.request(method, headers.get("traceparent"), headers.get("tracestate"))


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
    takes_token_in_url: bool = True,
) -> ASGIApp:
    """The application: everything is observed, then guarded, then routed.

    `endpoints` are reached by their path alone, before any route is looked at.
    """
    app = HubRouter(
        routes=routes,
        exception_handlers={
            HTTPException: answers.on_http_exception,
            e.FolkmootError: answers.on_error,
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
        HostGuard(limited, hosts=hosts, answers=answers, takes_token_in_url=takes_token_in_url),
        templates=Templates(routes, straight),
        metrics=metrics,
        traces=traces,
        clock=clock,
        answers=answers,
        lines=lines,
    )


class HubRouter(Starlette):
    """Routes alone: what Starlette would do about unexpected errors `Observe` does."""

    def build_middleware_stack(self) -> ASGIApp:
        """Only what makes answers of errors."""
        return ExceptionMiddleware(self.router, handlers=self.exception_handlers)
