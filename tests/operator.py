"""Has an operation performed by its name, as an operator does: on a socket, or in this process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from folkmoot.cli.operator import SocketHub, on_socket
from folkmoot.client.asking import request_for
from folkmoot.client.transports import HubRequest, InProcess
from folkmoot.operations import OPERATIONS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from folkmoot.operations import Operation
    from folkmoot.settings import Loaded


def operation(name: str) -> Operation:
    return next(row for row in OPERATIONS if row.name == name)


def asked(row: Operation, arguments: dict[str, Any]) -> HubRequest:
    return request_for(row, arguments, "")


def ask_socket(
    socket: Path,
    name: str,
    arguments: dict[str, Any] | None = None,
    *,
    on_progress: Callable[[dict[str, Any]], None] | None = None,
    timeout: float | None = None,
) -> Any:
    hub = on_socket(socket)
    hub.seconds = timeout
    return perform(hub, name, arguments, on_progress)


def read_socket(socket: Path, path: str) -> tuple[int, bytes]:
    return on_socket(socket).get(path)


def ask_here(
    loaded: Loaded,
    name: str,
    arguments: dict[str, Any] | None = None,
    on_progress: Callable[[dict[str, Any]], None] | None = None,
) -> Any:
    from folkmoot.offline import assembled

    folder = str(loaded.settings.data_folder)
    hub = SocketHub(InProcess(folder, lambda row: assembled(loaded, row)))
    return perform(hub, name, arguments, on_progress)


def perform(
    hub: SocketHub,
    name: str,
    arguments: dict[str, Any] | None,
    on_progress: Callable[[dict[str, Any]], None] | None,
) -> Any:
    if on_progress is not None:
        hub = hub.telling(on_progress)
    answer = hub.send(asked(operation(name), arguments or {}), hub.seconds)
    told = hub.read(answer) if answer.body else None
    if answer.failed:
        raise hub.refused(answer.status, told)
    return told
