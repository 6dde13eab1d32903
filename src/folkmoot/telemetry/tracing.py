"""Traces when they are configured, and nothing at all when they are not."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from folkmoot.core import errors as e

if TYPE_CHECKING:
    from folkmoot.telemetry.traces import Traces


def start(endpoint: str, *, service_name: str, version: str) -> Traces | None:
    """Begin to send traces to `endpoint`, or answer None, importing nothing, when it is empty."""
    if not endpoint:
        return None
    try:
        import_module("opentelemetry.exporter.otlp.proto.http.trace_exporter")
        import_module("opentelemetry.sdk.trace.export")
    except ImportError as missing:
        raise e.SettingsError(
            "telemetry.otlp_endpoint is set, but OpenTelemetry is not installed: "
            "install folkmoot[otel], or leave the setting empty."
        ) from missing
    traces = import_module("folkmoot.telemetry.traces")
    made: Traces = traces.Traces(endpoint, service_name=service_name, version=version)
    return made
