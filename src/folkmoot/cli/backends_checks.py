"""The doctor's check of the servers behind the hub: what can be told without reaching them."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from folkmoot.cli.backends_show import counted
from folkmoot.cli.show import word
from folkmoot.core.errors import FolkmootError
from folkmoot.datafolder import Finding, Paths
from folkmoot.settings.backends import Secret

if TYPE_CHECKING:
    from folkmoot.core.ports import Tx, Unit
    from folkmoot.settings import BackendSpec, Loaded

T = TypeVar("T")

TAKEN = "SELECT handle FROM handles WHERE (kind = 'live' OR until > ?) AND handle = ?"

HELD = "SELECT COUNT(*) FROM pins WHERE changed_hash IS NOT NULL AND namespace = ?"


def check_backends(loaded: Loaded) -> Iterator[Finding]:
    """What is wrong with backends, each that something is wrong with; or how many there are."""
    specs = [spec for spec in loaded.gateway.backends.values() if spec.enabled]
    found = [finding for spec in specs for finding in check_backend(spec)]
    found += check_handles(Paths(loaded.settings.data_folder), loaded.gateway.backends)
    found += check_held(Paths(loaded.settings.data_folder), loaded.gateway.backends)
    found += [Finding("backends", "warning", note) for note in loaded.notes]
    told = counted(len(specs), "backend") if specs else "none"
    yield from found or [Finding("backends", "ok", told)]


def check_backend(spec: BackendSpec) -> Iterator[Finding]:
    """Whether a backend could be reached as far as this machine is concerned."""
    for fault in secret_faults(spec):
        advice = "A hub that runs elsewhere or as another user may have it."
        yield Finding("backends", "warning", f"{spec.namespace}: {fault}", advice)
    if spec.cwd and not Path(spec.cwd).is_dir():
        advice = "Create the folder, or change cwd."
        yield Finding(
            "backends", "problem", f"{spec.namespace}: {spec.cwd}: no such folder", advice
        )
    elif spec.command and (wrong := isolation_fault(spec)):
        advice = "Change user or sandbox, or fix it."
        yield Finding("backends", "problem", f"{spec.namespace}: {wrong}", advice)
    elif spec.command and not program_of(spec):
        told = f"{spec.namespace}: the program {spec.command[0]} is not found"
        advice = "Install it, or give its full path in command."
        yield Finding("backends", "problem", told, advice)


def secret_faults(spec: BackendSpec) -> Iterator[str]:
    """Each reference that leads nowhere, in a sentence."""
    from folkmoot.relay.upstream.secrets import resolve

    for what, values in (("variable", spec.env), ("header", spec.headers)):
        for name, value in values.items():
            if isinstance(value, Secret):
                try:
                    resolve(value, os.environ, f"the {what} {name}")
                except FolkmootError as error:
                    yield error.message.rstrip(".")


def isolation_fault(spec: BackendSpec) -> str:
    """Why a backend cannot run as another user or in its sandbox; empty when it can."""
    from folkmoot.relay.upstream.isolation import BWRAP, isolated

    if not spec.user and spec.sandbox != BWRAP:
        return ""
    try:
        start = isolated(spec, dict(os.environ), ())
    except FolkmootError as error:
        return error.message.rstrip(".")
    if spec.sandbox != BWRAP:
        return ""
    place = start.command.index("--", start.command.index("--chdir"))
    trying = [*start.command[:place], "--", "true"]
    try:
        ran = subprocess.run(trying, capture_output=True, timeout=30, check=False)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired):
        return "bwrap does not run here"
    return "" if ran.returncode == 0 else word(ran.stderr.decode(errors="replace").strip()[:200])


def program_of(spec: BackendSpec) -> str | None:
    """Where the program of a command is found; a path is taken from where it is started."""
    program = Path(spec.command[0])
    if len(program.parts) > 1:
        return shutil.which(Path(spec.cwd) / program)
    path = spec.env.get("PATH")
    return shutil.which(program.name, path=path if isinstance(path, str) else None)


def check_handles(paths: Paths, namespaces: Collection[str]) -> list[Finding]:
    """Whether someone has a backend's name: the hub would not start."""
    try:
        taken = handles_among(paths, namespaces) if namespaces else []
    except FolkmootError:
        # What is wrong with the database is told where it is checked.
        return []
    advice = "Give it another namespace."
    return [
        Finding(
            "backends", "problem", f"{name}: is someone's handle, or was until recently", advice
        )
        for name in taken
    ]


def check_held(paths: Paths, namespaces: Collection[str]) -> list[Finding]:
    """How many tools wait to be accepted."""

    async def query(tx: Tx) -> list[tuple[str, int]]:
        rows = [(name, await tx.fetch_one(HELD, (name,))) for name in sorted(namespaces)]
        return [(name, row[0]) for name, row in rows if row is not None and row[0]]

    try:
        held = asked_of(paths, query)
    except FolkmootError:
        return []
    return [
        Finding(
            "backends",
            "warning",
            f"{namespace}: {counted(count, 'tool')} changed or new, held back until accepted",
            f"To see it: folkmoot backends diff {namespace}",
        )
        for namespace, count in held
    ]


def handles_among(paths: Paths, names: Collection[str]) -> list[str]:
    """Which of these names are handles of people."""
    now = int(time.time())

    async def query(tx: Tx) -> list[str]:
        return [name for name in sorted(names) if await tx.fetch_one(TAKEN, (now, name))]

    return asked_of(paths, query)


def asked_of(paths: Paths, query: Unit[list[T]]) -> list[T]:
    """What a query answers on the database; nothing where there is none."""
    from folkmoot.store import look_up

    return look_up(paths.database, query) if paths.database_exists() else []
