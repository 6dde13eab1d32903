"""A place on HTTP that many links may share, and what goes wrong on the way there.

Its answers know the connection that they came over. A failure is one sentence without a secret.
"""

from __future__ import annotations

import base64
import ssl
import uuid
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Protocol, Self, TypeAlias

from msgspec import Struct

from folkmoot import __version__
from folkmoot.core import errors as e
from folkmoot.core.transport import ConnectionInfo, Headers, SocketAddress, TlsInfo
from folkmoot.mcp.client.connection import HttpFailure, NotHttp, ServerSilent, head_of
from folkmoot.mcp.client.pool import HttpConnections
from folkmoot.mcp.client.url import HttpUrl

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Sequence
    from types import TracebackType

    from folkmoot.mcp.client.connection import HttpAnswer

CONNECT_SECONDS: Final = 10.0
DEFAULTS: Final = (
    ("user-agent", f"folkmoot/{__version__}"),
    ("accept-encoding", "identity"),
)
MOST_REDIRECTS: Final = 5
KEEP_METHOD: Final = frozenset({307, 308})
REDIRECTS: Final = KEEP_METHOD | {301, 302, 303}

Said: TypeAlias = Headers | dict[str, str]
"""The headers of a request, their names in lower case."""


class TokenSource(Protocol):
    """Whose token goes with every request to a server that wants one; both raise `ConsentNeeded`
    where its person has to consent first.
    """

    async def token(self, refused: str = "") -> str:
        """The token to show; another than the one that the server `refused`."""

    def check_scope(self, challenges: Sequence[str]) -> None:
        """Raise where the challenges of a refusal say that the token allows too little."""


class HttpTarget:
    """An address and the connections to it; `async with` opens and closes them.

    No cookie is kept, no proxy is taken from the environment, and nothing follows a redirect to
    another origin. `headers` go with every request that does not name them itself. Answers tell of
    their connections if they are to be `described`. A server on a Unix socket is reached by `unix`.
    Where `tokens` are shown to it, nothing follows any redirect.
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
        unix: str = "",
        admits: Callable[[str], bool] | None = None,
        tokens: TokenSource | None = None,
    ) -> None:
        parsed = _parsed(url)
        own = [*DEFAULTS, *headers]
        if parsed.login is not None:
            login = base64.b64encode(parsed.login.encode()).decode()
            own.append(("authorization", f"Basic {login}"))
        self.defaults = {name: value for name, value in own if value}
        self.url = parsed._replace(login=None)
        """Where requests go. It may hold a secret in its query: `shown` is for eyes."""
        self.shown = masked(self.url)
        self.answer_seconds = answer_seconds
        self._tls = tls
        self._connect_seconds = connect_seconds
        self._describe = description if described else None
        self._unix = unix
        self._admits = admits
        self.tokens = tokens
        self.connections: HttpConnections | None = None

    async def __aenter__(self) -> Self:
        self.connections = HttpConnections(
            self.url,
            tls=(self._tls or usual_tls()) if self.url.scheme == "https" else None,
            seconds=self._connect_seconds,
            describe=self._describe,
            unix=self._unix,
            admits=self._admits,
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        if self.connections is not None:
            self.connections.close()
            self.connections = None

    def ask(
        self,
        method: str,
        headers: Said,
        body: bytes | None = None,
        *,
        url: HttpUrl | None = None,
        patience: float | None = None,
        follow: bool = True,
    ) -> Asking:
        """One request to this origin, as a context that holds its answer.

        `patience` bounds each silence of the server, in seconds. Where redirects are not to be
        followed, one is an answer like any other. What goes wrong, also while the
        answer is read, leaves the context as a `CarryError`.
        """
        return Asking(self, method, headers, body, url or self.url, patience, follow)

    def with_query(self, query: str) -> HttpUrl:
        """The address with what a client adds to its query."""
        return self.url._replace(query="&".join(filter(None, (self.url.query, query))))

    def failure_of(self, error: HttpFailure) -> e.CarryError:
        """Why there is no answer, as an error of ours."""
        if isinstance(error, ServerSilent):
            return e.ServerTimeout(f"The server at {self.shown} did not answer in time.")
        if isinstance(error, NotHttp):
            words = f"The answer of the server at {self.shown} cannot be read: {error.words}."
            return e.ServerAnswerInvalid(words)
        failure = e.ServerUnreachable(
            f"The server at {self.shown} cannot be reached: {error.words}."
        )
        failure.unsent = error.unsent
        return failure

    def redirected(self, method: str, url: HttpUrl, status: int, place: str) -> HttpUrl:
        """Where a redirect leads, if it may be followed: within this origin."""
        try:
            there = url.join(place)
            followed = there.origin == url.origin
        except ValueError:
            there, followed = url, False
        if followed and (status in KEEP_METHOD or method == "GET"):
            return there
        raise e.ServerAnswerInvalid(
            f"The server at {self.shown} redirects to {masked(there)}, which is not followed.",
            status=status,
        )


class Asking(Struct, eq=False):
    _target: HttpTarget
    _method: str
    _headers: Said
    _body: bytes | None
    _url: HttpUrl
    _patience: float | None
    _follow: bool = True
    _answer: HttpAnswer | None = None

    async def __aenter__(self) -> HttpAnswer:
        """The head of the answer, after the redirects within this origin."""
        target, method, body, url = self._target, self._method, self._body, self._url
        connections, headers = target.connections, self._headers
        if connections is None:
            raise e.ServerUnreachable("The connections to the server are closed.")
        own = headers if isinstance(headers, dict) else dict(headers.pairs)
        told = list((target.defaults | own).items())
        if len(own) < len(headers):
            # One stands there twice.
            told = [*(pair for pair in target.defaults.items() if pair[0] not in own), *headers]
        if target.tokens is not None:
            return await self._shown(target.tokens, connections, told)
        try:
            for _ in range(MOST_REDIRECTS + 1):
                head = head_of(method, url, told, body)
                answer = await connections.ask(method, head, body, self._patience)
                leads = self._follow and answer.status in REDIRECTS
                place = answer.headers.get("location") if leads else None
                if place is None:
                    self._answer = answer
                    return answer
                answer.close()
                url = target.redirected(method, url, answer.status, place)
        except HttpFailure as error:
            raise target.failure_of(error) from None
        raise e.ServerAnswerInvalid(f"The server at {target.shown} redirects in circles.")

    async def _shown(
        self, tokens: TokenSource, connections: HttpConnections, told: list[tuple[str, str]]
    ) -> HttpAnswer:
        """The answer to who shows a token; where it is refused, nothing was begun: to the next."""
        others = [pair for pair in told if pair[0] != "authorization"]
        token = ""
        while True:
            refused, token = token, await tokens.token(token)
            named = [*others, ("authorization", f"Bearer {token}")]
            try:
                head = head_of(self._method, self._url, named, self._body)
                answer = await connections.ask(self._method, head, self._body, self._patience)
            except HttpFailure as error:
                raise self._target.failure_of(error) from None
            self._answer = answer
            if answer.status == UNAUTHORIZED and not refused:
                answer.close()
                continue
            if answer.status in REFUSED:
                challenges = answer.headers.get_all("www-authenticate")
                answer.close()
                tokens.check_scope(challenges)
                raise refusal_of(answer.status)
            return answer

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        answer = self._answer
        if answer is not None and answer.connection is not None:
            # Only a connection whose answer came to its end is used again.
            answer.close()
        if isinstance(error, HttpFailure):
            raise self._target.failure_of(error) from None


def masked(url: HttpUrl) -> str:
    """An address without what may be secret in it."""
    return str(url._replace(query=""))


def _parsed(url: str) -> HttpUrl:
    try:
        return HttpUrl.parse(url.strip())
    except ValueError:
        raise e.ServerUnreachable(
            "The server's address must be a URL such as https://example.org/mcp."
        ) from None


@cache
def usual_tls() -> ssl.SSLContext:
    """TLS with the certificates that the system trusts."""
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context


def description(transport: asyncio.BaseTransport) -> ConnectionInfo:
    """What a connection tells of itself."""
    return ConnectionInfo(
        uuid.uuid4().hex,
        _address(transport.get_extra_info("peername")),
        _address(transport.get_extra_info("sockname")),
        _tls(transport.get_extra_info("ssl_object")),
    )


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


_REFUSALS: Final[dict[int, str]] = {
    400: "The server rejected the request as malformed",
    401: "The server requires authorization",
    403: "The server does not allow this",
    404: "The server has nothing at this address",
    405: "The server does not accept messages at this address",
    406: "The server has no answer in a format that is supported here",
    413: "The message is larger than the server accepts",
    415: "The server does not accept JSON",
    429: "The server's rate limit was exceeded",
}
TRY_AGAIN: Final = frozenset({408, 425, 429})
SERVER_FAILED: Final = 500
NOT_FOUND: Final = 404
UNAUTHORIZED: Final = 401
REFUSED: Final = frozenset({UNAUTHORIZED, 403})


def may_recover(status: int) -> bool:
    """Whether asking the same again may bring another answer."""
    return status in TRY_AGAIN or status >= SERVER_FAILED


def refusal_of(status: int, *, in_session: bool = False) -> e.FolkmootError:
    """The error that the status of an answer stands for where its body says nothing better."""
    if status == NOT_FOUND and in_session:
        return e.SessionNotFound("The server no longer knows this session.", status=status)
    if status >= SERVER_FAILED:
        return e.ServerUnreachable(f"The server failed ({status}).", status=status)
    words = _REFUSALS.get(status, "The server rejected the request")
    return e.ServerAnswerInvalid(f"{words} ({status}).", status=status)
