"""A hub of few words: its routes answer what a test wrote down.

It stands where the real hub cannot be made to: hostile text, refusals on demand.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

import msgspec

from folkmoot.operations.routes import COMPONENTS, ENDPOINTS, Endpoint
from folkmoot.transports.parameters import read_value

EMPTY = {"string": "", "integer": 0, "number": 0, "boolean": False, "array": [], "object": {}}


class Asked(NamedTuple):
    """One request as it arrived: the operation, and what was given."""

    operation: str
    arguments: dict[str, Any]
    authorization: str | None


class Scripted:
    """Answers by operation; `refusals` are error texts.

    What an answer needs and the test did not write down is empty.
    """

    def __init__(self) -> None:
        self.url = ""
        self.answers: dict[str, Any] = {}
        self.refusals: dict[str, str] = {}
        self.asked: list[Asked] = []

    def answer(self, asked: BaseHTTPRequestHandler, body: bytes) -> tuple[int, bytes]:
        path, _, query = asked.path.partition("?")
        endpoint, named = found(asked.command, path)
        known = {it.name: it.schema for it in endpoint.query}
        given = {name: read_value(name, known[name], text) for name, text in parse_qsl(query)}
        if body:
            given |= msgspec.json.decode(body)
        given |= {**named, **endpoint.route.fixed}
        self.asked.append(Asked(endpoint.name, given, asked.headers.get("authorization")))
        if refused := self.refusals.get(endpoint.name):
            status = 401 if refused.startswith("Authentication required.") else 400
            told: Any = {"error": {"code": "refused", "message": refused}}
        else:
            status = endpoint.route.status
            told = whole({"$ref": endpoint.reply}, self.answers.get(endpoint.name, {}))
        return status, msgspec.json.encode(told)


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


Answering = Callable[[BaseHTTPRequestHandler, bytes], tuple[int, bytes]]


@contextmanager
def served(answer: Answering, kind: str = "application/json") -> Iterator[str]:
    """Where something answers requests and their bodies, each on a connection of its own."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, body = answer(self, self.rfile.read(int(self.headers["content-length"] or 0)))
            self.send_response(status)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_PUT = do_PATCH = do_DELETE = do_GET  # noqa: N815

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@contextmanager
def scripted_hub() -> Iterator[Scripted]:
    """Serve a scripted hub on a free port, in a thread."""
    hub = Scripted()
    with served(hub.answer) as hub.url:
        yield hub


def answering(
    status: int, body: bytes, kind: str = "application/json"
) -> AbstractContextManager[str]:
    """Something that answers whatever it is asked with the same."""
    return served(lambda *_: (status, body), kind)
