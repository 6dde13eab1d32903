"""A proxy on a port: Streamable HTTP and HTTP+SSE for clients, and what it tells of itself."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from typing import TYPE_CHECKING

from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from folkmoot import __version__
from folkmoot.mcp.server.http import HttpFront, OldSseFront
from folkmoot.relay.conversation import HttpConversations
from folkmoot.relay.era_switch import EraSwitch
from folkmoot.relay.forward import Forwarder
from folkmoot.relay.signin import ProxySignIn
from folkmoot.taskgroups import group
from folkmoot.telemetry.metrics import Metrics, proxy_families
from folkmoot.transports import http
from folkmoot.transports.answers import Answers, JsonResponse
from folkmoot.transports.bodies import BodyBounds
from folkmoot.transports.guard import Hosts, OriginGuard
from folkmoot.transports.listen import base_url, close, listen
from folkmoot.transports.server import HttpServer

if TYPE_CHECKING:
    import socket

    from starlette.requests import Request
    from starlette.types import ASGIApp

    from folkmoot.proxy.sessions import SessionManager
    from folkmoot.relay.proxy import Proxy

AUTHORIZATION = "authorization"
SHUTDOWN_SECONDS = 3.0
ADVICE = "This proxy does not answer to the host in the request; --allow-host NAME adds one."
MOST_CONNECTIONS = 10_000
MOST_VALUES = 250_000
"""JSON values in one message: as many as the proxy takes from a server."""
MOST_PROCESSES = 256
"""Sessions with a server that is a command: each has a process of its own."""


@asynccontextmanager
async def listening(proxy: Proxy, host: str, port: int) -> AsyncIterator[str]:
    """Serve while entered; the address it has."""
    sockets = listen(host, port, "--listen")
    async with AsyncExitStack() as stack:
        stack.callback(close, sockets)
        stops = stack.enter_context(ExitStack())
        target = proxy.upstream.target
        sign_in = None if target is None else ProxySignIn(target)
        endpoints = await _endpoints(proxy, stack, stops, sign_in)
        server = _server(proxy, host, sockets, endpoints, sign_in)
        async with group() as tasks:
            ends = tasks.create_task(proxy.sessions.run())
            serving = tasks.create_task(server.serve())
            await server.listening()
            try:
                yield base_url(host, sockets[0].getsockname()[1])
            finally:
                # Their streams would keep the server from stopping.
                stops.close()
                server.stop()
                await asyncio.wait({serving})
                ends.cancel()


async def _endpoints(
    proxy: Proxy, stack: AsyncExitStack, stops: ExitStack, sign_in: ProxySignIn | None
) -> dict[str, ASGIApp]:
    limits, target = proxy.options.limits, proxy.upstream.target
    more = proxy.options.headers
    front = HttpFront(
        proxy.carry,
        proxy.steps.clock,
        limits=limits,
        headers=more,
        most=proxy.options.sessions.most if target else MOST_PROCESSES,
        apart=(AUTHORIZATION, *(name.lower() for name in more)) if proxy.upstream.told else (),
    )
    old = OldSseFront(proxy.carry, proxy.steps.clock, limits=limits, most=MOST_PROCESSES)
    for each in (front, old):
        await stack.enter_async_context(each.running())
        stops.callback(each.stop)
    app: ASGIApp = front
    if target is not None:
        app = forwarder = Forwarder(
            target,
            proxy.steps,
            HttpConversations(proxy.sessions, proxy.steps.clock),
            limits=limits,
            headers=proxy.options.headers,
            eras=EraSwitch(
                target,
                front,
                discoverable=proxy.options.discoverable,
                note=proxy.steps.note_own,
            )
            if proxy.options.eras
            else None,
            front=front,
        )
        await stack.enter_async_context(forwarder.running())
        stops.callback(forwarder.stop)
        if sign_in is not None:
            app = sign_in.wrapping(forwarder)
    return {"/mcp": app, "/sse": old, "/messages": old}


def _server(
    proxy: Proxy,
    host: str,
    sockets: list[socket.socket],
    endpoints: dict[str, ASGIApp],
    sign_in: ProxySignIn | None,
) -> HttpServer:
    options = proxy.options
    metrics = Metrics(version=__version__, clock=proxy.steps.clock)
    sessions = proxy.sessions
    answers = Answers(plain_page)
    hosts = Hosts(host, "", options.allowed_hosts, options.allowed_origins, advice=ADVICE)
    metrics.watch(lambda: proxy_families(len(sessions), sessions.opened, dict(sessions.ended)))
    routes = Status(__version__, proxy.sessions, metrics).routes()
    app = http.build(
        [*routes, *(sign_in.routes() if sign_in is not None else ())],
        endpoints={
            path: OriginGuard(each, hosts=hosts, answers=answers)
            for path, each in endpoints.items()
        },
        answers=answers,
        hosts=hosts,
        bodies=BodyBounds(body_bytes=options.limits.message_bytes, values=MOST_VALUES),
        metrics=metrics,
        traces=None,
        clock=proxy.steps.clock,
        lines="none",
    )
    return HttpServer(
        app,
        sockets,
        metrics=metrics,
        max_connections=MOST_CONNECTIONS,
        shutdown_seconds=SHUTDOWN_SECONDS,
    )


def plain_page(status: int, name: str, sentence: str) -> Response:
    """An error, for a browser."""
    return PlainTextResponse(f"{status} {name}\n{sentence}\n", status)


class Status:
    """The answers about one proxy."""

    def __init__(self, version: str, sessions: SessionManager, metrics: Metrics) -> None:
        self._version = version
        self._sessions = sessions
        self._metrics = metrics

    def routes(self) -> list[Route]:
        return [Route("/health", self.alive), Route("/metrics", self.metrics)]

    async def alive(self, _: Request) -> Response:
        """The process runs and answers."""
        told = {"status": "ok", "version": self._version, "sessions": len(self._sessions)}
        return JsonResponse(told)

    async def metrics(self, request: Request) -> Response:
        """The metrics, for Prometheus."""
        content, content_type = self._metrics.exposition(request.headers.get("accept", ""))
        return Response(
            content, headers={"content-type": content_type, "cache-control": "no-store"}
        )
