"""What programs fetch: the MMP discovery document, and what installs the pages as an app."""

from __future__ import annotations

import hashlib
from importlib.resources import files
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import msgspec
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Route

from folkmoot.web.frame import POLICY, source

if TYPE_CHECKING:
    from collections.abc import Iterable

    from starlette.requests import Request


PATH = "/.well-known/mmp.json"
MMP_VERSION = "0.1.0"
CAPABILITIES = ("messaging", "e2e", "invites")
DISCOVERY_HEADERS = {"cache-control": "public, max-age=300"}


class Discovery:
    """The discovery document. Without federation there is nothing to sign, so no signing key."""

    def __init__(self, *, public_url: str) -> None:
        document = {
            "version": MMP_VERSION,
            "server": "folkmoot",
            "mcp_endpoint": f"{urlsplit(public_url).path.rstrip('/')}/mcp",
            "public_key": None,
            "capabilities": CAPABILITIES,
            "federation": {"enabled": False, "inbound": False, "outbound": False},
        }
        self._body = msgspec.json.encode(document)

    def routes(self) -> list[Route]:
        return [Route(PATH, self.document)]

    async def document(self, _: Request) -> Response:
        """The document, the same for everyone."""
        return Response(self._body, headers=DISCOVERY_HEADERS, media_type="application/json")


PAPER: Final = "#f6f3ea"
ICONS: Final = {
    "icon-192.png": ("192x192", "any"),
    "icon-512.png": ("512x512", "any"),
    "maskable-512.png": ("512x512", "maskable"),
}
MANIFEST: Final = {
    "id": "/",
    "name": "Folkmoot",
    "short_name": "Folkmoot",
    "description": "Mail, rooms and tools in one place.",
    "start_url": "/inbox",
    "scope": "/",
    "display": "standalone",
    "background_color": PAPER,
    "theme_color": PAPER,
    "icons": [
        {"src": f"/icons/{name}", "sizes": sizes, "type": "image/png", "purpose": purpose}
        for name, (sizes, purpose) in ICONS.items()
    ],
}
DAY: Final = {"cache-control": "public, max-age=86400"}
WORKER: Final = {
    "cache-control": "no-cache",
    POLICY: "default-src 'none'; connect-src 'self'",
}


class Shell(msgspec.Struct, frozen=True):
    """A page that is kept: which one, where the worker gets it, and the paths it is shown for.

    A path that ends in `/*` stands for everything below it.
    """

    page: bytes
    source: str
    paths: tuple[str, ...]


class Installable:
    """Serves manifest, icons and worker for the pages of one build."""

    def __init__(self, shells: Iterable[Shell]) -> None:
        shells = tuple(shells)
        script = source("worker.js")
        build = hashlib.sha256(script.encode())
        for shell in shells:
            build.update(hashlib.sha256(shell.page).digest())
        listed = [{"from": shell.source, "paths": shell.paths} for shell in shells]
        head = (
            f'const BUILD = "{build.hexdigest()[:16]}", '
            f"SHELLS = {msgspec.json.encode(listed).decode()};"
        )
        self._worker = f"{head}\n{script}".encode()
        self._manifest = msgspec.json.encode(MANIFEST)
        folder = files("folkmoot.web").joinpath("icons")
        self._icons = {name: folder.joinpath(name).read_bytes() for name in ICONS}
        self._favicon = source("built/icon.svg").encode()

    def routes(self) -> list[Route]:
        return [
            Route("/manifest.webmanifest", self.manifest),
            Route("/worker.js", self.worker),
            Route("/icons/{name}", self.icon),
            Route("/favicon.ico", self.favicon),
        ]

    async def manifest(self, _: Request) -> Response:
        """What the app is called and looks like."""
        return Response(self._manifest, 200, DAY, "application/manifest+json")

    async def worker(self, _: Request) -> Response:
        """The service worker of this build."""
        return Response(self._worker, 200, WORKER, "text/javascript")

    async def icon(self, request: Request) -> Response:
        """One size of the icon."""
        name: str = request.path_params["name"]
        if name not in self._icons:
            raise HTTPException(404)
        return Response(self._icons[name], 200, DAY, "image/png")

    async def favicon(self, _: Request) -> Response:
        """For what is opened in a browser and has no icon of its own, such as `/health`."""
        return Response(self._favicon, 200, DAY, "image/svg+xml")
