"""The hub as its operator uses it: on the socket of the running hub, or in its data folder.

Both ways ask the same application for the same operations. A hub that runs is asked over HTTP on
its Unix socket. Where none runs, the application is assembled in this process, which holds the data
folder meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, TypeVar
from urllib.parse import quote, unquote, urlencode

import msgspec
from msgspec import Struct

from folkmoot.cli.limits import MAX_SOCKET_ANSWER, SOCKET_ANSWER_SECONDS
from folkmoot.cli.options import settings_from
from folkmoot.core import errors as e
from folkmoot.datafolder import Paths, running_hub
from folkmoot.mcp.wire import EVENT_STREAM

if TYPE_CHECKING:
    from pathlib import Path

    from starlette.types import ASGIApp

    from folkmoot.operations import Operation
    from folkmoot.settings import Loaded


JSON = "application/json"
WORDS = {True: "true", False: "false"}
QUOTING = "Put patterns in single quotes: a shell reads * and ! itself."
NO_ACCOUNTS = "so nobody has an account. Start the hub first."
HUNG_UP = "The hub hung up before it answered."
NOT_UNDERSTOOD = "The hub's answer cannot be understood."
OTHER_VERSION = "The running hub does not know this command: it is of another version. Restart it."

Shape = TypeVar("Shape")
OnProgress: TypeAlias = Callable[[dict[str, Any]], None]


class OperatedHub:
    """A hub's data folder, and whoever can do something there: the running hub, or this process."""

    def __init__(self, config: str | None, data: str | None) -> None:
        self.loaded: Loaded = settings_from(config, data=data)
        self.paths = Paths(self.loaded.settings.data_folder)
        check_entry(self.paths)
        self.runs = running_hub(self.paths.folder) is not None

    @property
    def is_networked(self) -> bool:
        """Whether the database is at a server."""
        return bool(self.loaded.settings.store.url)

    def ask(
        self,
        name: str,
        arguments: dict[str, Any] | None = None,
        *,
        on_progress: OnProgress | None = None,
    ) -> Any:
        """Have an operation performed."""
        try:
            if self.runs:
                return ask_holder(self.paths, name, arguments, on_progress=on_progress)
            return ask_here(self.loaded, name, arguments, on_progress)
        except e.PatternSyntax as error:
            raise e.PatternSyntax(f"{error.message} {QUOTING}") from None

    def every(self, name: str, member: str, **arguments: Any) -> list[dict[str, Any]]:
        """All items of a list, page by page."""
        found: list[dict[str, Any]] = []
        after: str | None = None
        while True:
            page = self.ask(name, {"after": after, **arguments})
            found += page[member]
            after = page["next"]
            if after is None:
                return found

    def require_database(
        self,
        why: str = NO_ACCOUNTS,
        error: type[e.FolkmootError] = e.CommandFailed,
    ) -> None:
        """Refuse a folder in which no hub has run."""
        if self.is_networked or self.runs:
            return
        if not self.paths.database_exists():
            raise error(f"{self.paths.database}: no database yet, {why}")


def ask_running(
    paths: Paths,
    name: str,
    arguments: dict[str, Any] | None = None,
    timeout: float | None = SOCKET_ANSWER_SECONDS,
) -> Any:
    """Ask the hub on a data folder; raises `HubNotRunning` when there is none."""
    check_entry(paths)
    return ask_socket(paths.control_socket, name, arguments, timeout=timeout)


def ask_holder(
    paths: Paths,
    name: str,
    arguments: dict[str, Any] | None = None,
    *,
    on_progress: OnProgress | None = None,
) -> Any:
    """Ask the hub that holds the data folder; long operations may be quiet for long."""
    try:
        return ask_socket(paths.control_socket, name, arguments, on_progress=on_progress)
    except e.HubNotRunning as error:
        raise e.DataFolderInUse(
            f"{paths.folder}: is in use by a hub that is starting or stopping, or by "
            "another command. Try again."
        ) from error


def ask_socket(
    socket: Path,
    name: str,
    arguments: dict[str, Any] | None = None,
    *,
    on_progress: OnProgress | None = None,
    timeout: float | None = None,
) -> Any:
    """Have whoever listens on a socket perform an operation: its answer, or its error raised.

    `timeout` is how long it may say nothing.
    """
    answer = OperatorAnswer(on_progress)
    exchange(socket, asked(operation(name), arguments or {}), answer, timeout)
    return answer.outcome()


def read_socket(socket: Path, path: str) -> tuple[int, bytes]:
    """GET a path that is no operation from the hub's socket: its status and body."""
    answer = OperatorAnswer(None)
    exchange(socket, OperatorRequest("GET", path, {}, b""), answer, SOCKET_ANSWER_SECONDS)
    return answer.status, answer.body


def ask_here(
    loaded: Loaded,
    name: str,
    arguments: dict[str, Any] | None,
    on_progress: OnProgress | None = None,
) -> Any:
    """Have an operation performed in this process."""
    import asyncio

    from folkmoot.offline import assembled

    row, answer = operation(name), OperatorAnswer(on_progress)

    async def perform() -> None:
        async with assembled(loaded, row) as app:
            await call_app(app, asked(row, arguments or {}), answer)

    asyncio.run(perform())
    return answer.outcome()


class OperatorRequest(NamedTuple):
    method: str
    target: str
    headers: dict[str, str]
    body: bytes


def operation(name: str) -> Operation:
    """The row of an operation."""
    from folkmoot.operations import OPERATIONS

    return next(row for row in OPERATIONS if row.name == name)


def asked(row: Operation, arguments: dict[str, Any]) -> OperatorRequest:
    """The request for an operation: what its path names, then the query or the body."""
    route = row.routes[0]  # type: ignore[index]
    given = {name: value for name, value in arguments.items() if value is not None}
    target = route.path
    for name in list(given):
        if f"{{{name}}}" in target:
            target = target.replace(f"{{{name}}}", quote(str(given.pop(name)), safe=""))
    headers = {"accept": f"{EVENT_STREAM}, {JSON}" if row.progress else JSON}
    if route.method in ("GET", "DELETE"):
        words = {name: WORDS.get(value, value) if type(value) is bool else value
                 for name, value in given.items()}  # fmt: skip
        query = f"?{urlencode(words, doseq=True)}" if words else ""
        return OperatorRequest(route.method, target + query, headers, b"")
    headers["content-type"] = JSON
    return OperatorRequest(route.method, target, headers, msgspec.json.encode(given))


NO_CONTENT: Final = 204


class OperatorAnswer(Struct, eq=False):
    """An answer as it arrives: JSON, or a stream of events that ends with a result or an error."""

    on_progress: OnProgress | None
    status: int = 0
    body: bytes = b""
    _streams: bool = False
    _ended: tuple[str, Any] | None = None

    def begin(self, status: int, content_type: str) -> None:
        """Take the status and content type of the answer."""
        self.status = status
        self._streams = content_type.partition(";")[0].strip().lower() == EVENT_STREAM

    def feed(self, data: bytes) -> None:
        """Take a part of the body."""
        self.body += data
        if len(self.body) > MAX_SOCKET_ANSWER:
            raise e.CommandFailed("The hub's answer is too long.")
        while self._streams and b"\n\n" in self.body:
            event, self.body = self.body.split(b"\n\n", 1)
            self._read_event(event)

    def _read_event(self, event: bytes) -> None:
        members = dict(line.split(b": ", 1) for line in event.split(b"\n") if b": " in line)
        if b"data" not in members:
            return
        name, data = members.get(b"event", b"").decode(), decoded(members[b"data"])
        if name != "progress":
            self._ended = name, data
        elif self.on_progress is not None and isinstance(data, dict):
            self.on_progress(data)

    def outcome(self) -> Any:
        """The result; an error is raised as the error it was."""
        if self._streams:
            if self._ended is None:
                raise e.CommandFailed(HUNG_UP)
            name, data = self._ended
            failed = name == "error"
        else:
            data = None if self.status == NO_CONTENT else decoded(self.body)
            failed = self.status >= 400
        if failed:
            raise raised(data)
        return data


def decoded(body: bytes) -> Any:
    """What was answered."""
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError):
        raise e.CommandFailed(NOT_UNDERSTOOD) from None


def raised(answer: Any) -> e.FolkmootError:
    """The error of an error answer, as an exception of the error tree."""
    told = answer.get("error") if isinstance(answer, dict) else None
    if not isinstance(told, dict) or not isinstance(told.get("message"), str):
        return e.CommandFailed(NOT_UNDERSTOOD)
    code, message = told.pop("code", ""), told.pop("message")
    if code == e.NotFound.code:
        return e.CommandFailed(OTHER_VERSION)
    return e.ERRORS.get(code, e.CommandFailed)(message, **told)


def exchange(
    socket: Path, request: OperatorRequest, answer: OperatorAnswer, timeout: float | None
) -> None:
    """One request on a Unix socket."""
    # A tenth of a second to import, which help and errors need not wait for.
    from http.client import BadStatusLine, HTTPConnection, HTTPException, RemoteDisconnected

    connection = HTTPConnection("folkmoot", timeout=timeout)  # The name says nothing there.
    connection.sock = connected(socket)
    try:
        connection.sock.settimeout(timeout)
        connection.request(request.method, request.target, request.body or None, request.headers)
        response = connection.getresponse()
        answer.begin(response.status, response.getheader("content-type") or "")
        while part := response.read1(65_536):
            answer.feed(part)
    except TimeoutError as error:
        raise e.CommandFailed(f"The hub did not answer for {timeout:g} seconds.") from error
    except BadStatusLine as error:
        hung_up = isinstance(error, RemoteDisconnected)
        raise e.CommandFailed(HUNG_UP if hung_up else OTHER_VERSION) from error
    except (OSError, HTTPException) as error:
        raise e.CommandFailed(HUNG_UP) from error
    finally:
        connection.close()


def connected(path: Path) -> Any:
    """A connection to the hub that listens at a path."""
    import socket

    from folkmoot.datafolder.proxies import socket_address

    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.settimeout(5.0)
        with socket_address(path) as address:
            connection.connect(address)
    except PermissionError as error:
        connection.close()
        raise e.HubNotRunning(f"{path}: belongs to another user's hub.") from error
    except OSError as error:
        connection.close()
        raise e.HubNotRunning(f"No hub is running on {path.parent}.") from error
    return connection


async def call_app(app: ASGIApp, request: OperatorRequest, answer: OperatorAnswer) -> None:
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


def check_entry(paths: Paths) -> None:
    """Refuse a folder we may not look into: whether a hub runs there cannot be told."""
    try:
        paths.control_socket.lstat()
    except PermissionError as error:
        raise e.DataFolderUnwritable(
            f"{paths.folder}: this user can't open it. Run the command as its owner."
        ) from error
    except OSError:
        return


def understood(answer: Any, shape: type[Shape]) -> Shape:
    """A hub's answer in the shape it must have."""
    try:
        return msgspec.convert(answer, shape)
    except msgspec.ValidationError:
        raise e.CommandFailed(NOT_UNDERSTOOD) from None
