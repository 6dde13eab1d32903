"""Writes the settings file: whole, in one step, and only what a hub would read."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from folkmoot.core.errors import SettingsUnwritable
from folkmoot.settings.load import Loaded, load
from folkmoot.staging import staged

NEW_MODE = 0o600
FOLDER_MODE = 0o700
BOM = "\ufeff"


def edit(loaded: Loaded, change: Callable[[str], str], *, pretend: bool = False) -> Loaded:
    """Change the text of the settings file; the answer is what it says then.

    A result that a hub would not read raises its `SettingsError`, and nothing is written. Nor is
    anything when one only pretends, to learn that.
    """
    if loaded.place is None:
        raise SettingsUnwritable("Cannot tell where the settings file would be.")
    # Through a link to the file itself, which a whole new file would otherwise replace.
    path = Path(os.path.realpath(loaded.place))
    before = read(path)
    text = (before or b"").decode("utf-8")
    mark = BOM if text.startswith(BOM) else ""
    try:
        after = f"{mark}{change(text.removeprefix(BOM))}".encode()
    except SettingsUnwritable as error:
        raise SettingsUnwritable(f"{loaded.place}: {error.message}") from None
    given = loaded.given
    changed = load(given.config, environ=given.environ, options=given.options, raw=after)
    if pretend:
        return changed
    try:
        write(path, before, after)
    except OSError as error:
        raise unwritable(path, error) from None
    return changed


def is_in_file(loaded: Loaded, path: str) -> bool:
    """Whether a part of the gateway is in the settings file itself, not in one that it imports."""
    file, _, _ = loaded.gateway_origins[path].rpartition(":")
    return loaded.file is not None and same_file(file, loaded.file)


def same_file(one: str | None, other: str) -> bool:
    """Whether two paths lead to one file."""
    try:
        return one is not None and Path(one).samefile(other)
    except OSError:
        return False


def text_of(loaded: Loaded) -> str:
    """The text of the settings file; empty when there is none."""
    before = None if loaded.place is None else read(Path(os.path.realpath(loaded.place)))
    return (before or b"").decode("utf-8").removeprefix(BOM)


def read(path: Path) -> bytes | None:
    """What a file holds; None when there is none."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise unwritable(path, error) from None


def unwritable(path: Path, error: OSError) -> SettingsUnwritable:
    """What the system said of a file."""
    reason = (error.strerror or type(error).__name__).lower()
    return SettingsUnwritable(f"{path}: cannot be written: {reason}.")


def write(path: Path, before: bytes | None, after: bytes) -> None:
    """Put a whole new file in the place of the old one, with its owner and permissions."""
    if before is None:
        path.parent.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
    status = path.stat() if before is not None else None
    mode = stat.S_IMODE(status.st_mode) if status else NEW_MODE
    with staged(path, after, mode) as part:
        if status is not None:
            with suppress(PermissionError):
                os.chown(part, status.st_uid, status.st_gid)
        check_unchanged(path, before)
        part.replace(path)


def check_unchanged(path: Path, before: bytes | None) -> None:
    """Refuse to undo what another program wrote meanwhile."""
    if read(path) != before:
        raise SettingsUnwritable(f"{path}: another program has just changed it. Try again.")
