"""The first page, and the page that says what went wrong."""

from __future__ import annotations

import base64
import hashlib
import json
import math
from html import escape
from importlib.resources import files
from string import Template
from typing import TYPE_CHECKING
from urllib.parse import quote

from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

if TYPE_CHECKING:
    from collections.abc import Iterable

    from starlette.requests import Request

PLACES = (
    ("/health", "Is it running, in which version, since when?"),
    ("/health/ready", "Can it write to its database and read it back?"),
    ("/metrics", "Numbers for Prometheus."),
)
"""What an operator may want to open, and the question it answers."""


def _source(name: str) -> str:
    return files("folkmoot.web").joinpath(name).read_text("utf-8")


def _fill(template: str, *, trusted: dict[str, str] | None = None, **values: str) -> str:
    """Put values into a template: escaped, unless they are markup of our own."""
    escaped = {name: escape(value, quote=True) for name, value in values.items()}
    return Template(template).substitute(escaped, **(trusted or {}))


def _ring(stones: int, *, size: float, ground: bool = False) -> str:
    """The meeting seen from above: stones in a ring, one of them speaking, a fire in the middle."""
    around = []
    for place in range(stones):
        turn = 360 * place / stones
        # No two stones of a real ring are alike; a fixed rhythm keeps the drawing the same.
        width = size * (1 + 0.2 * math.sin(place * 2.4))
        depth = size * (0.72 + 0.1 * math.cos(place * 3.1))
        distance = 45 + 1.6 * math.cos(place * 1.7)
        kind = "speaker" if place == stones // 6 else "stone"
        around.append(
            f'<ellipse class="{kind}" cx="60" cy="{60 - distance:.2f}" '
            f'rx="{width:.2f}" ry="{depth:.2f}" transform="rotate({turn:.1f} 60 60)"/>'
        )
    circles = [("glow", size * 3), ("fire", size * 1.1)]
    if ground:
        circles = [("ground", 56.0), ("ground", 34.0), ("ground", 24.0), *circles]
    middle = "".join(f'<circle class="{k}" cx="60" cy="60" r="{r:.2f}"/>' for k, r in circles)
    return (
        '<svg class="ring" viewBox="0 0 120 120" width="28" height="28" aria-hidden="true">'
        f"{middle}{''.join(around)}</svg>"
    )


def _digest(source: str) -> str:
    return base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()


_ICON = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32">'
    '<circle cx="16" cy="16" r="12" fill="none" stroke="#7d8a6f" stroke-width="5" '
    'stroke-dasharray="4.5 4.88"/><circle cx="16" cy="16" r="4" fill="#d9763f"/></svg>'
)


class Pages:
    """Draws every page of one hub."""

    def __init__(self, *, version: str, public_url: str, metrics: bool) -> None:
        self._version = version
        self._public_url = public_url.rstrip("/")
        self._places = [place for place in PLACES if metrics or place[0] != "/metrics"]
        style, script = _source("style.css"), _source("copy.js")
        self._frame = _source("frame.html")
        self._landing = _source("landing.html")
        self._error = _source("error.html")
        self._own = {
            "style": style,
            "script": script,
            "mark": _ring(9, size=10),
            "icon": f"data:image/svg+xml,{quote(_ICON)}",
        }
        self._headers = {
            "cache-control": "no-store",
            "content-security-policy": (
                f"default-src 'none'; style-src 'sha256-{_digest(style)}'; "
                f"script-src 'sha256-{_digest(script)}'; img-src data:; "
                "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
            ),
        }

    def routes(self) -> list[Route]:
        """Where the pages are served."""
        return [Route("/", self.landing)]

    async def landing(self, request: Request) -> Response:
        """MMP §9.1: what this is, that it runs, and how to connect to it."""
        base = self._public_url or f"{request.url.scheme}://{request.headers.get('host', '')}"
        endpoint = f"{base}/mcp"
        snippet = json.dumps({"mcpServers": {"folkmoot": {"url": endpoint}}}, indent=2)
        body = _fill(
            self._landing,
            trusted={
                "ring": _ring(17, size=5.4, ground=True),
                "places": self._links(self._places),
            },
            version=self._version,
            endpoint=endpoint,
            snippet=snippet,
        )
        return self._page("Folkmoot", body)

    def error_page(self, status: int, phrase: str, sentence: str) -> Response:
        """What went wrong, for someone with a browser."""
        body = _fill(self._error, status=str(status), phrase=phrase, sentence=sentence)
        return self._page(f"{phrase} · Folkmoot", body, status)

    def _page(self, title: str, body: str, status: int = 200) -> Response:
        page = _fill(self._frame, trusted={**self._own, "body": body}, title=title)
        return HTMLResponse(page, status, self._headers)

    @staticmethod
    def _links(places: Iterable[tuple[str, str]]) -> str:
        link = '<li><a href="$path"><code>$path</code><span>$question</span></a></li>'
        return "\n".join(_fill(link, path=path, question=text) for path, text in places)
