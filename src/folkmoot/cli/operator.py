"""The hub as its operator uses it: on the socket of the running hub, or in its data folder.

Both ways ask the same application for the same operations. A hub that runs is asked over HTTP on
its Unix socket. Where none runs, the application is assembled in this process, which holds the data
folder meanwhile.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from folkmoot.cli.limits import SOCKET_ANSWER_SECONDS
from folkmoot.cli.options import settings_from
from folkmoot.client.hub import Hub
from folkmoot.client.transports import OTHER_VERSION, HubRequest, InProcess, Unix
from folkmoot.core import errors as e
from folkmoot.datafolder import Paths, running_hub

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

    from starlette.types import ASGIApp

    from folkmoot.client.transports import HubAnswer
    from folkmoot.operations import Operation
    from folkmoot.operations.declare import Served
    from folkmoot.settings import Loaded


QUOTING = "Put patterns in single quotes: a shell reads * and ! itself."
NO_ACCOUNTS = "so nobody has an account. Start the hub first."
NOT_UNDERSTOOD = "The hub's answer cannot be understood."


class SocketHub(Hub):
    """A hub or a proxy that is asked by the one who runs it."""

    def refused(self, status: int, answer: Any) -> e.FolkmootError:  # noqa: ARG002 - its code says more
        """The error of an error answer, as an exception of the error tree."""
        told = answer.get("error") if isinstance(answer, dict) else None
        if not isinstance(told, dict) or not isinstance(told.get("message"), str):
            return self.not_understood()
        code, message = told.pop("code", ""), told.pop("message")
        if code == e.NotFound.code:
            return e.CommandFailed(OTHER_VERSION)
        return e.ERRORS.get(code, e.CommandFailed)(message, **told)

    def read(self, answer: HubAnswer) -> Any:
        """The JSON of an answer."""
        try:
            return super().read(answer)
        except e.AnswerInvalid:
            raise self.not_understood() from None

    def not_understood(self) -> e.FolkmootError:
        """The error for an answer of another shape, or none."""
        return e.CommandFailed(NOT_UNDERSTOOD)

    def get(self, path: str) -> tuple[int, bytes]:
        """GET a path that is no operation: its status and body."""
        answer = self.send(HubRequest("GET", path, {}), SOCKET_ANSWER_SECONDS)
        return answer.status, bytes(answer.body)


def running(paths: Paths) -> SocketHub:
    """The hub that runs on a data folder; asking raises `HubNotRunning` when there is none."""
    check_entry(paths)
    return on_socket(paths.control_socket)


def on_socket(socket: Path, gone: str = "") -> SocketHub:
    """The hub or the proxy that listens on a socket; `gone` is said where none does any more."""
    hub = SocketHub(Unix(socket, gone))
    hub.seconds = SOCKET_ANSWER_SECONDS
    return hub


class OperatedHub(SocketHub):
    """A hub's data folder, and who can do something there: the running hub, or this process."""

    def __init__(self, config: str | None, data: str | None, *, starts: bool = False) -> None:
        """`starts` is for commands that start what the settings name."""
        self.loaded: Loaded = settings_from(config, runs=starts, data=data)
        self.paths = Paths(self.loaded.settings.data_folder)
        check_entry(self.paths)
        self.runs = running_hub(self.paths.folder) is not None
        super().__init__(
            Unix(self.paths.control_socket)
            if self.runs
            else InProcess(str(self.paths.folder), self._assembled)
        )
        # Long operations say nothing for long.
        self.seconds = None

    def _assembled(self, row: Operation) -> AbstractAsyncContextManager[ASGIApp]:
        from folkmoot.offline import assembled

        return assembled(self.loaded, row)

    @property
    def is_networked(self) -> bool:
        """Whether the database is at a server."""
        return bool(self.loaded.settings.store.url)

    def perform(
        self,
        served: Served[..., Any],
        args: tuple[Any, ...],
        given: dict[str, Any],
        gives: Any = None,
    ) -> Any:
        try:
            return super().perform(served, args, given, gives)
        except e.PatternSyntax as error:
            raise e.PatternSyntax(f"{error.message} {QUOTING}") from None
        except e.HubNotRunning as error:
            raise e.DataFolderInUse(
                f"{self.paths.folder}: is in use by a hub that is starting or stopping, or by "
                "another command. Try again."
            ) from error

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
