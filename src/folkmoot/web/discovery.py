"""`/.well-known/mmp.json`: MMP §12.2, what another server may know of this one."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import msgspec
from starlette.responses import Response
from starlette.routing import Route

if TYPE_CHECKING:
    from starlette.requests import Request

PATH = "/.well-known/mmp.json"
MMP_VERSION = "0.1.0"
CAPABILITIES = ("messaging", "e2e", "invites")
HEADERS = {"cache-control": "public, max-age=300"}


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
        """Where the document is served."""
        return [Route(PATH, self.document)]

    async def document(self, _: Request) -> Response:
        """The document, the same for everyone."""
        return Response(self._body, headers=HEADERS, media_type="application/json")
