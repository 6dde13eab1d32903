"""Files as they will be: planned and looked at first, then written all together or not at all."""

from __future__ import annotations

import difflib
import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from folkmoot.core.errors import ProjectUnusable
from folkmoot.staging import stage

MAX_BYTES = 4 * 1024 * 1024
UNENDED = "\\ No newline at end of file"


class Change(NamedTuple):
    """One file before and after; None for one that is not there."""

    path: Path
    before: str | None
    after: str


class Plan:
    """Changes to the files below a folder; what was planned is what the next reader sees."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._planned: dict[Path, Change] = {}

    def read(self, path: Path) -> str | None:
        """The text of a file as it will be; None where there is none."""
        path = Path(os.path.realpath(path))
        planned = self._planned.get(path)
        return planned.after if planned else read_text(path)

    def write(self, path: Path, text: str) -> None:
        """Plan the text of a file."""
        # Through a link to the file itself, which a whole new file would otherwise replace.
        path = Path(os.path.realpath(path))
        planned = self._planned.get(path)
        before = planned.before if planned else read_text(path)
        self._planned[path] = Change(path, before, text)

    @property
    def changes(self) -> list[Change]:
        """What will be different, by path."""
        return [it for _, it in sorted(self._planned.items()) if it.before != it.after]

    def shown(self, path: Path) -> str:
        """A path as people say it: within the root where it is there."""
        real = Path(os.path.realpath(self.root))
        return path.relative_to(real).as_posix() if path.is_relative_to(real) else str(path)

    def diff(self) -> Iterator[str]:
        """The lines of a unified diff of everything."""
        for path, before, after in self.changes:
            name = self.shown(path).lstrip("/")
            old = "/dev/null" if before is None else f"a/{name}"
            for line in difflib.unified_diff(lines(before or ""), lines(after), old, f"b/{name}"):
                yield line.removesuffix("\n").removesuffix("\r")
                if not line.endswith("\n"):
                    yield UNENDED

    def apply(self) -> None:
        """Write everything, or leave everything as it was. Raises `ProjectUnusable`."""
        staged: list[tuple[Change, Path]] = []
        done: list[Change] = []
        made: list[Path] = []
        try:
            for change in self.changes:
                make_folders(change.path.parent, made)
                part = stage(change.path, change.after.encode(), mode_of(change))
                staged.append((change, part))
            check_unchanged(staged)
            for change, part in staged:
                part.replace(change.path)
                done.append(change)
        except BaseException as error:
            undo(staged, done, made)
            if isinstance(error, OSError):
                where = error.filename or self.root
                why = (error.strerror or "unwritable").lower()
                raise ProjectUnusable(f"{where}: {why}; nothing was changed.") from error
            raise


def lines(text: str) -> list[str]:
    """Lines with their ends; only line feeds end one."""
    *whole, last = text.split("\n")
    return [f"{line}\n" for line in whole] + ([last] if last else [])


def read_text(path: Path) -> str | None:
    """The text of a file with its line ends as they are; None where there is no file."""
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ProjectUnusable(f"{path}: {(error.strerror or 'unreadable').lower()}.") from error
    if len(raw) > MAX_BYTES:
        raise ProjectUnusable(f"{path}: it is larger than 4 MiB, so it is left alone.")
    try:
        return raw.decode()
    except UnicodeDecodeError:
        raise ProjectUnusable(f"{path}: it is not UTF-8 text, so it was not changed.") from None


def make_folders(folder: Path, made: list[Path]) -> None:
    """Make a folder and those above it; those that were not there are added to `made`."""
    for path in reversed([it for it in (folder, *folder.parents) if not it.exists()]):
        path.mkdir()
        made.append(path)


def mode_of(change: Change) -> int:
    """The permissions of a file: as they were, or as any new file has them."""
    if change.before is not None:
        return stat.S_IMODE(change.path.stat().st_mode)
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def check_unchanged(staged: list[tuple[Change, Path]]) -> None:
    """Refuse to undo what another program wrote meanwhile."""
    for change, _ in staged:
        if read_text(change.path) != change.before:
            raise ProjectUnusable(f"{change.path} was just changed by another program.")


def undo(staged: list[tuple[Change, Path]], done: list[Change], made: list[Path]) -> None:
    """Put things back as they were, as far as the system lets us."""
    for _, part in staged:
        with suppress(OSError):
            part.unlink(missing_ok=True)
    for change in done:
        with suppress(OSError):
            if change.before is None:
                change.path.unlink()
            else:
                back = stage(change.path, change.before.encode(), mode_of(change))
                back.replace(change.path)
    for folder in reversed(made):
        with suppress(OSError):
            folder.rmdir()


def with_ends_of(before: str, after: str) -> str:
    """A text whose lines end as those of another do."""
    plain = after.replace("\r\n", "\n")
    return plain.replace("\n", "\r\n") if "\r\n" in before else plain
