"""Which files of a project are read."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

from folkmoot.core.errors import ProjectUnusable

LEFT_OUT: Final = frozenset({
    "__pycache__", "__pypackages__", "build", "dist", "env", "node_modules", "site-packages",
    "venv",
})  # fmt: skip
"""Folders that hold what others wrote, or what was made; folders with a dot before them do too."""
MOST_FILES: Final = 20_000


def sources(
    root: Path, paths: Sequence[Path], exclude: Sequence[str], trouble: Callable[[OSError], None]
) -> list[Path]:
    """Python files under the paths, each once and in order; a file that is named is always one.

    `trouble` is told of folders that cannot be read.
    """
    found: dict[Path, None] = {}
    for path in paths:
        if not path.exists():
            raise ProjectUnusable(f"{path}: there is no such file or folder")
        if not path.is_dir() and not path.is_file():
            raise ProjectUnusable(f"{path}: is neither a file nor a folder")
        for file in walk(root, path, exclude, trouble) if path.is_dir() else [path]:
            found.setdefault(file)
            if len(found) > MOST_FILES:
                raise ProjectUnusable(
                    f"There are more than {MOST_FILES} Python files; name the folders to look at."
                )
    return list(found)


def walk(
    root: Path, folder: Path, exclude: Sequence[str], trouble: Callable[[OSError], None]
) -> Iterator[Path]:
    """The Python files below a folder; links to folders are not followed, so no loop catches us."""
    for where, folders, files in os.walk(folder, onerror=trouble, followlinks=False):
        here = Path(where)
        folders[:] = sorted(
            name
            for name in folders
            if name not in LEFT_OUT
            and not name.startswith(".")
            and not (here / name / "pyvenv.cfg").exists()
            and not excluded(shown(root, here / name), exclude)
        )
        for name in sorted(files):
            file = here / name
            # A pipe that is named like a source would never end.
            if (
                name.endswith((".py", ".pyw"))
                and not excluded(shown(root, file), exclude)
                and file.is_file()
            ):
                yield file


def shown(root: Path, file: Path) -> str:
    """A file as a place names it: from the root, with `/`; whole if it is elsewhere."""
    try:
        return file.relative_to(root).as_posix()
    except ValueError:
        return file.as_posix()


def excluded(path: str, patterns: Sequence[str]) -> bool:
    """Whether a pattern has the path: one with a slash from the root on, others wherever it is."""
    last = path.rpartition("/")[2]
    return any(
        fnmatchcase(path if "/" in pattern.rstrip("/") else last, pattern.strip("/"))
        for pattern in patterns
    )
