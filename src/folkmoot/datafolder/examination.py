"""Looking at a data folder without changing it: what is well, what is not, and what to do."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, TypeAlias

from msgspec import Struct

from folkmoot.core import errors as e
from folkmoot.datafolder.folder import OTHERS, Paths, running_hub

LOW_SPACE = 512 * 1024 * 1024

Level: TypeAlias = Literal["ok", "warning", "problem"]


class Finding(Struct, frozen=True, omit_defaults=True):
    """One finding, with advice if something is wrong."""

    subject: str
    level: Level
    text: str
    advice: str = ""


def examine(path: Path) -> list[Finding]:
    """What can be told of a data folder without reading what is in its files; the folder first."""
    paths = Paths(path.absolute())
    folder = examine_folder(paths.folder)
    findings = [folder, examine_space(paths.folder)]
    if folder.level != "problem" and paths.folder.is_dir():
        findings += [examine_lock(paths), *examine_files(paths)]
    return findings


def examine_folder(folder: Path) -> Finding:
    """Whether a hub could live there."""
    try:
        status = folder.stat()
    except FileNotFoundError:
        return examine_parent(folder)
    except OSError as error:
        return Finding("data folder", "problem", f"{folder}: {error.strerror}", OTHER_FOLDER)
    if not stat.S_ISDIR(status.st_mode):
        return Finding("data folder", "problem", f"{folder}: is not a folder", OTHER_FOLDER)
    if status.st_uid != os.geteuid():
        text = f"{folder}: belongs to user {status.st_uid}"
        return Finding("data folder", "problem", text, OTHER_FOLDER)
    if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        text = f"{folder}: cannot be written by this user"
        return Finding("data folder", "problem", text, OTHER_FOLDER)
    if status.st_mode & OTHERS:
        text = f"{folder}: other users can open it (mode {stat.S_IMODE(status.st_mode):04o})"
        return Finding("data folder", "warning", text, f"Run: chmod 700 {folder}")
    return Finding("data folder", "ok", f"{folder}: private and writable")


OTHER_FOLDER = "Choose another folder with --data, or run as the user it belongs to."


def examine_parent(folder: Path) -> Finding:
    """Whether a folder that is not there could be made."""
    parent = nearest(folder)
    if parent.is_dir() and os.access(parent, os.W_OK | os.X_OK):
        return Finding("data folder", "ok", f"{folder}: will be created at the first start")
    return Finding(
        "data folder", "problem", f"{folder}: cannot be created in {parent}", OTHER_FOLDER
    )


def nearest(folder: Path) -> Path:
    """The folder itself or the nearest one above it that can be seen."""
    return next((place for place in (folder, *folder.parents) if can_be_seen(place)), Path("/"))


def can_be_seen(place: Path) -> bool:
    """Whether a path exists, as far as this user can tell."""
    try:
        place.stat()
    except OSError:
        return False
    return True


def examine_space(folder: Path) -> Finding:
    """Whether there is room to write."""
    try:
        free = shutil.disk_usage(nearest(folder)).free
    except OSError as error:
        return Finding("disk space", "warning", f"unknown: {error.strerror}")
    text = f"{free / 1024**3:,.1f} GiB free"
    if free < LOW_SPACE:
        return Finding(
            "disk space", "warning", text, "Free some disk space: a full disk stops every write."
        )
    return Finding("disk space", "ok", text)


def examine_lock(paths: Paths) -> Finding:
    """Whether a hub runs on the folder."""
    try:
        pid = running_hub(paths.folder)
    except e.DataFolderUnwritable as error:
        return Finding("hub", "problem", error.message, f"Move {paths.lock} away.")
    if pid is None:
        return Finding("hub", "ok", "not running")
    return Finding("hub", "ok", f"running, process {pid}" if pid else "running")


def examine_files(paths: Paths) -> Iterator[Finding]:
    """Whether the files that must be private are."""
    side = [paths.database.with_name(paths.database.name + name) for name in ("-wal", "-shm")]
    keys = [paths.master_key, *sorted(paths.folder.glob(f"{paths.master_key.name}.*.old"))]
    for file in (paths.database, *side, *keys, paths.control_socket):
        try:
            mode = stat.S_IMODE(file.stat().st_mode)
        except OSError:
            continue
        if mode & OTHERS:
            level: Level = "problem" if file in keys else "warning"
            text = f"{file.name}: other users can read or write it (mode {mode:04o})"
            yield Finding("permissions", level, text, f"Run: chmod 600 {file}")
