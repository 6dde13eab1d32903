"""HttpTarget: the place where an HTTP server is, shared by every link to it."""

from __future__ import annotations

import base64
import io
import ssl
from typing import TYPE_CHECKING, Any, Final, Self

import aiohttp
from yarl import URL

from folkmoot import __version__
from folkmoot.core.errors import ServerAnswerInvalid, ServerUnreachable
from folkmoot.core.transport import Headers
from folkmoot.mcp.client.connection import Answer, DescribedAnswer
from folkmoot.mcp.client.failures import failure_of

if TYPE_CHECKING:
    from types import TracebackType

CONNECT_SECONDS: Final = 10.0
KEEP_ALIVE_SECONDS: Final = 4.0
"""Shorter than the five seconds after which common servers hang up, perhaps on our next request."""
MOST_REDIRECTS: Final = 5
MOST_IN_ONE_PIECE: Final = 2**20
KEEP_METHOD: Final = frozenset({307, 308})
BECOME_GET: Final = frozenset({301, 302, 303})

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
        self._answers = DescribedAnswer if described else Answer
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
        headers: Headers,
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
        self, method: str, headers: Headers, body: bytes | None, url: URL, patience: float | None
    ) -> Answer:
        """The head of an answer, after the redirects within this origin."""
        if self._session is None:
            raise ServerUnreachable("The connections to the server are closed.")
        own = dict(headers.pairs)
        told: Any = self._defaults | own
        if len(own) < len(headers.pairs):
            # One stands there twice.
            told = [*(pair for pair in self._defaults.items() if pair[0] not in own), *headers]
        timeout = self._patient
        if patience is not None:
            timeout = aiohttp.ClientTimeout(
                total=None, sock_connect=timeout.sock_connect, sock_read=patience
            )
        for _ in range(MOST_REDIRECTS + 1):
            answer: Any = await self._session.request(
                method,
                url,
                headers=told,
                data=_payload(body),
                timeout=timeout,
                allow_redirects=False,
            )
            place = answer.headers.get("location")
            if place is None or answer.status not in KEEP_METHOD | BECOME_GET:
                found: Answer = answer
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


class Asking:
    """One request on its way."""

    def __init__(
        self,
        target: HttpTarget,
        method: str,
        headers: Headers,
        body: bytes | None,
        url: URL,
        patience: float | None,
    ) -> None:
        self._target = target
        self._request = method, headers, body, url, patience
        self._answer: Answer | None = None

    async def __aenter__(self) -> Answer:
        try:
            self._answer = await self._target.send(*self._request)
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


def _payload(body: bytes | None) -> Any:
    # In one piece a large body would be written without giving others a turn.
    return body if body is None or len(body) <= MOST_IN_ONE_PIECE else io.BytesIO(body)


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
