"""A small HTTP server whose answers are rows: a path, and what is answered there."""

from __future__ import annotations

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, Self

HERE = "HERE"
"""In an answer: the server's own address."""


class Served:
    """Answers while entered: a text, an object, or one of them after its status and headers.

    A path can have its method before it, as in `POST /mcp`. What it has no row for is 404.
    """

    def __init__(self, rows: dict[str, Any]) -> None:
        self.rows = rows
        self.asked: list[str] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def answer(self) -> None:
                self.rfile.read(int(self.headers.get("content-length") or 0))
                path = self.path.partition("?")[0]
                outer.asked.append(f"{self.command} {path}")
                outer.send(self, outer.row(self.command, path))

            do_GET = do_POST = answer  # noqa: N815

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def row(self, method: str, path: str) -> Any:
        return self.rows.get(f"{method} {path}", self.rows.get(path, (404, {"error": "none"})))

    def send(self, to: BaseHTTPRequestHandler, row: Any) -> None:
        status, body, *more = row if isinstance(row, tuple) else (200, row)
        text = body if isinstance(body, str) else json.dumps(body)
        data = text.replace(HERE, self.url).encode()
        to.send_response(status)
        for name, value in {"content-length": str(len(data)), **(more[0] if more else {})}.items():
            to.send_header(name, value.replace(HERE, self.url))
        to.end_headers()
        to.wfile.write(data)

    def __enter__(self) -> Self:
        self._thread = Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
