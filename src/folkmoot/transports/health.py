"""`/health`, `/health/ready` and `/metrics`: what machines ask a hub about itself."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, TypeAlias

from msgspec import field
from starlette.responses import Response
from starlette.routing import Route

from folkmoot.core import errors as e
from folkmoot.core.entity import Entity
from folkmoot.transports.answers import JsonResponse
from folkmoot.transports.guard import is_operator
from folkmoot.transports.limits import HEALTH_CACHE_SECONDS, READY_SECONDS

if TYPE_CHECKING:
    from starlette.requests import Request

    from folkmoot.core.ports import Clock
    from folkmoot.telemetry.metrics import Metrics
    from folkmoot.transports.credentials import Operators

logger = logging.getLogger("folkmoot.health")


READY = "ready"

Check: TypeAlias = Callable[[], Awaitable[object]]
"""Returns when the part works, raises when it does not."""

Detail: TypeAlias = Callable[[], object]
"""What is told beside the checks, and makes the hub no less ready."""

CountUsers: TypeAlias = Callable[[], Awaitable[int]]


class Health(Entity, kw_only=True):
    """The answers about the hub's own state."""

    version: str
    clock: Clock
    count_users: CountUsers
    checks: Mapping[str, Check]
    details: Mapping[str, Detail] = {}
    metrics: Metrics
    serves_metrics: bool
    operators: Operators
    _checking: asyncio.Lock = field(default_factory=asyncio.Lock)
    _found: dict[str, dict[str, object]] = {}
    _found_at: float = -math.inf

    def __post_init__(self) -> None:
        self._started = self.clock.monotonic()

    def routes(self) -> list[Route]:
        return [
            Route("/health", self.alive),
            Route("/health/ready", self.ready),
            Route("/metrics", self.show_metrics),
        ]

    async def alive(self, _: Request) -> Response:
        """MMP §9.3: the process runs and answers."""
        return JsonResponse(
            {
                "status": "ok",
                "version": self.version,
                "users": await self.count_users(),
                "uptime": round(self.clock.monotonic() - self._started, 3),
            }
        )

    async def ready(self, request: Request) -> Response:
        """Whether every part works: 200 or 503 for everyone, and why for operators."""
        report = await self.report()
        status = 200 if report["status"] == READY else 503
        if not self.operators.admit(request.scope):
            report = {"status": report["status"]}
        return JsonResponse(report, status)

    async def report(self) -> dict[str, object]:
        """What the checks found within the last second: the database is really written and read."""
        # Whoever asks while the checks run waits for what they find.
        async with self._checking:
            if self.clock.monotonic() - self._found_at >= HEALTH_CACHE_SECONDS:
                self._found = {
                    name: await self._outcome(name, check) for name, check in self.checks.items()
                }
                self._found_at = self.clock.monotonic()
            found = self._found
        ready = all(outcome["ok"] for outcome in found.values())
        details = {name: detail() for name, detail in self.details.items()}
        return {"status": READY if ready else "not ready", "checks": found, **details}

    async def _outcome(self, name: str, check: Check) -> dict[str, object]:
        try:
            async with asyncio.timeout(READY_SECONDS):
                await check()
        except TimeoutError:
            return _failed("timeout", f"No answer within {READY_SECONDS:g} seconds.")
        except e.FolkmootError as error:
            logger.warning("check failed", extra={"check": name, "error": error.message})
            # The error's own sentence may name files; what its kind means is enough for a stranger.
            return _failed(error.code, (type(error).__doc__ or "").strip())
        except Exception:
            logger.exception("check failed", extra={"check": name})
            return _failed("failed", "The check failed; see the log.")
        return {"ok": True}

    async def show_metrics(self, request: Request) -> Response:
        """The metrics, for Prometheus; 404 when they are switched off, or for whom they are not.

        On the operator's socket they are never switched off.
        """
        if not self.serves_metrics and not is_operator(request.scope):
            raise e.NotFound("Metrics are switched off on this hub.")
        if not self.operators.admit(request.scope):
            if self.operators.has_token:
                raise e.AuthenticationRequired(
                    "Metrics need the operator's token, as a bearer token."
                )
            raise e.NotFound("Metrics are for the operator of this hub, on its own machine.")
        content, content_type = self.metrics.exposition(request.headers.get("accept", ""))
        return Response(
            content, headers={"content-type": content_type, "cache-control": "no-store"}
        )


def _failed(code: str, reason: str) -> dict[str, object]:
    return {"ok": False, "error": code, "reason": reason}
