"""Errors as HTTP responses: JSON for programs, a small page for browsers."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.responses import Response

from folkmoot.core import errors as e
from folkmoot.core.entity import Entity
from folkmoot.transports.limits import FILE_CHUNK_BYTES

if TYPE_CHECKING:
    from starlette.requests import HTTPConnection
    from starlette.types import Receive, Scope, Send

    from folkmoot.operations.call import FileAnswer

logger = logging.getLogger("folkmoot.rest")

ErrorPage: TypeAlias = Callable[[int, str, str], Response]
"""Draws a page from a status, its name and a sentence."""


_encode = msgspec.json.Encoder().encode


class JsonResponse(Response):
    """JSON that no cache keeps."""

    media_type = "application/json"

    def __init__(
        self, content: Any, status: int = 200, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(_encode(content), status, {"cache-control": "no-store", **(headers or {})})


class FileResponse(Entity):
    """A file, up to the size it had when the request came."""

    answer: FileAnswer
    media: str

    async def __call__(self, scope: Scope, _: Receive, send: Send) -> None:
        """Send the file in pieces, and close it."""
        file, left = self.answer.file, self.answer.size
        headers = {
            "content-type": self.media,
            "content-length": str(left),
            "content-disposition": f'attachment; filename="{self.answer.name}"',
            "cache-control": "no-store",
        }
        told = [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
        with file:
            await send({"type": "http.response.start", "status": 200, "headers": told})
            while left and scope["method"] != "HEAD":
                piece = await asyncio.to_thread(file.read, min(left, FILE_CHUNK_BYTES))
                if not piece:
                    break
                left -= len(piece)
                await send({"type": "http.response.body", "body": piece, "more_body": True})
            await send({"type": "http.response.body", "body": b""})


def wants_page(scope: Scope) -> bool:
    """Whether the request is from a browser that shows pages."""
    return "text/html" in Headers(scope=scope).get("accept", "")


def retry_after(error: e.FolkmootError) -> dict[str, str]:
    """The header that tells programs when to try again, if the error says so."""
    seconds = error.data.get("retry_after")
    return {} if seconds is None else {"retry-after": str(seconds)}


def challenge(error: e.FolkmootError) -> str:
    """The `WWW-Authenticate` header of an answer with status 401."""
    return 'Bearer error="invalid_token"' if isinstance(error, e.TokenRefused) else "Bearer"


def refusal(error: e.FolkmootError, *, whole: bool = False) -> dict[str, Any]:
    """What is told of one of our errors: less to a stranger than to the operator."""
    is_ours = error.http >= HTTPStatus.INTERNAL_SERVER_ERROR
    if is_ours and not whole and not isinstance(error, e.RequestError | e.QuotaExceeded):
        # Its own sentence may name files; what its kind means is enough for a stranger.
        logger.warning("a request failed", extra={"error": error.message, "code": error.code})
        return {"error": {"code": error.code, "message": (type(error).__doc__ or "").strip()}}
    return error.as_http()


def refused(error: e.FolkmootError, *, whole: bool = False) -> JsonResponse:
    """The response for one of our errors, always JSON; `whole` is for the operator."""
    told, headers = refusal(error, whole=whole), retry_after(error)
    if error.http == HTTPStatus.UNAUTHORIZED:
        headers["www-authenticate"] = challenge(error)
    if isinstance(error, e.MethodNotAllowed):
        headers["allow"] = told["error"].pop("allow")
    return JsonResponse(told, error.http, headers)


class Answers(Entity):
    """Makes the response for anything that went wrong."""

    error_page: ErrorPage

    def error(
        self, scope: Scope, error: e.FolkmootError, headers: Mapping[str, str] | None = None
    ) -> Response:
        """The response for one of our errors."""
        status = error.http
        headers = {**retry_after(error), **(headers or {})}
        if status == HTTPStatus.UNAUTHORIZED:
            headers = {"www-authenticate": challenge(error), **headers}
        if not wants_page(scope):
            return JsonResponse(error.as_http(), status, headers)
        page = self.error_page(status, HTTPStatus(status).phrase, error.message)
        page.headers.update(headers)
        return page

    async def on_error(self, request: HTTPConnection, error: Exception) -> Response:
        """Starlette's handler for the errors of `core.errors`."""
        if not isinstance(error, e.FolkmootError):
            raise error
        return self.error(request.scope, error)

    async def on_http_exception(self, request: HTTPConnection, error: Exception) -> Response:
        """Starlette's handler for its own exceptions: no such path, no such method."""
        if not isinstance(error, HTTPException):
            raise error
        make = _STATUSES.get(error.status_code, _other)
        headers = dict(error.headers or {})
        if allow := headers.get("Allow"):
            headers["Allow"] = ", ".join(sorted(allow.split(", ")))
        answer = self.error(request.scope, make(headers.get("Allow", "")), headers)
        answer.status_code = error.status_code
        return answer


def _not_found(_: str) -> e.FolkmootError:
    return e.NotFound("There is nothing at this address.")


def _method(allow: str) -> e.FolkmootError:
    return e.MethodNotAllowed(f"This address answers only to {allow}.")


def _other(_: str) -> e.FolkmootError:
    return e.RequestError("The request cannot be served.")


_STATUSES: dict[int, Callable[[str], e.FolkmootError]] = {404: _not_found, 405: _method}
