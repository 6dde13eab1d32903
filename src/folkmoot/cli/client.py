"""The hub as the command line uses it: one `tools/call` over HTTP for each command.

The stateless wire of MCP 2026-07-28 fits: one request, one answer, nothing to open or to close.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import msgspec

from folkmoot import __version__
from folkmoot.cli.text import one_line
from folkmoot.core.errors import (
    AccountSuspended,
    AnswerInvalid,
    HubUnreachable,
    NotSignedIn,
    ToolRefused,
)
from folkmoot.mcp.wire import (
    ACCEPT_BOTH,
    CAPABILITIES_KEY,
    CLIENT_KEY,
    EVENT_STREAM,
    METHOD_HEADER,
    NAME_HEADER,
    TOOLS_CALL,
    VERSION_HEADER,
    VERSION_KEY,
)

if TYPE_CHECKING:
    from http.client import HTTPResponse

PROTOCOL = "2026-07-28"
META = {
    VERSION_KEY: PROTOCOL,
    CLIENT_KEY: {"name": "folkmoot-cli", "version": __version__},
    CAPABILITIES_KEY: {},
}
REQUEST_ID = 1
MAX_ANSWER = 64 * 1024 * 1024
MAX_REASON = 500
PATIENCE = 30.0
"""Seconds without a byte after which a hub counts as unreachable."""
NO_ACCOUNT = "Authentication required."


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


class HubClient:
    """Calls tools of one hub, with a token or without."""

    def __init__(self, url: str, token: str = "") -> None:
        self.url = url
        self._token = token

    def call(self, tool: str, arguments: dict[str, Any], *, wait: float = 0) -> dict[str, Any]:
        """The result of a tool; arguments that are None are left out.

        `wait` is how long the hub was asked to wait before it answers.
        """
        given = {name: value for name, value in arguments.items() if value is not None}
        params = {"name": tool, "arguments": given, "_meta": META}
        request = {"jsonrpc": "2.0", "id": REQUEST_ID, "method": TOOLS_CALL, "params": params}
        headers = {
            "accept": ACCEPT_BOTH,
            "content-type": "application/json",
            VERSION_HEADER: PROTOCOL,
            METHOD_HEADER: TOOLS_CALL,
            NAME_HEADER: tool,
            "user-agent": f"folkmoot/{__version__}",
        }
        if self._token:
            headers["authorization"] = f"Bearer {self._token}"
        body = msgspec.json.encode(request)
        return self._result(*self.exchange("POST", "/mcp", body, headers, PATIENCE + wait))

    def exchange(
        self, method: str, path: str, body: bytes | None, headers: dict[str, str], seconds: float
    ) -> tuple[int, Any]:
        """One request: the status and the JSON of its answer, None where it has no body."""
        # A tenth of a second to import, which help and errors need not wait for.
        import ssl
        from http import HTTPStatus
        from http.client import HTTPConnection, HTTPException, HTTPSConnection

        parts = urlsplit(self.url)
        make = HTTPSConnection if parts.scheme == "https" else HTTPConnection
        connection = make(parts.hostname or "", parts.port, timeout=seconds)
        try:
            connection.request(method, f"{parts.path}{path}", body, headers)
            response = connection.getresponse()
            kind = (response.getheader("content-type") or "").partition(";")[0].strip().lower()
            if kind == EVENT_STREAM:
                return response.status, self._stream(response)
            if response.status == HTTPStatus.NO_CONTENT:
                return response.status, None
            return response.status, self._decode(response.read(MAX_ANSWER + 1), response.status)
        except TimeoutError:
            raise HubUnreachable(f"{self.url}: no answer within {seconds:g} seconds.") from None
        except ssl.SSLError as error:
            reason = error.reason or "the connection is not secure"
            raise HubUnreachable(f"{self.url}: {reason.lower().replace('_', ' ')}.") from None
        except (OSError, HTTPException) as error:
            words = getattr(error, "strerror", None)
            if words is None:
                raise self._broke() from None
            raise HubUnreachable(f"{self.url}: no hub answers there ({words.lower()}).") from None
        finally:
            connection.close()

    def _stream(self, response: HTTPResponse) -> Any:
        """The answer among the events of a stream; a hub streams when it has to keep us waiting."""
        data: list[bytes] = []
        size = 0
        while line := response.readline(MAX_ANSWER + 1):
            size += len(line)
            if size > MAX_ANSWER:
                break
            if line.startswith(b"data:"):
                data.append(line[5:].strip())
            elif not line.strip() and data:
                message = self._decode(b"\n".join(data), response.status)
                if isinstance(message, dict) and message.get("id") == REQUEST_ID:
                    return message
                data.clear()
        raise self._broke()

    def _broke(self) -> HubUnreachable:
        return HubUnreachable(f"{self.url}: the connection broke before the answer came.")

    def _decode(self, body: bytes, status: int) -> Any:
        try:
            if len(body) <= MAX_ANSWER:
                return msgspec.json.decode(body)
        except (msgspec.DecodeError, RecursionError):
            pass
        raise AnswerInvalid(
            f"{self.url}: what answers there ({status}) is not a hub. Is the address right?"
        )

    def _result(self, status: int, answer: Any) -> dict[str, Any]:
        """What the tool returned, or its error."""
        if not isinstance(answer, dict):
            raise self.not_understood()
        error = answer.get("error")
        if isinstance(error, dict) and isinstance(error.get("message"), str):
            raise refusal(error["message"], unauthorised=status == 401)
        result = answer.get("result")
        try:
            payload = json.loads(result["content"][0]["text"])  # type: ignore[index]
            failed = result.get("isError", False)  # type: ignore[union-attr]
        except (TypeError, KeyError, IndexError, ValueError, AttributeError, RecursionError):
            raise self.not_understood() from None
        if not isinstance(payload, dict):
            raise self.not_understood()
        if failed:
            raise refusal(str(payload.get("error", "The hub refused without a reason.")))
        return payload

    def not_understood(self) -> AnswerInvalid:
        """That the hub's answer is not what such an answer is."""
        return AnswerInvalid(f"{self.url}: the hub's answer cannot be understood.")


def refusal(reason: str, *, unauthorised: bool = False) -> ToolRefused | NotSignedIn:
    """The hub's reason as an error: it may be anyone's text, so it is made safe to show."""
    if reason == AccountSuspended.sentence:
        return NotSignedIn("This account is suspended. Ask the operator of the hub.")
    if unauthorised or reason.startswith(NO_ACCOUNT):
        return NotSignedIn(
            "The hub does not accept the saved token; 'folkmoot account recover HANDLE' gets a new "
            "one."
        )
    return ToolRefused(one_line(reason[:MAX_REASON]))
