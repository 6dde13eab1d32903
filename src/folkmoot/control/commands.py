"""The commands every hub has. Each is made from what it works on, and put into a table by name."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Protocol, TypeVar

import msgspec

from folkmoot.control.wire import Command, Progress
from folkmoot.core.errors import CommandInvalid

T = TypeVar("T")


class BackupMade(Protocol):
    """A backup, and the key it needs."""

    @property
    def path(self) -> str:
        """Where it is."""
        ...

    @property
    def size(self) -> int:
        """How many bytes it has."""
        ...

    @property
    def master_key_id(self) -> str | None:
        """The id of the key it cannot be read without."""
        ...


class OperableStore(Protocol):
    """What an operator may ask of the store."""

    async def backup(
        self, target: Path, *, overwrite: bool = False, progress: Callable[[int, int], None] | None
    ) -> BackupMade:
        """Copy the database into one file while it is in use."""
        ...

    async def check(self) -> list[str]:
        """What is wrong with the database."""
        ...


class BackupArguments(msgspec.Struct, forbid_unknown_fields=True):
    """Where to, and whether a file that is there may be replaced."""

    path: str
    overwrite: bool = False


class NoArguments(msgspec.Struct, forbid_unknown_fields=True):
    """None."""


def convert(arguments: dict[str, Any], shape: type[T]) -> T:
    """The arguments in the shape a command takes."""
    try:
        return msgspec.convert(arguments, shape)
    except msgspec.ValidationError as error:
        raise CommandInvalid(f"The arguments are wrong: {error}.") from error


def backup_command(store: OperableStore) -> Command:
    """`backup`: copy the database; tells `pages` copied of how many; warns of the missing key."""

    async def backup(arguments: dict[str, Any], progress: Progress) -> dict[str, Any]:
        given = convert(arguments, BackupArguments)
        target = Path(given.path)
        if not target.is_absolute():
            raise CommandInvalid("The path of a backup must be absolute.")
        if not target.name or "\0" in given.path:
            raise CommandInvalid("The path of a backup must name a file.")

        def tell(copied: int, pages: int) -> None:
            progress({"copied": copied, "pages": pages})

        made = await store.backup(target, overwrite=given.overwrite, progress=tell)
        return {
            "path": made.path,
            "size": made.size,
            "master_key_id": made.master_key_id,
            "warning": key_warning(made.master_key_id),
        }

    return backup


def key_warning(key_id: str | None) -> str:
    """What whoever keeps a backup must know."""
    named = f" (id {key_id})" if key_id else ""
    return (
        f"The master key{named} is not in the backup, and mail in it cannot be read without the "
        "key. Keep a copy of the key in another place."
    )


def check_command(store: OperableStore) -> Command:
    """`check`: read the whole database and answer its faults."""

    async def check(arguments: dict[str, Any], _progress: Progress) -> dict[str, Any]:
        convert(arguments, NoArguments)
        faults = await store.check()
        return {"whole": not faults, "faults": faults}

    return check


def health_command(report: Callable[[], Awaitable[dict[str, object]]]) -> Command:
    """`health`: what `/health/ready` tells operators."""

    async def health(arguments: dict[str, Any], _progress: Progress) -> dict[str, Any]:
        convert(arguments, NoArguments)
        return await report()

    return health


def metrics_command(exposition: Callable[[], str]) -> Command:
    """`metrics`: the metrics, in the format Prometheus reads."""

    async def metrics(arguments: dict[str, Any], _progress: Progress) -> dict[str, Any]:
        convert(arguments, NoArguments)
        return {"text": exposition()}

    return metrics


def status_command(
    *,
    version: str,
    url: str,
    uptime: Callable[[], float],
    quotas: Callable[[], dict[str, tuple[int, int]]] = dict,
) -> Command:
    """`status`: who runs here, since when, and how much of each quota of the hub is used."""

    async def status(arguments: dict[str, Any], _progress: Progress) -> dict[str, Any]:
        convert(arguments, NoArguments)
        return {
            "pid": os.getpid(),
            "version": version,
            "uptime": uptime(),
            "url": url,
            "quotas": quotas(),
        }

    return status
