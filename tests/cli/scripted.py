"""A hub of few words: its routes answer what a test wrote down.

It stands where the real hub cannot be made to: hostile text, slow answers, refusals on demand.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any, NamedTuple

import anyio
import msgspec
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from folkmoot.operations.routes import COMPONENTS, ENDPOINTS, Endpoint
from folkmoot.transports.listen import listen
from folkmoot.transports.parameters import read_value
from tests.harness import KEEP_ALIVE_SECONDS

EMPTY = {"string": "", "integer": 0, "number": 0, "boolean": False, "array": [], "object": {}}


class Asked(NamedTuple):
    """One request as it arrived: the operation, and what was given."""

    operation: str
    arguments: dict[str, Any]
    authorization: str | None


class Scripted:
    """Answers by operation; `refusals` are error texts, `slow` the seconds each answer takes.

    What an answer needs and the test did not write down is empty.
    """

    def __init__(self) -> None:
        self.url = ""
        self.answers: dict[str, Any] = {}
        self.refusals: dict[str, str] = {}
        self.slow = 0.0
        self.asked: list[Asked] = []

    async def serve(self, request: Request) -> Response:
        endpoint, named = found(request.method, request.url.path)
        known = {it.name: it.schema for it in endpoint.query}
        given = {
            name: read_value(name, known[name], text) for name, text in request.query_params.items()
        }
        if body := await request.body():
            given |= msgspec.json.decode(body)
        given |= {**named, **endpoint.route.fixed}
        self.asked.append(Asked(endpoint.name, given, request.headers.get("authorization")))
        await anyio.sleep(self.slow)
        if refused := self.refusals.get(endpoint.name):
            status = 401 if refused.startswith("Authentication required.") else 400
            told: Any = {"error": {"code": "refused", "message": refused}}
        else:
            status = endpoint.route.status
            told = whole({"$ref": endpoint.reply}, self.answers.get(endpoint.name, {}))
        return Response(msgspec.json.encode(told), status, media_type="application/json")


def found(method: str, path: str) -> tuple[Endpoint, dict[str, str]]:
    """The route of a request, and what its path names."""
    for endpoint in ENDPOINTS:
        pattern = re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", endpoint.path)
        match = re.fullmatch(pattern, path)
        if endpoint.method == method and match is not None:
            return endpoint, match.groupdict()
    raise LookupError(path)


def whole(schema: dict[str, Any], told: Any) -> Any:
    """An answer with everything that it must have."""
    if "$ref" in schema:
        schema = COMPONENTS[schema["$ref"].rpartition("/")[2]]
    if isinstance(told, list):
        return [whole(schema["items"], each) for each in told]
    if not isinstance(told, dict) or "properties" not in schema:
        return told
    for name in schema["required"]:
        inner = schema["properties"][name]
        told.setdefault(name, empty(inner))
    return {name: whole(schema["properties"].get(name, {}), value) for name, value in told.items()}


def empty(schema: dict[str, Any]) -> Any:
    """The least that a value can be."""
    if "$ref" in schema:
        return whole(schema, {})
    kind = schema["type"]
    return None if isinstance(kind, list) else msgspec.to_builtins(EMPTY[kind])


@contextmanager
def scripted_hub() -> Iterator[Scripted]:
    """Serve a scripted hub on a free port, in a thread."""
    hub = Scripted()
    methods = ["GET", "POST", "PUT", "PATCH", "DELETE"]
    app = Starlette(routes=[Route("/{path:path}", hub.serve, methods=methods)])
    sockets = listen("127.0.0.1", 0)
    hub.url = f"http://127.0.0.1:{sockets[0].getsockname()[1]}"
    server = uvicorn.Server(
        uvicorn.Config(
            app, log_config=None, access_log=False, timeout_keep_alive=KEEP_ALIVE_SECONDS
        )
    )
    thread = threading.Thread(target=server.run, kwargs={"sockets": sockets})
    thread.start()
    try:
        yield hub
    finally:
        server.should_exit = True
        thread.join(30)


@contextmanager
def answering(status: int, body: bytes, kind: str = "application/json") -> Iterator[str]:
    """Something that answers whatever it is asked with the same."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.rfile.read(int(self.headers.get("content-length", 0)))
            self.send_response(status)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_GET  # noqa: N815

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()
