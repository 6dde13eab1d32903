"""One HTTP request to a hub, its answer or its error, and the addresses of a hub.

Only Python's own libraries are used.
"""

from __future__ import annotations

import json
from typing import IO, TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import quote, urlencode, urlsplit

import msgspec
from msgspec import UNSET

from folkmoot import __version__
from folkmoot.client.limits import ANSWER_SECONDS, MAX_ANSWER
from folkmoot.core import errors as e
from folkmoot.mcp.wire import (
    ACCEPT_BOTH,
    CAPABILITIES_KEY,
    CLIENT_KEY,
    METHOD_HEADER,
    NAME_HEADER,
    TOKEN_KEY,
    TOOLS_CALL,
    VERSION_HEADER,
    VERSION_KEY,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from ssl import SSLContext


T = TypeVar("T")

JSON: Final = "application/json"
QUERIED: Final = frozenset({"GET", "DELETE"})
"""Methods whose requests have no body."""
FIRST_REFUSAL: Final = 400
PIECE: Final = 65_536


class Http:
    """A hub at its address, asked with a token or without one.

    Each request has a connection of its own, so several threads may use the same one.
    """

    def __init__(self, url: str, token: str = "", *, ssl: SSLContext | None = None) -> None:
        self.url = url.rstrip("/")
        self.token = token
        self.renew: Callable[[str], str] | None = None
        """Gets another token in place of one that is refused."""
        self._ssl = ssl

    def ask(
        self,
        method: str,
        path: str,
        answer: type[T] | None,
        arguments: dict[str, Any] | None = None,
        *,
        query: dict[str, Any] | None = None,
        body: dict[str, Any] | None = None,
        nulls: tuple[str, ...] = (),
        wait: float = 0,
        headers: dict[str, Any] | None = None,
        into: IO[bytes] | None = None,
    ) -> T:
        """What a route answers; what is None is left out, but for the `nulls` of the body.

        The `arguments` of a method are put into its path, and else into the query or the body. An
        answer that is a file goes `into` one.
        """
        if arguments is not None:
            rest = {name: arguments[name] for name in arguments if f"{{{name}}}" not in path}
            del rest["self"]
            path = path.format_map(
                {name: quote(str(it), safe="") for name, it in arguments.items()}
            )
            if method in QUERIED:
                query = rest
            elif rest:
                body = rest
        where = f"{path}?{written(query)}" if query and written(query) else path
        sent = {"accept": JSON, "user-agent": f"folkmoot/{__version__}"}
        if self.token:
            sent["authorization"] = f"Bearer {self.token}"
        data = None
        if body is not None:
            sent["content-type"] = JSON
            data = msgspec.json.encode(given(body, nulls))
        sent |= {name: str(value) for name, value in (headers or {}).items() if value is not None}
        status, told = self.exchange(method, where, data, sent, ANSWER_SECONDS + wait, into)
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
            if response.status == HTTPStatus.UNAUTHORIZED and self.renew is not None:
                renew, self.renew = self.renew, None
                try:
                    self.token = renew(self.token)
                    again = {**headers, "authorization": f"Bearer {self.token}"}
                    return self.exchange(method, path, body, again, seconds, into)
                finally:
                    self.renew = renew
            if response.status == HTTPStatus.NO_CONTENT:
                return response.status, None
            if into is not None and response.status < FIRST_REFUSAL:
                while piece := response.read(PIECE):
                    into.write(piece)
                return response.status, None
            return response.status, self.read(response)
        except TimeoutError:
            raise e.HubUnreachable(f"{self.url}: no answer within {seconds:g} seconds.") from None
        except ssl.SSLError as error:
            reason = error.reason or "the connection is not secure"
            raise e.HubUnreachable(f"{self.url}: {reason.lower().replace('_', ' ')}.") from None
        except (OSError, HTTPException) as error:
            words = getattr(error, "strerror", None)
            if words is None:
                raise self.broke() from None
            raise e.HubUnreachable(f"{self.url}: no hub answers there ({words.lower()}).") from None
        finally:
            connection.close()

    def read(self, response: Any) -> Any:
        """Decode the body of an answer, up to the size allowed."""
        return self.decode(response.read(MAX_ANSWER + 1), response.status)

    def decode(self, body: bytes, status: int) -> Any:
        """The JSON of an answer."""
        try:
            if len(body) <= MAX_ANSWER:
                return msgspec.json.decode(body)
        except (msgspec.DecodeError, RecursionError):
            pass
        raise e.AnswerInvalid(
            f"{self.url}: what answers there ({status}) is not a hub. Is the address right?"
        )

    def refused(self, status: int, answer: Any) -> e.FolkmootError:  # noqa: ARG002 - for those who say it otherwise
        """A refusal as an error that can be raised."""
        error = answer.get("error") if isinstance(answer, dict) else None
        if not isinstance(error, dict):
            return self.not_understood()
        return refusal({**error, "error": error.get("code")})

    def not_understood(self) -> e.AnswerInvalid:
        """The error for an answer that cannot be decoded."""
        return e.AnswerInvalid(f"{self.url}: the hub's answer cannot be understood.")

    def broke(self) -> e.HubUnreachable:
        """That the connection ended too early."""
        return e.HubUnreachable(f"{self.url}: the connection broke before the answer came.")


def given(members: dict[str, Any], nulls: tuple[str, ...]) -> dict[str, Any]:
    """The members of a body that were given; null is a value for some of them."""
    return {
        name: value
        for name, value in members.items()
        if value is not UNSET and (value is not None or name in nulls)
    }


def written(query: dict[str, Any]) -> str:
    """A query in URL encoding."""
    words = {True: "true", False: "false"}
    pairs = {
        name: words[value] if isinstance(value, bool) else value
        for name, value in query.items()
        if value is not None
    }
    return urlencode(pairs, doseq=True)


_TOLD: Final = frozenset(("error", "message"))


def refusal(payload: dict[str, Any]) -> e.FolkmootError:
    """The error of an error answer, as the exception with its code."""
    words = payload.get("message")
    message = words if isinstance(words, str) else "The hub refused the message."
    data = {name: value for name, value in payload.items() if name not in _TOLD}
    code = payload.get("error")
    known = e.ERRORS.get(code, e.MessageRefused) if isinstance(code, str) else e.MessageRefused
    error = known.__new__(known)
    # Some leaves ask for more than the hub tells.
    e.FolkmootError.__init__(error, message, **data)
    return error


SCHEMES: Final = {"http": "ws", "https": "wss", "ws": "ws", "wss": "wss"}


def rooms_url(url: str) -> str:
    """The address at which a hub takes connections to its rooms, from the hub's own.

    Raises `ValueError`, with a sentence, for what is not the address of a hub.
    """
    try:
        parts = urlsplit(url.strip())
        _ = parts.port
    except ValueError:
        raise ValueError("The hub's address is not a URL.") from None
    scheme = SCHEMES.get(parts.scheme)
    if scheme is None or not parts.hostname:
        raise ValueError("The hub's address must be a URL such as http://127.0.0.1:8420.")
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise ValueError("The hub's address must hold no user name, password, query or fragment.")
    return f"{scheme}://{parts.netloc}{parts.path.rstrip('/')}/ws"


def hub_url(given: str) -> str:
    """The hub's address in one spelling: without `/mcp`, query or a slash at the end.

    Raises `ValueError`, with a sentence, for what is not the address of a hub.
    """
    try:
        parts = urlsplit(given.strip())
        _ = parts.port
    except ValueError:
        raise ValueError(f"{given!r} is not a URL") from None
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError(f"must be a URL such as http://127.0.0.1:8420, not {given!r}")
    if "@" in parts.netloc:
        raise ValueError("must not contain a user name or password")
    path = parts.path.rstrip("/").removesuffix("/mcp").rstrip("/")
    return f"{parts.scheme}://{parts.netloc.lower()}{path}"


def joining(
    url: str,
    *,
    room: str,
    conn: str,
    after: int | None = None,
    epoch: str | None = None,
    serve: bool = False,
) -> str:
    """The address of one connection; no token is ever part of it."""
    asked: dict[str, str] = {"room": room, "conn": conn}
    if after is not None:
        asked["after"] = str(after)
    if epoch is not None:
        asked["epoch"] = epoch
    if serve:
        asked["serve"] = "1"
    return f"{url}?{urlencode(asked)}"


PROTOCOL: Final = "2026-07-28"
REQUEST_ID: Final = 1


def tool_request(
    program: str, tool: str, arguments: dict[str, Any], token: str, *, progress: bool = False
) -> tuple[bytes, dict[str, str]]:
    """The body and the headers of a call to a tool on the stateless wire, one request each."""
    meta: dict[str, Any] = {
        VERSION_KEY: PROTOCOL,
        CLIENT_KEY: {"name": program, "version": __version__},
        CAPABILITIES_KEY: {},
    }
    if progress:
        meta[TOKEN_KEY] = REQUEST_ID
    params = {"name": tool, "arguments": arguments, "_meta": meta}
    headers = {
        "accept": ACCEPT_BOTH,
        "content-type": JSON,
        VERSION_HEADER: PROTOCOL,
        METHOD_HEADER: TOOLS_CALL,
        NAME_HEADER: tool,
        "user-agent": f"folkmoot/{__version__}",
    }
    if token:
        headers["authorization"] = f"Bearer {token}"
    request = {"jsonrpc": "2.0", "id": REQUEST_ID, "method": TOOLS_CALL, "params": params}
    return msgspec.json.encode(request), headers


def tool_result(answer: Any) -> tuple[dict[str, Any], str | None]:
    """The result of a tool call, and its refusal; `ValueError` for any other answer."""
    try:
        error = answer.get("error")
        if error is not None:
            return {}, str(error["message"])
        result = answer["result"]
        payload = json.loads(result["content"][0]["text"])
        failed = result.get("isError", False)
    except (TypeError, KeyError, IndexError, AttributeError, RecursionError) as problem:
        raise ValueError("the hub's answer cannot be understood") from problem
    if not isinstance(payload, dict):
        raise ValueError("the hub's answer cannot be understood")  # noqa: TRY004
    reason = str(payload.get("error", "The hub refused without a reason.")) if failed else None
    return payload, reason
