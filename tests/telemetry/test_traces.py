from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from opentelemetry import trace
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from folkmoot.core import errors as e
from folkmoot.telemetry import tracing
from folkmoot.telemetry.traces import MAX_QUEUED_SPANS, Traces, traces_url
from tests.harness import ask, serving

SECRET = "sk_" + "ab" * 32
PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


class Collector:
    """A little OTLP receiver that keeps what it is sent."""

    def __init__(self) -> None:
        self.paths: list[str] = []
        self.resources: dict[str, str] = {}
        self.spans: list[Span] = []
        self.raw = b""
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                collector.keep(self.path, body)
                self.send_response(200)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                return

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,))
        self.thread.start()

    def keep(self, path: str, body: bytes) -> None:
        self.paths.append(path)
        self.raw += body
        for group in ExportTraceServiceRequest.FromString(body).resource_spans:
            self.resources |= {a.key: a.value.string_value for a in group.resource.attributes}
            for scope in group.scope_spans:
                self.spans += scope.spans

    def close(self) -> None:
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


@pytest.fixture
def collector() -> Iterator[Collector]:
    made = Collector()
    yield made
    made.close()


def started(url: str) -> Traces:
    traces = tracing.start(url, service_name="plaza", version="1.2.3")
    assert traces is not None
    return traces


async def fine(_: Request) -> Response:
    return PlainTextResponse("fine")


async def broken(_: Request) -> Response:
    raise RuntimeError(SECRET)


ROUTES = [Route("/room/{name}", fine), Route("/broken", broken)]


def attributes(span: Span) -> dict[str, object]:
    return {a.key: a.value.string_value or a.value.int_value for a in span.attributes}


async def test_each_request_is_a_span_that_a_collector_receives(collector):
    traces = started(collector.url)
    async with serving(ROUTES, traces=traces) as hub:
        await ask(hub.port, f"/room/plaza?token={SECRET}", headers={"traceparent": PARENT})
        await ask(hub.port, "/broken")
        await ask(hub.port, f"/nowhere/{SECRET}")
    await traces.close(5)
    assert set(collector.paths) == {"/v1/traces"}
    assert collector.resources["service.name"] == "plaza"
    assert collector.resources["service.version"] == "1.2.3"
    child, failed, lost = collector.spans
    assert child.name == "GET /room/{name}"
    assert child.trace_id.hex() == PARENT.split("-")[1]
    assert child.parent_span_id.hex() == PARENT.split("-")[2]
    assert child.kind == Span.SPAN_KIND_SERVER
    assert attributes(child) == {
        "http.request.method": "GET",
        "http.route": "/room/{name}",
        "http.response.status_code": 200,
    }
    assert attributes(failed)["http.response.status_code"] == 500
    assert (failed.status.code, failed.events) == (2, [])
    assert lost.name == "GET"
    assert b"ab" * 32 not in collector.raw
    assert b"plaza?" not in collector.raw


@pytest.mark.parametrize("traceparent", ["", "garbage", "00-" + "0" * 32 + "-" + "0" * 16 + "-01"])
async def test_a_wrong_traceparent_begins_a_new_trace(collector, traceparent):
    traces = started(collector.url)
    traces.request("GET", traceparent, "x=y").end("GET", "/", 200)
    await traces.close(5)
    (span,) = collector.spans
    assert span.parent_span_id == b""


async def test_the_span_of_a_request_is_the_current_one_while_it_is_answered(collector):
    traces = started(collector.url)
    span = traces.request("POST", None, None)
    with span.current():
        await asyncio.sleep(0)
        current = trace.get_current_span().get_span_context().span_id
    assert trace.get_current_span() is trace.INVALID_SPAN
    span.end("POST", "/mcp", 200)
    await traces.close(5)
    current = current.to_bytes(8, "big")
    assert [span.span_id for span in collector.spans] == [current]


async def test_an_unreachable_collector_harms_nobody_and_is_mentioned_once(caplog):
    caplog.set_level(logging.DEBUG)
    traces = started("http://127.0.0.1:9")
    async with serving(ROUTES, traces=traces) as hub:
        assert (await ask(hub.port, "/room/plaza")).status == 200
    for _ in range(MAX_QUEUED_SPANS * 2):
        traces.request("GET", None, None).end("GET", "/", 200)
    began = time.monotonic()
    await traces.close(0.5)
    assert time.monotonic() - began < 30
    told = [r for r in caplog.records if r.name.startswith(("folkmoot.telemetry", "opentelemetry"))]
    assert 1 <= len(told) <= 2
    assert all(r.name == "folkmoot.telemetry" for r in told)


def test_no_endpoint_means_no_traces():
    assert tracing.start("", service_name="x", version="0") is None


@pytest.mark.long
def test_without_an_endpoint_the_sdk_of_opentelemetry_is_not_even_imported():
    code = (
        "import sys, folkmoot.app; from folkmoot.telemetry import tracing; "
        "tracing.start('', service_name='x', version='0'); "
        "sys.exit(any(name.startswith('opentelemetry.sdk') for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_missing_package_is_a_setting_error_that_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    with pytest.raises(e.SettingsError, match=r"install folkmoot\[otel\]"):
        tracing.start("http://127.0.0.1:4318", service_name="x", version="0")


@pytest.mark.parametrize(
    ("endpoint", "url"),
    [
        ("http://collector:4318", "http://collector:4318/v1/traces"),
        ("http://collector:4318/", "http://collector:4318/v1/traces"),
        ("https://collector/otlp/v1/traces", "https://collector/otlp/v1/traces"),
    ],
)
def test_the_path_of_traces_is_added_where_there_is_none(endpoint, url):
    assert traces_url(endpoint) == url
