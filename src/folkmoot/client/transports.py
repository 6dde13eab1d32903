"""The ways to a hub: at its address, on its operator's socket, or within this process."""

from __future__ import annotations

from collections.abc import Callable
from typing import IO, TYPE_CHECKING, Any, Final, NamedTuple, Protocol, TypeAlias
from urllib.parse import unquote, urlsplit

import msgspec

from folkmoot.client.limits import CONNECT_SECONDS, MAX_ANSWER, MAX_SOCKET_ANSWER
from folkmoot.core import errors as e
from folkmoot.mcp.wire import EVENT_STREAM

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager
    from http.client import HTTPConnection, HTTPResponse
    from pathlib import Path
    from ssl import SSLContext

    from starlette.types import ASGIApp

    from folkmoot.operations.row import Operation

FIRST_REFUSAL: Final = 400
PIECE: Final = 65_536
HUNG_UP: Final = "The hub hung up before it answered."
OTHER_VERSION: Final = (
    "The running hub does not know this command: it is of another version. Restart it."
)


class HubRequest(NamedTuple):
    """One request; a hub that does not run assembles what its `row` needs."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes = b""
    row: Operation | None = None


class HubAnswer:
    """An answer as it arrives: JSON, a file, or events that end with a result or an error."""

    def __init__(
        self,
        most: int = MAX_ANSWER,
        into: IO[bytes] | None = None,
        on_progress: Callable[[dict[str, Any]], None] | None = None,
    ) -> None:
        self.status = 0
        self.body = bytearray()
        self.failed = False
        self.ended = False
        """Whether all of it has come."""
        self.event_id = ""
        """The id of the last event that had one."""
        self._most, self._into, self._on_progress = most, into, on_progress
        self._streams = False

    def begin(self, status: int, content_type: str) -> None:
        """Take the status and the type of the answer."""
        self.status, self.failed = status, status >= FIRST_REFUSAL
        self._streams = content_type.partition(";")[0].strip().lower() == EVENT_STREAM

    def feed(self, data: bytes) -> None:
        """Take a part of the body."""
        if self._into is not None and not self.failed:
            self._into.write(data)
            return
        known = max(len(self.body) - 1, 0)
        self.body += data
        if len(self.body) > self._most:
            raise e.AnswerInvalid("The hub's answer is too long.")
        end = self.body.rfind(b"\n\n", known) if self._streams else -1
        if end < 0:
            return
        events, self.body = bytes(self.body[:end]).split(b"\n\n"), self.body[end + 2 :]
        for event in events:
            pairs = [line.partition(b":") for line in event.split(b"\n")]
            members = {name: value.strip() for name, _, value in pairs}
            self.event_id = members.get(b"id", b"").decode() or self.event_id
            if b"data" in members and not self.ended:
                self.read_event(members.get(b"event", b"").decode(), members[b"data"])

    def read_event(self, name: str, data: bytes) -> None:
        """Take one event: how far the hub is, or what came of it."""
        if name != "progress":
            self.body, self.failed, self.ended = bytearray(data), name == "error", True
        else:
            self.tell(decoded(data))

    def tell(self, so_far: Any) -> None:
        """Pass on how far the hub is."""
        if self._on_progress is not None and isinstance(so_far, dict):
            self._on_progress(so_far)

    def end(self) -> None:
        """Refuse an answer that is cut off."""
        if self._streams and not self.ended:
            raise e.HubUnreachable(HUNG_UP)


OnEvent: TypeAlias = Callable[[str, str, Any], None]


class Events(HubAnswer):
    """An answer that goes on: its events are passed on as they come."""

    def __init__(self, on_event: OnEvent, *given: Any) -> None:
        super().__init__(*given)
        self._on_event = on_event

    def read_event(self, name: str, data: bytes) -> None:
        self._on_event(name, self.event_id, decoded(data))


def decoded(body: bytes | bytearray) -> Any:
    """The JSON of an answer; None where it is none."""
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError):
        return None


class Transport(Protocol):
    """A way to a hub."""

    name: str
    """As errors call the hub."""
    most: int
    """The largest answer, in bytes."""

    def send(self, request: HubRequest, answer: HubAnswer, seconds: float | None) -> None:
        """Ask, and fill in the answer; `seconds` is how long nothing may come."""


class Tcp:
    """A hub at its address. Each request has a connection, so threads can share it."""

    most = MAX_ANSWER

    def __init__(self, url: str, *, ssl: SSLContext | None = None) -> None:
        self.name = url.rstrip("/")
        self._ssl = ssl

    def send(self, request: HubRequest, answer: HubAnswer, seconds: float | None) -> None:
        # A tenth of a second to import, which help and errors need not wait for.
        import ssl
        from http.client import HTTPConnection, HTTPException, HTTPSConnection

        parts = urlsplit(self.name)
        host = parts.hostname or ""
        connection: HTTPConnection
        if parts.scheme == "https":
            connection = HTTPSConnection(host, parts.port, timeout=seconds, context=self._ssl)
        else:
            connection = HTTPConnection(host, parts.port, timeout=seconds)
        try:
            asked = request._replace(target=f"{parts.path}{request.target}")
            receive(connected(connection, asked), answer)
        except TimeoutError:
            raise e.HubUnreachable(f"{self.name}: no answer within {seconds:g} seconds.") from None
        except ssl.SSLError as error:
            reason = error.reason or "the connection is not secure"
            raise e.HubUnreachable(f"{self.name}: {reason.lower().replace('_', ' ')}.") from None
        except (OSError, HTTPException) as error:
            words = getattr(error, "strerror", None)
            said = f"no hub answers there ({words.lower()})" if words else BROKE
            raise e.HubUnreachable(f"{self.name}: {said}.") from None
        finally:
            connection.close()


BROKE: Final = "the connection broke before the answer came"


def connected(connection: HTTPConnection, request: HubRequest) -> HTTPResponse:
    """The answer to a request on a connection."""
    connection.request(request.method, request.target, request.body or None, request.headers)
    return connection.getresponse()


def receive(response: HTTPResponse, answer: HubAnswer) -> None:
    """Read an answer from a connection."""
    answer.begin(response.status, response.getheader("content-type") or "")
    while not answer.ended and (piece := response.read1(PIECE)):
        answer.feed(piece)
    answer.end()


class Unix:
    """A hub or a proxy on this machine, on the socket of its operator."""

    most = MAX_SOCKET_ANSWER

    def __init__(self, socket: Path, gone: str = "") -> None:
        self.name = str(socket.parent)
        self._socket = socket
        self._gone = gone or f"No hub is running on {self.name}."

    def send(self, request: HubRequest, answer: HubAnswer, seconds: float | None) -> None:
        from http.client import (
            BadStatusLine,
            HTTPConnection,
            HTTPException,
            RemoteDisconnected,
        )

        connection = HTTPConnection("folkmoot", timeout=seconds)  # The name says nothing there.
        connection.sock = self._connected()
        try:
            connection.sock.settimeout(seconds)
            receive(connected(connection, request), answer)
        except TimeoutError as error:
            raise e.CommandFailed(f"The hub did not answer for {seconds:g} seconds.") from error
        except BadStatusLine as error:
            hung_up = isinstance(error, RemoteDisconnected)
            raise e.CommandFailed(HUNG_UP if hung_up else OTHER_VERSION) from error
        except (OSError, HTTPException, e.HubUnreachable) as error:
            raise e.CommandFailed(HUNG_UP) from error
        finally:
            connection.close()

    def _connected(self) -> Any:
        import socket

        from folkmoot.datafolder.proxies import socket_address

        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.settimeout(CONNECT_SECONDS)
            with socket_address(self._socket) as address:
                connection.connect(address)
        except PermissionError as error:
            connection.close()
            raise e.HubNotRunning(f"{self._socket}: belongs to another user's hub.") from error
        except OSError as error:
            connection.close()
            raise e.HubNotRunning(self._gone) from error
        return connection


class InProcess:
    """A stopped hub: `opens` gives an application with what one operation needs."""

    most = MAX_SOCKET_ANSWER

    def __init__(
        self, name: str, opens: Callable[[Operation], AbstractAsyncContextManager[ASGIApp]]
    ) -> None:
        self.name = name
        self._opens = opens

    def send(
        self,
        request: HubRequest,
        answer: HubAnswer,
        seconds: float | None,  # noqa: ARG002 - nobody else is waited for
    ) -> None:
        import asyncio

        async def perform() -> None:
            if request.row is None:
                raise e.HubNotRunning(f"No hub is running on {self.name}.")
            async with self._opens(request.row) as app:
                await call_app(app, request, answer)

        asyncio.run(perform())
        answer.end()


async def call_app(app: ASGIApp, request: HubRequest, answer: HubAnswer) -> None:
    """One request to an application in this process."""
    import asyncio

    path, _, query = request.target.partition("?")
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": request.method,
        "scheme": "http",
        "path": unquote(path),
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "headers": [(name.encode(), value.encode()) for name, value in request.headers.items()],
        "client": None,
        "server": None,
    }
    parts = [request.body]

    async def receive() -> dict[str, Any]:
        if not parts:
            await asyncio.Event().wait()  # This client does not leave.
        return {"type": "http.request", "body": parts.pop(), "more_body": False}

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":
            headers = dict(message.get("headers", ()))
            answer.begin(message["status"], headers.get(b"content-type", b"").decode("latin-1"))
        else:
            answer.feed(message.get("body", b""))

    await app(scope, receive, send)
