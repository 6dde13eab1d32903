"""A place on HTTP that many links may share, and what goes wrong on the way there.

Its answers know the connection that they came over. A failure is one sentence without a secret.
"""

from __future__ import annotations

import base64
import io
import os
import ssl
import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Self, TypeAlias
from weakref import WeakKeyDictionary

import aiohttp
from msgspec import Struct
from yarl import URL

from folkmoot import __version__
from folkmoot.core.errors import (
    CarryError,
    FolkmootError,
    ServerAnswerInvalid,
    ServerTimeout,
    ServerUnreachable,
    SessionNotFound,
)
from folkmoot.core.transport import ConnectionInfo, Headers, SocketAddress, TlsInfo

if TYPE_CHECKING:
    import asyncio
    from types import TracebackType

CONNECT_SECONDS: Final = 10.0
KEEP_ALIVE_SECONDS: Final = 4.0
"""Shorter than the five seconds after which common servers hang up, perhaps on our next request."""
MOST_REDIRECTS: Final = 5
MOST_IN_ONE_PIECE: Final = 2**20
KEEP_METHOD: Final = frozenset({307, 308})
REDIRECTS: Final = KEEP_METHOD | {301, 302, 303}

Said: TypeAlias = Headers | dict[str, str]
"""The headers of a request, their names in lower case."""

DEFAULTS: Final = (("user-agent", f"folkmoot/{__version__}"),)


class HttpTarget:
    """An address and the connections to it; `async with` opens and closes them.

    No cookie is kept, no proxy is taken from the environment, and nothing follows a redirect to
    another origin. `headers` go with every request that does not name them itself. Answers tell of
    their connections if they are to be `described`.
    """

    def __init__(
        self,
        url: str,
        *,
        headers: Headers = Headers(),  # noqa: B008 - frozen
        tls: ssl.SSLContext | None = None,
        connect_seconds: float = CONNECT_SECONDS,
        answer_seconds: float | None = None,
        described: bool = True,
    ) -> None:
        parsed = _parsed(url)
        own = [*DEFAULTS, *headers]
        if parsed.user is not None:
            name = f"{parsed.user}:{parsed.password or ''}".encode()
            own.append(("authorization", f"Basic {base64.b64encode(name).decode()}"))
        self._defaults = {name: value for name, value in own if value}
        self.url = parsed.with_user(None)
        """Where requests go. It may hold a secret in its query: `shown` is for eyes."""
        self.shown = shown(self.url)
        self.answer_seconds = answer_seconds
        self._tls = tls
        self._answers = DescribedHttpAnswer if described else HttpAnswer
        self._patient = aiohttp.ClientTimeout(total=None, sock_connect=connect_seconds)
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        # Each link bounds what it has open. A bound for all of them together could have the answer
        # to a server's question wait for the very request that the server asks it for.
        connector = aiohttp.TCPConnector(
            limit=0, ssl=self._tls or True, keepalive_timeout=KEEP_ALIVE_SECONDS
        )
        self._session = aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=self._patient,
            response_class=self._answers,
            trust_env=False,
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    def ask(
        self,
        method: str,
        headers: Said,
        body: bytes | None = None,
        *,
        url: URL | None = None,
        patience: float | None = None,
    ) -> Asking:
        """One request, as a context that holds its answer.

        `patience` bounds each silence of the server, in seconds. Whatever the HTTP client raises,
        also while the answer is read, leaves the context as a `CarryError`.
        """
        return Asking(self, method, headers, body, url or self.url, patience)

    def with_query(self, query: str) -> URL:
        """The address with what a client adds to its query."""
        own = self.url.raw_query_string
        joined = "&".join(filter(None, (own, query)))
        return URL.build(
            scheme=self.url.scheme,
            authority=self.url.raw_authority,
            path=self.url.raw_path,
            query_string=joined,
            encoded=True,
        )

    async def send(
        self, method: str, headers: Said, body: bytes | None, url: URL, patience: float | None
    ) -> HttpAnswer:
        """The head of an answer, after the redirects within this origin."""
        if self._session is None:
            raise ServerUnreachable("The connections to the server are closed.")
        own = headers if isinstance(headers, dict) else dict(headers.pairs)
        told: Any = self._defaults | own
        if len(own) < len(headers):
            # One stands there twice.
            told = [*(pair for pair in self._defaults.items() if pair[0] not in own), *headers]
        timeout = self._patient
        if patience is not None:
            timeout = aiohttp.ClientTimeout(
                total=None, sock_connect=timeout.sock_connect, sock_read=patience
            )
        # In one piece a large body would be written without giving others a turn.
        large = body is not None and len(body) > MOST_IN_ONE_PIECE
        for _ in range(MOST_REDIRECTS + 1):
            answer: Any = await self._session.request(
                method,
                url,
                headers=told,
                data=io.BytesIO(body) if large and body is not None else body,
                timeout=timeout,
                allow_redirects=False,
            )
            place = answer.headers.get("location") if answer.status in REDIRECTS else None
            if place is None:
                found: HttpAnswer = answer
                return found
            answer.release()
            url = self._redirected(method, url, answer.status, place)
        raise ServerAnswerInvalid(f"The server at {self.shown} redirects in circles.")

    def _redirected(self, method: str, url: URL, status: int, place: str) -> URL:
        try:
            there = url.join(URL(place)).with_user(None)
            followed = there.origin() == url.origin()
        except ValueError:
            there, followed = url, False
        if followed and (status in KEEP_METHOD or method == "GET"):
            return there
        raise ServerAnswerInvalid(
            f"The server at {self.shown} redirects to {shown(there)}, which is not followed.",
            status=status,
        )


class Asking(Struct, eq=False):
    """One request on its way."""

    _target: HttpTarget
    _method: str
    _headers: Said
    _body: bytes | None
    _url: URL
    _patience: float | None
    _answer: HttpAnswer | None = None

    async def __aenter__(self) -> HttpAnswer:
        try:
            self._answer = await self._target.send(
                self._method, self._headers, self._body, self._url, self._patience
            )
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise failure_of(self._target.shown, error) from None
        return self._answer

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._answer is not None:
            if error is None:
                # Only a connection whose answer was read to its end is used again.
                self._answer.release()
            else:
                self._answer.close()
        if isinstance(error, aiohttp.ClientError):
            raise failure_of(self._target.shown, error) from None


def shown(url: URL) -> str:
    """An address without what may be secret in it."""
    return str(url.with_user(None).with_query(None).with_fragment(None))


def _parsed(url: str) -> URL:
    try:
        parsed = URL(url.strip())
        usable = parsed.scheme in ("http", "https") and bool(parsed.host) and bool(parsed.port)
    except ValueError:
        parsed, usable = URL(), False
    if not usable:
        raise ServerUnreachable(
            "The server's address must be a URL such as https://example.org/mcp."
        )
    return parsed


_known: Final[WeakKeyDictionary[Any, ConnectionInfo]] = WeakKeyDictionary()
"""One description for every connection, shared by all that comes over it."""


class HttpAnswer(aiohttp.ClientResponse):
    """An answer to a request."""

    came_over: ConnectionInfo | None = None


class DescribedHttpAnswer(HttpAnswer):
    """An answer that remembers its connection, which goes on to others once it was read."""

    async def start(self, connection: Any) -> aiohttp.ClientResponse:
        """Read the head of the answer."""
        self.came_over = _described(connection.protocol, connection.transport)
        return await super().start(connection)


def _described(protocol: Any, transport: asyncio.BaseTransport | None) -> ConnectionInfo | None:
    if protocol is None or transport is None:
        return None
    info = _known.get(protocol)
    if info is None:
        info = _known[protocol] = ConnectionInfo(
            uuid.uuid4().hex,
            _address(transport.get_extra_info("peername")),
            _address(transport.get_extra_info("sockname")),
            _tls(transport.get_extra_info("ssl_object")),
        )
    return info


def _address(name: Any) -> SocketAddress | None:
    return SocketAddress(str(name[0]), int(name[1])) if isinstance(name, tuple) else None


def _tls(tls: ssl.SSLObject | None) -> TlsInfo | None:
    if tls is None:
        return None
    cipher, certificate = tls.cipher(), tls.getpeercert() or {}
    subject: Any = certificate.get("subject", ())
    names = ", ".join(f"{name}={value}" for parts in subject for name, value in parts)
    return TlsInfo(
        version=tls.version() or "TLS",
        cipher=cipher[0] if cipher else None,
        server_name=tls.server_hostname,
        alpn=tls.selected_alpn_protocol(),
        peer_subject=names or None,
    )


def _certificate(error: Any) -> str:
    cause = error.certificate_error
    return f"its certificate is not trusted ({getattr(cause, 'verify_message', '') or cause})"


def _no_tls(error: Any) -> str:
    reason = getattr(error.os_error, "reason", None) or error.os_error.strerror or "unknown"
    return f"no TLS could be agreed on ({str(reason).lower().replace('_', ' ')})"


def _connector(error: Any) -> str:
    number = error.os_error.errno
    return os.strerror(number).lower() if number else "it does not answer"


_UNREACHABLE: Final[tuple[tuple[type[BaseException], str | Callable[[Any], str]], ...]] = (
    (aiohttp.ClientConnectorCertificateError, _certificate),
    (aiohttp.ClientSSLError, _no_tls),
    (aiohttp.ClientConnectorDNSError, "its name is not known"),
    (aiohttp.ClientConnectorError, _connector),
    (aiohttp.ConnectionTimeoutError, "it takes no connection in time"),
    (aiohttp.ServerDisconnectedError, "it broke the connection"),
    (aiohttp.ClientPayloadError, "its answer broke off"),
    (aiohttp.InvalidURL, "its address is not a URL"),
    (ValueError, "a header for it cannot be written"),
)
"""The first that fits says it."""

_BEFORE_SENDING: Final = (
    aiohttp.ClientConnectorError,
    aiohttp.ConnectionTimeoutError,
    aiohttp.InvalidURL,
    ValueError,
)
"""What goes wrong before anything of a request has left."""


def failure_of(where: str, error: BaseException) -> CarryError:
    """An error of the HTTP client as one of ours; `where` is an address that may be shown."""
    if isinstance(error, aiohttp.ServerTimeoutError) and not isinstance(
        error, aiohttp.ConnectionTimeoutError
    ):
        return ServerTimeout(f"The server at {where} did not answer in time.")
    if isinstance(error, aiohttp.ClientResponseError):
        return ServerAnswerInvalid(f"What the server at {where} answers is not HTTP.")
    words = next((words for kind, words in _UNREACHABLE if isinstance(error, kind)), None)
    if words is None:
        words = "the connection broke"
    elif not isinstance(words, str):
        words = words(error)
    failure = ServerUnreachable(f"The server at {where} cannot be reached: {words}.")
    failure.unsent = isinstance(error, _BEFORE_SENDING)
    return failure


_REFUSALS: Final[dict[int, str]] = {
    400: "The server refuses the request as malformed",
    401: "The server demands authorisation",
    403: "The server does not allow this",
    404: "The server has nothing at this address",
    405: "The server does not take messages at this address",
    406: "The server cannot answer in a form that is understood here",
    413: "The message is larger than the server accepts",
    415: "The server does not take JSON",
    429: "The server asks to be asked less often",
}
TRY_AGAIN: Final = frozenset({408, 425, 429})
SERVER_FAILED: Final = 500
NOT_FOUND: Final = 404


def may_recover(status: int) -> bool:
    """Whether asking the same again may bring another answer."""
    return status in TRY_AGAIN or status >= SERVER_FAILED


def refusal_of(status: int, *, in_session: bool = False) -> FolkmootError:
    """The error that the status of an answer stands for where its body says nothing better."""
    if status == NOT_FOUND and in_session:
        return SessionNotFound("The server no longer knows this session.", status=status)
    if status >= SERVER_FAILED:
        return ServerUnreachable(f"The server failed ({status}).", status=status)
    words = _REFUSALS.get(status, "The server does not answer the request")
    return ServerAnswerInvalid(f"{words} ({status}).", status=status)


async def read_whole(answer: HttpAnswer, most: int) -> bytes:
    """The body of an answer; one that is larger than accepted is not read to its end."""
    parts, size = [], 0
    while part := await answer.content.readany():
        parts.append(part)
        size += len(part)
        if size > most:
            raise ServerAnswerInvalid(
                f"The server's answer has more than the {most:,} bytes that are accepted.",
                status=answer.status,
            )
    return parts[0] if len(parts) == 1 else b"".join(parts)
