"""Where this user's proxies have recorded, so that tapes are found again after a proxy has ended.

One small file for each place, named by a hash of its path, in a folder that is this user's alone.
Losing it loses no tape.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from folkmoot.datafolder.limits import MAX_RECORDING_PATH, MAX_RECORDINGS
from folkmoot.datafolder.sockets import FOLDER_MODE, is_own, state_folder

PLACE: Final = re.compile("[0-9a-f]{12}")


def recordings_folder(environ: Mapping[str, str] | None = None) -> Path:
    """The folder that remembers them."""
    return state_folder(environ) / "recordings"


def place_of(path: Path) -> str:
    """A short name for a place."""
    return hashlib.sha256(os.fsencode(path.absolute())).hexdigest()[:12]


def remember(path: Path, folder: Path | None = None) -> None:
    """Remember a tape, or a folder of tapes; where that is not possible nothing is remembered."""
    folder = recordings_folder() if folder is None else folder
    with suppress(OSError):
        folder.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
        mark = folder / place_of(path)
        mark.write_bytes(os.fsencode(path.absolute()))
        # What was there before keeps its time unless something new is written.
        os.utime(mark)
        for old in newest(folder)[MAX_RECORDINGS:]:
            old.unlink()


def recorded(folder: Path | None = None) -> dict[str, Path]:
    """The tapes and folders that are remembered, by their short names, the last used first.

    What another user owns, or could have written, is not one of them.
    """
    folder = recordings_folder() if folder is None else folder
    found: dict[str, Path] = {}
    try:
        if not is_own(folder.stat()):
            return {}
        for mark in newest(folder)[:MAX_RECORDINGS]:
            if not is_own(mark.lstat()):
                continue
            with mark.open("rb") as file:
                path = Path(os.fsdecode(file.read(MAX_RECORDING_PATH)))
            if path.is_absolute() and place_of(path) == mark.name:
                found[mark.name] = path
    except (OSError, ValueError):
        return found
    return found


def newest(folder: Path) -> list[Path]:
    """The marks, the last written first."""
    marks = []
    for path in folder.iterdir():
        status = path.lstat()
        if PLACE.fullmatch(path.name) and stat.S_ISREG(status.st_mode):
            marks.append((status.st_mtime_ns, path))
    return [path for _, path in sorted(marks, reverse=True)]
