"""One request to a hub, and its answer or its refusal, without any library but Python's own."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import urlencode, urlsplit

import msgspec
from msgspec import UNSET

from folkmoot import __version__
from folkmoot.client.refusals import refusal
from folkmoot.core.errors import AnswerInvalid, FolkmootError, HubUnreachable

if TYPE_CHECKING:
    from ssl import SSLContext

T = TypeVar("T")

JSON: Final = "application/json"
MAX_ANSWER: Final = 64 * 1024 * 1024
PATIENCE: Final = 30.0
"""Seconds without a byte after which a hub counts as unreachable."""
FIRST_REFUSAL: Final = 400
PIECE: Final = 65_536


class Http:
    """A hub at its address, asked with a token or without one.

    Each request has a connection of its own, so several threads may use the same one.
    """

    def __init__(self, url: str, token: str = "", *, ssl: SSLContext | None = None) -> None:
        self.url = url.rstrip("/")
        self.token = token
        self._ssl = ssl

    def ask(
        self,
        method: str,
        path: str,
        answer: type[T] | None,
        *,
        query: dict[str, Any] | None = None,
        body: dict[str, Any] | None = None,
        nulls: tuple[str, ...] = (),
        wait: float = 0,
        headers: dict[str, Any] | None = None,
        into: IO[bytes] | None = None,
    ) -> T:
        """What a route answers; what is None is left out, but for the `nulls` of the body.

        An answer that is a file goes `into` one.
        """
        where = f"{path}?{written(query)}" if query and written(query) else path
        sent = {"accept": JSON, "user-agent": f"folkmoot/{__version__}"}
        if self.token:
            sent["authorization"] = f"Bearer {self.token}"
        data = None
        if body is not None:
            sent["content-type"] = JSON
            data = msgspec.json.encode(given(body, nulls))
        sent |= {name: str(value) for name, value in (headers or {}).items() if value is not None}
        status, told = self.exchange(method, where, data, sent, PATIENCE + wait, into)
        if status >= FIRST_REFUSAL:
            raise self.refused(status, told)
        try:
            # Where nothing is answered, there is nothing to convert.
            read: Any = None if answer is None else msgspec.convert(told, answer)
        except msgspec.ValidationError:
            raise self.not_understood() from None
        return read  # type: ignore[no-any-return]

    def exchange(
        self,
        method: str,
        path: str,
        body: bytes | None,
        headers: dict[str, str],
        seconds: float,
        into: IO[bytes] | None = None,
    ) -> tuple[int, Any]:
        """One request: the status and the JSON of its answer, None where it has no body."""
        # A tenth of a second to import, which help and errors need not wait for.
        import ssl
        from http import HTTPStatus
        from http.client import HTTPConnection, HTTPException, HTTPSConnection

        parts = urlsplit(self.url)
        host = parts.hostname or ""
        connection: HTTPConnection
        if parts.scheme == "https":
            connection = HTTPSConnection(host, parts.port, timeout=seconds, context=self._ssl)
        else:
            connection = HTTPConnection(host, parts.port, timeout=seconds)
        try:
            connection.request(method, f"{parts.path}{path}", body, headers)
            response = connection.getresponse()
            if response.status == HTTPStatus.NO_CONTENT:
                return response.status, None
            if into is not None and response.status < FIRST_REFUSAL:
                while piece := response.read(PIECE):
                    into.write(piece)
                return response.status, None
            return response.status, self.read(response)
        except TimeoutError:
            raise HubUnreachable(f"{self.url}: no answer within {seconds:g} seconds.") from None
        except ssl.SSLError as error:
            reason = error.reason or "the connection is not secure"
            raise HubUnreachable(f"{self.url}: {reason.lower().replace('_', ' ')}.") from None
        except (OSError, HTTPException) as error:
            words = getattr(error, "strerror", None)
            if words is None:
                raise self.broke() from None
            raise HubUnreachable(f"{self.url}: no hub answers there ({words.lower()}).") from None
        finally:
            connection.close()

    def read(self, response: Any) -> Any:
        """What an answer holds."""
        return self.decode(response.read(MAX_ANSWER + 1), response.status)

    def decode(self, body: bytes, status: int) -> Any:
        """The JSON of an answer."""
        try:
            if len(body) <= MAX_ANSWER:
                return msgspec.json.decode(body)
        except (msgspec.DecodeError, RecursionError):
            pass
        raise AnswerInvalid(
            f"{self.url}: what answers there ({status}) is not a hub. Is the address right?"
        )

    def refused(self, status: int, answer: Any) -> FolkmootError:  # noqa: ARG002 - for those who say it otherwise
        """A refusal as an error that can be raised."""
        error = answer.get("error") if isinstance(answer, dict) else None
        if not isinstance(error, dict):
            return self.not_understood()
        return refusal({**error, "error": error.get("code")})

    def not_understood(self) -> AnswerInvalid:
        """That the hub's answer is not what such an answer is."""
        return AnswerInvalid(f"{self.url}: the hub's answer cannot be understood.")

    def broke(self) -> HubUnreachable:
        """That the connection ended too early."""
        return HubUnreachable(f"{self.url}: the connection broke before the answer came.")


def given(members: dict[str, Any], nulls: tuple[str, ...]) -> dict[str, Any]:
    """The members of a body that were given; null is a value for some of them."""
    return {
        name: value
        for name, value in members.items()
        if value is not UNSET and (value is not None or name in nulls)
    }


def written(query: dict[str, Any]) -> str:
    """A query as it stands in an address."""
    words = {True: "true", False: "false"}
    pairs = {
        name: words[value] if isinstance(value, bool) else value
        for name, value in query.items()
        if value is not None
    }
    return urlencode(pairs, doseq=True)
