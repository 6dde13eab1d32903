"""OpenTelemetry traces, sent to a collector as OTLP over HTTP when one is configured.

This module imports OpenTelemetry; `folkmoot.telemetry.tracing` decides whether it is needed.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from contextlib import suppress
from typing import TYPE_CHECKING
from urllib.parse import urlsplit, urlunsplit

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from folkmoot.core.entity import Entity
from folkmoot.telemetry.limits import (
    EXPORT_DELAY_MILLISECONDS,
    EXPORT_SECONDS,
    MAX_QUEUED_SPANS,
    SPANS_PER_EXPORT,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractContextManager

    from opentelemetry.trace import Span

logger = logging.getLogger("folkmoot.telemetry")


def traces_url(endpoint: str) -> str:
    """Where spans are posted: the endpoint itself when it has a path, else its `/v1/traces`."""
    parts = urlsplit(endpoint)
    path = parts.path if parts.path.strip("/") else "/v1/traces"
    return urlunsplit(parts._replace(path=path))


class RequestSpan(Entity):
    """The span of one HTTP request."""

    span: Span

    def current(self) -> AbstractContextManager[object]:
        """While entered, spans that others start are children of this one."""
        return trace.use_span(
            self.span, end_on_exit=False, record_exception=False, set_status_on_exception=False
        )

    def end(self, method: str, route: str | None, status: int) -> None:
        """Name the span by its route template and end it."""
        self.span.update_name(f"{method} {route}" if route else method)
        self.span.set_attribute("http.response.status_code", status)
        if route:
            self.span.set_attribute("http.route", route)
        if status >= 500:
            self.span.set_status(trace.StatusCode.ERROR)
        self.span.end()


class Traces:
    """Makes spans and sends them in the background, through a bounded queue."""

    def __init__(self, endpoint: str, *, service_name: str, version: str) -> None:
        # The SDK reports every failed attempt; `_Reporting` says it once instead.
        logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)
        self._exporter = _Reporting(OTLPSpanExporter(traces_url(endpoint), timeout=EXPORT_SECONDS))
        processor = BatchSpanProcessor(
            self._exporter,
            max_queue_size=MAX_QUEUED_SPANS,
            schedule_delay_millis=EXPORT_DELAY_MILLISECONDS,
            max_export_batch_size=SPANS_PER_EXPORT,
        )
        resource = Resource.create({"service.name": service_name, "service.version": version})
        self._provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        self._provider.add_span_processor(processor)
        self._tracer = self._provider.get_tracer("folkmoot", version)
        self._propagator = TraceContextTextMapPropagator()

    def request(self, method: str, traceparent: str | None, tracestate: str | None) -> RequestSpan:
        """Begin the span of a request, as a child of the caller's when `traceparent` names one."""
        carrier = {
            name: value
            for name, value in (("traceparent", traceparent), ("tracestate", tracestate))
            if value
        }
        context = self._propagator.extract(carrier) if carrier else None
        span = self._tracer.start_span(
            method,
            context=context,
            kind=trace.SpanKind.SERVER,
            attributes={"http.request.method": method},
        )
        return RequestSpan(span)

    async def close(self, seconds: float) -> None:
        """Send what waits, for at most so many seconds; what cannot be sent by then is dropped."""
        done = asyncio.Event()
        loop = asyncio.get_running_loop()

        def shut() -> None:
            self._provider.shutdown()
            with suppress(RuntimeError):  # the loop may have ended without waiting for us
                loop.call_soon_threadsafe(done.set)

        # A thread of its own, a daemon: an unreachable collector must not hold up the exit.
        threading.Thread(target=shut, name="folkmoot-traces-close", daemon=True).start()
        try:
            async with asyncio.timeout(seconds):
                await done.wait()
        except TimeoutError:
            self._exporter.shutdown()
            logger.warning("the last traces could not be sent in time and are dropped")


class _Reporting(SpanExporter):
    """Says once that the collector cannot be reached, and once that it can again."""

    def __init__(self, inner: SpanExporter) -> None:
        self._inner = inner
        self._failing = False

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Send a batch."""
        result = self._inner.export(spans)
        failed = result is not SpanExportResult.SUCCESS
        if failed and not self._failing:
            logger.warning("traces cannot be delivered to the collector and are dropped for now")
        elif self._failing and not failed:
            logger.info("traces are delivered to the collector again")
        self._failing = failed
        return result

    def shutdown(self) -> None:
        """Stop, and stop retrying."""
        self._inner.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Whether everything handed over was sent."""
        return self._inner.force_flush(timeout_millis)
