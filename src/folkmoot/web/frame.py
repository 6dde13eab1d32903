"""The document around a page: its head, style and script, and the policy that allows just these."""

from __future__ import annotations

import base64
import hashlib
import math
from functools import cache
from html import escape
from importlib.resources import files
from string import Template
from typing import Final
from urllib.parse import quote

POLICY: Final = "content-security-policy"
FORMS_NOWHERE: Final = "form-action 'none'"
FORMS_HERE: Final = "form-action 'self'"
PLACE: Final = '<a href="$path">$name</a> '


@cache
def source(name: str) -> str:
    """A file of this folder; read once, and meant for small ones."""
    return files("folkmoot.web").joinpath(name).read_text("utf-8")


def fill(template: str, *, trusted: dict[str, str] | None = None, **values: str) -> str:
    """Put values into a template: escaped, unless they are markup of our own."""
    escaped = {name: escape(value, quote=True) for name, value in values.items()}
    return Template(template).substitute(escaped, **(trusted or {}))


def ring(stones: int, *, size: float, ground: bool = False) -> str:
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


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


class PageFrame:
    """What pages share; `styles` are further files of this folder.

    `base` is the path under which a proxy has the hub, empty or without a slash at its end.
    """

    def __init__(
        self,
        *styles: str,
        base: str = "",
        images: str = "data:",
        forms: str = FORMS_NOWHERE,
        places: tuple[tuple[str, str], ...] = (),
    ) -> None:
        style = "".join(map(source, ("built/tokens.css", "style.css", *styles)))
        script = source("copy.js")
        self.base = base
        self._frame = source("frame.html")
        self._own = {
            "style": style,
            "script": script,
            "mark": ring(9, size=10),
            "places": "".join(fill(PLACE, path=path, name=name) for path, name in places),
            "icon": f"data:image/svg+xml,{quote(source('built/icon.svg').strip())}",
        }
        self.headers = {
            "cache-control": "no-store",
            POLICY: (
                f"default-src 'none'; style-src 'sha256-{_digest(style)}'; "
                f"script-src 'sha256-{_digest(script)}'; img-src {images}; "
                f"base-uri 'none'; {forms}; frame-ancestors 'none'"
            ),
        }

    def drawn(self, title: str, body: str) -> bytes:
        """A whole page."""
        trusted = {**self._own, "body": body}
        return fill(self._frame, trusted=trusted, title=title, base=self.base).encode()
