"""What a proxy tells about itself: `/health` and `/metrics`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.responses import Response
from starlette.routing import Route

from folkmoot.transports.answers import JsonResponse

if TYPE_CHECKING:
    from starlette.requests import Request

    from folkmoot.proxy.sessions import SessionManager
    from folkmoot.telemetry.metrics import Metrics


class Status:
    """The answers about one proxy."""

    def __init__(self, version: str, sessions: SessionManager, metrics: Metrics) -> None:
        self._version = version
        self._sessions = sessions
        self._metrics = metrics

    def routes(self) -> list[Route]:
        """Where the answers are served."""
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
